"""Schemas of Parquet files that are merged to that of one table.

PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.operations.copy.converted_table import UnmergeableTypesError, merged_file_schemas

ID = "parquet.field.id"


def test_columns_are_appended_and_integers_widened() -> None:
    one = StructType().add("a", ByteType()).add("s", StructType().add("x", ShortType()))
    other = (
        StructType().add("b", StringType()).add("A", IntegerType())
        .add("s", StructType().add("y", LongType()).add("X", ByteType()))
    )  # fmt: skip
    inner = StructType().add("x", ShortType()).add("y", LongType())
    assert merged_file_schemas(one, other) == (
        StructType().add("a", IntegerType()).add("s", inner).add("b", StringType())
    )
    assert merged_file_schemas(StructType(), one) == one
    lists = [
        StructType().add("l", ArrayType(MapType(StringType(), kind)))
        for kind in (ByteType(), IntegerType())
    ]
    assert merged_file_schemas(lists[0], lists[1]) == lists[1]


def test_field_ids_stay_where_files_agree() -> None:
    def schema(first: int, second: int) -> StructType:
        fields = [("a", first), ("b", second)]
        return StructType([StructField(n, LongType(), True, {ID: i}) for n, i in fields])

    merged = merged_file_schemas(schema(1, 2), schema(1, 3))
    assert [field.metadata for field in merged] == [{ID: 1}, {}]


@pytest.mark.parametrize("kinds", [(IntegerType(), LongType()), (DoubleType(), StringType())])
def test_other_types_do_not_merge(kinds: tuple[LongType, StringType]) -> None:
    one, other = (StructType().add("s", StructType().add("x", kind)) for kind in kinds)
    with pytest.raises(UnmergeableTypesError, match="s: x: "):
        merged_file_schemas(one, other)
