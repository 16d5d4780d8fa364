"""Columns of type `void`: they are in the schema, and not in data files.

PROTOCOL.md#void-type
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_delta,
    write_delta,
)
from tests.operations.write.test_write import rows
from tests.support.errors import raises

ROWS = (
    "SELECT NULL AS v, id AS n, named_struct('x', id, 'y', NULL) AS s, 'a' AS p"
    " FROM range(0, 4, 1, 1)"
)


def stored(path: str) -> set[tuple[str, ...]]:
    """The columns of all files, with the fields of structs."""
    files = Path(path).glob("**/part-*.parquet")
    return {tuple(column.path for column in pq.ParquetFile(f).schema) for f in files}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["none", "id"])
def test_files_leave_them_out(spark: SparkSession, table_path: str, mode: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mode}
    write_delta(spark.sql(ROWS), table_path, partition_by=["p"], properties=properties)
    assert load_snapshot(spark, table_path).schema.simpleString() == (
        "struct<v:void,n:bigint,s:struct<x:bigint,y:void>,p:string>"
    )
    alter_table(spark, table_path).add_constraint("few", "n < 10")
    write_delta(spark.sql("SELECT 4 AS n, 'b' AS p"), table_path, mode="append")
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        write_delta(spark.sql("SELECT 10 AS n, 'b' AS p"), table_path, mode="append")
    with raises("DELTA_FAILED_TO_MERGE_FIELDS"):
        write_delta(spark.sql("SELECT 1 AS v, 'b' AS p"), table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path)
    table.delete("n = 0")
    table.update("n = 1", {"n": "7L"})
    source = spark.sql("SELECT 2L AS n, NULL AS v UNION ALL SELECT 8L, NULL")
    merge = table.alias("t").merge(source.alias("s"), "t.n = s.n")
    merge.whenMatchedUpdate(set={"n": "9L", "v": "s.v"}).whenNotMatchedInsert(
        values={"n": "s.n", "p": "'b'"}
    ).execute()
    write_delta(
        spark.sql("SELECT 3L AS n, 'a' AS p"), table_path, mode="overwrite", replace_where="n = 3"
    )
    optimize(spark, table_path)
    wanted: list[tuple[Any, ...]] = [
        (None, 3, None, "a"), (None, 4, None, "b"), (None, 7, (1, None), "a"),
        (None, 8, None, "b"), (None, 9, (2, None), "a"),
    ]  # fmt: skip
    assert sorted(rows(spark, table_path), key=lambda row: row[1]) == wanted
    assert read_delta(spark, table_path, where="v IS NULL AND s.y IS NULL AND n > 7").count() == 2
    change = ["_change_type"]
    assert {
        len([name for name in names if name not in change]) for names in stored(table_path)
    } == {2}


def test_they_get_a_type(spark: SparkSession, table_path: str) -> None:
    """Without type widening: by a statement, or by the rows of a write."""
    write_delta(spark.sql(ROWS), table_path)
    table = alter_table(spark, table_path)
    table.add_column("w", "VOID")
    table.change_column("v", data_type="STRUCT<z: INT>")
    table.change_column("s.y", data_type="VARCHAR(3)")
    more = spark.sql(
        "SELECT named_struct('z', 1) AS v, 4L AS n, named_struct('x', 4L, 'y', 'yes') AS s,"
        " 'a' AS p, DATE'2024-01-01' AS w, NULL AS u"
    )
    write_delta(more, table_path, mode="append", merge_schema=True)
    found = load_snapshot(spark, table_path)
    assert found.schema.simpleString() == (
        "struct<v:struct<z:int>,n:bigint,s:struct<x:bigint,y:string>,p:string,w:date,u:void>"
    )
    assert "typeChanges" not in found.schema.json()
    assert "typeWidening" not in str(found.protocol)
    assert rows(spark, table_path)[-1][:3] == ((1,), 4, (4, "yes"))
    assert rows(spark, table_path)[0][:3] == (None, 0, (0, None))


def test_shapes_without_a_place_in_files(spark: SparkSession, table_path: str) -> None:
    """A table without a column that files can hold can be made and altered, but not written until
    it has another type.
    """
    builder = DeltaTable.create(spark).location(table_path)
    builder.addColumn("v", "VOID").execute()
    with raises("DELTA_CANNOT_WRITE_EMPTY_SCHEMA"):
        write_delta(spark.sql("SELECT NULL AS v"), table_path, mode="append")
    alter_table(spark, table_path).add_column("n", "INT").add_column("l", "ARRAY<VOID>")
    with raises("DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"):
        write_delta(spark.sql("SELECT NULL AS v"), table_path, mode="append")
    alter_table(spark, table_path).change_column("l.element", data_type="INT")
    write_delta(spark.sql("SELECT array(1) AS l"), table_path, mode="append")
    assert rows(spark, table_path) == [(None, None, [1])]


def test_merge_keeps_empty_arrays_and_their_nulls(spark: SparkSession, table_path: str) -> None:
    """The types of some literals, such as ``array()``, have `void` in them."""
    types = "id INT, a ARRAY<STRING>, b ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT>, v DATE"
    write_delta(spark.createDataFrame([], types), table_path)
    source = spark.sql(
        "SELECT 1 AS id, array() AS a, array(NULL) AS b, map() AS m, named_struct('x', NULL) AS s,"
        " NULL AS v"
    ).alias("s")
    merge = DeltaTable.forPath(spark, table_path).alias("t").merge(source, "t.id = s.id")
    merge.whenNotMatchedInsertAll().execute()
    assert read_delta(spark, table_path).collect() == [(1, [], [None], {}, (None,), None)]
