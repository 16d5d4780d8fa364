"""Drop a table feature: its traces, the history that needs it, and its name in the protocol.

References
----------
PROTOCOL.md#supported-features, PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.feature_registry import FEATURES, TableFeature
from sparkdelta.base.protocol.log_files import LogFileKind, Version
from sparkdelta.base.protocol.retention import (
    log_retention,
    truncated_history_retention,
    truncated_history_retention_ms,
)
from sparkdelta.base.protocol.table_features import Writing, check_data_writable, check_writable
from sparkdelta.base.protocol.table_properties import protected_version
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    DeltaConcurrentModificationException,
    DeltaError,
    MaxCommitRetriesExceededError,
)
from sparkdelta.operations.alter.dropped_features import (
    checked_drop,
    dropped_feature,
    has_traces,
    history_has_traces,
)
from sparkdelta.operations.alter.feature_removal import remove_traces
from sparkdelta.operations.checkpoint.checkpoint_writing import checkpoint_table
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.upkeep.metadata_cleanup import clean_metadata
from sparkdelta.table.commit.committer import Committer
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.listing.listing import list_log_files, open_log_for_writing
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

NUM_BARRIERS = 3
"""Checkpoints without traces of a feature, behind which readers need not look: delta-spark tries
two more if it cannot read one."""

MAX_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class _Drop:
    """A feature that is being dropped.

    Attributes
    ----------
    name
        The name of the feature as the caller spells it.
    """

    name: str
    feature: TableFeature
    truncates_history: bool
    now_ms: int

    @property
    def hides_history(self) -> bool:
        drop = FEATURES[self.feature].drop
        return drop is not None and drop.hides_history

    def run(self, snapshot: Snapshot) -> Version:
        had_traces = False
        for done in remove_traces(snapshot, self.feature):
            run_commit_hooks(done)
            snapshot, had_traces = done.snapshot, True
        snapshot = snapshot.refresh()
        if self.feature is TableFeature.CHECKPOINT_PROTECTION:
            snapshot = self._with_truncated_history(snapshot)
        elif self.hides_history and self.truncates_history:
            snapshot = self._with_clean_history(snapshot, had_traces=had_traces)
        elif self.hides_history:
            for _ in range(NUM_BARRIERS):
                snapshot = self._with_barrier(snapshot)
        done = self._dropped(snapshot)
        run_commit_hooks(done)
        if self.hides_history:
            self._checkpoint(done.snapshot)
        return done.version

    def _with_barrier(self, snapshot: Snapshot) -> Snapshot:
        """Commit an empty version with a checkpoint, and return it."""
        done = Transaction.of(snapshot, Operation("Empty Commit", changes_data=False)).commit()
        run_commit_hooks(done)
        self._checkpoint(done.snapshot)
        log = snapshot.log  # the log from the checkpoint on: what is before it may be deleted
        return open_snapshot(log.spark, snapshot.path, store=log.store, options=log.options)

    def _checkpoint(self, snapshot: Snapshot) -> None:
        path = snapshot.path
        try:
            with engine_of(snapshot.log.spark).log_session() as session:
                ours = snapshot.in_session(session)
                checkpoint_table(session, path, now_ms=self.now_ms, snapshot=ours)
        except (OSError, DeltaError) as error:
            problem = str(error)
            raise DeltaError.of(
                "DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
                feature=self.name,
                path=path,
                problem=problem,
            ) from error

    def _with_clean_history(self, snapshot: Snapshot, *, had_traces: bool) -> Snapshot:
        """Truncate the history, and check that it has no traces of the feature."""
        snapshot = self._with_barrier(snapshot)
        if had_traces:
            raise self._traces_left("DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", snapshot)
        self._truncate(snapshot)
        if history_has_traces(snapshot, self.feature):
            raise self._traces_left("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", snapshot)
        return snapshot

    def _traces_left(self, error: str, snapshot: Snapshot) -> DeltaError:
        return DeltaError.of(
            error,
            feature=self.name,
            path=snapshot.path,
            retention=log_retention(snapshot.properties),
            short_retention=truncated_history_retention(snapshot.properties),
        )

    def _with_truncated_history(self, snapshot: Snapshot) -> Snapshot:
        """Truncate the history, and check that no protected version is left."""
        version = protected_version(snapshot.protocol, snapshot.properties)
        if _is_truncated(snapshot, version):
            return snapshot
        snapshot = self._with_barrier(snapshot)
        self._truncate(snapshot)
        if not _is_truncated(snapshot, version):
            retention = truncated_history_retention(snapshot.properties)
            raise DeltaError.of(
                "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
                path=snapshot.path,
                version=version,
                retention=retention,
            )
        return snapshot

    def _truncate(self, snapshot: Snapshot) -> None:
        retention = truncated_history_retention_ms(snapshot.properties)
        clean_metadata(snapshot, now_ms=self.now_ms, retention_ms=retention)

    def _dropped(self, snapshot: Snapshot) -> CommittedTransaction:
        """Commit the removal of the feature from the protocol, on a version without traces."""
        # It names its own version: another commit means another look at the table.
        committer = Committer(snapshot.log.store, max_attempts=1)
        for _ in range(MAX_ATTEMPTS):
            checked_drop(snapshot, self.name, truncates_history=self.truncates_history)
            if has_traces(snapshot, self.feature):
                break
            alteration = dropped_feature(
                snapshot, self.name, self.feature, truncates_history=self.truncates_history
            )
            try:
                return alteration.commit(snapshot, committer)
            except (DeltaConcurrentModificationException, MaxCommitRetriesExceededError):
                snapshot = snapshot.refresh()
        raise DeltaError.of(
            "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL", feature=self.name, path=snapshot.path
        )


def drop_feature(
    spark: SparkSession,
    path: str,
    name: str,
    *,
    truncates_history: bool = False,
    options: Mapping[str, str] | None = None,
    now_ms: int | None = None,
) -> Version:
    """Drop a table feature, see `sparkdelta.api.delta_table.DeltaTable.dropFeatureSupport`.

    Each step looks for the remaining work: a drop that died half-way goes on when it is repeated.
    Versions have expired by the time `now_ms`.
    """
    with with_not_found_hint(spark, path):
        store = open_log_for_writing(spark, path, options)
        snapshot = open_snapshot(spark, path, store=store, options=options or {})
    check_data_writable(snapshot.protocol, path=snapshot.path)
    if truncates_history:
        check_writable(snapshot.protocol, path=snapshot.path, writing=Writing.CLEANUP)
    feature = checked_drop(snapshot, name, truncates_history=truncates_history)
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    with jobs_of(snapshot.path, snapshot.version):
        return _Drop(name, feature, truncates_history, now).run(snapshot)


def _is_truncated(snapshot: Snapshot, version: Version) -> bool:
    """Return True if the log begins with a checkpoint of this version or a later one."""
    files = list_log_files(snapshot.log.store)
    needed = [f for f in files if f.kind.is_checkpoint or f.kind is LogFileKind.COMMIT]
    return version == 0 or min((file.version for file in needed), default=0) >= version
