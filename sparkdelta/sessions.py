"""Public: PySpark's own methods for Delta tables, in sessions that ask for it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.spark_api.enabled_sessions import disable_session, enable_session
from sparkdelta.spark_api.methods import METHODS


def enable(spark: SparkSession) -> SparkSession:
    """Make PySpark's readers and writers of a session work with ``format("delta")``.

    ``spark.read.format("delta")``, ``df.write.format("delta")`` and ``df.writeTo`` take
    delta-spark's options. Reads and writes of other formats, and other sessions, are left to
    PySpark; so are programs outside this Python process. Enabling a session again changes nothing.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.

    Returns
    -------
    SparkSession
        The same session.

    Raises
    ------
    DeltaSparkPresentError
        delta-spark's JAR is there.

    Examples
    --------
    >>> sparkdelta.enable(spark)  # doctest: +SKIP
    >>> spark.read.format("delta").option("versionAsOf", 3).load("/data/people")  # doctest: +SKIP
    """
    enable_session(spark, METHODS)
    return spark


def disable(spark: SparkSession) -> None:
    """Undo `enable`: the session's readers and writers are PySpark's again."""
    disable_session(spark)
