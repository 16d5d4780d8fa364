"""Columns of `DeltaTable.toDF()` in conditions and values of DELETE, UPDATE and MERGE.

PROTOCOL.md#per-file-statistics: they choose files as names do.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, alter_table, read_delta, write_delta
from sparkdelta.exceptions import InvalidConditionError

VECTORS = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


def table(spark: SparkSession, path: str, **options: object) -> DeltaTable:
    """Three files of ten rows."""
    rows = spark.range(0, 30, 1, 3).selectExpr("id", "id % 3 AS `n.x`", "id % 2 AS p")
    write_delta(rows, path, properties=VECTORS, **options)  # type: ignore[arg-type]
    return DeltaTable.forPath(spark, path)


def values(spark: SparkSession, path: str) -> dict[int, int]:
    rows = read_delta(spark, path, where="id < 20").collect()
    return {row["id"]: row["n.x"] for row in rows}


@pytest.mark.slow
def test_columns_choose_rows_and_files(spark: SparkSession, table_path: str) -> None:
    """Columns of any frame of the table, from before or after a change, with or without an alias,
    choose rows and files.
    """
    own = table(spark, table_path)
    for add in own._snapshot().add_files().select("path", "stats_parsed.minValues").collect():
        if next(iter(add["minValues"])) >= 20:  # what is left out by its statistics is not read
            Path(table_path, add["path"]).write_bytes(b"no Parquet")
    frame = own.toDF()
    assert own.delete(frame["id"] == 3).num_deleted_rows == 1
    done = own.update(frame["id"] == 4, {"`n.x`": frame["id"] + own.toDF()["`n.x`"]})
    assert done.num_updated_rows == 1
    source = spark.range(5, 8).withColumn("n.x", F.lit(100))
    (
        own.alias("t")
        .merge(source.alias("s"), (frame["id"] == source["id"]) & (frame["id"] < 20))
        .whenMatchedUpdate(frame["p"] == 1, {"`n.x`": source["`n.x`"] + F.col("t.`n.x`")})
        .whenMatchedDelete(own.toDF()["id"] == 6)
        .whenNotMatchedBySourceUpdate(frame["id"] == 8, {"`n.x`": frame["id"] * 10})
        .execute()
    )
    expected = {i: i % 3 for i in range(20)} | {4: 5, 5: 102, 7: 101, 8: 80}
    assert values(spark, table_path) == {i: n for i, n in expected.items() if i not in (3, 6)}


@pytest.mark.full
def test_a_table_merged_with_its_own_frame(spark: SparkSession, table_path: str) -> None:
    """Columns of the frame are those of the source, as in delta-spark; names need aliases."""
    own = table(spark, table_path)
    source = own.toDF().filter("id IN (1, 2)").withColumn("n.x", F.lit(7)).alias("s")
    merge = own.alias("t").merge(source, F.col("t.id") == F.col("s.id"))
    merge.whenMatchedUpdate(set={"`n.x`": F.col("s.`n.x`")}).execute()
    assert values(spark, table_path) == {i: i % 3 for i in range(20)} | {1: 7, 2: 7}


@pytest.mark.slow
def test_columns_of_an_earlier_schema(spark: SparkSession, table_path: str) -> None:
    """A column that is no longer there, or of another table, is refused by its name."""
    own = table(spark, table_path, partition_by=["p"])
    before = own.toDF()
    alter_table(spark, table_path).drop_columns("`n.x`")
    alter_table(spark, table_path).add_column("`n.x`", "STRING")
    after = own.toDF()
    assert own.delete((before["id"] == 1) & after["`n.x`"].isNull()).num_deleted_rows == 1
    assert own.delete((before["p"] == 1) & (before["id"] == 3)).num_deleted_rows == 1
    for column in (before["`n.x`"] == 1, spark.range(3)["id"] == 1):
        with pytest.raises(InvalidConditionError) as raised:
            own.delete(column)
        assert raised.value.spark_condition.startswith("MISSING_ATTRIBUTES")


@pytest.mark.full
def test_frames_that_are_joined(spark: SparkSession, table_path: str) -> None:
    """Frames of one table are joined as in delta-spark: an equality is understood. Classic Spark
    refuses other ambiguous conditions; on Spark Connect columns know their DataFrame. Each frame
    keeps to its version.
    """
    own = table(spark, table_path)
    before = own.toDF()
    own.delete("id > 4")
    after = own.toDF()
    assert before.join(after, before["id"] == after["id"]).count() == 5
    assert before.join(after, "id").count() == 5
    assert after.unionByName(before).count() == 35
    assert before.subtract(after).count() == 25
    assert before.alias("b").join(after.alias("a"), F.expr("a.id < b.id AND b.id = 3")).count() == 3
    if "connect" in type(spark).__module__:
        joined = before.join(after, before["id"] > after["id"])
        assert joined.count() == sum(29 - row for row in range(5))
    else:
        with pytest.raises(AnalysisException):
            before.join(after, before["id"] > after["id"])
