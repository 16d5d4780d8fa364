"""OPTIMIZE and REORG: files written again as fewer larger ones, in Z-order or clustered by the
table's columns, and without the rows and columns that the table no longer has.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#clustered-table,
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.protocol.arguments import checked_count, checked_flag, checked_names
from sparkdelta.base.protocol.table_features import (
    TableFeature,
    Writing,
    check_writable,
    is_supported,
)
from sparkdelta.base.protocol.table_properties import declared_file_size
from sparkdelta.base.protocol.z_cubes import MAX_ZCUBE_BYTES, MIN_ZCUBE_BYTES
from sparkdelta.base.schema.column_mapping import physical_type
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import driver_files, task_count, worker_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.compaction.compaction_batches import (
    MAX_COMMIT_BYTES,
    described_files,
    has_vector,
    plan_batches,
)
from sparkdelta.operations.compaction.optimize_run import (
    OPERATION,
    TARGET_FILE_SIZE,
    OptimizeRequest,
    OptimizeResult,
    Rewriter,
    nothing_done,
    optimize_files,
)
from sparkdelta.operations.optimize.dropped_column_workers import (
    OTHER_COLUMNS,
    ColumnChecker,
    files_with_others,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.expression_arguments import checked_condition
from sparkdelta.table.rows.removed_files import chosen_partitions
from sparkdelta.table.rows.row_changes import open_changeable, unchanged_definition
from sparkdelta.table.scan.conditions import shown
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging, staging

_REORG = "REORG"

MAX_DRIVER_FOOTERS = 100_000
"""Up to this many footers of HDFS are read by the driver, where workers have no way to them."""
_IS_DROPPED = "__sparkdelta_dropped"


def optimize(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    zorder_by: Sequence[str] | None = None,
    full: bool = False,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    min_cube_size: int | None = None,
    max_cube_size: int | None = None,
    dry_run: bool = False,
) -> OptimizeResult:
    """Rewrite files as fewer larger ones. The rows stay as they are, with their row ids.

    Small files, and files of which more than 5% of the rows are deleted, are put together; no row
    is shuffled. With `zorder_by`, all files are rewritten, with the rows of each partition in
    Z-order, so that queries on these columns read few files. A clustered table is clustered by its
    own columns: new files and small Z-cubes become larger Z-cubes in Hilbert order, and large
    Z-cubes stay as they are.

    Each commit is of use by itself: a run that fails or is stopped keeps what it committed. Changes
    of rows do not conflict; files that others change again and again stay as they are.

    Parameters
    ----------
    where
        Only the partitions that match a condition on partition columns.
    zorder_by
        Names of data columns with statistics.
    full
        True to cluster those files of a clustered table again that are clustered by other columns.
    target_file_size
        Of new files in bytes. By default `delta.targetFileSize`, or 1 GiB.
    max_bytes
        The approximate bytes that a commit replaces, 100 GiB by default; at most 10,000 files. It
        replaces a whole partition in Z-order, or a whole Z-cube, up to 100,000 files.
    min_cube_size, max_cube_size
        A Z-cube of `min_cube_size` bytes is left alone, 100 GiB by default; new ones have up to
        `max_cube_size`, 150 GiB.
    dry_run
        True to only report what would be done.

    Returns
    -------
    OptimizeResult
        Versions, files and bytes; its string form is a sentence. Without anything to do there is
        no new version.

    Raises
    ------
    NonPartitionColumnReferenceError, DELTA_CLUSTERING_WITH_PARTITION_PREDICATE
        `where` uses another column, or the table is clustered.
    DELTA_ZORDERING_ON_PARTITION_COLUMN, DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST,
    DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS, DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES
        Rows cannot be put in the order of one of the columns.
    DELTA_CLUSTERING_WITH_ZORDER_BY, DELTA_OPTIMIZE_FULL_NOT_SUPPORTED
        `zorder_by` is for tables that are not clustered, `full` for those that are.
    DELTA_WRITE_NOT_IMPLEMENTED
        No rows can be written into the table.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
    PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#clustered-table
    """
    checked_flag(full, "full")
    checked_flag(dry_run, "dry_run")
    request = OptimizeRequest(
        target_file_size=checked_count(target_file_size, "target_file_size"),
        max_bytes=checked_count(max_bytes, "max_bytes") or MAX_COMMIT_BYTES,
        zorder_by=checked_names(zorder_by, "zorder_by") or (),
        is_full=full,
        min_cube_size=checked_count(min_cube_size, "min_cube_size") or MIN_ZCUBE_BYTES,
        max_cube_size=checked_count(max_cube_size, "max_cube_size") or MAX_ZCUBE_BYTES,
        dry_run=dry_run,
    )
    where = checked_condition(where, "where")
    return optimize_table(open_changeable(spark, path, only_inserts=True), where, request)


def optimize_table(
    snapshot: Snapshot, where: str | Column | None, request: OptimizeRequest
) -> OptimizeResult:
    """Optimize the files of a table, or of the partitions that a condition selects."""
    check_writable(snapshot.protocol, path=snapshot.path, writing=Writing.MAINTENANCE)
    if where is not None and is_supported(snapshot.protocol, TableFeature.CLUSTERING):
        raise DeltaError.of(
            "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            path=snapshot.path,
            condition=where if isinstance(where, str) else str(where),
        )
    adds = chosen_partitions(snapshot, where, operation=OPERATION)
    request = replace(request, predicate=_terms_parameter(where))
    with jobs_of(snapshot.path, snapshot.version):
        return optimize_files(snapshot, adds, request, run_commit_hooks)


def reorg(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> OptimizeResult:
    """Purge a table (``REORG TABLE ... APPLY (PURGE)``): rewrite all files with deleted rows, and
    all that hold a column or nested field that was dropped from the table.

    The rows stay as they are, with their row ids. The old files can be read by time travel until
    they are vacuumed. Reads the footer of each file, on the executors.

    Parameters
    ----------
    where, target_file_size, max_bytes, dry_run
        See `optimize`.

    Returns
    -------
    OptimizeResult
        Versions, files and bytes. Without anything to do there is no new version.

    Raises
    ------
    NonPartitionColumnReferenceError
        `where` uses another column than partition columns.
    ConcurrentDeleteReadException
        Other commits changed or removed one of the files each time that it was rewritten.

    References
    ----------
    PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping
    """
    checked_flag(dry_run, "dry_run")
    checked_count(target_file_size, "target_file_size")
    checked_count(max_bytes, "max_bytes")
    where = checked_condition(where, "where")
    snapshot = open_changeable(spark, path, only_inserts=True)
    check_writable(snapshot.protocol, path=snapshot.path, writing=Writing.MAINTENANCE)
    adds = chosen_partitions(snapshot, where, operation=_REORG)
    size = target_file_size or declared_file_size(snapshot.properties) or TARGET_FILE_SIZE
    with (
        engine_of(spark).write_session() as session,
        jobs_of(snapshot.path, snapshot.version),
        staging(spark, snapshot.log.store) as stage,  # rows that are joined with the snapshot's
    ):
        change = unchanged_definition(snapshot)
        result = nothing_done(snapshot, change, adds, is_whole=where is None)
        files = purgeable_files(snapshot, adds, result.num_considered_files, stage)
        batches = plan_batches(
            snapshot,
            described_files(snapshot, files),
            target_file_size=size,
            max_bytes=max_bytes or MAX_COMMIT_BYTES,
            takes_all=True,
        )
        return Rewriter(
            session=session,
            change=change,
            operation=Operation(
                _REORG,
                {"predicate": _terms_parameter(where), "applyPurge": True},
                changes_data=False,
            ),
            after_commit=run_commit_hooks,
            must_rewrite=True,
        ).run(batches, result, dry_run=dry_run)


def _terms_parameter(where: str | Column | None) -> str:
    """Return a condition as history shows it: a JSON list of its terms."""
    if isinstance(where, str):
        from sparkdelta.base.predicates.parsed_terms import parsed_terms  # needs sqlglot

        terms = parsed_terms(where)
    else:
        terms = [] if where is None else [shown(where)]
    return json.dumps(terms, ensure_ascii=False)


def purgeable_files(snapshot: Snapshot, adds: DataFrame, count: int, stage: Staging) -> DataFrame:
    """Return the files with deleted rows, and those with columns that the table does not have; the
    footer of each file is read once.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them, and as the result has them.
    count
        The number of these files.
    """
    file = F.expr(absolute_path("path", table_root=snapshot.path))
    found = _with_other_columns(snapshot, adds.select(file.alias("file")), count)
    # Each look at the files to purge would read the footers again.
    dropped = stage.compute_once(found, "dropped", OTHER_COLUMNS)
    is_dropped = F.broadcast(dropped.select("file", F.lit(True).alias(_IS_DROPPED)))
    joined = adds.withColumn("file", file).join(is_dropped, "file", "left")
    return joined.filter(has_vector() | F.col(_IS_DROPPED)).select(*adds.columns)


def _with_other_columns(snapshot: Snapshot, files: DataFrame, count: int) -> DataFrame:
    spark, options = snapshot.log.spark, snapshot.log.options
    workers = worker_files(spark, snapshot.path, options)
    checker = ColumnChecker(workers, _stored_columns(snapshot.configuration))
    if workers.is_near(snapshot.path) or count > MAX_DRIVER_FOOTERS:
        with worker_python(spark):
            return files_with_others(files.repartition(task_count(count)), checker)
    checker = replace(checker, files=driver_files(spark, snapshot.path, options))
    table = read_table(files, what="files to purge", bound=MAX_DRIVER_FOOTERS)
    found = checker.with_others(table["file"].to_pylist())
    return spark.createDataFrame([(file,) for file in found], OTHER_COLUMNS)


def _stored_columns(table: TableConfiguration) -> StructType:
    """Return the columns that data files may hold, by their physical names."""
    schema = physical_type(table.schema, table.column_mapping)
    assert isinstance(schema, StructType)
    tracking = table.row_tracking
    names = (tracking.row_id_column, tracking.row_commit_version_column)
    return StructType([*schema.fields, *(StructField(n, LongType()) for n in names if n)])
