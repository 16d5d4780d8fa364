"""Verify a table against its log.

References
----------
PROTOCOL.md#state-validation
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.operations.verify.verification import Verification, verified
from sparkdelta.table.listing.listing import open_log


def verify_table(
    spark: SparkSession, path: str, *, version: Version | None = None, footers: bool = False
) -> Verification:
    """Verify a table, see `sparkdelta.verify`."""
    return verified(spark, open_log(spark, path), version=version, footers=footers)
