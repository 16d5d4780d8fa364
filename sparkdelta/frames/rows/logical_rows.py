"""Columns of data files as the columns of the table's schema."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sparkdelta.schema.table_schema import as_nullable, without_void


def logical_column(column: Column, *, stored: DataType | None, logical: DataType) -> Column:
    """A column as the table's schema names it at every level, with `void` fields put back as nulls.

    Parameters
    ----------
    column
        As scanned.
    stored
        Its type in the scan; None if data files do not have it.
    logical
        Its type in the table's schema.

    References
    ----------
    PROTOCOL.md#reader-requirements-for-column-mapping, PROTOCOL.md#void-type
    """
    wanted = as_nullable(logical)
    if stored is None:
        return F.lit(None).cast(wanted)
    if as_nullable(stored) == wanted:
        return column
    if without_void(logical) == logical:
        return column.cast(wanted)  # Spark casts structs by position, so this renames
    return _rebuild(column, stored, logical).cast(wanted)


def _rebuild(column: Column, stored: DataType, logical: DataType) -> Column:
    if isinstance(logical, StructType) and isinstance(stored, StructType):
        physical = iter(stored.fields)
        fields = []
        for field in logical.fields:
            if without_void(field.dataType) is None:
                value = F.lit(None).cast(as_nullable(field.dataType))
            else:
                source = next(physical)
                value = _rebuild(column[source.name], source.dataType, field.dataType)
            fields.append(value.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(logical, ArrayType) and isinstance(stored, ArrayType):
        stored_element, element = stored.elementType, logical.elementType
        return F.transform(column, lambda value: _rebuild(value, stored_element, element))
    if isinstance(logical, MapType) and isinstance(stored, MapType):
        stored_value, value_type = stored.valueType, logical.valueType
        return F.transform_values(
            column, lambda _, value: _rebuild(value, stored_value, value_type)
        )
    return column
