"""delta-spark and delta-rs read what `write_delta` wrote, and write after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable as SparkDeltaTable
from sparkdelta import load_snapshot, read_delta, write_delta
from sparkdelta.base.schema.nested_ids import nested_field_ids
from tests.golden.expected import comparable
from tests.operations.alter.test_iceberg_tables import DEEP
from tests.operations.write.test_write import TYPES
from tests.oracle.test_delta_spark import delta_rs_rows
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle


def read_and_append(spark: SparkSession, table: str, expected: str) -> dict[str, Any]:
    """Read a table with its history and with data skipping, append a row and delete others; runs in
    the process of delta-spark.
    """
    rows = spark.read.format("delta").load(table)
    pq.write_table(comparable(rows).toArrow(), expected, store_schema=False)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").orderBy("version").collect()
    skipped = rows.filter("n = 1 AND s = 's' AND day = DATE'2024-02-29'").count()
    rows.filter("n = 1").write.format("delta").mode("append").save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE n = 2")
    return {
        "operations": [row["operation"] for row in history],
        "metrics": [row["operationMetrics"] for row in history],
        "parameters": [row["operationParameters"] for row in history],
        "skipped": skipped,
    }


@pytest.mark.parametrize("partition_by", [[], ["s", "ts", "d"]], ids=["columns", "partitions"])
def test_the_others_read_and_write_on(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, partition_by: list[str]
) -> None:
    table, expected = str(tmp_path / "table"), tmp_path / "expected.parquet"
    frame = spark.sql(TYPES)
    write_delta(frame, table, partition_by=partition_by)
    write_delta(frame, table, mode="append", user_metadata="second")
    write_delta(frame, table, mode="overwrite")
    write_delta(frame.filter("n > 1"), table, mode="append", txn_app_id="a", txn_version=1)
    ours = comparable(read_delta(spark, table)).toArrow()
    assert ours.num_rows == 5
    told = delta_spark.run(
        "tests.oracle.test_writes:read_and_append", table=table, expected=str(expected)
    )
    assert_same_rows(ours, parquet_rows(expected))
    assert told["operations"] == ["WRITE"] * 4
    assert told["metrics"][0]["numOutputRows"] == "3"
    assert [p["mode"] for p in told["parameters"]] == [
        "ErrorIfExists", "Append", "Overwrite", "Append",
    ]  # fmt: skip
    assert told["skipped"] == 1
    # delta-spark appended a row and deleted two.
    assert load_snapshot(spark, table).version == 5
    assert sorted(row["n"] for row in read_delta(spark, table).collect()) == [1, 1, 3, 3]
    assert write_delta(frame, table, mode="append").version == 6
    assert DeltaTable(table).version() == 6
    rows = delta_rs_rows(table, 3)
    assert rows is None or rows.num_rows == 5


KINDS = {
    "name": {"delta.columnMapping.mode": "name"},
    "id": {"delta.columnMapping.mode": "id", "delta.enableInCommitTimestamps": "true"},
    "wider": {"delta.enableTypeWidening": "true"},
    "tracked": {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    "clustered": {"delta.dataSkippingStatsColumns": "n"},
}
FEATURES = {
    "name": {"columnMapping", "appendOnly", "invariants"},
    "id": {"columnMapping", "inCommitTimestamp"},
    "wider": {"typeWidening"},
    "tracked": {"rowTracking", "deletionVectors", "domainMetadata"},
    "clustered": {"clustering", "domainMetadata"},
}


def read_and_append_deep(spark: SparkSession, table: str) -> dict[str, Any]:
    """Read a table, and append a row with a new column; runs in the process of delta-spark."""
    rows = spark.read.format("delta").load(table)
    told = {"rows": [row.asDict(recursive=True) for row in rows.orderBy("n").collect()]}
    more = rows.filter("n = 1").drop("later").selectExpr("*", "map(n, array(l)) AS later")
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    return told


@pytest.mark.slow
def test_a_table_that_can_be_converted_to_iceberg(
    spark: SparkSession, delta_spark: DeltaSpark, table_path: str
) -> None:
    """IcebergCompatV2: each takes the other's rows, schema and ids."""
    name = "delta.enableIcebergCompatV2"
    write_delta(spark.sql(DEEP), table_path, partition_by=["p"], properties={name: "true"})
    before = nested_field_ids(load_snapshot(spark, table_path).schema)
    ours = [r.asDict(recursive=True) for r in read_delta(spark, table_path).orderBy("n").collect()]
    told = delta_spark.run("tests.oracle.test_writes:read_and_append_deep", table=table_path)
    assert told["rows"] == ours
    theirs = delta_rs_rows(table_path, 0)
    assert theirs is None or sorted(theirs["n"].to_pylist()) == [row["n"] for row in ours]
    assert read_delta(spark, table_path).filter("later[1][0][0] = 1").count() == 1
    after = nested_field_ids(load_snapshot(spark, table_path).schema)
    assert before.items() < after.items()
    write_delta(read_delta(spark, table_path), table_path, mode="append")
    assert read_delta(spark, table_path).count() == 2 * (len(ours) + 1)
    told = delta_spark.run("tests.oracle.test_writes:read_and_append_deep", table=table_path)
    assert len(told["rows"]) == 2 * (len(ours) + 1)


def read_append_and_merge(spark: SparkSession, table: str) -> dict[str, Any]:
    """Read and describe a table, and append a row with a new column; runs in the process of
    delta-spark.
    """
    rows = spark.read.format("delta").load(table)
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()[0]
    told = {
        "rows": [row.asDict(recursive=True) for row in rows.orderBy("n").collect()],
        "found": rows.filter("n = 2 AND s.x = 2").count(),
        "features": detail["tableFeatures"],
        "clusteringColumns": detail["clusteringColumns"],
        "schema": rows.schema.simpleString(),
    }
    more = rows.filter("n = 1").selectExpr("*", "7 AS later")
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind(
    spark: SparkSession, delta_spark: DeltaSpark, table_path: str, kind: str
) -> None:
    """delta-spark reads and continues the tables that we make, and we go on after it."""
    builder = SparkDeltaTable.create(spark).location(table_path)
    builder.addColumn("n", "TINYINT").addColumn("s", "STRUCT<x: TINYINT>")
    for name, value in KINDS[kind].items():
        builder.property(name, value)
    if kind == "clustered":
        builder.clusterBy("n", "s.x")
    builder.execute()
    first = spark.sql("SELECT 1Y AS n, named_struct('x', 1Y) AS s")
    write_delta(first, table_path, mode="append")
    data_type = "SMALLINT" if kind == "wider" else "TINYINT"
    name = "y z" if kind in ("name", "id") else "y"
    second = spark.sql(
        f"SELECT CAST(2 AS {data_type}) AS n, "
        f"named_struct('x', CAST(2 AS {data_type}), '{name}', 'a') AS s"
    )
    write_delta(second, table_path, mode="append", merge_schema=True)
    ours = [r.asDict(recursive=True) for r in read_delta(spark, table_path).orderBy("n").collect()]
    told = delta_spark.run("tests.oracle.test_writes:read_append_and_merge", table=table_path)
    assert (told["rows"], told["found"]) == (ours, 1)
    assert told["schema"] == load_snapshot(spark, table_path, version=2).schema.simpleString()
    assert FEATURES[kind] <= set(told["features"])
    assert told["clusteringColumns"] == (["n", "s.x"] if kind == "clustered" else [])
    assert read_delta(spark, table_path).filter("later = 7").count() == 1
    write_delta(
        first.selectExpr("*", "8 AS later", "9 AS last"), table_path, mode="append",
        merge_schema=True,
    )  # fmt: skip
    assert read_delta(spark, table_path, where="last = 9 AND later = 8").count() == 1
    assert read_delta(spark, table_path).count() == 4
