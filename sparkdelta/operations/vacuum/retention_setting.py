"""The setting of delta-spark by which a session allows VACUUM a retention period of any length."""

from __future__ import annotations

from pyspark.sql import SparkSession

RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def checks_retention(spark: SparkSession) -> bool:
    """True unless the session's settings disable the check of VACUUM's retention period."""
    return str(spark.conf.get(RETENTION_CHECK, "true")).lower() != "false"
