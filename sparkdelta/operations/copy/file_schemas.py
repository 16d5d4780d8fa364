"""The schema of a table of Parquet files that may have several.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    ShortType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.schema.type_folds import parts_together, with_parts

_FIELD_ID = "parquet.field.id"
_STORED_AS_INT32 = (ByteType, ShortType, IntegerType)


class UnmergeableTypesError(Exception):
    """Raised for a column whose types in two files are not read as one type."""


def merged_file_schemas(schema: StructType, other: StructType) -> StructType:
    """Return a schema that both of two kinds of files can be read with: columns of both, those of
    the first before others, and of the integers that Parquet stores alike the widest.

    A column keeps its field id if both have it.

    Raises
    ------
    UnmergeableTypesError
        A column has other types.

    Examples
    --------
    >>> ones, others = (StructType.fromDDL(ddl) for ddl in ("a INT, b STRING", "A SHORT, c DATE"))
    >>> merged_file_schemas(ones, others).simpleString()
    'struct<a:int,b:string,c:date>'
    """
    by_name = {stored_name_key(field.name): field for field in other.fields}
    merged = [
        _merged_field(field, by_name.pop(stored_name_key(field.name), None))
        for field in schema.fields
    ]
    return StructType([*merged, *by_name.values()])


def _merged_field(field: StructField, other: StructField | None) -> StructField:
    if other is None:
        return field
    try:
        data_type = _merged_type(field.dataType, other.dataType)
    except UnmergeableTypesError as error:
        raise UnmergeableTypesError(f"{field.name}: {error}") from None
    metadata = dict(field.metadata or {})
    if metadata.get(_FIELD_ID) != (other.metadata or {}).get(_FIELD_ID):
        metadata.pop(_FIELD_ID, None)
    return StructField(field.name, data_type, True, metadata)


def _merged_type(one: DataType, other: DataType) -> DataType:
    if isinstance(one, StructType) and isinstance(other, StructType):
        return merged_file_schemas(one, other)
    if inner := parts_together(one, other):
        return with_parts(one, [_merged_type(a, b) for _, a, b in inner])
    if isinstance(one, _STORED_AS_INT32) and isinstance(other, _STORED_AS_INT32):
        return max(one, other, key=lambda kind: _STORED_AS_INT32.index(type(kind)))
    if one != other:
        raise UnmergeableTypesError(f"{one.simpleString()} and {other.simpleString()}")
    return one
