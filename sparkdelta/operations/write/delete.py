"""Delete rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, SparkSession

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.write.matching_rows import WrittenChanges, change_matching_rows
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows.change_data_files import with_change_type
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    RowChangeWriter,
    Stopwatch,
    check_row_count,
    open_changeable,
)
from sparkdelta.table.rows.row_selection import RowSelection, condition_parameter
from sparkdelta.table.rows.staged_rows import rows_in_session
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


def _write(matching: RowSelection, writer: RowChangeWriter, stage: Staging) -> WrittenChanges:
    """Write the rows that stay of rewritten files, and the change data if the table has any."""
    modified, path = matching.modified, matching.snapshot.path
    new, changed = writer.write(None, modified), None
    check_row_count(new, modified.num_copied_rows, path=path, operation=_OPERATION)
    if writer.writes_change_data and modified.rewritten is not None:
        # Readers take all changes of a version from its change data files, if it has any.
        rows = rows_in_session(matching.rows(), writer.spark, stage)
        changed = writer.write_changes(with_change_type(rows, ChangeType.DELETE))
        check_row_count(changed, modified.num_rows, path=path, operation=_OPERATION)
    return WrittenChanges(
        new=new, change_files=changed, metrics={"numDeletedRows": modified.num_rows}
    )


def truncate(spark: SparkSession, path: str) -> Version:
    """Commit that a table has no files any more, and return the version.

    Raises
    ------
    DELTA_CANNOT_MODIFY_APPEND_ONLY
        The table is append-only.
    DeltaConcurrentModificationException
        Another commit changed the table.
    """
    snapshot = open_changeable(spark, path)
    done = Transaction.of(
        snapshot,
        Operation("TRUNCATE", metrics={}),
        file_actions=remove_actions(snapshot.add_files()),
        read=ReadSet(whole_table=True),
    ).commit()
    run_commit_hooks(done)
    return done.version
