"""Delete the expired files of a log.

References
----------
PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.table_features import Writing
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.operations.upkeep.metadata_cleanup import CleanupResult, clean_metadata
from sparkdelta.table.definition.writable import open_writable


def clean_expired(
    spark: SparkSession, path: str, *, dry_run: bool = False, now_ms: int | None = None
) -> CleanupResult:
    """Delete the expired files of the log, see `sparkdelta.clean_log`."""
    snapshot = open_writable(spark, path, writing=Writing.CLEANUP)
    with jobs_of(snapshot.path, snapshot.version):
        return clean_metadata(snapshot, dry_run=dry_run, now_ms=now_ms)
