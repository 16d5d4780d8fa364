"""Statistics from JSON and from a checkpoint's struct."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.statistics_frames import conformed, parsed_statistics
from sparkdelta.base.schema.statistics_schema import statistics_schema

COLUMNS = (
    "i INT, s STRING, d DATE, t TIMESTAMP_LTZ, n TIMESTAMP_NTZ, m DECIMAL(38,10), f DOUBLE, "
    "b BOOLEAN, o STRUCT<x: LONG, y: ARRAY<INT>>, p INT"
)


@pytest.fixture
def statistics(spark: SparkSession) -> StructType:
    """The type of the statistics of a table with all kinds of columns, partitioned by p."""
    return statistics_schema(StructType.fromDDL(COLUMNS), ("p",), ColumnMappingMode.NONE)


BOUNDS: dict[str, Any] = {
    "i": 1, "s": "é", "d": "1582-10-04", "t": "2024-06-01T12:34:56.789123Z",
    "n": "2024-06-01T12:34:56.789", "m": 1234567890123456789012345678.0123456789, "f": 1.5,
    "o": {"x": 7},
}  # fmt: skip


def _stats(**fields: Any) -> str:
    document = {"numRecords": 5, "minValues": BOUNDS, "nullCount": {"i": 0, "b": 2}, **fields}
    text = json.dumps(document)
    # Python's floats do not hold it.
    return text.replace(json.dumps(BOUNDS["m"]), "1234567890123456789012345678.0123456789")


@pytest.mark.usefixtures("hostile")
def test_statistics_from_json(spark: SparkSession, statistics: StructType) -> None:
    """PROTOCOL.md#per-file-statistics"""
    frame = spark.createDataFrame([(_stats(tightBounds=False),)], "stats STRING")
    parsed = frame.select(F.expr(parsed_statistics("stats", statistics=statistics)).alias("s"))
    low = "s.minValues."
    (row,) = parsed.select(
        "s.numRecords", "s.tightBounds", "s.nullCount.i", "s.nullCount.b", "s.nullCount.s",
        f"{low}i", f"{low}s", f"{low}d", F.unix_micros(f"{low}t"),
        F.col(f"{low}n").cast("string"), f"{low}m", f"{low}f", f"{low}o.x",
        F.col("s.maxValues.i"),
    ).collect()  # fmt: skip
    assert tuple(row) == (
        5, False, 0, 2, None, 1, "é", date(1582, 10, 4), 1_717_245_296_789_123,
        "2024-06-01 12:34:56.789", Decimal("1234567890123456789012345678.0123456789"), 1.5, 7, None,
    )  # fmt: skip


@pytest.mark.usefixtures("hostile")
def test_malformed_statistics_are_unknown(spark: SparkSession, statistics: StructType) -> None:
    """Statistics are optional: never an error, never a wrong bound."""
    texts = [None, "", "{", "not", "[]", '{"numRecords":"x","minValues":{"i":"y","f":2.5}}']
    frame = spark.createDataFrame([(text,) for text in texts], "stats STRING")
    parsed = frame.select(F.expr(parsed_statistics("stats", statistics=statistics)).alias("s"))
    rows = parsed.select("s.numRecords", "s.minValues.i").collect()
    assert all(value is None for row in rows for value in row)


def test_floats_that_are_no_numbers(spark: SparkSession) -> None:
    schema = statistics_schema(StructType.fromDDL("f DOUBLE"), (), ColumnMappingMode.NONE)
    texts = ["NaN", "Infinity", "-Infinity"]
    frame = spark.createDataFrame(
        [(json.dumps({"maxValues": {"f": text}}),) for text in texts], "stats STRING"
    )
    found = frame.select(F.expr(parsed_statistics("stats", statistics=schema))["maxValues"]["f"])
    assert [str(row[0]) for row in found.collect()] == ["nan", "inf", "-inf"]


def test_a_checkpoints_struct_by_name(spark: SparkSession, statistics: StructType) -> None:
    stored = StructType.fromDDL(
        "nullCounts STRUCT<b: BIGINT>, minValues STRUCT<o: STRUCT<x: INT>, gone: INT, i: STRING, "
        "t: TIMESTAMP_LTZ>, numRecords BIGINT"
    )
    moment = datetime(2024, 6, 1)
    rows = [((( 3,), ((7,), 1, "no number", moment), 9),), (None,)]  # fmt: skip
    frame = spark.createDataFrame(rows, StructType().add("s", stored))
    parsed = frame.select(F.expr(conformed("s", stored=stored, wanted=statistics)).alias("s"))
    assert parsed.schema["s"].dataType.names == statistics.names
    found = parsed.select("s.numRecords", "s.minValues.o.x", "s.minValues.i", "s.nullCount.b")
    assert found.collect() == [(9, 7, None, 3), (None, None, None, None)]
    assert parsed.select(F.col("s").isNull()).collect() == [(False,), (True,)]


def test_every_data_column_has_its_place(statistics: StructType) -> None:
    assert statistics.names == ["numRecords", "minValues", "maxValues", "nullCount", "tightBounds"]
    assert statistics["minValues"].dataType.names == ["i", "s", "d", "t", "n", "m", "f", "o"]
    assert statistics["nullCount"].dataType.names == ["i", "s", "d", "t", "n", "m", "f", "b", "o"]
    assert statistics["nullCount"].dataType["o"].dataType.names == ["x", "y"]
