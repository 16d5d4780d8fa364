"""StructTypes and nothing else: what the log's actions, checkpoints, statistics and rows look like
to Spark.

May import pyspark's type objects and `protocol`; never a session, a DataFrame or a Column.
"""
