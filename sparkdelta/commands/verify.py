"""Verify a table against its log."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.protocol.log_files import Version
from sparkdelta.table.log.listing import open_log
from sparkdelta.table.maintenance.verification import Verification, verified


def verify_table(
    spark: SparkSession, path: str, *, version: Version | None = None, footers: bool = False
) -> Verification:
    """Verify a table, see `sparkdelta.verify`.

    References
    ----------
    PROTOCOL.md#state-validation
    """
    return verified(spark, open_log(spark, path), version=version, footers=footers)
