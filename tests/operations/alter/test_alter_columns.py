"""ALTER TABLE: columns are added, renamed, dropped and changed; then rows are read and appended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import AlterTable, DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    InvalidColumnNameError,
    UnsupportedColumnChangeError,
)
from tests.operations.write.test_write import commit, rows
from tests.operations.write.test_write_schemas import fields, mapping
from tests.support.errors import raises
from tests.support.spark_jobs import no_jobs

MAPPED = {"delta.columnMapping.mode": "name"}
HOSTILE = "x.`y` ,;{}()\n\t='"


def parameters(path: str, version: int) -> tuple[str, dict[str, Any]]:
    [info] = commit(path, version)["commitInfo"]
    return info["operation"], info["operationParameters"]


def test_columns_are_added(spark: SparkSession, table_path: str) -> None:
    """Existing rows have nulls, also where later rows have a default."""
    write_delta(spark.sql("SELECT 1 AS a, named_struct('x', 2) AS s"), table_path)
    table = alter_table(spark, table_path)
    table.add_column("s.`y_z`", "VARCHAR(2)", comment="c", first=True)
    table.add_column("d", "INT", default="40 + 2", after="a").add_columns("e INT, f DATE")
    assert parameters(table_path, 1) == (
        "ADD COLUMNS",
        {
            "columns": '[{"column":{"name":"s.y_z","type":"varchar(2)","nullable":true,'
            '"metadata":{"comment":"c"}},"position":"FIRST"}]'
        },
    )
    assert list(fields(table_path, 3)) == ["a", "d", "s", "e", "f"]
    assert "allowColumnDefaults" in commit(table_path, 2)["protocol"][0]["writerFeatures"]
    write_delta(spark.sql("SELECT 2 AS a"), table_path, mode="append")
    assert rows(spark, table_path) == [
        (1, None, (None, 2), None, None), (2, 42, None, None, None),
    ]  # fmt: skip
    with pytest.raises(InvalidColumnNameError):
        table.add_column("`x y`", "INT")


def test_mapped_columns(spark: SparkSession, table_path: str) -> None:
    """Column Mapping: files keep physical names, and a dropped column never comes back."""
    source = "SELECT 1 AS a, named_struct('x', 2, 'y', 3) AS s, 4 AS `p.p`, 5 AS c"
    write_delta(spark.sql(source), table_path, partition_by=["p.p"], properties=MAPPED)
    table = alter_table(spark, table_path)
    table.set_properties({"delta.dataSkippingStatsColumns": "A,s,c"})
    table.rename_column("A", HOSTILE).rename_column("s.x", "q.r").rename_column("`p.p`", "part")
    assert parameters(table_path, 3) == (
        "RENAME COLUMN", {"oldColumnPath": "s.x", "newColumnPath": "s.`q.r`"},
    )  # fmt: skip
    properties = load_snapshot(spark, table_path).properties
    quoted = HOSTILE.replace("`", "``")
    assert properties["delta.dataSkippingStatsColumns"] == f"`{quoted}`,s,c"
    before = mapping(fields(table_path, 4)["c"])
    table.drop_columns("c", "S.Y").add_column("c", "INT")
    assert parameters(table_path, 5) == ("DROP COLUMNS", {"columns": '["c","s.y"]'})
    after = mapping(fields(table_path, 6)["c"])
    assert after[0] != before[0]
    assert after[1] > before[1]
    assert commit(table_path, 6)["metaData"][0]["partitionColumns"] == ["part"]
    new = f"SELECT 7 AS `{quoted}`, named_struct('q.r', 8) AS s, 9 AS part, 10 AS c"
    write_delta(spark.sql(new), table_path, mode="append")
    assert rows(spark, table_path) == [(1, (2,), 4, None), (7, (8,), 9, 10)]
    where = f"`{quoted}` = 1 AND s.`q.r` = 2 AND part = 4"
    assert read_delta(spark, table_path, where=where).count() == 1
    table.drop_columns("gone", if_exists=True)
    for refused, error in (
        (lambda: table.drop_columns("part"), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        (lambda: table.drop_columns("gone"), ColumnNotFoundError),
        (lambda: table.rename_column("gone", "b"), ColumnNotFoundError),
    ):
        with raises(error):
            refused()


def test_a_changed_column(spark: SparkSession, table_path: str) -> None:
    """Every part of a statement takes effect: comment, position, default and nullability."""
    builder = DeltaTable.create(spark).location(table_path).addColumn("a", "INT", nullable=False)
    builder.addColumn("b", "VARCHAR(2)", comment="old").addColumn("m", "MAP<STRING, INT>").execute()
    table = alter_table(spark, table_path)
    table.change_column("B", comment="new", first=True, default="'b'")
    assert list(fields(table_path, 1)) == ["b", "a", "m"]
    name, shown = parameters(table_path, 1)
    assert (name, shown["position"]) == ("CHANGE COLUMN", "FIRST")
    assert json.loads(shown["column"])["metadata"] == {
        "comment": "new", "CURRENT_DEFAULT": "'b'", "__CHAR_VARCHAR_TYPE_STRING": "varchar(2)",
    }  # fmt: skip
    table.change_column("a", drop_not_null=True, after="m")
    write_delta(spark.sql("SELECT map('k', 1) AS m"), table_path, mode="append")
    table.change_column("b", "VARCHAR(3)", drop_default=True)
    with raises("DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        write_delta(spark.sql("SELECT 'four' AS b"), table_path, mode="append")
    table.change_column("b", "STRING")
    write_delta(spark.sql("SELECT 'four' AS b"), table_path, mode="append")
    assert rows(spark, table_path) == [("b", {"k": 1}, None), ("four", None, None)]


def test_wider_types(spark: SparkSession, table_path: str) -> None:
    """Type Widening: old files are read as the new type."""
    on = {"delta.enableTypeWidening": "true"}
    source = "SELECT 1 AS a, 2 AS p, map('k', 3) AS m"
    write_delta(spark.sql(source), table_path, partition_by=["p"], properties=on)
    table = alter_table(spark, table_path)
    table.change_column("a", "DOUBLE").change_column("p", "BIGINT")
    table.change_column("m.value", "DECIMAL(12, 2)")
    table.change_column("a", comment="wider")
    [wider, *_, commented] = [
        json.loads(row["operationParameters"]["column"])["metadata"]
        for row in DeltaTable.forPath(spark, table_path).history().orderBy("version").collect()[1:]
    ]  # history shows the changes of the type before the operation, as delta-spark's does
    change = {"fromType": "integer", "toType": "double"}
    assert (wider, commented) == ({}, {"comment": "wider", "delta.typeChanges": [change]})
    new = "SELECT 0.5D AS a, 5000000000 AS p, map('k', 0.25BD) AS m"
    write_delta(spark.sql(new), table_path, mode="append")
    found = read_delta(spark, table_path, where="p >= 2 AND a < 2").collect()
    assert sorted((row.a, row.p, float(row.m["k"])) for row in found) == [
        (0.5, 5_000_000_000, 0.25), (1.0, 2, 3.0),
    ]  # fmt: skip
    for column, narrower in (("a", "FLOAT"), ("p", "INT"), ("m", "MAP<STRING, DOUBLE>")):
        with pytest.raises(UnsupportedColumnChangeError):
            table.change_column(column, narrower)


def test_columns_that_expressions_use(spark: SparkSession, table_path: str) -> None:
    """Check Constraints, Generated Columns: an expression keeps its columns and their types."""
    builder = DeltaTable.create(spark).location(table_path).addColumn("a", "INT")
    builder.addColumn("g", "INT", generatedAlwaysAs="a + 1").addColumn("c", "INT")
    builder.addColumn("s", "STRUCT<x: INT, y: INT>").addColumn("k", "INT").clusterBy("k")
    for name, value in (MAPPED | {"delta.enableTypeWidening": "true"}).items():
        builder.property(name, value)
    builder.property("delta.constraints.some", "s.x > 0 OR `C` IS NULL OR 'k' = ''").execute()
    table = alter_table(spark, table_path)
    refused: list[tuple[Callable[[], AlterTable], str | type[DeltaError]]] = [
        (lambda: table.rename_column("a", "b"), "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
        (lambda: table.drop_columns("a"), "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
        (
            lambda: table.change_column("g", "BIGINT"),
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        ),
        (
            lambda: table.change_column("a", "BIGINT"),
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        ),
        (lambda: table.rename_column("c", "b"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda: table.drop_columns("s.x"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda: table.change_column("s.x", "BIGINT"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda: table.drop_columns("k"), "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"),
        (lambda: table.change_column("g", default="1"), InvalidArgumentError),
    ]
    for statement, error in refused:
        with raises(error):
            statement()
    table.rename_column("k", "kk").drop_columns("a", "g")
    write_delta(spark.sql("SELECT 1 AS kk"), table_path, mode="append")
    assert rows(spark, table_path) == [(None, None, 1)]


def test_refused_changes(spark: SparkSession, table_path: str) -> None:
    """Nothing is committed, and no Spark job starts."""
    on = {"delta.enableChangeDataFeed": "true"}
    write_delta(spark.sql("SELECT 1 AS a, named_struct('x', 2) AS s"), table_path, properties=on)
    table = alter_table(spark, table_path)
    refused: list[tuple[Callable[[], AlterTable], str | type[DeltaError]]] = [
        (lambda: table.rename_column("a", "b"), "DELTA_UNSUPPORTED_RENAME_COLUMN"),
        (lambda: table.drop_columns("a"), "DELTA_UNSUPPORTED_DROP_COLUMN"),
        (lambda: table.change_column("a", "BIGINT"), UnsupportedColumnChangeError),
        (lambda: table.change_column("a"), InvalidArgumentError),
        (lambda: table.change_column("a", default="a"), InvalidArgumentError),
        (lambda: table.change_column("a", default="'text'"), InvalidArgumentError),
        (lambda: table.change_column("a", default="max(1)"), InvalidArgumentError),
        (lambda: table.change_column("a", default="rand()"), InvalidArgumentError),
        (lambda: table.change_column("s.x", default="1"), "DELTA_WRITE_NOT_IMPLEMENTED"),
        (
            lambda: table.add_column("_commit_version", "INT"),
            "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        ),
        (lambda: table.add_columns("b INT NOT NULL"), InvalidArgumentError),
        (lambda: table.add_column("b", "INT", first=True, after="a"), InvalidArgumentError),
        (lambda: table.add_column("`b", "INT"), InvalidArgumentError),
    ]
    with no_jobs(spark):
        for statement, error in refused:
            with raises(error):
                statement()
    assert load_snapshot(spark, table_path).version == 0
