"""Access to the files of a table: the log through `LogStore`, data files as Spark scans.

The only layer that depends on file systems; only `hadoop*.py` may access `spark._jvm`. It contains
no rules of the protocol.
"""
