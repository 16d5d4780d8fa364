"""Removal of column mapping: all files are written again under the columns' names.

References
----------
PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from dataclasses import replace

from sparkdelta.base.protocol.table_properties import COLUMN_MAPPING_MODE, ColumnMappingMode
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID, without_ids
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.base.schema.written_schema import check_columns
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidColumnNameError
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.clustering import clustering_columns, clustering_domain
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.modified_files import whole_files
from sparkdelta.table.rows.row_changes import check_row_count, row_change_writer
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta
from sparkdelta.table.snapshot.snapshot import Snapshot

OPERATION = "REMOVE COLUMN MAPPING"


def unmapped_table(snapshot: Snapshot, *, keeps_property: bool = True) -> DefinitionChange:
    """Return the change that removes column mapping; the files must be written again.

    With `keeps_property`, the mode is set to none; otherwise it is unset.
    """
    before = snapshot.configuration
    schema = without_ids(before.schema)
    try:
        check_columns(schema)
    except InvalidColumnNameError as error:
        raise DeltaError.of(
            "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            column=error.column,
            path=snapshot.path,
        ) from None
    gone = (COLUMN_MAPPING_MODE, MAX_COLUMN_ID)
    properties = {k: v for k, v in before.properties.items() if k not in gone}
    if keeps_property:
        properties[COLUMN_MAPPING_MODE] = ColumnMappingMode.NONE.value
    metadata = replace(before.metadata, schema_string=schema.json(), configuration=properties)
    after = TableConfiguration.of(before.protocol, metadata, schema)
    clustering = clustering_columns(snapshot)
    if clustering is None:
        return DefinitionChange(before, after)
    names = {
        physical_path(before.schema, path, before.column_mapping): path
        for path, _, _ in fields_within(before.schema)
    }
    logical = tuple(names[path] for path in clustering)
    return DefinitionChange(before, after, (clustering_domain(logical),), logical)


def remove_mapping(snapshot: Snapshot, *, keeps_property: bool) -> CommittedTransaction:
    """Write all rows again under the columns' names, and commit them with the new schema.

    Rows keep their ids. Any other commit of files is a conflict: its files have other names.
    """
    change = unmapped_table(snapshot, keeps_property=keeps_property)
    with engine_of(snapshot.log.spark).write_session() as session:
        ours, new = snapshot.in_session(session), None
        removed = whole_files(ours, ours.add_files(), data_change=False)
        with row_change_writer(session, ours, change) as compared:
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
