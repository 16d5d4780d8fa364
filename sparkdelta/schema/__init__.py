"""Spark types of the log's actions, checkpoints, statistics and table rows, and the checks and SQL
expressions that follow from them.

May import pyspark's type objects and `protocol`, but no session, DataFrame or Column.
"""
