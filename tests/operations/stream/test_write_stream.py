"""Streams written to tables: each batch one version, exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta, write_stream
from sparkdelta.exceptions import InvalidArgumentError, from_message
from tests.support.errors import raises

NOW = {"availableNow": True}


def numbers(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream of the Parquet files of a directory, one a batch."""
    reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))


def finished(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(120)
    return query


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


def commit(path: str, version: int) -> dict[str, dict[str, Any]]:
    lines = Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines()
    return {kind: value for line in lines for kind, value in json.loads(line).items()}


@pytest.mark.classic("looks into the JVM")
def test_each_batch_is_a_version(spark: SparkSession, tmp_path: Path, table_path: str) -> None:
    """PROTOCOL.md#transaction-identifiers"""
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    spark.range(0, 6, 1, 2).write.parquet(str(files))
    active = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession().get()
    query = finished(
        write_stream(
            numbers(spark, files), table_path, str(checkpoint), trigger=NOW, user_metadata="mine",
            query_name="numbers",
        )
    )  # fmt: skip
    assert query.name == "numbers"
    assert load_snapshot(spark, table_path).version == 1
    done = commit(table_path, 1)
    assert done["txn"]["appId"] == query.id
    assert done["txn"]["version"] == 1
    info = done["commitInfo"]
    assert (info["operation"], info["isBlindAppend"]) == ("STREAMING UPDATE", True)
    assert info["operationParameters"] == {
        "outputMode": "Append", "queryId": query.id, "epochId": "1",
    }  # fmt: skip
    metrics = info["operationMetrics"]
    assert (metrics["numAddedFiles"], metrics["numRemovedFiles"]) == ("1", "0")
    assert metrics["numOutputRows"] == "3"
    assert info["userMetadata"] == "mine"
    # As after a crash between the commit of a batch and its checkpoint.
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    spark.range(6, 8).coalesce(1).write.mode("append").parquet(str(files))
    finished(write_stream(numbers(spark, files), table_path, str(checkpoint), trigger=NOW))
    assert load_snapshot(spark, table_path).version == 2
    assert commit(table_path, 2)["txn"]["version"] == 2
    assert ids(spark, table_path) == list(range(8))
    now = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession().get()
    assert now.equals(active)


@pytest.mark.full
def test_complete_mode_replaces_all_rows(
    spark: SparkSession, tmp_path: Path, table_path: str
) -> None:
    files = tmp_path / "files"
    spark.range(0, 6, 1, 2).write.parquet(str(files))
    rows = numbers(spark, files).groupBy().agg({"id": "sum"}).toDF("total")
    finished(
        write_stream(
            rows, table_path, str(tmp_path / "checkpoint"), output_mode="COMPLETE", trigger=NOW
        )
    )
    assert [row["total"] for row in read_delta(spark, table_path).collect()] == [15]
    info = commit(table_path, 1)["commitInfo"]
    assert info["operationParameters"]["outputMode"] == "Complete"
    assert info["operationMetrics"]["numRemovedFiles"] == "1"
    assert not info["isBlindAppend"]
    [last, _] = DeltaTable.forPath(spark, table_path).history().collect()
    assert last["operation"] == "STREAMING UPDATE"


@pytest.mark.full
def test_a_query_with_state_skips_a_batch_that_was_committed(
    spark: SparkSession, tmp_path: Path, table_path: str
) -> None:
    """It crashed between the commit and the end of the batch; Spark expects the batch's state."""
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"

    def run() -> None:
        totals = numbers(spark, files).groupBy((F.col("id") % 2).alias("part"))
        totals = totals.agg(F.sum("id").alias("total"))
        query = write_stream(
            totals, table_path, str(checkpoint), output_mode="complete", trigger=NOW
        )
        finished(query)

    for first, last in ((0, 3), (3, 6), (6, 8)):
        spark.range(first, last, 1, 1).write.mode("append").parquet(str(files))
        run()
        if last == 6:
            for name in ("1", ".1.crc"):
                (checkpoint / "commits" / name).unlink()
    found = read_delta(spark, table_path).collect()
    assert sorted(row["total"] for row in found) == [12, 16]
    assert load_snapshot(spark, table_path).version == 2


def test_an_error_ends_the_query(spark: SparkSession, tmp_path: Path, table_path: str) -> None:
    """And says what is wrong; nothing of the batch is committed."""
    files = tmp_path / "files"
    spark.range(0, 1).coalesce(1).write.parquet(str(files))
    write_delta(spark.createDataFrame([("a",)], "name STRING"), table_path)
    query = write_stream(
        numbers(spark, files), table_path, str(tmp_path / "checkpoint"), trigger=NOW
    )
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(120)
    assert from_message(str(query.exception())).getCondition() == "DELTA_METADATA_MISMATCH"
    assert load_snapshot(spark, table_path).version == 0
    merged = write_stream(
        numbers(spark, files), table_path, str(tmp_path / "checkpoint"), trigger=NOW,
        merge_schema=True,
    )  # fmt: skip
    finished(merged)
    assert read_delta(spark, table_path).columns == ["name", "id"]


def test_properties_are_those_of_a_new_table(
    spark: SparkSession, tmp_path: Path, table_path: str
) -> None:
    """Neither the next batch nor a restart fails because the table has them, or others."""
    files, checkpoint = tmp_path / "files", str(tmp_path / "checkpoint")
    spark.range(0, 6, 1, 2).write.parquet(str(files))
    given = {"delta.appendOnly": "true"}
    stream = numbers(spark, files)
    finished(write_stream(stream, table_path, checkpoint, trigger=NOW, properties=given))
    assert load_snapshot(spark, table_path).version == 1
    spark.range(6, 8).coalesce(1).write.mode("append").parquet(str(files))
    given = {"delta.appendOnly": "false"}
    finished(write_stream(stream, table_path, checkpoint, trigger=NOW, properties=given))
    snapshot = load_snapshot(spark, table_path)
    assert (snapshot.version, snapshot.properties) == (2, {"delta.appendOnly": "true"})


def test_arguments(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load()
    with raises("DELTA_UNSUPPORTED_OUTPUT_MODE") as raised:
        write_stream(rows, "/nowhere", str(tmp_path), output_mode="update")
    assert raised.value.getCondition() == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    with pytest.raises(InvalidArgumentError, match="streaming DataFrame"):
        write_stream(spark.range(1), "/nowhere", str(tmp_path))
    with pytest.raises(InvalidArgumentError, match="checkpoint_location"):
        write_stream(rows, "/nowhere", "")
    with pytest.raises(InvalidArgumentError, match="overwrite_schema"):
        write_stream(rows, "/nowhere", str(tmp_path), overwrite_schema=True)
    with raises("DELTA_UNKNOWN_ARGUMENT", match="Use checkpoint_location"):
        write_stream(rows, "/nowhere", checkpointLocation=str(tmp_path))  # type: ignore[call-arg]
