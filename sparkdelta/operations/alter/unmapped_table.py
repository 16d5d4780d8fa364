"""The commit that removes column mapping: all files are written again under the columns' names.

References
----------
PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from dataclasses import replace

from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.alter.unmapped_columns import unmapped_table
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.modified_files import whole_files
from sparkdelta.table.rows.row_changes import change_writer, check_row_count
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta
from sparkdelta.table.snapshot.snapshot import Snapshot

OPERATION = "REMOVE COLUMN MAPPING"


def remove_mapping(snapshot: Snapshot, *, keeps_property: bool) -> CommittedTransaction:
    """Write all rows again under the columns' own names, and commit that with the new schema.

    Rows keep their ids. Any other commit of files is a conflict: its files have other names.

    Parameters
    ----------
    keeps_property
        See `unmapped_table`.

    Raises
    ------
    InvalidNamesError
        Columns have names that need column mapping.
    DeltaConcurrentModificationException
    """
    change = unmapped_table(snapshot, keeps_property=keeps_property)
    with engine_of(snapshot.log.spark).write_session() as session:
        ours, new = snapshot.in_session(session), None
        removed = whole_files(ours, ours.add_files(), data_change=False)
        with change_writer(session, ours, change) as compared:
            writer = replace(compared, data_change=False)
            if removed.num_files:
                rows = writer.with_file_columns(ours.scan().rows_with(*writer.row_ids))
                fields = change.after.schema.fields
                new = writer.write(retyped_rows(rows, fields, writer.file_columns))
                if removed.num_rows is not None:
                    check_row_count(new, removed.num_rows, path=ours.path, operation=OPERATION)
        delta = RowDelta(
            spark=snapshot.log.spark,
            store=snapshot.log.store,
            snapshot=snapshot,
            change=change,
            modified=removed,
            read=ReadSet(whole_table=True),
            new=new,
            tags=writer.tags,
        )
        return commit_delta(delta, Operation(OPERATION, {}, metrics=delta.file_metrics))
