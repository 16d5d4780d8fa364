"""Columns of data files as the columns of the table's schema.

References
----------
PROTOCOL.md#reader-requirements-for-column-mapping, PROTOCOL.md#void-type
"""

from __future__ import annotations

from collections.abc import Set

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.table_schema import as_nullable, nullable_as, quoted, without_void
from sparkdelta.base.schema.type_folds import types_within


def logical_column(column: Column, *, stored: DataType | None, logical: DataType) -> Column:
    """Return a column as the table's schema names it at every level, with `void` fields put back as
    nulls.

    Parameters
    ----------
    column
        As scanned.
    stored
        Its type in the scan; None if data files do not have it.
    logical
        Its type in the table's schema.
    """
    wanted = as_nullable(logical)
    if stored is None:
        return F.lit(None).cast(wanted)
    if as_nullable(stored) == wanted:
        return column
    if without_void(logical) == logical:
        return column.cast(nullable_as(wanted, stored))  # by position, so this renames fields
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


def with_padding(column: Column, declared: DataType) -> Column:
    """Return a column with its CHAR values padded to their length, as Spark reads CHAR columns.

    Parameters
    ----------
    declared
        As `declared_type` returns it.
    """
    if isinstance(declared, CharType):
        is_short = F.char_length(column) < declared.length
        return F.when(is_short, F.rpad(column, declared.length, " ")).otherwise(column)
    if not _has_char(declared):
        return column
    if isinstance(declared, StructType):
        for field in declared.fields:
            if _has_char(field.dataType):
                value = with_padding(column.getField(field.name), field.dataType)
                column = column.withField(quoted(field.name), value)
        return column
    if isinstance(declared, ArrayType):
        element = declared.elementType
        return F.transform(column, lambda value: with_padding(value, element))
    if isinstance(declared, MapType):
        keys, values = declared.keyType, declared.valueType
        if _has_char(keys):
            column = F.transform_keys(column, lambda key, _: with_padding(key, keys))
        return F.transform_values(column, lambda _, value: with_padding(value, values))
    return column


def _has_char(declared: DataType) -> bool:
    return any(isinstance(part, CharType) for _, part in types_within(declared))


def has_hidden_values(path: ColumnPath, data_type: DataType, hidden: Set[ColumnPath]) -> bool:
    """Return True if `with_hidden_values` changes a column.

    NaN is greater than any number in Spark, and most writers leave it out of the bounds of a row
    group; and zeros are equal in Spark, whatever their signs, but not in a dictionary of Parquet.
    So FLOAT and DOUBLE are always hidden.

    Parameters
    ----------
    hidden
        The paths of the other columns to hide.
    """
    if isinstance(data_type, StructType):
        return any(
            has_hidden_values((*path, field.name), field.dataType, hidden)
            for field in data_type.fields
        )
    return path in hidden or isinstance(data_type, FloatType | DoubleType)


def with_hidden_values(
    column: Column, path: ColumnPath, data_type: DataType, hidden: Set[ColumnPath]
) -> Column:
    """Return a column of the same values, by which Spark's Parquet reader filters no row groups."""
    if not isinstance(data_type, StructType):
        return F.greatest(column, F.lit(None).cast(data_type))
    for field in data_type.fields:
        below = (*path, field.name)
        if has_hidden_values(below, field.dataType, hidden):
            value = column.getField(field.name)
            value = with_hidden_values(value, below, field.dataType, hidden)
            column = column.withField(quoted(field.name), value)
    return column
