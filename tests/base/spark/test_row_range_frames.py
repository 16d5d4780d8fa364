"""Rows in partitions by ranges of their keys."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sparkdelta.base.spark.row_range_frames import RowRanges, in_ranges, range_bounds, range_key

NAN, INFINITY = float("nan"), float("inf")


def spread(rows: DataFrame, keys: list[str], count: int) -> list[list[Any]]:
    """The rows of each partition."""
    sample = rows.selectExpr(*(f"{key} AS k{number}" for number, key in enumerate(keys)))
    ranges = RowRanges.of(range_bounds(sample, count).collect()[0])
    found = in_ranges(rows, keys, ranges).withColumn("partition", F.spark_partition_id())
    parts: list[list[Any]] = [[] for _ in range(count)]
    for row in found.collect():
        parts[row["partition"]].append(tuple(row)[:-1])
    return parts


@pytest.mark.parametrize("count", [2, 3, 8, 23])
def test_each_range_has_a_partition_and_its_share(spark: SparkSession, count: int) -> None:
    numbers = [(n // 50, n) for n in range(500)]
    Random(0).shuffle(numbers)
    rows = spark.createDataFrame(numbers, "a INT, b LONG")
    schema = rows.schema
    keys = [range_key(name, schema[name].dataType) for name in ("a", "b")]
    parts = spread(rows, keys, count)
    assert [row for part in parts for row in sorted(part)] == sorted(numbers)
    assert all(abs(len(part) - 500 / count) <= 1 for part in parts)


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        ("STRING", [None, "", "${x}", "'", "\\", "a", "b", "\u00e9", "\U0001f600"]),
        ("BINARY", [None, b"", b"a", b"b"]),
        ("BOOLEAN", [None, False, True]),
        ("BYTE", [None, -128, -1, 0, 127]),
        ("LONG", [None, -(2**63), -1, 0, 2**53, 2**63 - 1]),
        ("DECIMAL(38,2)", [None, Decimal("-1e30"), Decimal("0.01"), Decimal("1e30")]),
        ("DOUBLE", [None, -INFINITY, -1.5, 0.0, 1e300, INFINITY, NAN]),
        ("DATE", [None, date(1, 1, 1), date(1582, 10, 15), date(2024, 1, 1)]),
        ("TIMESTAMP", [None, datetime(1900, 1, 1), datetime(2024, 1, 1, 0, 0, 1)]),
        ("TIMESTAMP_NTZ", [None, datetime(1900, 1, 1), datetime(2024, 1, 1, 0, 0, 1)]),
    ],
)
def test_keys_are_in_the_order_of_every_type(
    spark: SparkSession, data_type: str, values: list[Any]
) -> None:
    shuffled = [(number, value) for number, value in enumerate(values)]
    Random(1).shuffle(shuffled)
    rows = spark.createDataFrame(shuffled, f"number INT, value {data_type}").coalesce(1)
    key = range_key("value", rows.schema["value"].dataType)
    in_order = [row["number"] for row in rows.orderBy(F.expr(key), "number").collect()]
    assert in_order == sorted(in_order)
    parts = spread(rows, [key, "number"], len(values))
    assert [number for part in parts for number, _ in part] == in_order


def test_ranges_of_nothing_and_of_equal_rows(spark: SparkSession) -> None:
    """All in the first: there is no telling them apart."""
    none: DataFrame = spark.createDataFrame([], StructType.fromDDL("a INT"))
    key = range_key("a", _type(none))
    assert spread(none, [key], 3) == [[], [], []]
    assert spread(spark.createDataFrame([(1,)] * 5, "a INT"), [key], 3) == [[(1,)] * 5, [], []]


def test_rows_are_computed_once_and_bounds_do_not_travel(spark: SparkSession) -> None:
    rows = spark.range(1000).selectExpr("id AS a")
    key = range_key("a", _type(rows))
    ranges = RowRanges.of(range_bounds(rows.selectExpr(key), 20).collect()[0])
    plan = in_ranges(rows, [key], ranges)._jdf.queryExecution().executedPlan().toString()
    assert "rangepartitioning" not in plan
    (exchange,) = [line for line in plan.splitlines() if "Exchange hashpartitioning" in line]
    below = plan.splitlines()[plan.splitlines().index(exchange) + 1]
    assert below.split("[")[1].startswith("a#")
    assert "_bounds_" not in below


def _type(rows: DataFrame) -> DataType:
    return rows.schema["a"].dataType
