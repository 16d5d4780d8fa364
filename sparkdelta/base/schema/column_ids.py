"""Column ids and physical names of a table with column mapping.

References
----------
PROTOCOL.md#writer-requirements-for-column-mapping, PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.column_mapping import COLUMN_ID, PHYSICAL_NAME
from sparkdelta.base.schema.type_folds import fields_within, with_fields

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"


def with_column_ids(
    schema: StructType,
    *,
    max_id: int,
    new_name: Callable[[], str] = lambda: f"col-{uuid4()}",
) -> tuple[StructType, int]:
    """Assign an id and a physical name to every column without one, at every level.

    Returns the schema and the highest id assigned so far, as `max_id` is: dropped columns count.
    """
    ids = [field.metadata.get(COLUMN_ID) for _, field, _ in fields_within(schema)]
    last = max([max_id, *(number for number in ids if isinstance(number, int))])

    def assigned(field: StructField) -> StructField:
        nonlocal last
        metadata = dict(field.metadata or {})
        if COLUMN_ID not in metadata:
            last += 1
            metadata[COLUMN_ID] = last
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = new_name()
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, assigned), last


def with_own_names(schema: StructType) -> StructType:
    """Return the schema with the names of columns as their physical names, at every level.

    Files that were written without column mapping have these names.
    """

    def named(field: StructField) -> StructField:
        metadata = {**(field.metadata or {}), PHYSICAL_NAME: field.name}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, named)


def with_ids_of(schema: StructType, earlier: StructType) -> StructType:
    """Copy ids and physical names from columns of the same name and type in an earlier schema."""
    before = {name_key(field.name): field for field in earlier.fields}
    return StructType([_with_earlier_ids(f, before.get(name_key(f.name))) for f in schema.fields])


def without_ids(schema: StructType) -> StructType:
    """Return the schema without the metadata of column mapping."""

    def plain(field: StructField) -> StructField:
        metadata = {k: v for k, v in (field.metadata or {}).items() if not k.startswith(_PREFIX)}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, plain)


_PREFIX = "delta.columnMapping."


def _with_earlier_ids(field: StructField, before: StructField | None) -> StructField:
    if before is None:
        return field
    new, old = field.dataType, before.dataType
    if isinstance(new, StructType) and isinstance(old, StructType):
        new = with_ids_of(new, old)
    elif new.simpleString() != old.simpleString():
        return field
    ids = {k: v for k, v in (before.metadata or {}).items() if k.startswith(_PREFIX)}
    return StructField(field.name, new, field.nullable, {**(field.metadata or {}), **ids})
