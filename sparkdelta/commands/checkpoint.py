"""Writing a checkpoint."""

from __future__ import annotations

import time
from typing import get_args

from pyspark.sql import SparkSession

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.protocol.log_files import Version
from sparkdelta.table.checkpoint_contents import ADDS_PER_SIDECAR, Layout
from sparkdelta.table.checkpointer import WrittenCheckpoint, write_checkpoint
from sparkdelta.table.job_names import jobs_of
from sparkdelta.table.log_listing import open_log_for_writing
from sparkdelta.table.progress import progress
from sparkdelta.table.sessions import writing_session


def checkpoint(
    spark: SparkSession,
    path: str,
    *,
    version: Version | None = None,
    kind: str | None = None,
    layout: Layout = "clustered",
    incremental: bool = True,
    adds_per_sidecar: int = ADDS_PER_SIDECAR,
    compression: str = "snappy",
    now_ms: int | None = None,
    shows_progress: bool = False,
) -> WrittenCheckpoint:
    """Write the checkpoint of a version, see `sparkdelta.write_checkpoint`.

    Parameters
    ----------
    now_ms
        The time by which tombstones and transactions are expired; now by default.
    """
    if layout not in get_args(Layout):
        problem = f"{layout!r} is not one of {', '.join(get_args(Layout))}"
        raise InvalidArgumentError(argument="layout", problem=problem)
    if adds_per_sidecar < 1:
        problem = f"{adds_per_sidecar} is less than 1"
        raise InvalidArgumentError(argument="adds_per_sidecar", problem=problem)
    store = open_log_for_writing(spark, path)
    with (
        jobs_of(store.table_root, version),
        writing_session(spark) as session,
        progress(session, f"Checkpoint of {path}", is_on=shows_progress),
    ):
        return write_checkpoint(
            session,
            path,
            version=version,
            now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
            kind=kind,
            layout=layout,
            is_incremental=incremental,
            adds_per_sidecar=adds_per_sidecar,
            compression=compression,
        )
