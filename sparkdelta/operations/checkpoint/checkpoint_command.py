"""The checkpoint command."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.progress import progress
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.operations.checkpoint.checkpoint_writing import WrittenCheckpoint, write_checkpoint
from sparkdelta.table.listing.listing import open_log_for_writing


def checkpoint(
    spark: SparkSession,
    path: str,
    options: CheckpointOptions,
    *,
    version: Version | None = None,
    now_ms: int | None = None,
    shows_progress: bool = False,
) -> WrittenCheckpoint:
    """Write the checkpoint of a version, see `sparkdelta.write_checkpoint`.

    Parameters
    ----------
    now_ms
        The time in milliseconds since the epoch that determines expired tombstones and
        transactions; the current time by default.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    store = open_log_for_writing(spark, path)
    with (
        jobs_of(store.table_root, version),
        engine_of(spark).log_session() as session,
        progress(session, f"Checkpoint of {path}", is_on=shows_progress),
    ):
        return write_checkpoint(session, path, options, version=version, now_ms=now_ms)
