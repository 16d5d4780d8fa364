"""Delete rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.write.matching_rows import WrittenChanges, change_matching_rows
from sparkdelta.table.rows.change_files import with_change_type
from sparkdelta.table.rows.modified_file_rows import deleted_rows
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    ChangeWriter,
    Stopwatch,
    check_row_count,
    open_changeable,
)
from sparkdelta.table.rows.row_selection import RowSelection, condition_parameter
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.staging import Staging

_OPERATION = "DELETE"


def delete(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    *,
    names: RowNames = NO_NAMES,
    options: Mapping[str, str] | None = None,
) -> ChangeResult:
    """Delete the rows that match a condition, or all rows without one.

    See `sparkdelta.api.delta_table.DeltaTable.delete`.
    """
    watch = Stopwatch()
    return change_matching_rows(
        open_changeable(spark, path, options),
        where,
        _write,
        operation=_OPERATION,
        predicate=condition_parameter(where, without="true"),
        names=names,
        watch=watch,
    )


def _write(matching: RowSelection, writer: ChangeWriter, _: Staging) -> WrittenChanges:
    """Write the rows that stay of rewritten files, and the change data if the table has any."""
    modified, path = matching.modified, matching.snapshot.path
    moves_frames = engine_of(matching.snapshot.log.spark).can("move frames")
    if isinstance(modified.rewritten, DataFrame) and not moves_frames:
        problem = "it selects rows of too many files; delete them from a classic session"
        raise InvalidArgumentError(argument="condition", problem=problem)
    new, changed = writer.write(None, modified), None
    check_row_count(new, modified.num_copied_rows, path=path, operation=_OPERATION)
    if writer.writes_change_data and modified.rewritten is not None:
        # Readers take all changes of a version from its change data files, if it has any.
        if moves_frames:
            rows = matching.rows()
        else:  # by position: the condition could select other rows in the session of the write
            assert writer.snapshot is not None
            assert modified.deleted is not None
            rows = deleted_rows(writer.snapshot, modified.deleted, modified.num_files)
        changed = writer.write_changes(with_change_type(rows, ChangeType.DELETE))
        check_row_count(changed, modified.num_rows, path=path, operation=_OPERATION)
    return WrittenChanges(
        new=new, change_files=changed, metrics={"numDeletedRows": modified.num_rows}
    )
