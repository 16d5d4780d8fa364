"""A transaction: staged actions, committed against the version that was read.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#transaction-identifiers
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from sparkdelta.base.protocol.file_actions import AddCDCFile, AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import assigns_row_ids
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.worker_storage import driver_files
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DriverReadTooLargeError, InvalidCommitError
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.commit.added_files import files_that_may_match
from sparkdelta.table.commit.committer import (
    Committed,
    Committer,
    ConflictDetector,
    PreparedCommit,
    ReadState,
)
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.large_conflict_detection import SparkConflictDetector
from sparkdelta.table.commit.row_id_high_watermark import row_id_high_watermark
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.staged_lines import DistinctAdds, StagedLines
from sparkdelta.table.commit.vector_rebase import VectorRebase
from sparkdelta.table.log.commit_line_frames import (
    LINE,
    conformed_actions,
    file_action_lines,
    repeated_files,
)
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
class CommittedTransaction:
    """A transaction that was committed.

    Attributes
    ----------
    before
        The snapshot that it read; None if the commit created the table.
    properties
        The table's properties after the commit.
    attempts
        Number of attempts, the successful one included.
    lines
        The whole commit file; None where its file actions were too many to be values.
    """

    spark: SparkSession
    store: LogStore
    before: Snapshot | None
    properties: Mapping[str, str]
    version: Version
    attempts: int
    lines: bytes | None = field(default=None, repr=False)

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
class Transaction:
    """Actions to be committed to a table as one version.

    Attributes
    ----------
    snapshot
        The version that was read; None where there is no table yet.
    staged
        Actions as values.
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
    dropped_features
        Names of table features that the protocol may lose.
    """

    spark: SparkSession
    store: LogStore
    snapshot: Snapshot | None
    operation: Operation
    staged: StagedActions = field(default_factory=StagedActions)
    file_actions: DataFrame | None = None
    distinct_adds: DistinctAdds | None = None
    read: ReadSet = field(default_factory=ReadSet)
    read_files: DataFrame | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None
    dropped_features: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, snapshot: Snapshot, operation: Operation, **actions: Unpack[_Actions]
    ) -> Transaction:
        """The transaction of a version that was read, in the session and the log of its snapshot.

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
        """Commit as the next version that conflict detection allows.

        Raises
        ------
        CommitError
            See `Committer.commit`.
        """
        with jobs_of(
            self.store.table_root, None if self.snapshot is None else self.snapshot.version
        ):
            done = self._commit_all(committer or Committer(self.store))
        metadata = self.staged.metadata or (
            () if self.snapshot is None else (self.snapshot.metadata,)
        )
        return CommittedTransaction(
            spark=self.spark,
            store=self.store,
            before=self.snapshot,
            properties=metadata[0].configuration,
            version=done.version,
            attempts=done.attempts,
            lines=done.lines,
        )

    def _commit_all(self, committer: Committer) -> Committed:
        if self.file_actions is None:
            return self._commit(committer, self.staged)
        frame = conformed_actions(self.file_actions, self.file_actions.schema)
        adds = self.distinct_adds
        if adds is None or adds.count <= MAX_VALUE_ACTIONS:
            values = _as_values(frame)
            if values is not None:
                return self._commit(committer, self.staged.with_files(*values))
        tracks_rows = self._tracks_rows()
        with staging(frame.sparkSession, self.store) as stage:
            if adds is not None and not tracks_rows:
                actions, lines = frame, StagedLines.of_adds(frame, stage, adds)
            else:
                actions = _materialized(frame, stage)
                self._check_unique(actions)
                staged_lines = StagedLines.to_number if tracks_rows else StagedLines.of
                lines = staged_lines(actions, stage)
            removed = actions.filter("remove.path IS NOT NULL").select("remove.path")
            return self._commit(committer, self.staged, lines, removed)

    def _commit(
        self,
        committer: Committer,
        staged: StagedActions,
        lines: StagedLines | None = None,
        removed: DataFrame | None = None,
    ) -> Committed:
        operation = self.operation.with_metrics_of(*_removed_totals(staged, lines))
        prepared = PreparedCommit(
            operation, staged, lines, self.user_metadata, self.tags, self.dropped_features
        )
        return committer.commit(prepared, self._read_state(staged), self._detector(staged, removed))

    def _tracks_rows(self) -> bool:
        before = self.snapshot
        protocols = (*self.staged.protocols, *(() if before is None else (before.protocol,)))
        metadata = (*self.staged.metadata, *(() if before is None else (before.metadata,)))
        return assigns_row_ids(protocols[0], metadata[0].configuration)

    def _read_state(self, staged: StagedActions) -> ReadState:
        snapshot = self.snapshot
        if snapshot is None:
            return ReadState()
        protocol = (*staged.protocols, snapshot.protocol)[0]
        has_timestamps = is_supported(protocol, TableFeature.IN_COMMIT_TIMESTAMP)
        return ReadState(
            version=snapshot.version,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            timestamp=snapshot.timestamp_ms if has_timestamps else None,
            row_id_high_watermark=row_id_high_watermark(snapshot),
        )

    def _detector(self, staged: StagedActions, removed: DataFrame | None) -> ConflictDetector:
        root, snapshot = self.store.table_root, self.snapshot
        small = DriverConflictDetector(
            self.store,
            self.read,
            removes=frozenset(file_key(remove, root) for remove in staged.removes),
            domains=frozenset(domain.domain for domain in staged.domains),
            partition_types=_partition_types(snapshot),
        )
        if snapshot is None:
            return small
        table, log = snapshot.configuration, snapshot.log
        skipping = tuple(
            DataSkipping.of(
                predicate,
                table.schema,
                table.partition_columns,
                column_mapping=table.column_mapping,
            )
            for predicate in self.read.predicates
        )
        small = replace(
            small,
            may_match=partial(files_that_may_match, spark=log.spark, skipping=skipping),
            rebase=VectorRebase(root, partial(driver_files, log.spark, root, log.options)),
        )
        return SparkConflictDetector(small, log, skipping, self.read_files, removed)

    def _check_unique(self, actions: DataFrame) -> None:
        root = self.store.table_root
        rows = read_rows(
            repeated_files(actions, table_root=root).limit(1),
            what="repeated files of a commit",
            bound=1,
        )
        if rows:
            problem = f"it contains several actions of logical file {rows[0]['path']}"
            raise InvalidCommitError(path=root, problem=problem)


def last_transaction_version(snapshot: Snapshot, app_id: str) -> int | None:
    """The version of the last transaction that an application committed; None if it has none."""
    rows = read_rows(
        snapshot.transactions().filter(F.col("appId") == app_id),
        what="transaction of an application",
        bound=1,
        version=snapshot.version,
    )
    return int(rows[0]["version"]) if rows else None


def _removed_totals(staged: StagedActions, lines: StagedLines | None) -> tuple[int, int]:
    """The number and bytes of the files that a commit removes."""
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


def _partition_types(snapshot: Snapshot | None) -> dict[str, tuple[str, str]]:
    if snapshot is None:
        return {}
    return {
        column.name: (key, str(column.dataType.jsonValue()))
        for key, column in snapshot.configuration.partition_keys
        if not isinstance(column.dataType, StringType) or column.dataType == StringType()
    }  # without columns that a collation compares
