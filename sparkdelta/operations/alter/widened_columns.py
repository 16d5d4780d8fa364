"""The columns of a table whose types were widened, and the table without a record of that.

References
----------
PROTOCOL.md#type-widening
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import COLUMN_ID, physical_name
from sparkdelta.base.schema.type_folds import fields_within, parts, with_fields
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.operations.alter.altered_columns import shown_field
from sparkdelta.operations.alter.stored_type_workers import StoredColumn
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot

_WIDER = ("short", "integer", "long", "double", "timestamp_ntz", "decimal")


def stored_columns(table: TableConfiguration) -> tuple[StoredColumn, ...]:
    """The columns that old files may store as narrower types, by their names in files."""

    def within(
        data_type: DataType, path: tuple[str | int, ...], *, is_changed: bool
    ) -> Iterator[StoredColumn]:
        if isinstance(data_type, StructType):
            for field in data_type.fields:
                changed = TYPE_CHANGES in (field.metadata or {})
                yield from within(field.dataType, (*path, name(field)), is_changed=changed)
            return
        for part, inner in parts(data_type):
            yield from within(inner, (*path, part), is_changed=is_changed)
        text = data_type.jsonValue()
        if is_changed and isinstance(text, str) and text.startswith(_WIDER):
            yield StoredColumn(path, text)

    def name(field: StructField) -> str | int:
        if table.column_mapping is ColumnMappingMode.ID:
            return int(field.metadata[COLUMN_ID])
        return physical_name(field, table.column_mapping)

    return tuple(within(StructType(table.data_fields), (), is_changed=False))


def without_type_changes(snapshot: Snapshot) -> Alteration | None:
    """The table without the record of type changes, which no file needs any more; None if it has
    none.
    """

    def plain(field: StructField) -> StructField:
        metadata = {k: v for k, v in (field.metadata or {}).items() if k != TYPE_CHANGES}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    table = snapshot.configuration
    changed = [
        shown_field(path, field)
        for path, field, _ in fields_within(table.schema)
        if TYPE_CHANGES in (field.metadata or {})
    ]
    if not changed:
        return None
    after = with_schema(table, with_fields(table.schema, plain))
    return alteration(TableChange(table, after), "DROP FEATURE", {"columns": changed})
