"""Which kind of Spark session this is."""

from __future__ import annotations

from pyspark.sql import SparkSession


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect, which has no JVM at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
