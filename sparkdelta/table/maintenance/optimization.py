"""OPTIMIZE and REORG: batches of files that are written again and committed, one after the other.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.engine.driver import read_rows
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.table.commit.compaction import commit_batch
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write.compaction import NO_FILES, Batch, FileSizes
from sparkdelta.table.write.new_files import NewFiles
from sparkdelta.table.write.table_change import TableChange

TARGET_FILE_SIZE = 1 << 30
"""The size of files that OPTIMIZE makes unless the table or the caller says otherwise, in bytes."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """Writes the files of batches again, and commits each batch.

    Attributes
    ----------
    session
        A `write_session`.
    operation
        As history shows it; each commit has metrics of its own.
    after_commit
        The maintenance that follows each commit.
    """

    session: SparkSession
    change: TableChange
    operation: Operation
    after_commit: Callable[[CommittedTransaction], None]

    def run(
        self, batches: Iterator[Batch], result: OptimizeResult, *, dry_run: bool = False
    ) -> OptimizeResult:
        """Rewrite the batches, or only add them up.

        Parameters
        ----------
        result
            What is known before.
        """
        start = time.monotonic_ns()
        partitions: set[tuple[str | None, ...]] = set()
        for batch in batches:
            partitions |= batch.partitions
            result = replace(result, num_partitions=len(partitions))._with(batch)
            if not dry_run:
                new, done = commit_batch(
                    batch, self.session, self.change, partial(_with_metrics, self.operation, batch)
                )
                result = result._committed(new, done)
                self.after_commit(done)
        spent = (time.monotonic_ns() - start) // 1_000_000
        return replace(result, is_dry_run=dry_run, milliseconds=spent)


def nothing_done(
    snapshot: Snapshot, change: TableChange, adds: DataFrame, *, is_whole: bool
) -> OptimizeResult:
    """The result before the first batch.

    Parameters
    ----------
    adds
        The files that are considered, as `Snapshot.add_files` gives them.
    is_whole
        True if these are all files of the table.
    """
    return OptimizeResult(
        path=snapshot.path,
        num_considered_files=_count(snapshot, adds, is_whole=is_whole),
        num_columns=len(snapshot.schema),
        num_columns_with_statistics=len({path[0] for path in change.statistics_columns}),
        start_ms=time.time_ns() // 1_000_000,
    )


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


def _with_metrics(operation: Operation, batch: Batch, new: NewFiles) -> Operation:
    """The operation with the metrics of a commit, by their names in history."""
    sizes = sorted(_sizes(new)) or [0]
    quarters = [sizes[len(sizes) * n // 4] for n in range(4)]
    metrics = {
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
    return replace(operation, metrics={name: str(value) for name, value in metrics.items()})


def _sizes(new: NewFiles) -> list[int]:
    return [add.size for add in new.values or ()]
