"""Spark's schema of a Parquet file, as Spark's Parquet source infers it.

References
----------
PROTOCOL.md#delta-data-type-to-parquet-type-mappings
"""

from __future__ import annotations

import json

import pyarrow.parquet as pq
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.parquet.parquet_schema_workers import (
    LEAF,
    LIST,
    STRUCT,
    Leaf,
    Node,
    file_schema,
)

FIELD_ID = "parquet.field.id"
"""Key of a column's metadata: the field id that it has in Parquet files."""

_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_COMMENT = "comment"
_SIGNED = {8: ByteType(), 16: ShortType(), 32: IntegerType(), 64: LongType()}
_UNSIGNED = {8: ShortType(), 16: IntegerType(), 32: LongType(), 64: DecimalType(20, 0)}
_PLAIN: dict[str, DataType] = {
    "BOOLEAN": BooleanType(),
    "INT32": IntegerType(),
    "INT64": LongType(),
    "INT96": TimestampType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "BYTE_ARRAY": BinaryType(),
    "FIXED_LEN_BYTE_ARRAY": BinaryType(),
}
_LOGICAL: dict[str, DataType] = {
    "STRING": StringType(),
    "ENUM": StringType(),
    "JSON": StringType(),
    "BSON": BinaryType(),
    "DATE": DateType(),
}


class UnsupportedColumnError(Exception):
    """An error for a column of a type that Spark does not read."""


def spark_schema(file: pq.ParquetFile) -> StructType:
    """Return the schema of a file, with nullable fields, comments and field ids.

    Spark's own schema in the footer is preferred to the Parquet types.
    """
    stored = (file.metadata.metadata or {}).get(_OF_SPARK)
    root = file_schema(file)
    if stored is None:
        schema = _type(root)
    else:
        schema = _with_ids(StructType.fromJson(json.loads(stored)), root)
    assert isinstance(schema, StructType)
    return schema


def _type(node: Node) -> DataType:
    if node.leaf is not None:
        return _leaf_type(node.name, node.leaf)
    if node.kind == STRUCT:
        return StructType([_field(child.name, _type(child), child) for child in node.children])
    types = [_type(child) for child in node.children]
    return ArrayType(types[0]) if node.kind == LIST else MapType(types[0], types[1])


def _field(
    name: str, data_type: DataType, node: Node | None, comment: str | None = None
) -> StructField:
    metadata: dict[str, object] = {} if comment is None else {_COMMENT: comment}
    if node is not None and node.field_id is not None and node.field_id >= 0:
        metadata[FIELD_ID] = node.field_id
    return StructField(name, data_type, True, metadata)


def _leaf_type(name: str, leaf: Leaf) -> DataType:
    data_type: DataType | None = None
    if leaf.logical == "NONE":
        data_type = _PLAIN[leaf.physical]
    elif leaf.logical == "INT":
        data_type = (_SIGNED if leaf.signed else _UNSIGNED).get(leaf.bits)
    elif leaf.logical == "DECIMAL" and leaf.precision <= DecimalType(38).precision:
        data_type = DecimalType(leaf.precision, leaf.scale)
    elif leaf.logical == "TIMESTAMP" and leaf.unit != "nanoseconds":
        data_type = TimestampType() if leaf.is_adjusted else TimestampNTZType()
    else:
        data_type = _LOGICAL.get(leaf.logical)
    if data_type is None:
        raise UnsupportedColumnError(f"column {name} has type {leaf} {leaf.unit}".rstrip())
    return data_type


def _with_ids(data_type: DataType, node: Node | None) -> DataType:
    """Return a type that Spark stored with the file's field ids and, as metadata, comments
    alone.
    """
    children = () if node is None or node.kind == LEAF else node.children
    if isinstance(data_type, StructType):
        by_name = {child.name: child for child in children}
        return StructType(
            [
                _field(
                    field.name,
                    _with_ids(field.dataType, by_name.get(field.name)),
                    by_name.get(field.name),
                    (field.metadata or {}).get(_COMMENT),
                )
                for field in data_type.fields
            ]
        )
    inner = (*children, None, None)
    if isinstance(data_type, ArrayType):
        return ArrayType(_with_ids(data_type.elementType, inner[0]))
    if isinstance(data_type, MapType):
        key, value = data_type.keyType, data_type.valueType
        return MapType(_with_ids(key, inner[0]), _with_ids(value, inner[1]))
    return data_type
