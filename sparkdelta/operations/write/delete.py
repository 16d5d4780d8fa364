"""Delete rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.rows.change_files import with_change_type
from sparkdelta.table.rows.modified_file_rows import deleted_rows
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.row_change_commits import commit_changes
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    RowChanges,
    Stopwatch,
    change_writer,
    check_row_count,
    open_changeable,
    unchanged_table,
)
from sparkdelta.table.rows.row_selection import condition_parameter, find_matching_rows
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

_OPERATION = "DELETE"


def delete(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    *,
    names: RowNames = NO_NAMES,
    options: Mapping[str, str] | None = None,
) -> ChangeResult:
    """Delete the rows that a condition is true of, all rows without one.

    See `sparkdelta.api.delta_table.DeltaTable.delete`.
    """
    watch, moves_frames = Stopwatch(), engine_of(spark).can("move frames")
    snapshot = open_changeable(spark, path, options)
    with (
        engine_of(spark).write_session() as session,
        jobs_of(snapshot.path, snapshot.version),
        staging(spark, snapshot.log.store) as stage,
    ):
        matching = find_matching_rows(
            snapshot,
            where,
            stage,
            operation=_OPERATION,
            names=names,
        )
        touched = matching.touched
        if not touched.num_files:
            return ChangeResult(milliseconds=watch.total_ms)
        watch.lap("scanTimeMs")
        own = snapshot.in_session(session)
        with change_writer(session, own, unchanged_table(snapshot), touched) as writer:
            if isinstance(touched.rewritten, DataFrame) and not moves_frames:
                problem = "it selects rows of too many files; delete them from a classic session"
                raise InvalidArgumentError(argument="condition", problem=problem)
            new = writer.write(None, touched)
            check_row_count(new, touched.num_copied_rows, path=snapshot.path, operation=_OPERATION)
            changed = None
            if writer.writes_change_data and touched.rewritten is not None:
                # Readers take all changes of a version from its change data files, if it has any.
                rows = matching.rows() if moves_frames else _deleted(own, touched)
                changed = writer.write_changes(with_change_type(rows, ChangeType.DELETE))
                check_row_count(changed, touched.num_rows, path=snapshot.path, operation=_OPERATION)
        watch.lap("rewriteTimeMs")
        changes = RowChanges(
            snapshot=snapshot,
            change=writer.change,
            touched=touched,
            read=matching.read,
            new=new,
            change_files=changed,
            tags=writer.tags,
        )
        num_rows = touched.num_rows
        metrics = {
            **changes.file_metrics,
            **({} if num_rows is None else {"numDeletedRows": num_rows}),
            "numCopiedRows": touched.num_copied_rows,
            **watch.metrics,
        }
        parameters = {"predicate": condition_parameter(where, without="true")}
        done = commit_changes(changes, Operation(_OPERATION, parameters, metrics=metrics))
    run_commit_hooks(done, compacts=True)
    return changes.result(done.version, done.attempts, watch.total_ms, num_deleted_rows=num_rows)


def _deleted(snapshot: Snapshot, touched: ModifiedFiles) -> DataFrame:
    """The deleted rows, read by position, not by the condition, which could select other rows in
    the session of the snapshot.
    """
    assert touched.deleted is not None
    return deleted_rows(snapshot, touched.deleted, touched.num_files)
