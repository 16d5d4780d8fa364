"""Rewrite small files, and files with many deleted rows, as fewer larger ones.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.engine.driver import read_rows
from sparkdelta.engine.job_names import jobs_of
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    InvalidArgumentError,
    NonPartitionColumnReferenceError,
    WriteNotImplementedError,
)
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.predicates import columns, is_usable
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.protocol.table_properties import declared_file_size
from sparkdelta.table.commit.compaction import commit_batch
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.scan.conditions import parse_deterministic_where
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write.compaction import (
    NO_FILES,
    Batch,
    FileSizes,
    candidates,
    plan_batches,
)
from sparkdelta.table.write.matching_rows import condition_parameter
from sparkdelta.table.write.new_files import NewFiles
from sparkdelta.table.write.rewriting import files_of_partitions, selects_partitions
from sparkdelta.table.write.row_changes import open_changeable, unchanged_table

OPERATION = "OPTIMIZE"
TARGET_FILE_SIZE = 1 << 30
"""The size of files that OPTIMIZE makes unless the table or the caller says otherwise, in bytes."""

MAX_COMMIT_BYTES = 100 << 30
"""The bytes of the files that a commit removes, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeResult:
    """The outcome of OPTIMIZE.

    Attributes
    ----------
    versions
        Those that it committed; empty if there was nothing to do, and of a dry run.
    added, removed
        The files that it wrote, and those that it replaced; of a dry run, those that it would.
    num_bins
        The groups of files of which each became one file.
    num_considered_files
        The files of the table, or of the partitions that the condition selects.
    num_deletion_vectors
        Of the removed files, and `num_deleted_rows` are the rows that they deleted.
    retries
        The number of attempts at which another commit was first.
    """

    path: str
    is_dry_run: bool = False
    versions: tuple[Version, ...] = ()
    added: FileSizes = NO_FILES
    removed: FileSizes = NO_FILES
    num_bins: int = 0
    num_partitions: int = 0
    num_considered_files: int = 0
    num_deletion_vectors: int = 0
    num_deleted_rows: int = 0
    num_columns: int = 0
    num_columns_with_statistics: int = 0
    retries: int = 0
    start_ms: int = field(default=0, repr=False)
    milliseconds: int = 0

    def __str__(self) -> str:
        removed, added = self.removed, self.added
        files = f"of {self.num_considered_files} files of {self.path}"
        if not self.num_bins:
            return f"Nothing to do: none {files} would be part of a larger one"
        if self.is_dry_run:
            return (
                f"Would rewrite {removed.count} {files} ({removed.total} bytes) as {self.num_bins}"
            )
        return (
            f"Rewrote {removed.count} {files} ({removed.total} bytes) as {added.count} "
            f"({added.total} bytes), in version {', '.join(map(str, self.versions))}"
        )

    def as_dict(self) -> dict[str, object]:
        """The attributes by their names, as JSON has them."""
        return {name: value for name, value in asdict(self).items() if name != "start_ms"}

    def _with(self, batch: Batch) -> OptimizeResult:
        """With the files of a batch, not yet what they become."""
        vectors = [vector for vector in batch.vectors if vector is not None]
        return replace(
            self,
            removed=self.removed + batch.sizes,
            num_bins=self.num_bins + len(batch.bins),
            num_deletion_vectors=self.num_deletion_vectors + len(vectors),
            num_deleted_rows=self.num_deleted_rows + sum(v.cardinality for v in vectors),
        )

    def _committed(self, new: NewFiles, done: CommittedTransaction) -> OptimizeResult:
        return replace(
            self,
            versions=(*self.versions, done.version),
            added=self.added + FileSizes.of(_sizes(new)),
            retries=self.retries + done.attempts - 1,
        )


def optimize(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    *,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> OptimizeResult:
    """Compact the files of a table.

    See `sparkdelta.maintenance.optimize`.
    """
    if where is not None and not engine_of(spark).sees_plans:
        problem = (
            "a Spark Connect client cannot check that it depends only on partition columns; "
            "optimize from a classic session"
        )
        raise InvalidArgumentError(argument="where", problem=problem)
    start_ms, start = time.time_ns() // 1_000_000, time.monotonic_ns()
    snapshot = open_changeable(spark, path, options, only_inserts=True)
    size = target_file_size or declared_file_size(snapshot.properties) or TARGET_FILE_SIZE
    with (
        engine_of(spark).write_session() as session,
        jobs_of(snapshot.path, snapshot.version),
    ):
        change = unchanged_table(snapshot)
        if change.clustering_columns:
            missing = ("OPTIMIZE of a table that is clustered by columns",)
            raise WriteNotImplementedError(path=snapshot.path, missing=missing)
        adds = _considered_files(snapshot, where)
        with_statistics = {path[0] for path in change.statistics_columns}
        result = OptimizeResult(
            path=snapshot.path,
            is_dry_run=dry_run,
            num_considered_files=_count(snapshot, adds, is_whole=where is None),
            num_columns=len(snapshot.schema),
            num_columns_with_statistics=len(with_statistics),
            start_ms=start_ms,
        )
        partitions: set[tuple[str | None, ...]] = set()
        batches = plan_batches(
            snapshot,
            candidates(snapshot, adds, target_file_size=size),
            target_file_size=size,
            max_bytes=max_bytes or MAX_COMMIT_BYTES,
        )
        for batch in batches:
            partitions |= batch.partitions
            result = replace(result, num_partitions=len(partitions))._with(batch)
            if not dry_run:
                new, done = commit_batch(batch, session, change, partial(_operation, batch, where))
                result = result._committed(new, done)
                run_commit_hooks(done)
    return replace(result, milliseconds=(time.monotonic_ns() - start) // 1_000_000)


def _considered_files(snapshot: Snapshot, where: str | Column | None) -> DataFrame:
    """The files of the partitions that a condition selects.

    Raises
    ------
    NonPartitionColumnReferenceError
        It uses other columns than those of partitions.
    """
    if where is None:
        return snapshot.add_files()
    table = snapshot.configuration
    predicate = parse_deterministic_where(snapshot.log.spark, where, table, operation=OPERATION)
    if not is_usable(predicate):
        problem = "only comparisons of partition columns with constants are understood"
        raise InvalidArgumentError(argument="where", problem=problem)
    if not selects_partitions(predicate, table):
        others = {name for name, *_ in columns(predicate)} - set(table.partition_columns)
        raise NonPartitionColumnReferenceError(
            column=min(others), path=snapshot.path, available=tuple(table.partition_columns)
        )
    return files_of_partitions(snapshot, where)


def _count(snapshot: Snapshot, adds: DataFrame, *, is_whole: bool) -> int:
    """The number of files; of the whole table, the version checksum may have it."""
    checksum = snapshot.version_checksum
    if is_whole and checksum is not None and checksum.num_files is not None:
        return checksum.num_files
    (row,) = read_rows(
        adds.selectExpr("count(*)"),
        what="number of files to optimize",
        bound=1,
        version=snapshot.version,
    )
    return int(row[0])


def _operation(batch: Batch, where: str | Column | None, new: NewFiles) -> Operation:
    """The operation that replaces the files of a batch, as history shows it."""
    return Operation(
        OPERATION,
        {
            "predicate": condition_parameter(where),
            "zOrderBy": "[]",
            "clusterBy": "[]",
            "auto": "false",
        },
        changes_data=False,
        metrics={name: str(value) for name, value in _metrics(batch, new).items()},
    )


def _metrics(batch: Batch, new: NewFiles) -> dict[str, int]:
    """The metrics of a commit, by their names in history."""
    sizes = sorted(_sizes(new)) or [0]
    quarters = [sizes[len(sizes) * n // 4] for n in range(4)]
    return {
        "numRemovedFiles": batch.sizes.count,
        "numRemovedBytes": batch.sizes.total,
        "numAddedFiles": new.count,
        "numAddedBytes": new.size_bytes,
        "numDeletionVectorsRemoved": sum(vector is not None for vector in batch.vectors),
        "minFileSize": quarters[0],
        "p25FileSize": quarters[1],
        "p50FileSize": quarters[2],
        "p75FileSize": quarters[3],
        "maxFileSize": sizes[-1],
    }


def _sizes(new: NewFiles) -> list[int]:
    return [add.size for add in new.values or ()]
