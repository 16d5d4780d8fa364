"""Update rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.rows.assigned_row_frames import Assignments
from sparkdelta.table.rows.assignments import update_assignments, with_assignments
from sparkdelta.table.rows.change_files import ChangeFiles, with_change_type
from sparkdelta.table.rows.column_binding import conform_assigned, match_assigned
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.row_change_commits import commit_changes
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    ChangeWriter,
    RowChanges,
    Stopwatch,
    change_writer,
    check_row_count,
    open_changeable,
    unchanged_table,
)
from sparkdelta.table.rows.row_selection import (
    RowSelection,
    condition_parameter,
    find_matching_rows,
)
from sparkdelta.table.rows.staged_rows import computed_once
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.staging import Staging, staging

_OPERATION = "UPDATE"
_BEFORE = "sparkdelta:before"


def update(
    spark: SparkSession,
    path: str,
    where: str | Column | None,
    values: Mapping[str, str | Column],
    *,
    names: RowNames = NO_NAMES,
    options: Mapping[str, str] | None = None,
    time_zone: str = UTC,
) -> ChangeResult:
    """Assign new values to columns of matching rows, converted to the columns' types in a time
    zone.

    See `sparkdelta.api.delta_table.DeltaTable.update`.
    """
    if not engine_of(spark).can("see plans"):
        problem = "rows can only be updated from a classic session"
        raise InvalidArgumentError(argument="set", problem=problem)
    watch = Stopwatch()
    snapshot = open_changeable(spark, path, options)
    table = snapshot.configuration
    rules = row_rules(table.schema, table.protocol, table.properties, path=snapshot.path)
    assignments = update_assignments(table.schema, values, rules, alias=names.alias)
    with (
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
        with change_writer(spark, snapshot, unchanged_table(snapshot), touched) as writer:
            new, changed = _written(matching, assignments, writer, stage, time_zone)
            assert new is not None
            updated = new.num_rows - touched.num_copied_rows
            if touched.num_rows is not None:
                expected = touched.num_rows + touched.num_copied_rows
                check_row_count(new, expected, path=snapshot.path, operation=_OPERATION)
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
        metrics = {
            **changes.file_metrics,
            "numRemovedFiles": touched.num_files,
            "numUpdatedRows": updated,
            "numCopiedRows": touched.num_copied_rows,
            **watch.metrics,
        }
        parameters = {"predicate": condition_parameter(where)}
        done = commit_changes(changes, Operation(_OPERATION, parameters, metrics=metrics))
    run_commit_hooks(done, compacts=True)
    return changes.result(done.version, done.attempts, watch.total_ms, num_updated_rows=updated)


def _written(
    matching: RowSelection,
    assignments: Assignments,
    writer: ChangeWriter,
    stage: Staging,
    time_zone: str,
) -> tuple[NewFiles | None, ChangeFiles | None]:
    """Write the new rows, and the change data if the table has any."""
    table, path = writer.change.after, writer.snapshot.path
    columns = [quoted(name) for name in table.schema.names]
    rows = writer.with_kept_ids(matching.rows(*writer.row_ids))
    kept = list(writer.file_columns)
    if writer.writes_change_data:
        rows = rows.withColumn(_BEFORE, F.struct(*columns))
        kept.append(_BEFORE)
    rows = matching.names.given_to(rows)
    assigned = with_assignments(rows, table.schema, [assignments], kept=kept)
    matched = match_assigned(table, [assignments], path=path)
    new = conform_assigned(
        assigned,
        matched,
        table,
        spark=writer.spark,
        path=path,
        time_zone=time_zone,
        kept=kept,
    )
    if not writer.writes_change_data:
        return writer.write(new, matching.touched), None
    staged = computed_once(new, stage, "updated")
    files = writer.write(staged.drop(_BEFORE), matching.touched)
    before = with_change_type(staged.select(f"{quoted(_BEFORE)}.*"), ChangeType.UPDATE_PREIMAGE)
    after = with_change_type(staged.select(*columns), ChangeType.UPDATE_POSTIMAGE)
    return files, writer.write_changes(before.unionByName(after))
