"""What the log's actions, checkpoints, statistics and rows look like to Spark: their types, and
what these ask of values, as SQL text.

May import pyspark's type objects and `protocol`; never a session, a DataFrame or a Column.
"""
