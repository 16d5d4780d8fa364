"""Ids and physical names for the columns of a table that maps them.

References
----------
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from pyspark.sql.types import StructField, StructType

from sparkdelta.schema.column_mapping import COLUMN_ID, PHYSICAL_NAME
from sparkdelta.schema.type_folds import fields_within, with_fields

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"


def with_column_ids(
    schema: StructType,
    *,
    max_id: int,
    new_name: Callable[[], str] = lambda: f"col-{uuid4()}",
) -> tuple[StructType, int]:
    """The schema with an id and a physical name for each column that has none yet, at every level,
    and the highest id that was ever given.

    Parameters
    ----------
    max_id
        The highest id given so far, to columns that are gone as well.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-column-mapping
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


def with_ids_of(schema: StructType, earlier: StructType) -> StructType:
    """The schema with ids and physical names of the columns that had the same name and type.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-column-mapping
    """
    before = {field.name.lower(): field for field in earlier.fields}
    return StructType([_as_before(f, before.get(f.name.lower())) for f in schema.fields])


def without_ids(schema: StructType) -> StructType:
    """The schema without what column mapping keeps in it.

    References
    ----------
    PROTOCOL.md#column-mapping
    """

    def plain(field: StructField) -> StructField:
        kept = {k: v for k, v in (field.metadata or {}).items() if not k.startswith(_PREFIX)}
        return StructField(field.name, field.dataType, field.nullable, kept)

    return with_fields(schema, plain)


_PREFIX = "delta.columnMapping."


def _as_before(field: StructField, before: StructField | None) -> StructField:
    if before is None:
        return field
    new, old = field.dataType, before.dataType
    if isinstance(new, StructType) and isinstance(old, StructType):
        new = with_ids_of(new, old)
    elif new.simpleString() != old.simpleString():
        return field
    ids = {k: v for k, v in (before.metadata or {}).items() if k.startswith(_PREFIX)}
    return StructField(field.name, new, field.nullable, {**(field.metadata or {}), **ids})
