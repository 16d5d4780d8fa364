"""Tables as sources of streams: offsets, batches, restarts, and what ends a query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    read_changes,
    read_delta,
    read_stream,
    write_delta,
    write_stream,
)
from sparkdelta.exceptions import DeltaError, from_message
from tests.support.settings import HOSTILE, settings

NOW = {"availableNow": True}


def run(rows: DataFrame, path: str) -> list[int]:
    """Write what there is of a stream to a table beside the one that is read; the number of rows of
    each batch.
    """
    query = write_stream(rows, f"{path}_out", f"{path}_checkpoint", trigger=NOW)
    assert query.awaitTermination(120)
    return [progress.numInputRows for progress in query.recentProgress]


def ended(rows: DataFrame, path: str) -> DeltaError:
    """The error that ends the query."""
    with pytest.raises(StreamingQueryException) as raised:
        run(rows, path)
    error = from_message(str(raised.value))
    assert error is not None, raised.value
    return error


def offsets(path: str) -> list[dict[str, Any]]:
    """The offsets of the batches in the checkpoint."""
    files = sorted(Path(f"{path}_checkpoint", "offsets").glob("[0-9]*"), key=lambda f: int(f.name))
    return [json.loads(file.read_text().splitlines()[2]) for file in files]


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, f"{path}_out").collect())


def is_old_connect(spark: SparkSession) -> bool:
    """Spark Connect before 4.2, which knows less of Python sources."""
    return spark.version.startswith(("4.0.", "4.1.")) and "connect" in type(spark).__module__


def limit(spark: SparkSession, files: int) -> dict[str, int]:
    """The option that limits batches, where Spark can."""
    return {} if is_old_connect(spark) else {"max_files_per_trigger": files}


def texts(rows: DataFrame) -> list[str]:
    return sorted(row[0] for row in rows.selectExpr("to_json(struct(*))").collect())


def append(spark: SparkSession, path: str, first: int, last: int, files: int = 1) -> None:
    write_delta(spark.range(first, last, 1, files), path, mode="append")


@pytest.mark.full
def test_the_table_and_then_its_commits(spark: SparkSession, table_path: str) -> None:
    """Batches of two files: three of the table, by time and path, then those of commits."""
    if not limit(spark, 2):
        pytest.skip("Spark Connect before 4.2 limits no batch of a source")
    append(spark, table_path, 0, 3, files=3)
    append(spark, table_path, 3, 5, files=2)
    rows = read_stream(spark, table_path, max_files_per_trigger=2)
    assert rows.isStreaming
    assert rows.schema.simpleString() == "struct<id:bigint>"
    append(spark, table_path, 5, 6)
    before = SparkSession.getActiveSession()
    assert run(rows, table_path) == [2, 2, 2]
    assert SparkSession.getActiveSession() is before
    table_id = offsets(table_path)[0]["reservoirId"]
    assert offsets(table_path) == [
        {
            "sourceVersion": 1, "reservoirId": table_id, "reservoirVersion": version,
            "index": index, "isStartingVersion": initial,
        }
        for version, index, initial in ((1, 1, True), (1, 3, True), (3, -1, False))
    ]  # fmt: skip
    append(spark, table_path, 6, 9, files=3)
    assert run(read_stream(spark, table_path, max_files_per_trigger=2), table_path) == [2, 1]
    assert [offset["index"] for offset in offsets(table_path)[3:]] == [1, -1]
    assert ids(spark, table_path) == list(range(9))


@pytest.mark.slow
def test_rows_of_any_table(spark: SparkSession, table_path: str) -> None:
    """Deletion vectors, mapped columns, partition values, a file with two vectors in one batch.

    PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping
    """
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    rows = spark.range(0, 16, 1, 2).selectExpr("id", "id % 2 AS `a part`")
    write_delta(rows, table_path, partition_by=["a part"], properties=properties)
    DeltaTable.forPath(spark, table_path).delete("id = 2")
    options = {"ignore_changes": True, **limit(spark, 100)}
    run(read_stream(spark, table_path, **options).where("`a part` = 0").select("id"), table_path)
    once = [0, 4, 6, 8, 10, 12, 14]
    assert ids(spark, table_path) == once
    for number in (0, 4):
        DeltaTable.forPath(spark, table_path).delete(f"id = {number}")
    run(read_stream(spark, table_path, **options).where("`a part` = 0").select("id"), table_path)
    # The changed file is read again by each commit, without the rows that are deleted by then.
    assert ids(spark, table_path) == sorted([*once, 4, 6, 6])
    query = read_stream(spark, table_path, **options).groupBy().sum("id").writeStream
    query = query.format("memory").queryName("sums").outputMode("complete").trigger(**NOW)
    assert query.start().awaitTermination(120)
    assert spark.table("sums").collect()[0][0] == sum(range(16)) - 6


@pytest.mark.full
def test_a_schema_change_ends_the_query(spark: SparkSession, table_path: str) -> None:
    """And one that starts with the new schema goes on."""
    append(spark, table_path, 0, 1)
    rows = read_stream(spark, table_path)
    run(rows, table_path)
    append(spark, table_path, 1, 2)
    alter_table(spark, table_path).add_column("name", "STRING")
    write_delta(
        spark.createDataFrame([(2, "b")], "id LONG, name STRING"), table_path, mode="append"
    )
    error = ended(rows, table_path)
    assert error.getCondition() == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    restarted = read_stream(spark, table_path)
    query = write_stream(
        restarted, f"{table_path}_out", f"{table_path}_checkpoint", trigger=NOW, merge_schema=True
    )
    assert query.awaitTermination(120)
    found = read_delta(spark, f"{table_path}_out").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(0, None), (1, None), (2, "b")]


@pytest.mark.full
def test_a_wider_type_across_a_restart(spark: SparkSession, table_path: str) -> None:
    """A batch that was planned before the change is read with the wider type after it.

    PROTOCOL.md#type-widening
    """
    properties = {"delta.enableTypeWidening": "true"}
    for path in (table_path, f"{table_path}_out"):
        write_delta(spark.sql("SELECT 1 AS id"), path, properties=properties)
    rows = read_stream(spark, table_path)
    run(rows, table_path)
    write_delta(spark.sql("SELECT 2 AS id"), table_path, mode="append")

    def fail(batch: DataFrame, number: int) -> None:
        raise RuntimeError

    writer = rows.writeStream.foreachBatch(fail).trigger(**NOW)
    query = writer.option("checkpointLocation", f"{table_path}_checkpoint").start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(120)
    assert len(offsets(table_path)) == 2
    for path in (table_path, f"{table_path}_out"):
        alter_table(spark, path).change_column("id", "LONG")
    append(spark, table_path, 5_000_000_000, 5_000_000_001)
    if is_old_connect(spark):  # a run that repeats a batch may end with it
        run(read_stream(spark, table_path), table_path)
    run(read_stream(spark, table_path), table_path)
    assert ids(spark, table_path) == [1, 1, 2, 5_000_000_000]
    assert ended(rows, table_path).getCondition() == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.mark.slow
def test_two_sources_in_one_query(spark: SparkSession, table_path: str) -> None:
    other = f"{table_path}_other"
    append(spark, table_path, 0, 2)
    append(spark, other, 10, 12)
    rows = read_stream(spark, table_path).union(read_stream(spark, other))
    run(rows, table_path)
    append(spark, other, 12, 13)
    run(rows, table_path)  # the same DataFrame, in another query
    append(spark, table_path, 2, 3)
    rows = read_stream(spark, table_path).union(read_stream(spark, other))
    run(rows, table_path)
    assert ids(spark, table_path) == [0, 1, 2, 10, 11, 12]


@pytest.mark.slow
def test_the_change_data_feed(spark: SparkSession, table_path: str) -> None:
    """The rows at the start are inserts; then the changes of each commit, whole.

    PROTOCOL.md#change-data-files
    """
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    write_delta(spark.range(0, 4, 1, 2), table_path, properties=properties)
    DeltaTable.forPath(spark, table_path).delete("id = 0")
    options = {"read_change_feed": True, **limit(spark, 1)}
    rows = read_stream(spark, table_path, **options)
    run(rows, table_path)
    DeltaTable.forPath(spark, table_path).update("id = 1", {"id": "11"})
    append(spark, table_path, 20, 21)
    run(rows, table_path)
    found = read_delta(spark, f"{table_path}_out")
    assert found.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    rows_found = sorted(tuple(row)[:3] for row in found.collect())
    assert rows_found == [
        (1, "insert", 1), (1, "update_preimage", 2), (2, "insert", 1), (3, "insert", 1),
        (11, "update_postimage", 2), (20, "insert", 3),
    ]  # fmt: skip
    later = found.filter("_commit_version > 1").select(found.columns)
    changes = read_changes(spark, table_path, start_version=2)
    assert later.exceptAll(changes).isEmpty()
    assert later.count() == changes.count()
    first = found.filter("_commit_version = 1").select("_commit_timestamp").distinct()
    assert first.collect()[0][0] is not None


@pytest.mark.full
@pytest.mark.parametrize("values", HOSTILE.values(), ids=HOSTILE)
def test_adverse_settings(spark: SparkSession, table_path: str, values: Mapping[str, str]) -> None:
    """Values at the limits of their types, in the rows and as partition values."""
    rows = spark.sql("""
        SELECT id, moment AS aMoment, moment AS p, local, day AS Day, X'C3FF' AS bytes,
            named_struct('a.B', id, 'ü', '😀') AS s,
            CAST('12345678901234567890123456789012345.678' AS DECIMAL(38, 3)) AS number
        FROM VALUES (0, TIMESTAMP'0001-01-01 00:00:00.000001Z',
                TIMESTAMP_NTZ'0001-01-01 00:00:00.000001', DATE'0001-01-01'),
            (1, TIMESTAMP'1883-11-18 12:03:57Z',
                TIMESTAMP_NTZ'1883-11-18 12:03:57', DATE'1883-11-18'),
            (2, TIMESTAMP'9999-12-31 23:59:59.999999Z',
                TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', DATE'9999-12-31')
            AS v(id, moment, local, day)""")
    expected = texts(rows)
    properties = {"delta.enableChangeDataFeed": "true"}
    with settings(spark, values):
        write_delta(rows, table_path, partition_by=["p"], properties=properties)
        run(read_stream(spark, table_path, **limit(spark, 1)), table_path)
        DeltaTable.forPath(spark, table_path).delete("id = 1")
        changes = read_stream(spark, table_path, read_change_feed=True, starting_version=1)
        of_changes = f"{table_path}_changes"
        run(changes, of_changes)
    assert texts(read_delta(spark, f"{table_path}_out").select(*rows.columns)) == expected
    deleted = read_delta(spark, f"{of_changes}_out")
    assert texts(deleted.select(*rows.columns)) == expected[1:2]
    assert [row[0] for row in deleted.select("_change_type").collect()] == ["delete"]
