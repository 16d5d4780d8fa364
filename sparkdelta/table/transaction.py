"""A transaction: what was read, what is staged, and the commit of both against one version.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from sparkdelta.exceptions import DriverReadTooLargeError, InvalidCommitError
from sparkdelta.frames.commit_lines import (
    LINE,
    conformed_actions,
    file_action_lines,
    repeated_files,
)
from sparkdelta.frames.data_skipping import DataSkipping
from sparkdelta.protocol.actions import DomainMetadata
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.protocol.row_ids import NO_ROW_IDS, ROW_TRACKING_DOMAIN, high_water_mark
from sparkdelta.protocol.staged_commit import Operation, StagedActions
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.commit_hooks import CommitHooks
from sparkdelta.table.committer import Committed, Committer, Ground, Judge, Proposal
from sparkdelta.table.driver import read_rows
from sparkdelta.table.job_names import jobs_of
from sparkdelta.table.large_commits import LargeCommits
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.staged_lines import StagedLines
from sparkdelta.table.staging import Staging, staging
from sparkdelta.table.winning_commits import WinningCommits

MAX_VALUE_ACTIONS = 10_000
"""Up to this many file actions of a commit come to the driver as values."""

_ACTIONS = "actions"
_ROW_GROUP_BYTES = 16 << 20  # a task holds one


@dataclass(frozen=True, eq=False, kw_only=True)
class Transaction:
    """One commit to a table, to be made by `commit`.

    Attributes
    ----------
    snapshot
        What was read; None where there is no table yet.
    staged
        Actions as values.
    file_actions
        File actions beside those, in columns `add` and `remove`, of which a row has one; a field
        that is not there is null. A query without side effects: it may run twice.
    read, read_files
        What the outcome depends on; `read_files` has a column `path`, as in the log.
    """

    store: LogStore
    snapshot: Snapshot | None
    operation: Operation
    staged: StagedActions = field(default_factory=StagedActions)
    file_actions: DataFrame | None = None
    read: ReadSet = field(default_factory=ReadSet)
    read_files: DataFrame | None = None
    metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None

    def commit(self, committer: Committer | None = None) -> Committed:
        """Commit, after however many others that this commit may follow, and do what is due then.

        Raises
        ------
        CommitError
            See `Committer.commit`.
        """
        with jobs_of(
            self.store.table_root, None if self.snapshot is None else self.snapshot.version
        ):
            return self._commit_all(committer or Committer(self.store))

    def _commit_all(self, committer: Committer) -> Committed:
        if self.file_actions is None:
            return self._commit(committer, self.staged)
        frame = conformed_actions(self.file_actions, self.file_actions.schema)
        values = _as_values(frame)
        if values is not None:
            adds, removes = values
            staged = replace(
                self.staged,
                adds=(*self.staged.adds, *adds),
                removes=(*self.staged.removes, *removes),
            )
            return self._commit(committer, staged)
        with staging(frame.sparkSession, self.store) as stage:
            kept = _kept(frame, stage)
            self._check_large(kept)
            staged_lines = StagedLines.to_number if self._tracks_rows() else StagedLines.of
            lines = staged_lines(kept, stage)
            removed = kept.filter("remove.path IS NOT NULL").select("remove.path")
            return self._commit(committer, self.staged, lines, removed)

    def _commit(
        self,
        committer: Committer,
        staged: StagedActions,
        lines: StagedLines | None = None,
        removed: DataFrame | None = None,
    ) -> Committed:
        metrics = self._metrics(staged, lines)
        proposal = Proposal(self.operation, staged, lines, metrics, self.user_metadata, self.tags)
        done = committer.commit(proposal, self._ground(staged), self._judge(staged, removed))
        self._hooks(done).run()
        return done

    def _hooks(self, done: Committed) -> CommitHooks:
        snapshot, actions = self.snapshot, self.file_actions
        spark = None if actions is None else actions.sparkSession
        is_next = snapshot is not None and snapshot.version + 1 == done.version
        metadata = (*self.staged.metadata, *(() if snapshot is None else (snapshot.metadata,)))[0]
        return CommitHooks(
            spark=spark if snapshot is None else snapshot.log.spark,
            store=self.store,
            version=done.version,
            properties=metadata.configuration,
            lines=done.lines,
            checksum_before=snapshot.version_checksum if snapshot and is_next else None,
        )

    def _tracks_rows(self) -> bool:
        before = () if self.snapshot is None else (self.snapshot.protocol,)
        return any(
            is_supported(p, TableFeature.ROW_TRACKING) for p in (*self.staged.protocols, *before)
        )

    def _metrics(
        self, staged: StagedActions, lines: StagedLines | None
    ) -> Mapping[str, str] | None:
        """The metrics, with what was removed, as delta-spark's history tells it of overwrites."""
        if self.metrics is None or self.operation.is_blind_append:
            return self.metrics
        files, size = len(staged.removes), sum(remove.size or 0 for remove in staged.removes)
        if lines is not None:
            files, size = files + lines.num_removes, size + lines.removed_bytes
        return {"numRemovedFiles": str(files), "numRemovedBytes": str(size), **self.metrics}

    def _ground(self, staged: StagedActions) -> Ground:
        snapshot = self.snapshot
        if snapshot is None:
            return Ground()
        protocol = (*staged.protocols, snapshot.protocol)[0]
        has_timestamps = is_supported(protocol, TableFeature.IN_COMMIT_TIMESTAMP)
        return Ground(
            version=snapshot.version,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            timestamp=snapshot.timestamp if has_timestamps else None,
            row_id_mark=_row_id_mark(snapshot),
        )

    def _judge(self, staged: StagedActions, removed: DataFrame | None) -> Judge:
        root = self.store.table_root
        small = WinningCommits(
            self.store,
            self.read,
            removes=frozenset(file_key(remove, root) for remove in staged.removes),
            domains=frozenset(domain.domain for domain in staged.domains),
            partition_types=_partition_types(self.snapshot),
        )
        if self.snapshot is None:
            return small
        skipping = tuple(
            DataSkipping(
                predicate=predicate,
                schema=self.snapshot.configuration.schema,
                partition_keys=self.snapshot.configuration.partition_keys,
                column_mapping=self.snapshot.configuration.column_mapping,
                statistics=self.snapshot.configuration.statistics,
                time_zone="UTC",
            )
            for predicate in self.read.predicates
        )
        return LargeCommits(small, self.snapshot.log, skipping, self.read_files, removed)

    def _check_large(self, actions: DataFrame) -> None:
        root = self.store.table_root
        rows = read_rows(
            repeated_files(actions, table_root=root).limit(1),
            what="repeated files of a commit",
            bound=1,
        )
        if rows:
            problem = f"it contains several actions of logical file {rows[0]['path']}"
            raise InvalidCommitError(path=root, problem=problem)


def _as_values(
    actions: DataFrame,
) -> tuple[tuple[AddFile, ...], tuple[RemoveFile, ...]] | None:
    """The file actions as values; None if they are too many."""
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
    )


def _kept(frame: DataFrame, stage: Staging) -> DataFrame:
    """The frame computed once, by all executors, however often it is used.

    In files: Spark's cache holds what it serializes until a partition is whole, some hundred MB,
    and computes again what was lost with an executor, which may come out otherwise.
    """
    stage.write_parquet(frame, _ACTIONS, {"parquet.block.size": str(_ROW_GROUP_BYTES)})
    kept, _ = stage.read_parquet(_ACTIONS, frame.schema)
    return kept


def _row_id_mark(snapshot: Snapshot) -> int:
    if not is_supported(snapshot.protocol, TableFeature.ROW_TRACKING):
        return NO_ROW_IDS
    rows = read_rows(
        snapshot.domain_metadata().filter(f"domain = '{ROW_TRACKING_DOMAIN}'"),
        what="row id high-water mark",
        bound=1,
        version=snapshot.version,
    )
    domains = [DomainMetadata.from_dict(row.asDict(recursive=True)) for row in rows]
    domain = domains[0] if domains else None
    return high_water_mark(domain, path=snapshot.path, version=snapshot.version)


def _partition_types(snapshot: Snapshot | None) -> dict[str, tuple[str, str]]:
    if snapshot is None:
        return {}
    return {
        column.name: (key, str(column.dataType.jsonValue()))
        for key, column in snapshot.configuration.partition_keys
        if not isinstance(column.dataType, StringType) or column.dataType == StringType()
    }  # without columns that a collation compares
