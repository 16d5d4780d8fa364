"""Expected rows of other engines: what of them fits into Parquet and compares to the value."""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType


def comparable(rows: DataFrame) -> DataFrame:
    """Replace what Parquet cannot hold or engines write differently.

    A column with a variant anywhere in it becomes ``to_json(struct(column AS v))``, a void column
    one of null strings.
    """
    columns = []
    for field in rows.schema.fields:
        quoted = field.name.replace("`", "``")
        column = F.col(f"`{quoted}`")
        if holds_variant(field.dataType):
            column = F.to_json(F.struct(column.alias("v")))
        elif isinstance(field.dataType, NullType):
            column = column.cast("string")
        columns.append(column.alias(field.name))
    return rows.select(*columns)


def holds_variant(data_type: DataType) -> bool:
    """Say whether the type is a variant or has one somewhere inside."""
    if isinstance(data_type, StructType):
        return any(holds_variant(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return holds_variant(data_type.elementType)
    if isinstance(data_type, MapType):
        return holds_variant(data_type.keyType) or holds_variant(data_type.valueType)
    return data_type.typeName() == "variant"


def unescaped(rows: pa.Table, columns: Collection[str]) -> pa.Table:
    """Turn the texts ``\\u0061\\u00FF`` of binary columns into the bytes that they stand for.

    delta-rs writes binary partition values so, as the protocol says, but reads them back as text.
    """
    for name in columns:
        number = rows.column_names.index(name)
        values = [
            value and bytes(int(code, 16) for code in re.findall(rb"\\u00([0-9A-Fa-f]{2})", value))
            for value in rows.column(number).to_pylist()
        ]
        rows = rows.set_column(number, name, pa.array(values, pa.binary()))
    return rows
