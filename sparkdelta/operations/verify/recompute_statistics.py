"""Compute the statistics of a table's files anew.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.arguments import checked_names
from sparkdelta.base.protocol.column_lists import column_list
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.statistics_columns import found_column, string_prefix_length
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.spark.driver import count_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.verify.statistics_workers import StatisticsReader, recomputed_statistics
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.rows.expression_arguments import checked_condition
from sparkdelta.table.rows.removed_files import chosen_partitions
from sparkdelta.table.rows.row_changes import open_changeable, unchanged_definition
from sparkdelta.table.rows.row_selection import condition_parameter
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

OPERATION = "COMPUTE STATS"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsResult(Result):
    """The outcome of `sparkdelta.recompute_statistics`.

    Attributes
    ----------
    version
        The version that it committed; None if the condition selects no file.
    num_files
        The files that got new statistics.
    """

    path: str
    version: Version | None = None
    num_files: int = 0


def recompute_statistics(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    columns: Sequence[str] | None = None,
) -> StatisticsResult:
    """Commit the statistics in the footers of files, for files that have none or wrong
    ones. No row is read.

    Files with deletion vectors get wide bounds. Bounds that a footer lacks are left out.

    Parameters
    ----------
    where
        Only the partitions that match a condition on partition columns.
    columns
        Columns, or fields such as ``s.x``, whose statistics are computed while the others stay
        as they are. By default the columns with statistics of the table's properties; other columns
        then have none.

    Returns
    -------
    StatisticsResult
        The version, and the number of files.

    Raises
    ------
    NonPartitionColumnReferenceError
        `where` uses another column.
    ColumnNotFoundError
        A column does not exist.
    ConcurrentDeleteReadException
        Another commit changed or removed one of the files meanwhile.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    where, columns = checked_condition(where, "where"), checked_names(columns, "columns")
    snapshot = open_changeable(spark, path, only_inserts=True)
    root, statistics = snapshot.path, snapshot.configuration.statistics
    reader = StatisticsReader(
        files=worker_files(spark, root, snapshot.log.options),
        columns=_physical_columns(snapshot, columns),
        keeps_others=columns is not None,
        prefix_length=string_prefix_length(snapshot.properties),
    )
    add = add_fields(statistics, dataChange="false")
    adds = chosen_partitions(snapshot, where, operation=OPERATION).selectExpr(f"{add} AS add")
    with (
        engine_of(spark).log_session() as session,
        jobs_of(root, snapshot.version),
        staging(session, snapshot.log.store) as stage,
    ):
        found = stage.compute_once(adds, "adds")
        files = found.selectExpr(
            "add.path",
            f"{absolute_path('add.path', table_root=root)} AS file",
            "add.stats",
            "add.deletionVector.storageType IS NOT NULL AS hasVector",
        )
        with worker_python(session):
            new = recomputed_statistics(files, reader)
        recomputed = stage.compute_once(new, "statistics")
        count = count_rows(recomputed, what="number of files with statistics")
        if not count:
            return StatisticsResult(path=root)
        keyed = found.withColumn("path", F.col("add.path")).join(recomputed, "path")
        done = Transaction.of(
            snapshot,
            Operation(OPERATION, {"predicate": condition_parameter(where)}, changes_data=False),
            file_actions=keyed.select(F.col("add").withField("stats", F.col("stats")).alias("add")),
            read_files=found.select("add.path"),
        ).commit()
    run_commit_hooks(done)
    return StatisticsResult(path=root, version=done.version, num_files=count)


def _physical_columns(snapshot: Snapshot, names: Sequence[str] | None) -> tuple[ColumnPath, ...]:
    """Return the physical paths of columns and of the fields in them; by default of all that have
    statistics.
    """
    if names is None:
        return unchanged_definition(snapshot).statistics_columns
    schema, mode = snapshot.schema, snapshot.configuration.column_mapping
    wanted = [found_column(schema, path) for name in names for path in column_list("columns", name)]
    return tuple(
        physical_path(schema, path, mode)
        for path, _ in leaves(schema)
        if any(path[: len(prefix)] == prefix for prefix in wanted)
    )
