"""Writing a checkpoint."""

from __future__ import annotations

import logging
import time
from typing import get_args

from pyspark.sql import SparkSession

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.protocol.checkpoint_kinds import checkpoint_kind
from sparkdelta.protocol.log_files import Version
from sparkdelta.table.checkpoint_contents import ADDS_PER_SIDECAR, CheckpointContents, Layout
from sparkdelta.table.checkpointer import Checkpointer, ReuseFailed, WrittenCheckpoint
from sparkdelta.table.log_listing import open_log
from sparkdelta.table.progress import progress
from sparkdelta.table.sessions import writing_session
from sparkdelta.table.writable import open_writable

_LOGGER = logging.getLogger(__name__)


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
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    open_log(spark, path).check_writable()
    with (
        writing_session(spark) as session,
        progress(session, f"Checkpoint of {path}", is_on=shows_progress),
    ):

        def written(*, is_incremental: bool) -> WrittenCheckpoint:
            snapshot = open_writable(session, path, version=version)
            contents = CheckpointContents.of(
                snapshot, layout=layout, now_ms=now, adds_per_sidecar=adds_per_sidecar
            )
            return Checkpointer(
                contents=contents,
                kind=checkpoint_kind(kind, snapshot.protocol, snapshot.properties),
                is_kind_asked=kind is not None,
                is_incremental=is_incremental,
                compression=compression,
            ).write()

        try:
            return written(is_incremental=incremental)
        except ReuseFailed as problem:
            _LOGGER.warning("A full checkpoint instead of an incremental one: %r", problem)
            return written(is_incremental=False)
