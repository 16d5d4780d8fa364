"""Maintenance that follows a commit: its version checksum, and as the table's properties say
symlink manifests, a log compaction, a checkpoint, a cleanup of the log, its description in the
session catalog, a compaction of files. Rows that Spark has cached are read again.

None of it is part of the commit, and no failure in it undoes the commit.

References
----------
PROTOCOL.md#version-checksum-file, PROTOCOL.md#checkpoints, PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparkdelta.base.protocol.manifest_files import ENABLE_MANIFESTS, touched_partitions
from sparkdelta.base.protocol.table_features import Writing, allows
from sparkdelta.base.protocol.table_properties import (
    CHECKPOINT_IN_BACKGROUND,
    COMPACTION_IN_BACKGROUND,
    checkpoint_interval,
    compaction_interval,
    is_off,
    is_on,
)
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.checkpoint.checkpoint_writing import checkpoint_table
from sparkdelta.operations.upkeep.auto_compaction import (
    AutoCompaction,
    auto_compact,
    due_compaction,
)
from sparkdelta.operations.upkeep.background_thread import BackgroundThread
from sparkdelta.operations.upkeep.catalog_entries import describe_committed_table
from sparkdelta.operations.upkeep.checksum_chain import add_checksum_of_commit
from sparkdelta.operations.upkeep.checksum_writing import add_version_checksum
from sparkdelta.operations.upkeep.log_compaction import compact
from sparkdelta.operations.upkeep.metadata_cleanup import ENABLED, clean_metadata
from sparkdelta.operations.upkeep.persisted_rows import persist_again
from sparkdelta.operations.upkeep.symlink_manifests import generate_manifests
from sparkdelta.table.commit.transaction import CommittedTransaction

MAX_TOUCHED_PARTITIONS = 100
"""The most partitions of a commit whose manifests are written; if it touches more, the manifests of
all partitions are."""

_LOGGER = logging.getLogger(__name__)


def run_commit_hooks(done: CommittedTransaction, *, compacts: bool = False) -> None:
    """Run the maintenance that is due after a commit; a failing step is logged, and the next runs.

    Parameters
    ----------
    compacts
        True if small files are compacted, too, where the table asks for it.
    """
    steps = {
        "cached rows": persist_again,
        "version checksum": _write_checksum,
        "symlink manifests": _write_manifests,
        "log compaction": _compact_log,
        "checkpoint": _write_checkpoint,
        "catalog entry": describe_committed_table,
        **({"auto compaction": _compact_files} if compacts else {}),
    }
    for what, step in steps.items():
        _run_step(done, what, partial(step, done))


def _run_step(done: CommittedTransaction, what: str, step: Callable[[], None]) -> None:
    try:
        with jobs_of(done.store.table_root, done.version):
            step()
    except BaseException as error:
        _LOGGER.warning(
            "Version %s of %s was committed, but its %s failed: %s",
            done.version, done.store.table_root, what, error,
        )  # fmt: skip
        if not isinstance(error, Exception):
            raise


@dataclass(frozen=True, slots=True)
class _DueUpkeep:
    """The maintenance of a table that its writers do not wait for.

    Attributes
    ----------
    checkpoint
        The commit whose version gets a checkpoint; None if no checkpoint is due.
    """

    checkpoint: CommittedTransaction | None = None
    compaction: AutoCompaction | None = None

    def joined(self, later: _DueUpkeep) -> _DueUpkeep:
        """Return the maintenance after a later commit in place of two."""
        compaction = later.compaction or self.compaction
        if self.compaction is not None and later.compaction is not None:
            compaction = self.compaction.joined(later.compaction)
        return _DueUpkeep(later.checkpoint or self.checkpoint, compaction)

    def run(self) -> None:
        if self.checkpoint is not None:
            write = partial(_checkpoint, self.checkpoint)
            _run_step(self.checkpoint, "checkpoint in the background", write)
        if self.compaction is not None:
            compact = partial(auto_compact, self.compaction, run_commit_hooks)
            _run_step(self.compaction.done, "auto compaction in the background", compact)


BACKGROUND = BackgroundThread("sparkdelta upkeep", _DueUpkeep.run, _DueUpkeep.joined)
"""The thread that maintains tables with `sparkdelta.autoCompactInBackground` and
`sparkdelta.checkpointInBackground`. Where it fails, or Spark is stopped before, a later commit of
the table does it."""


def _compact_files(done: CommittedTransaction) -> None:
    due = due_compaction(done)
    if due is None:
        return
    if is_on(done.properties, COMPACTION_IN_BACKGROUND):
        BACKGROUND.add(done.store.table_root, _DueUpkeep(compaction=due))
    else:
        auto_compact(due, run_commit_hooks)


def _write_checksum(done: CommittedTransaction) -> None:
    if done.lines is not None:
        add_checksum_of_commit(done.store, done.version, done.lines, done.checksum_before)
    elif done.before is not None:  # else no checksum tells of the files
        add_version_checksum(done.snapshot, from_state=False)


def _write_manifests(done: CommittedTransaction) -> None:
    if not is_on(done.properties, ENABLE_MANIFESTS):
        return
    snapshot, touched = done.snapshot, None
    if done.lines is not None:
        names = snapshot.configuration.partition_columns
        touched = touched_partitions(done.lines, names, MAX_TOUCHED_PARTITIONS)
    generate_manifests(snapshot, touched)


def _compact_log(done: CommittedTransaction) -> None:
    interval = compaction_interval(done.properties)
    if interval is None or interval < 2 or (done.version + 1) % interval:
        return
    with engine_of(done.spark).log_session() as session:
        compact(done.snapshot.in_session(session), done.version - interval + 1)


def _write_checkpoint(done: CommittedTransaction) -> None:
    if not done.version or done.version % checkpoint_interval(done.properties):
        return
    if is_on(done.properties, CHECKPOINT_IN_BACKGROUND):
        BACKGROUND.add(done.store.table_root, _DueUpkeep(checkpoint=done))
    else:
        _checkpoint(done)


def _checkpoint(done: CommittedTransaction) -> None:
    path, now = done.store.table_root, time.time_ns() // 1_000_000
    with engine_of(done.spark).log_session() as session:
        snapshot = done.snapshot.in_session(session)
        checkpoint_table(session, path, now_ms=now, snapshot=snapshot)
        # Where no commit told the checksum; the state is at hand now.
        add_version_checksum(snapshot)
    if not is_off(done.properties, ENABLED) and allows(done.snapshot.protocol, Writing.CLEANUP):
        clean_metadata(done.snapshot, now_ms=now)
