"""From what a file holds to what the schema says, at every level."""

from __future__ import annotations

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sparkdelta.base.schema.table_schema import without_void
from sparkdelta.table.scan.logical_row_frames import logical_column


def _type(ddl: str) -> DataType:
    return StructType.fromDDL(f"c {ddl}")["c"].dataType


RENAMED = [
    ("STRUCT<p1: INT, p2: STRUCT<p3: STRING>>", "STRUCT<a: INT, b: STRUCT<c: STRING>>",
     ((1, ("x",)),), {"a": 1, "b": {"c": "x"}}),
    ("ARRAY<STRUCT<p1: INT>>", "ARRAY<STRUCT<a: INT>>", ([(1,), None],), [{"a": 1}, None]),
    ("MAP<INT, STRUCT<p1: INT>>", "MAP<INT, STRUCT<a: INT>>", ({7: (1,)},), {7: {"a": 1}}),
    ("MAP<STRUCT<p1: INT>, INT>", "MAP<STRUCT<a: INT>, INT>", ({(1,): 2},), {(1,): 2}),
]  # fmt: skip
VOID = [
    ("STRUCT<a: INT, v: VOID, b: STRING>", ((1, "x"),), {"a": 1, "v": None, "b": "x"}),
    ("STRUCT<v: VOID, o: STRUCT<w: VOID, b: INT>>", (((2,),),),
     {"v": None, "o": {"w": None, "b": 2}}),
    ("STRUCT<a: INT, o: STRUCT<w: VOID>>", ((1,),), {"a": 1, "o": None}),
    ("ARRAY<STRUCT<a: INT, v: VOID>>", ([(1,), None],), [{"a": 1, "v": None}, None]),
    ("MAP<STRING, STRUCT<v: VOID, a: INT>>", ({"k": (1,), "l": None},),
     {"k": {"v": None, "a": 1}, "l": None}),
    ("ARRAY<ARRAY<STRUCT<a: INT, v: VOID>>>", ([[(1,)], None],), [[{"a": 1, "v": None}], None]),
    ("STRUCT<a: INT, v: VOID>", (None,), None),
]  # fmt: skip


def _plain(value: object) -> object:
    if isinstance(value, Row):
        return {name: _plain(item) for name, item in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {k if not isinstance(k, Row) else tuple(k): _plain(v) for k, v in value.items()}
    return value


@pytest.mark.usefixtures("hostile")
def test_names_at_every_level(spark: SparkSession) -> None:
    """PROTOCOL.md#reader-requirements-for-column-mapping"""
    for stored_ddl, logical_ddl, row, expected in RENAMED:
        stored, logical = _type(stored_ddl), _type(logical_ddl)
        frame = spark.createDataFrame([row], StructType().add("c", stored))
        found = frame.select(logical_column(F.col("c"), stored=stored, logical=logical).alias("c"))
        assert found.schema["c"].dataType == logical
        assert _plain(found.collect()[0]["c"]) == expected


@pytest.mark.parametrize(("ddl", "row", "expected"), VOID)
def test_void_is_put_back_as_null(
    spark: SparkSession, ddl: str, row: tuple[object], expected: object
) -> None:
    """PROTOCOL.md#void-type"""
    logical = _type(ddl)
    stored = without_void(logical)
    assert stored is not None
    frame = spark.createDataFrame([row], StructType().add("c", stored))
    found = frame.select(logical_column(F.col("c"), stored=stored, logical=logical).alias("c"))
    assert found.schema["c"].dataType == logical
    assert _plain(found.collect()[0]["c"]) == expected


@pytest.mark.parametrize("ddl", ["VOID", "ARRAY<VOID>", "STRUCT<v: VOID>", "MAP<STRING, VOID>"])
def test_void_columns_are_null(spark: SparkSession, ddl: str) -> None:
    logical = _type(ddl)
    assert without_void(logical) is None
    found = spark.range(1).select(logical_column(F.lit(None), stored=None, logical=logical))
    assert found.collect() == [(None,)]
    assert found.schema[0].dataType == logical
