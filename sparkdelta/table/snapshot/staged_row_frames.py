"""Rows as staged Parquet files hold them: with BOOLEAN in the place of `void`.

References
----------
PROTOCOL.md#void-type
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    NullType,
    StructType,
)

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.schema.type_folds import transformed, types_within


def without_voids(data_type: DataType) -> DataType:
    """Return a type with BOOLEAN in the place of `void` at every level."""
    return transformed(
        data_type, leaf=lambda leaf: BooleanType() if isinstance(leaf, NullType) else leaf
    )


def rows_without_voids(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows of a schema with types as `without_voids` returns them."""
    return _converted(rows, schema, lambda column, data_type: column.cast(without_voids(data_type)))


def rows_with_voids(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows of `rows_without_voids` in their schema again."""
    return _converted(rows, schema, _with_voids)


def _converted(
    rows: DataFrame, schema: StructType, convert: Callable[[Column, DataType], Column]
) -> DataFrame:
    if not _has_voids(schema):
        return rows
    columns = ((F.col(quoted(field.name)), field) for field in schema.fields)
    return rows.select(
        *(
            convert(column, field.dataType).alias(field.name)
            if _has_voids(field.dataType)
            else column
            for column, field in columns
        )
    )


def _has_voids(data_type: DataType) -> bool:
    return any(isinstance(each, NullType) for _, each in types_within(data_type))


def _with_voids(column: Column, data_type: DataType) -> Column:
    """Rebuild a value: no type can be cast to `void`."""
    if isinstance(data_type, NullType):
        return F.lit(None)
    if not _has_voids(data_type):
        return column
    if isinstance(data_type, StructType):
        fields = (
            _with_voids(column[field.name], field.dataType).alias(field.name)
            for field in data_type.fields
        )
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(data_type, ArrayType):
        element = data_type.elementType
        return F.transform(column, lambda value: _with_voids(value, element))
    assert isinstance(data_type, MapType)
    keys, values = data_type.keyType, data_type.valueType
    if _has_voids(values):
        column = F.transform_values(column, lambda _, value: _with_voids(value, values))
    if _has_voids(keys):
        column = F.transform_keys(column, lambda key, _: _with_voids(key, keys))
    return column
