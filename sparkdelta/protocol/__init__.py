"""The rules of PROTOCOL.md as pure functions: log segments, actions, file formats, table features.

Plain Python: no pyspark, no I/O, no clock, no session. Each rule gets its input as arguments and
returns its result. Only `deletion_vectors` and `roaring_bitmaps` use numpy. Of the package, only
`sparkdelta.exceptions` may be imported.
"""
