"""Update rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.operations.write.matching_rows import WrittenChanges, change_matching_rows
from sparkdelta.table.rows.assigned_row_frames import Assignments, expressions_of
from sparkdelta.table.rows.assignments import check_expressions, update_assignments
from sparkdelta.table.rows.change_data_files import with_change_type
from sparkdelta.table.rows.column_binding import conform_assignments
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    RowChangeWriter,
    Stopwatch,
    check_row_count,
    open_changeable,
)
from sparkdelta.table.rows.row_selection import RowSelection, condition_parameter
from sparkdelta.table.rows.staged_rows import computed_once
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.staging import Staging

_OPERATION = "UPDATE"
_BEFORE = "__sparkdelta_before"


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
    watch = Stopwatch()
    snapshot = open_changeable(spark, path, options)
    table = snapshot.configuration
    rules = row_rules(table.schema, table.protocol, table.properties, path=snapshot.path)
    assignments = update_assignments(table.schema, values, rules, alias=names.alias)
    return change_matching_rows(
        snapshot,
        where,
        partial(_write, assignments=assignments, time_zone=time_zone),
        operation=_OPERATION,
        predicate=condition_parameter(where),
        names=names,
        watch=watch,
        assigns=True,
    )


def _write(
    matching: RowSelection,
    writer: RowChangeWriter,
    stage: Staging,
    *,
    assignments: Assignments,
    time_zone: str,
) -> WrittenChanges:
    """Write the new rows, and the change data if the table has any."""
    table, path, modified = writer.change.after, matching.snapshot.path, matching.modified
    columns = [quoted(name) for name in table.schema.names]
    rows = writer.with_kept_ids(matching.rows(*writer.row_ids))
    kept = list(writer.file_columns)
    if writer.writes_change_data:
        rows = rows.withColumn(_BEFORE, F.struct(*columns))
        kept.append(_BEFORE)
    rows = matching.names.given_to(rows)
    check_expressions(rows, [*expressions_of(assignments)])
    conformed, _ = conform_assignments(
        rows,
        table,
        [assignments],
        spark=writer.spark,
        path=path,
        time_zone=time_zone,
        stage=stage,
        kept=kept,
    )
    changed = None
    if not writer.writes_change_data:
        new = writer.write(conformed, modified)
    else:
        staged = computed_once(conformed, stage, "updated")
        new = writer.write(staged.drop(_BEFORE), modified)
        before = with_change_type(staged.select(f"{quoted(_BEFORE)}.*"), ChangeType.UPDATE_PREIMAGE)
        after = with_change_type(staged.select(*columns), ChangeType.UPDATE_POSTIMAGE)
        changed = writer.write_changes(before.unionByName(after))
    if modified.num_rows is not None:
        expected = modified.num_rows + modified.num_copied_rows
        check_row_count(new, expected, path=path, operation=_OPERATION)
    updated = new.num_rows - modified.num_copied_rows
    return WrittenChanges(
        new=new,
        change_files=changed,
        metrics={"numRemovedFiles": modified.num_files, "numUpdatedRows": updated},
    )
