"""Conflict detection by Spark, where the transaction or the winning commit is large.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.protocol.commit_info import COMMIT_INFO
from sparkdelta.base.protocol.file_actions import AddFile, file_key
from sparkdelta.base.protocol.log_files import LogFile
from sparkdelta.base.schema.action_schemas import COMMIT_INFO as COMMIT_INFO_TYPE
from sparkdelta.base.schema.action_schemas import actions
from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from sparkdelta.base.spark.driver import has_rows, read_rows
from sparkdelta.base.spark.local_data import arrow_frame, rows_frame
from sparkdelta.base.spark.worker_storage import driver_files
from sparkdelta.table.commit.committer import Comparison
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector
from sparkdelta.table.commit.conflict_frames import CONFLICT, KEY, SUBJECT, conflicting_files
from sparkdelta.table.commit.conflict_rules import (
    Conflict,
    ReadSet,
    WinningCommit,
    table_conflicts,
)
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.commit.vector_rebase import VectorRebase
from sparkdelta.table.listing.line_reader import DRIVER_LOG_BYTES
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot

_MAX_TABLE_ACTIONS = 100_000
_COMMIT_INFO_FIELDS = ("inCommitTimestamp", "operation", "isBlindAppend")
_TABLE_ACTIONS = StructType(
    [
        StructField(
            COMMIT_INFO,
            StructType([COMMIT_INFO_TYPE[name] for name in _COMMIT_INFO_FIELDS]),
        ),
        *actions("protocol", "metaData", "txn", "domainMetadata").fields,
    ]
)

_ADDS = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("stats", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class SparkConflictDetector:
    """A detector of conflicts with large commits, by Spark; `small` handles small ones.

    Attributes
    ----------
    skipping
        The predicates of `small.read`.
    read_files, removed_files
        path STRING, as in the log: further files that the transaction read or removes, or None.
    """

    small: DriverConflictDetector
    log: LogReader
    skipping: tuple[DataSkipping, ...] = ()
    read_files: DataFrame | None = None
    removed_files: DataFrame | None = None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        read: ReadSet,
        *,
        read_files: DataFrame | None = None,
        removed_files: DataFrame | None = None,
    ) -> SparkConflictDetector:
        """Return the detector of a transaction that read a snapshot."""
        table, log, root = snapshot.configuration, snapshot.log, snapshot.path
        skipping = tuple(
            DataSkipping.of(
                predicate,
                table.schema,
                table.partition_columns,
                column_mapping=table.column_mapping,
            )
            for predicate in read.predicates
        )
        small = DriverConflictDetector(
            log.store,
            read,
            partition_types=_partition_types(table),
            may_match=partial(files_that_may_match, spark=log.spark, skipping=skipping),
            rebase=VectorRebase(root, partial(driver_files, log.spark, root, log.options)),
        )
        return cls(small, log, skipping, read_files, removed_files)

    def __call__(
        self, file: LogFile, staged: StagedActions, data: bytes | None = None
    ) -> Comparison:
        has_frames = self.read_files is not None or self.removed_files is not None
        if file.size_bytes <= DRIVER_LOG_BYTES and not has_frames:
            return self.small(file, staged, data)
        reader = replace(self.log.reader, spark=self._spark)
        lines = CommitRange.read(reader, [file]).lines
        winner = self._table_actions(lines, file)
        read = self.small.read
        conflicts = table_conflicts(winner, app_ids=read.app_ids, domains=staged.domain_names)
        if read.depends_on_files or staged.removes or has_frames:
            of_files = self._file_conflicts(lines, winner, staged)
            if of_files:
                winner = replace(winner, moves_rows=self._moves_rows(lines, file))
            conflicts |= of_files
        return Comparison(winner, conflicts, staged)

    @property
    def _spark(self) -> SparkSession:
        """The session of the frames, as Spark Connect joins none of another session."""
        files = self.removed_files if self.read_files is None else self.read_files
        return self.log.spark if files is None else files.sparkSession

    def _table_actions(self, lines: DataFrame, file: LogFile) -> WinningCommit:
        parsed = parse_log_lines(lines, actions=_TABLE_ACTIONS)
        present = " OR ".join(f"{name} IS NOT NULL" for name in _TABLE_ACTIONS.names)
        rows = read_rows(
            parsed.filter(present),
            what="table actions of a winning commit",
            bound=_MAX_TABLE_ACTIONS,
            version=file.version,
        )
        found: dict[str, list[dict[str, object]]] = {name: [] for name in _TABLE_ACTIONS.names}
        for row in rows:
            for name in found:
                if row[name] is not None:
                    found[name].append(row[name].asDict(recursive=True))
        return WinningCommit.of(file.version, found, path=self.small.store.table_root)

    def _file_conflicts(
        self, lines: DataFrame, winner: WinningCommit, staged: StagedActions
    ) -> dict[Conflict, str]:
        small, root = self.small, self.log.store.table_root
        removes = {file_key(remove, root)[0] for remove in staged.removes}
        frame = conflicting_files(
            parse_log_lines(lines, actions=actions("add", "remove")),
            adds_rows=winner.adds_for(small.read),
            reads_whole_table=small.read.whole_table,
            leaves_rows=small.read.leaves_rows,
            skipping=self.skipping,
            read_files=self._with_values(self.read_files, {p for p, _ in small.read.files}),
            removed_files=self._with_values(self.removed_files, removes),
            is_blind_append=winner.is_blind_append,
            table_root=root,
        )
        rows = read_rows(
            frame,
            what="conflicting files of a winning commit",
            bound=len(Conflict),
            version=winner.version,
        )
        return {Conflict[row[CONFLICT]]: row[SUBJECT] for row in rows}

    @staticmethod
    def _moves_rows(lines: DataFrame, file: LogFile) -> bool:
        """Return True if no file action of a winning commit changes rows."""
        parsed = parse_log_lines(lines, actions=actions("add", "remove"))
        changing = parsed.filter("coalesce(add.dataChange, remove.dataChange)")
        return not has_rows(changing, what="file actions of a winning commit", version=file.version)

    def _with_values(self, files: DataFrame | None, paths: set[str]) -> DataFrame | None:
        if files is not None:
            key = F.expr(canonical_path("path", table_root=self.log.store.table_root))
            files = files.select(key.alias(KEY))
        if not paths:
            return files
        schema = StructType([StructField(KEY, StringType())])
        values = rows_frame(self._spark, [(path,) for path in paths], schema)
        return values if files is None else files.unionAll(values)


def files_that_may_match(
    winner: WinningCommit, *, spark: SparkSession, skipping: Sequence[DataSkipping]
) -> tuple[AddFile, ...]:
    """Return the added files that may hold a row for which a predicate is true."""
    if not winner.adds or not skipping:
        return ()
    adds = [
        {"path": a.path, "partitionValues": [*a.partition_values.items()], "stats": a.stats}
        for a in winner.adds
    ]
    frame = arrow_frame(spark, pa.Table.from_pylist(adds, _ADDS))
    kept = [each.keep(frame, NOTHING_STORED).select("path") for each in skipping]
    rows = read_rows(
        reduce(DataFrame.unionAll, kept),
        what="added files that may match what was read",
        bound=len(kept) * len(adds),
        version=winner.version,
    )
    paths = {row["path"] for row in rows}
    return tuple(add for add in winner.adds if add.path in paths)


def _partition_types(table: TableConfiguration) -> dict[str, tuple[str, str]]:
    return {
        column.name: (key, str(column.dataType.jsonValue()))
        for key, column in table.partition_keys
        if not isinstance(column.dataType, StringType) or column.dataType == StringType()
    }  # without columns that a collation compares
