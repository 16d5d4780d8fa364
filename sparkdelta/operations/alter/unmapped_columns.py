"""A table without column mapping: its columns, properties and clustering columns.

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
from sparkdelta.exceptions import InvalidColumnNameError, InvalidNamesError
from sparkdelta.table.definition.clustering import clustering_columns, clustering_domain
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


def unmapped_table(snapshot: Snapshot, *, keeps_property: bool = True) -> TableChange:
    """The table without column mapping, whose files have to be written again.

    Parameters
    ----------
    keeps_property
        True to set the mode to none; False to unset it.

    Raises
    ------
    InvalidNamesError
        Columns have names that files without column mapping cannot have.
    """
    before = snapshot.configuration
    schema = without_ids(before.schema)
    try:
        check_columns(schema)
    except InvalidColumnNameError as error:
        raise InvalidNamesError(column=error.column, path=snapshot.path) from None
    gone = (COLUMN_MAPPING_MODE, MAX_COLUMN_ID)
    properties = {k: v for k, v in before.properties.items() if k not in gone}
    if keeps_property:
        properties[COLUMN_MAPPING_MODE] = ColumnMappingMode.NONE.value
    metadata = replace(before.metadata, schema_string=schema.json(), configuration=properties)
    after = TableConfiguration.of(before.protocol, metadata, schema)
    clustering = clustering_columns(snapshot)
    if clustering is None:
        return TableChange(before, after)
    names = {
        physical_path(before.schema, path, before.column_mapping): path
        for path, _, _ in fields_within(before.schema)
    }
    logical = tuple(names[path] for path in clustering)
    return TableChange(before, after, (clustering_domain(logical),), logical)
