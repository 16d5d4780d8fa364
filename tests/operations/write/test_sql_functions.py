"""Conditions and values that call SQL functions of the user: Spark replaces each by its body."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, read_delta, write_delta
from tests.support.errors import raises


@pytest.fixture
def table(spark: SparkSession, table_path: str) -> Iterator[DeltaTable]:
    functions = {"after": "BIGINT RETURN x + 1", "any_of": "BIGINT RETURN x + floor(rand() * 9)"}
    for name, body in functions.items():
        spark.sql(f"CREATE TEMPORARY FUNCTION {name}(x BIGINT) RETURNS {body}")
    rows = spark.range(0, 10, 1, 2).selectExpr("id", "id AS n")
    write_delta(rows, table_path, properties={"delta.enableDeletionVectors": "true"})
    yield DeltaTable.forPath(spark, table_path)
    for name in functions:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def rows_of(table: DeltaTable) -> dict[int, int]:
    return {row["id"]: row["n"] for row in table.toDF().collect()}


@pytest.mark.full
def test_reads_and_changes(spark: SparkSession, table_path: str, table: DeltaTable) -> None:
    found = read_delta(spark, table_path, where="after(id) = 3")
    assert [row["id"] for row in found.collect()] == [2]
    assert table.delete("after(id) = 5").num_deleted_rows == 1
    assert table.update("after(id) = 6", {"n": "after(n) + 50"}).num_updated_rows == 1
    expected = {n: n for n in range(10) if n != 4} | {5: 56}
    assert rows_of(table) == expected
    with raises("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"):
        table.delete("any_of(id) = 5")
    assert rows_of(table) == expected


@pytest.mark.full
def test_merge(spark: SparkSession, table: DeltaTable) -> None:
    """SQL functions work in all clauses of a merge, also where a column is an argument of a
    function and nothing else.
    """
    source = spark.range(3).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdate(F.expr("after(t.n) = 2"), {"n": "after(s.id) + 100"})
    merge.whenNotMatchedBySourceDelete("after(t.n) = 8").execute()
    expected = {n: n for n in range(10) if n != 7} | {1: 102}
    assert rows_of(table) == expected
    table.alias("t").merge(source, "after(t.id) = s.id").whenMatchedDelete().execute()
    assert rows_of(table) == {n: value for n, value in expected.items() if n > 1}
