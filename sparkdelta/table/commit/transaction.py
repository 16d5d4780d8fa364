"""A transaction: staged actions, committed against the version that was read.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#transaction-identifiers, PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.file_actions import AddCDCFile, AddFile, RemoveFile
from sparkdelta.base.protocol.log_files import Version, commit_name, version_checksum_name
from sparkdelta.base.protocol.row_ids import NO_ROW_IDS, ROW_TRACKING_DOMAIN, high_water_mark
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import assigns_row_ids
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.session_settings import user_metadata
from sparkdelta.base.storage.log_store import CombinesRequests, LogStore
from sparkdelta.exceptions import DeltaError, DriverReadTooLargeError
from sparkdelta.table.checksum.version_checksum_rules import (
    VersionChecksum,
    serialize_version_checksum,
)
from sparkdelta.table.commit.checksum_step_rules import BEFORE_THE_FIRST, checksum_after
from sparkdelta.table.commit.commit_turns import commit_turns
from sparkdelta.table.commit.committer import (
    NO_VERSION,
    Committed,
    Committer,
    ConflictDetector,
    PreparedCommit,
    ReadState,
)
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.spark_conflict_detection import SparkConflictDetector
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.staged_lines import DistinctAdds, StagedLines
from sparkdelta.table.log.commit_line_frames import (
    LINE,
    conformed_actions,
    file_action_lines,
    repeated_files,
)
from sparkdelta.table.snapshot.listed_actions import find_domain
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import Staging, staging

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class _Actions(TypedDict, total=False):
        staged: StagedActions
        file_actions: DataFrame | None
        read: ReadSet
        read_files: DataFrame | None
        tags: Mapping[str, str] | None
        dropped_features: frozenset[str]


MAX_VALUE_ACTIONS = 10_000
"""Up to this many file actions of a commit come to the driver as values."""

_ACTIONS = "actions"
_ROW_GROUP_BYTES = 16 << 20  # a task holds one


@dataclass(frozen=True, eq=False, kw_only=True)
class CommittedTransaction(Committed):
    """A transaction that was committed.

    Attributes
    ----------
    before
        The snapshot that it read; None if the commit created the table.
    properties
        The table's properties after the commit.
    """

    spark: SparkSession
    store: LogStore
    before: Snapshot | None
    properties: Mapping[str, str]

    @cached_property
    def snapshot(self) -> Snapshot:
        """The table as of this commit; loads only the commits since the one that was read."""
        if self.before is None:
            root = self.store.table_root
            return open_snapshot(self.spark, root, version=self.version, store=self.store)
        return self.before.advanced_to(self.version)

    @property
    def checksum_before(self) -> VersionChecksum | None:
        """The checksum of the version before the commit, if that is the one that was read."""
        is_next = self.before is not None and self.before.version + 1 == self.version
        return self.before.version_checksum if self.before is not None and is_next else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Transaction(PreparedCommit):
    """Actions to be committed to a table as one version.

    Attributes
    ----------
    snapshot
        The version that was read; None where there is no table yet.
    file_actions
        Further file actions in columns `add`, `remove` and `cdc`, one of them in each row; missing
        columns and fields are null. The query must be deterministic, but for times: it may run
        twice.
    distinct_adds
        About `file_actions`, where they are surely nothing else. A large number of them is written
        as lines at once, without a check for duplicates.
    read, read_files
        The data that was read, for conflict detection; `read_files` has a column `path`, as in the
        log.
    stage
        A staging directory that is of no use after the commit.
    """

    spark: SparkSession
    store: LogStore
    snapshot: Snapshot | None
    file_actions: DataFrame | None = None
    distinct_adds: DistinctAdds | None = None
    read: ReadSet = field(default_factory=ReadSet)
    read_files: DataFrame | None = None
    stage: Staging | None = None

    @classmethod
    def of(
        cls, snapshot: Snapshot, operation: Operation, **actions: Unpack[_Actions]
    ) -> Transaction:
        """Return the transaction of a version that was read, in the session and the log of its
        snapshot.

        Parameters
        ----------
        actions
            Further attributes.
        """
        log = snapshot.log
        return cls(
            spark=log.spark, store=log.store, snapshot=snapshot, operation=operation, **actions
        )

    def commit(self, committer: Committer | None = None) -> CommittedTransaction:
        """Commit as the next version that conflict detection allows, see `Committer.commit`."""
        before, root = self.snapshot, self.store.table_root
        with jobs_of(root, None if before is None else before.version):
            read_state = self._read_state()
            done = self._commit_all(committer or Committer(self.store), read_state)
        return CommittedTransaction(
            version=done.version,
            attempts=done.attempts,
            txn_id=done.txn_id,
            lines=done.lines,
            spark=self.spark,
            store=self.store,
            before=before,
            properties=self.table_after(read_state)[1].configuration,
        )

    def _commit_all(self, committer: Committer, read_state: ReadState) -> Committed:
        commit = partial(self._commit, committer, read_state)
        if self.file_actions is None:
            return commit(self.staged)
        frame = conformed_actions(self.file_actions, self.file_actions.schema)
        adds = self.distinct_adds
        if adds is None or adds.count <= MAX_VALUE_ACTIONS:
            values = _as_values(frame)
            if values is not None:
                return commit(self.staged.with_files(*values))
        protocol, metadata = self.table_after(read_state)
        tracks_rows = assigns_row_ids(protocol, metadata.configuration)
        with staging(frame.sparkSession, self.store) as stage:
            if adds is not None and not tracks_rows:
                actions, lines = frame, StagedLines.of_adds(frame, stage, adds)
            else:
                actions = _materialized(frame, stage)
                self._check_unique(actions)
                staged_lines = StagedLines.to_number if tracks_rows else StagedLines.of
                lines = staged_lines(actions, stage)
            removed = actions.filter("remove.path IS NOT NULL").select("remove.path")
            return commit(self.staged, lines, removed)

    def _commit(
        self,
        committer: Committer,
        read_state: ReadState,
        staged: StagedActions,
        lines: StagedLines | None = None,
        removed: DataFrame | None = None,
    ) -> Committed:
        operation = self.operation.with_metrics_of(*_removed_totals(staged, lines))
        metadata = user_metadata() if self.user_metadata is None else self.user_metadata
        prepared = replace(
            self, operation=operation, staged=staged, files=lines, user_metadata=metadata
        )
        detector = partial(self._detector, removed)
        turns = commit_turns(self.store.table_root)
        with turns.turn():
            done = committer.commit(
                prepared, read_state, detector, self._combine_requests, turns.last_version
            )
            turns.last_version = done.version
            return done

    def _combine_requests(self, version: Version, lines: bytes) -> None:
        """Let the request that writes a commit also write the checksum that follows it, and delete
        the staging directory, where the store can.
        """
        before, root = self.snapshot, self.store.table_root
        if not isinstance(self.store, CombinesRequests):
            return
        if self.stage is not None:
            self.store.expect_deletion(self.stage.name.partition("/")[0])
        if version != (NO_VERSION if before is None else before.version) + 1:
            return  # it follows a commit of another thread
        known = BEFORE_THE_FIRST if before is None else before.version_checksum
        if known is None:
            return
        commit = parse_commit(lines, version, with_files=True, path=root)
        checksum = checksum_after(known, commit, table_root=root)
        if checksum is not None:
            name, data = version_checksum_name(version), serialize_version_checksum(checksum)
            self.store.expect_put(name, data, after=commit_name(version))

    def _read_state(self) -> ReadState:
        snapshot = self.snapshot
        if snapshot is None:
            return ReadState()
        protocol = (*self.staged.protocols, snapshot.protocol)[0]
        has_timestamps = is_supported(protocol, TableFeature.IN_COMMIT_TIMESTAMP)
        return ReadState(
            version=snapshot.version,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            timestamp=snapshot.timestamp_ms if has_timestamps else None,
            row_id_high_watermark=row_id_high_watermark(snapshot),
        )

    def _detector(self, removed: DataFrame | None) -> ConflictDetector:
        if self.snapshot is None:
            return DriverConflictDetector(self.store, self.read)
        return SparkConflictDetector.of(
            self.snapshot, self.read, read_files=self.read_files, removed_files=removed
        )

    def _check_unique(self, actions: DataFrame) -> None:
        root = self.store.table_root
        rows = read_rows(
            repeated_files(actions, table_root=root).limit(1),
            what="repeated files of a commit",
            bound=1,
        )
        if rows:
            problem = f"it contains several actions of logical file {rows[0]['path']}"
            raise DeltaError.of("DELTA_INVALID_COMMIT", path=root, problem=problem)


def row_id_high_watermark(snapshot: Snapshot) -> int:
    """Return the highest row id that was assigned up to a version, or -1 if none was."""
    if not is_supported(snapshot.protocol, TableFeature.ROW_TRACKING):
        return NO_ROW_IDS
    domain = find_domain(snapshot, ROW_TRACKING_DOMAIN)
    return high_water_mark(domain, path=snapshot.path, version=snapshot.version)


def _removed_totals(staged: StagedActions, lines: StagedLines | None) -> tuple[int, int]:
    """Return the number and bytes of the files that a commit removes."""
    files, size = len(staged.removes), sum(remove.size or 0 for remove in staged.removes)
    return (
        (files, size) if lines is None else (files + lines.num_removes, size + lines.removed_bytes)
    )


def _as_values(
    actions: DataFrame,
) -> tuple[tuple[AddFile, ...], tuple[RemoveFile, ...], tuple[AddCDCFile, ...]] | None:
    """Return the file actions as values; None if there are more than MAX_VALUE_ACTIONS."""
    try:
        rows = read_rows(
            file_action_lines(actions).limit(MAX_VALUE_ACTIONS + 1),
            what="file actions of a commit",
            bound=MAX_VALUE_ACTIONS,
        )
    except DriverReadTooLargeError:
        return None
    documents = [json.loads(row[LINE]) for row in rows]
    return (
        tuple(AddFile.from_dict(d["add"]) for d in documents if "add" in d),
        tuple(RemoveFile.from_dict(d["remove"]) for d in documents if "remove" in d),
        tuple(AddCDCFile.from_dict(d["cdc"]) for d in documents if "cdc" in d),
    )


def _materialized(frame: DataFrame, stage: Staging) -> DataFrame:
    """Return the rows from staged Parquet files, so that they are computed once.

    Spark's cache would hold a whole serialized partition in memory, some hundred MB, and recompute
    a lost one, possibly to other rows.
    """
    stage.write_parquet(frame, _ACTIONS, {"parquet.block.size": str(_ROW_GROUP_BYTES)})
    rows, _ = stage.read_parquet(_ACTIONS, frame.schema)
    return rows
