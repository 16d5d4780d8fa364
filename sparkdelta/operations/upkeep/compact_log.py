"""The log compaction command.

References
----------
PROTOCOL.md#log-compaction-files
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.upkeep.log_compaction import CompactionResult, compact
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import open_log_for_writing


def compact_commits(
    spark: SparkSession, path: str, *, start: Version | None = None, end: Version | None = None
) -> CompactionResult:
    """Write a log compaction file, see `sparkdelta.compact_log`."""
    store = open_log_for_writing(spark, path)
    with jobs_of(store.table_root, end), engine_of(spark).log_session() as session:
        snapshot = open_writable(session, path, version=end)
        checkpoint = snapshot.segment.checkpoint
        default_start = 0 if checkpoint is None else checkpoint.version + 1
        first, last = default_start if start is None else start, snapshot.version
        if start is None and first >= last:
            return CompactionResult(first, last)
        if not 0 <= first < last:
            problem = f"{first} must be smaller than {last}, the end of the range"
            raise InvalidArgumentError(argument="start", problem=problem)
        return compact(snapshot, first, last)
