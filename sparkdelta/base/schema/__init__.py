"""Spark types of tables and of the log, and SQL over the log's columns."""
