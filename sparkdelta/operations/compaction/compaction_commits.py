"""Commits of files that are written again, with the rows that they had.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.file_actions import file_key
from sparkdelta.operations.compaction.compaction import BIN_SETTINGS, Batch
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.row_changes import change_writer, check_row_count
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta


def commit_batch(
    batch: Batch,
    session: SparkSession,
    change: TableChange,
    operation: Callable[[NewFiles], Operation],
) -> tuple[NewFiles, CommittedTransaction]:
    """Rewrite the files of a batch, and commit the new files.

    Rows keep their ids. Other commits conflict only if they changed a file of the batch.

    Parameters
    ----------
    session
        See `SparkEngine.write_session`.
    change
        The table, which the commit leaves as it is.
    operation
        Returns the operation, given the new files.

    Raises
    ------
    NumRecordsMismatchError
        Other rows were written than the statistics of the files tell.
    DeltaConcurrentModificationException
    """
    snapshot = batch.snapshot
    with change_writer(session, snapshot.in_session(session), change) as compared:
        writer = replace(compared, data_change=False, settings=BIN_SETTINGS)
        new = writer.write(batch.rows(writer))
        new = new if batch.cube is None else new.in_cube(batch.cube)
        done = operation(new)
        if batch.num_rows is not None:
            check_row_count(new, batch.num_rows, path=snapshot.path, operation=done.name)
    removes = batch.removes()
    delta = RowDelta(
        spark=snapshot.log.spark,
        store=snapshot.log.store,
        snapshot=snapshot,
        change=change,
        modified=ModifiedFiles(removes=removes),
        new=new,
        read=ReadSet(files=frozenset(file_key(remove, snapshot.path) for remove in removes)),
        tags=writer.tags,
    )
    return new, commit_delta(delta, done)
