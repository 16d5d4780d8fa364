"""OPTIMIZE and REORG: batches of files that are written again and committed, one after the other.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#clustered-table,
PROTOCOL.md#writer-requirements-for-clustered-table
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import declared_file_size
from sparkdelta.base.protocol.z_cubes import MAX_ZCUBE_BYTES, MIN_ZCUBE_BYTES, ZCUBE_ID
from sparkdelta.base.schema.column_alterations import path_text
from sparkdelta.base.spark.driver import count_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.compaction.batch_commits import (
    RewrittenBatch,
    commit_bins,
    rewrite_batch,
)
from sparkdelta.operations.compaction.clustered_files import ClusteredFiles, files_to_cluster
from sparkdelta.operations.compaction.compaction_batches import (
    MAX_COMMIT_BYTES,
    NO_FILES,
    Batch,
    FileSizes,
    candidates,
    described_files,
    plan_batches,
)
from sparkdelta.operations.compaction.row_order import RowOrder, zorder_columns
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.alteration import shown_json
from sparkdelta.table.definition.clustering import logical_columns
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.row_changes import unchanged_definition
from sparkdelta.table.snapshot.snapshot import Snapshot

OPERATION = "OPTIMIZE"
MAX_RUNS = 3
"""The most times that a bin is rewritten because others changed it; then it stays as it is."""

TARGET_FILE_SIZE = 1 << 30
"""The size of files that OPTIMIZE makes unless the table or the caller says otherwise, in bytes."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeResult(Result):
    """The outcome of OPTIMIZE.

    Attributes
    ----------
    versions
        Those that it committed; empty if there was nothing to do, and of a dry run.
    added, removed
        The files that it wrote, and those that it replaced; of a dry run, those that it would.
    num_bins
        The groups of files that were rewritten, each as one file or in the order of columns.
    num_planned_files
        The files that these groups were to become.
    num_considered_files
        The files of the table, or of the partitions that the condition selects.
    zorder_by
        The columns whose Z-order rows were put in.
    clustered_files
        The files that a clustered table had before.
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
    num_planned_files: int = 0
    num_partitions: int = 0
    num_considered_files: int = 0
    num_deletion_vectors: int = 0
    num_deleted_rows: int = 0
    zorder_by: tuple[str, ...] = ()
    clustered_files: ClusteredFiles | None = None
    num_columns: int = 0
    num_columns_with_statistics: int = 0
    retries: int = 0
    start_ms: int = field(default=0, repr=False)
    milliseconds: int = 0

    def __str__(self) -> str:
        removed, added = self.removed, self.added
        files = f"of {self.num_considered_files} files of {self.path}"
        if not self.num_bins:
            return f"Nothing to do: none {files} has to be rewritten"
        if self.is_dry_run:
            return (
                f"Would rewrite {removed.count} {files} ({removed.total:,} bytes) as about "
                f"{self.num_planned_files}"
            )
        return (
            f"Rewrote {removed.count} {files} ({removed.total:,} bytes) as {added.count} "
            f"({added.total:,} bytes), in version {', '.join(map(str, self.versions))}"
        )

    def as_dict(self) -> dict[str, object]:
        """Return the attributes by name, as plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "start_ms"}

    def _with(self, batch: Batch) -> OptimizeResult:
        """Add the files of a batch to the result, without the new files that replace them."""
        vectors = [vector for vector in batch.vectors if vector is not None]
        return replace(
            self,
            removed=self.removed + batch.sizes,
            num_bins=self.num_bins + len(batch.bins),
            num_planned_files=self.num_planned_files + sum(batch.num_files),
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
class OptimizeRequest:
    """The arguments of `sparkdelta.optimize`, and of the compaction after a commit.

    Attributes
    ----------
    predicate
        The condition on partitions as history shows it.
    small_file_size
        Files of less bytes are put together; by default `target_file_size`.
    is_auto
        True if it follows a commit.
    """

    predicate: str = "[]"
    target_file_size: int | None = None
    small_file_size: int | None = None
    max_bytes: int = MAX_COMMIT_BYTES
    zorder_by: tuple[str, ...] = ()
    is_full: bool = False
    min_cube_size: int = MIN_ZCUBE_BYTES
    max_cube_size: int = MAX_ZCUBE_BYTES
    is_auto: bool = False
    dry_run: bool = False


def optimize_files(
    snapshot: Snapshot,
    adds: DataFrame,
    request: OptimizeRequest,
    after_commit: Callable[[CommittedTransaction], None],
) -> OptimizeResult:
    """Compact files, put their rows in Z-order, or cluster them.

    Parameters
    ----------
    adds
        The files to look at, as `Snapshot.add_files` gives them.
    after_commit
        The maintenance that follows each commit.
    """
    change, table = unchanged_definition(snapshot), snapshot.configuration
    _check_clustering(snapshot, change, request)
    zorder = zorder_columns(table, request.zorder_by)
    clustering = logical_columns(table, change.clustering_columns)
    names = tuple(map(path_text, clustering))
    size = request.target_file_size or declared_file_size(table.properties) or TARGET_FILE_SIZE
    result = nothing_done(snapshot, change, adds, is_whole=request.predicate == "[]")
    result = replace(result, zorder_by=request.zorder_by)
    plan = partial(plan_batches, snapshot, target_file_size=size, max_bytes=request.max_bytes)
    batches: Iterator[Batch] = iter(())
    if clustering:
        files, before = files_to_cluster(
            snapshot, names, min_cube_bytes=request.min_cube_size, is_full=request.is_full
        )
        result = replace(result, clustered_files=before)
        if files is not None:
            most = max(request.min_cube_size, request.max_cube_size)
            order = RowOrder(clustering, is_hilbert=True, max_bytes=most)
            files = described_files(snapshot, files, cube=F.col("tags")[ZCUBE_ID])
            batches = plan(files, takes_all=True, order=order, cubes=names)
    elif zorder:
        batches = plan(described_files(snapshot, adds), order=RowOrder(zorder))
    else:
        small = request.small_file_size or size
        batches = plan(candidates(snapshot, adds, target_file_size=small))
    parameters: dict[str, Parameter] = {
        "predicate": request.predicate,
        "zOrderBy": shown_json(request.zorder_by),
        "clusterBy": shown_json(names),
        "auto": request.is_auto,
        **({"isFull": request.is_full} if names else {}),
    }
    with engine_of(snapshot.log.spark).write_session() as session:
        return Rewriter(
            session=session,
            change=change,
            operation=Operation(OPERATION, parameters, changes_data=False),
            after_commit=after_commit,
        ).run(batches, result, dry_run=request.dry_run)


def _check_clustering(
    snapshot: Snapshot, change: DefinitionChange, request: OptimizeRequest
) -> None:
    path = snapshot.path
    if is_supported(snapshot.protocol, TableFeature.CLUSTERING) and request.zorder_by:
        raise DeltaError.of("DELTA_CLUSTERING_WITH_ZORDER_BY", path=path, columns=request.zorder_by)
    if request.is_full and not change.clustering_columns:
        raise DeltaError.of("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """A run that rewrites the files of batches, and commits each batch.

    Attributes
    ----------
    session
        A `write_session`.
    operation
        As history shows it; each commit has metrics of its own.
    after_commit
        The maintenance that follows each commit.
    must_rewrite
        True if it is an error to leave files as they are because others change them.
    """

    session: SparkSession
    change: DefinitionChange
    operation: Operation
    after_commit: Callable[[CommittedTransaction], None]
    must_rewrite: bool = False

    def run(
        self, batches: Iterator[Batch], result: OptimizeResult, *, dry_run: bool = False
    ) -> OptimizeResult:
        """Rewrite the batches, or in a dry run only add them up.

        Parameters
        ----------
        result
            The result before the first batch.
        """
        start = time.monotonic_ns()
        partitions: set[tuple[str | None, ...]] = set()

        def added_up(batch: Batch) -> OptimizeResult:
            partitions.update(batch.partitions)
            return replace(result, num_partitions=len(partitions))._with(batch)

        for batch in batches:
            if dry_run:
                result = added_up(batch)
                continue
            for rewritten, done in self._committed(batch):
                result = added_up(rewritten.batch)._committed(rewritten.new, done)
                self.after_commit(done)
        spent = (time.monotonic_ns() - start) // 1_000_000
        return replace(result, is_dry_run=dry_run, milliseconds=spent)

    def _committed(self, batch: Batch) -> Iterator[tuple[RewrittenBatch, CommittedTransaction]]:
        """Rewrite a batch, and yield its commits. Bins that other commits changed meanwhile
        are rewritten again, a few times; then they are left as they are.
        """
        left: Batch | None = batch
        name = self.operation.name
        for _ in range(MAX_RUNS):
            if left is None:
                return
            rewritten = rewrite_batch(left, self.session, self.change, operation=name)
            outcome = commit_bins(rewritten, partial(_with_metrics, self.operation))
            left = outcome.left
            if outcome.committed is not None:
                yield outcome.committed
        if left is None:
            return
        if self.must_rewrite and outcome.conflict is not None:
            raise outcome.conflict
        _LOGGER.warning(
            "%s left %s files of %s as they are: other commits changed them",
            name, left.files.num_rows, left.snapshot.path,
        )  # fmt: skip


def nothing_done(
    snapshot: Snapshot, change: DefinitionChange, adds: DataFrame, *, is_whole: bool
) -> OptimizeResult:
    """Return the result before the first batch.

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
    """Return the number of files; for the whole table, from the version checksum if it has one."""
    checksum = snapshot.version_checksum
    if is_whole and checksum is not None and checksum.num_files is not None:
        return checksum.num_files
    return count_rows(adds, what="number of files to optimize", version=snapshot.version)


def _with_metrics(operation: Operation, batch: Batch, new: NewFiles) -> Operation:
    """Return the operation with the metrics of a commit, by their names in history."""
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
    return replace(operation, metrics=metrics)


def _sizes(new: NewFiles) -> list[int]:
    return [add.size for add in new.values or ()]
