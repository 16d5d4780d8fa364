"""The rules of PROTOCOL.md over values: which files form a segment, what bytes and names mean.

Plain Python: no pyspark, no I/O, no clock, no session. What a rule needs comes in as an argument,
and what it decides goes out as a value. Only `deletion_vectors` and `roaring_bitmaps` use numpy.
May import `sparkdelta.exceptions` and nothing above it.
"""
