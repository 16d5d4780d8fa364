"""Listing and bytes of the log behind one `LogStore`, and the way from a list of files to a Spark
scan.

The only layer that knows file systems; only `hadoop*.py` may touch `spark._jvm`.
It knows names and bytes, not what they mean: no rule of the protocol lives here.
"""
