"""Tables with void columns, Iceberg compatibility V3, and partition columns in files: each engine
goes on with those of the other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, read_delta, sql, verify, write_delta
from sparkdelta.base.protocol.table_features import TableFeature, supported_features
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

TABLES: dict[str, tuple[str, dict[str, str], str]] = {
    "void": (
        "SELECT NULL AS v, id AS n, named_struct('x', id, 'y', NULL) AS s FROM range(3)",
        {},
        "INSERT INTO {} (n) SELECT 7",
    ),
    "v3": (
        "SELECT id AS n, array(id) AS l, 'x' AS p FROM range(3)",
        {"delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "true"},
        "INSERT INTO {} (n, l, p) SELECT 7, array(7), 'y'",
    ),
    "partitions": (
        "SELECT id AS n, 'x' AS p FROM range(3)",
        {"delta.writePartitionColumnsToParquet": "true"},
        "INSERT INTO {} (n, p) SELECT 7, 'y'",
    ),
}
OF_EVERY_TABLE = {TableFeature.APPEND_ONLY, TableFeature.INVARIANTS}  # if not created as (3, 7)
CHANGES = ["UPDATE {} SET n = 9 WHERE n = 0", "DELETE FROM {} WHERE n = 1"]


def make(spark: SparkSession, root: str) -> None:
    """Make tables of delta-spark's own; runs in its process."""
    for name, (rows, properties, _) in TABLES.items():
        given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        clauses = "" if name == "void" else f" PARTITIONED BY (p) TBLPROPERTIES ({given})"
        spark.sql(f"CREATE TABLE delta.`{root}/{name}` USING delta{clauses} AS {rows}")


def go_on(spark: SparkSession, root: str) -> dict[str, list[str]]:
    """Change and read our tables; runs in the process of delta-spark."""
    read = {}
    for name, (*_, insert) in TABLES.items():
        table = f"delta.`{root}/{name}`"
        for statement in (insert, *CHANGES):
            spark.sql(statement.format(table))
        rows = spark.sql(f"SELECT to_json(struct(*)) FROM {table}").collect()
        read[name] = sorted(row[0] for row in rows)
    return read


def reading(spark: SparkSession, root: str) -> dict[str, list[str]]:
    """Read delta-spark's tables after we changed them; runs in its process."""
    queries = {name: f"SELECT to_json(struct(*)) FROM delta.`{root}/{name}`" for name in TABLES}
    return {n: sorted(row[0] for row in spark.sql(q).collect()) for n, q in queries.items()}


def ours(spark: SparkSession, path: str) -> list[str]:
    read = read_delta(spark, path).selectExpr("to_json(struct(*))")
    return sorted(row[0] for row in read.collect())


def described(spark: SparkSession, path: str) -> tuple[Any, ...]:
    found = load_snapshot(spark, path)
    text = json.loads(found.metadata.schema_string or "", object_hook=without_random)
    properties = {k: v for k, v in found.properties.items() if "materialized" not in k}
    properties.pop("delta.universalFormat.iceberg.atomicConversion.supported", None)  # of UniForm
    return text, properties, supported_features(found.protocol) - OF_EVERY_TABLE


def without_random(document: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in document.items() if not k.startswith("delta.columnMapping.")}


@pytest.mark.slow
def test_each_engine_goes_on(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    mine, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for name, (rows, properties, _) in TABLES.items():
        partitions = [] if name == "void" else ["p"]
        write_delta(
            spark.sql(rows), f"{mine}/{name}", properties=properties, partition_by=partitions
        )
    delta_spark.run("tests.oracle.test_written_features:make", root=other)
    for name, (*_, insert) in TABLES.items():
        assert described(spark, f"{mine}/{name}") == described(spark, f"{other}/{name}"), name
        for statement in (insert, *CHANGES):
            sql(spark, statement.format(f"delta.`{other}/{name}`"))
        assert verify(spark, f"{other}/{name}", footers=True).is_clean
    read = delta_spark.run("tests.oracle.test_written_features:go_on", root=mine)
    there = delta_spark.run("tests.oracle.test_written_features:reading", root=other)
    for name in TABLES:
        assert ours(spark, f"{mine}/{name}") == read[name] == there[name], name
        assert ours(spark, f"{other}/{name}") == there[name], name
    # A void column gets a type.
    alter_table(spark, f"{mine}/void").change_column("v", "DATE")
    again = delta_spark.run("tests.oracle.test_written_features:go_on_with_void", root=mine)
    assert again == ours(spark, f"{mine}/void")


def go_on_with_void(spark: SparkSession, root: str) -> list[str]:
    """Append to the table whose void column has a type now, and read it; runs in the process of
    delta-spark.
    """
    table = f"delta.`{root}/void`"
    spark.sql(f"INSERT INTO {table} (n, v) SELECT 8, DATE'2024-01-01'")
    rows = spark.sql(f"SELECT to_json(struct(*)) FROM {table}").collect()
    return sorted(row[0] for row in rows)


LATER = {"V1": "n INT, s STRUCT<x: INT>", "V2": "n INT, l ARRAY<INT>", "V3": "n INT, l ARRAY<INT>"}


def enabling(table: str, name: str) -> list[str]:
    """Statements that enable Iceberg compatibility on a table with rows."""
    versions = "'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7'"
    mapped = f"TBLPROPERTIES ('delta.columnMapping.mode' = 'name', {versions})"
    return [
        f"CREATE TABLE {table} ({LATER[name]}) USING delta {mapped}",
        f"INSERT INTO {table} (n) SELECT 1",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableIcebergCompat{name}' = 'true')",
        f"INSERT INTO {table} (n) SELECT 2",
    ]


def enable(spark: SparkSession, root: str) -> None:
    """Enable features of tables that are there; runs in the process of delta-spark."""
    for name in LATER:
        for statement in enabling(f"delta.`{root}/{name}`", name):
            spark.sql(statement)


def update(spark: SparkSession, root: str, names: list[str]) -> dict[str, list[str]]:
    """Change and read tables; runs in the process of delta-spark."""
    read = {}
    for name in names:
        table = f"delta.`{root}/{name}`"
        spark.sql(f"UPDATE {table} SET n = n + 10 WHERE n = 1")
        rows = spark.sql(f"SELECT to_json(struct(*)) FROM {table}").collect()
        read[name] = sorted(row[0] for row in rows)
    return read


@pytest.mark.slow
def test_iceberg_compatibility_comes_later(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    mine, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    delta_spark.run("tests.oracle.test_written_features:enable", root=other)
    for name in LATER:
        for statement in enabling(f"delta.`{mine}/{name}`", name):
            sql(spark, statement)
        assert described(spark, f"{mine}/{name}") == described(spark, f"{other}/{name}"), name
        sql(spark, f"DELETE FROM delta.`{other}/{name}` WHERE n = 2")
    here = "tests.oracle.test_written_features"
    changed = delta_spark.run(f"{here}:update", root=mine, names=[*LATER])
    # delta-spark gives files from before V3 no row ids, and then cannot update them itself.
    theirs = delta_spark.run(f"{here}:update", root=other, names=["V1", "V2"])
    for name, rows in changed.items():
        assert ours(spark, f"{mine}/{name}") == rows, name
    for name, rows in theirs.items():
        assert ours(spark, f"{other}/{name}") == rows, name
