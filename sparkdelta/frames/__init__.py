"""Protocol rules as lazy transformations of DataFrames of actions and rows.

Functions here take and return DataFrames or SQL expressions. They do not create sessions, trigger
Spark jobs or access storage. Results do not depend on the session's settings: formats, time zones
and null handling are explicit, and each function documents whether a value that cannot be parsed is
an error or null.
"""
