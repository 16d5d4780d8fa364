"""Streams of Spark Connect clients, on a server that does not know this library."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta import (
    DeltaError,
    DeltaTable,
    read_delta,
    read_stream,
    write_delta,
    write_stream,
)
from tests.support.connect_server import ConnectServer

pytestmark = [pytest.mark.connect, pytest.mark.full]

NOW = {"availableNow": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    server = ConnectServer(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


def numbers(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


def stored(spark: SparkSession, path: str, start: int, end: int) -> DataFrame:
    """Add numbers to a directory of Parquet files, and return it as a stream."""
    spark.range(start, end, numPartitions=1).write.mode("append").parquet(path)
    return spark.readStream.schema("id LONG").parquet(path)


def transactions(path: str) -> list[list[Any]]:
    """Return application and version of the transactions in a log."""
    lines = [
        json.loads(line)
        for file in sorted(Path(path, "_delta_log").glob("*.json"))
        for line in file.read_text().splitlines()
    ]
    return [[line["txn"]["appId"], line["txn"]["version"]] for line in lines if "txn" in line]


def write_two_batches(spark: SparkSession, root: str) -> Any:
    path, checkpoint = f"{root}/table", f"{root}/checkpoint"
    for start, end in ((0, 5), (5, 7)):
        rows = stored(spark, f"{root}/source", start, end)
        query = write_stream(rows.where("id <> 3"), path, checkpoint, trigger=NOW)
        query.awaitTermination()
    return query.id, numbers(spark, path)


def test_sink_commits_each_batch_with_the_id_of_its_query(
    server: ConnectServer, tmp_path: Path
) -> None:
    query, rows = server.call(write_two_batches, str(tmp_path))
    assert rows == [0, 1, 2, 4, 5, 6]
    assert transactions(str(tmp_path / "table")) == [[query, 0], [query, 1]]


def write_batch_again(spark: SparkSession, root: str) -> Any:
    path, checkpoint = f"{root}/table", Path(root, "checkpoint")
    rows = stored(spark, f"{root}/source", 0, 5)
    write_stream(rows, path, str(checkpoint), trigger=NOW).awaitTermination()
    # As if the server had been killed after the commit to the table.
    for file in checkpoint.glob("commits/*0*"):
        file.unlink()
    write_stream(rows, path, str(checkpoint), trigger=NOW).awaitTermination()
    return numbers(spark, path)


@pytest.mark.more_connect
def test_sink_skips_a_batch_that_was_committed_before(
    server: ConnectServer, tmp_path: Path
) -> None:
    assert server.call(write_batch_again, str(tmp_path)) == [0, 1, 2, 3, 4]
    assert len(transactions(str(tmp_path / "table"))) == 1


def write_with_pyspark(spark: SparkSession, root: str) -> Any:
    sparkdelta.enable(spark)
    rows = stored(spark, f"{root}/source", 0, 3)
    path = f"{root}/table"
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{root}/first").option("userMetadata", "of a job")
    query = writer.queryName("of a job").start(path)
    query.awaitTermination()
    user = DeltaTable.forPath(spark, path).history().collect()[0]["userMetadata"]
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{root}/second").toTable("streamed").awaitTermination()
    named = sorted(row["id"] for row in spark.table("streamed").collect())
    spark.sql("DROP TABLE streamed")
    return [numbers(spark, path), query.name, user, named]


@pytest.mark.more_connect
def test_pyspark_methods_write_streams(server: ConnectServer, tmp_path: Path) -> None:
    written = server.call(write_with_pyspark, str(tmp_path))
    assert written == [[0, 1, 2], "of a job", "of a job", [0, 1, 2]]


def merge_batches(spark: SparkSession, root: str) -> Any:
    sparkdelta.enable(spark)
    path = f"{root}/table"
    spark.range(3, 8).selectExpr("id", "'old' AS word").write.format("delta").save(path)
    rows = stored(spark, f"{root}/source", 0, 5)
    of_client = DeltaTable.forPath(spark, path)
    found = []

    def by_method(batch: DataFrame, _: int) -> None:
        table = DeltaTable.forPath(batch.sparkSession, path).alias("t")
        merge = table.merge(batch.alias("s"), "t.id = s.id")
        merge = merge.whenMatchedUpdate(set={"word": "'met'"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "word": "'new'"}).execute()

    def by_statement(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("s")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{path}` t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
        )

    def by_table_of_client(batch: DataFrame, number: int) -> None:
        of_client.alias("t").merge(batch.alias("s"), "t.id = s.id").whenNotMatchedInsert(
            values={"id": "s.id", "word": "'again'"}
        ).execute()
        writer = batch.selectExpr("id + 100 AS id", "'written' AS word").write.format("delta")
        writer.mode("append").option("txnAppId", "job").option("txnVersion", number).save(path)

    for function in (by_method, by_statement, by_table_of_client):
        writer = rows.writeStream.foreachBatch(function).trigger(availableNow=True)
        checkpoint = f"{root}/{function.__name__}"
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()
        read = spark.read.format("delta").load(path)
        found.append(sorted([row["id"], row["word"]] for row in read.collect()))
    return found


@pytest.mark.more_connect
def test_functions_of_batches_merge(server: ConnectServer, tmp_path: Path) -> None:
    by_method, by_statement, by_table_of_client = server.call(merge_batches, str(tmp_path))
    rest = [[5, "old"], [6, "old"], [7, "old"]]
    assert by_method == [[0, "new"], [1, "new"], [2, "new"], [3, "met"], [4, "met"], *rest]
    assert by_statement == rest
    again = [[number, "again"] for number in range(5)]
    assert by_table_of_client == [*again, *rest, *([n + 100, "written"] for n in range(5))]
    assert transactions(str(tmp_path / "table")) == [["job", 0]]


def fail_in_batch(spark: SparkSession, root: str) -> Any:
    rows = stored(spark, f"{root}/source", 0, 3)
    write_stream(rows, f"{root}/table", f"{root}/first", trigger=NOW).awaitTermination()
    renamed = rows.selectExpr("id AS other")
    query = write_stream(renamed, f"{root}/table", f"{root}/second", trigger=NOW)
    try:
        query.awaitTermination()
    except PySparkException as error:
        return [str(error), numbers(spark, f"{root}/table")]
    return None


@pytest.mark.more_connect
def test_error_of_a_batch_ends_the_query(server: ConnectServer, tmp_path: Path) -> None:
    message, rows = server.call(fail_in_batch, str(tmp_path))
    assert re.findall(r"Error: \[(\w+)\]", message)[:1] == ["DELTA_METADATA_MISMATCH"]
    assert rows == [0, 1, 2]


def drained(rows: DataFrame, root: str, name: str) -> list[Any]:
    """Write all rows of a stream to files, and return the rows of every query with this name."""
    writer = rows.writeStream.format("json").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{root}/{name}").start(f"{root}/{name}-rows")
    query.awaitTermination()
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
    read = rows.sparkSession.read.schema(schema).json(f"{root}/{name}-rows")
    return sorted([list(row) for row in read.collect()], key=repr)


def mapped_table(spark: SparkSession, path: str) -> None:
    """Create a table with mapped columns, deletion vectors and a change data feed."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, part TIMESTAMP, s STRUCT<a: INT>) USING delta "
        "PARTITIONED BY (part) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    day = "TIMESTAMP '2024-02-03 04:05:06'"
    spark.range(0, 4, numPartitions=1).selectExpr(
        "id", f"{day} AS part", "struct(CAST(id + 10 AS INT) AS a) AS s"
    ).write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN s TO renamed")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7, NULL, NULL)")


def read_with_options(spark: SparkSession, root: str) -> Any:
    sparkdelta.enable(spark)
    path = f"{root}/table"
    mapped_table(spark, path)

    def stream(**options: str) -> DataFrame:
        return spark.readStream.format("delta").options(**options).load(path)

    columns = "id", "CAST(part AS STRING)", "renamed.a AS a"
    read = {"all": drained(stream().selectExpr(*columns), root, "all")}
    feed = stream(readChangeFeed="true", startingVersion="0")
    feed = feed.selectExpr("id", "_change_type AS kind", "_commit_version AS version")
    read["from version"] = drained(stream(startingVersion="4").select("id"), root, "version")
    counts = stream().groupBy("part").count().select("count")
    writer = counts.writeStream.format("delta").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{root}/counts").start(f"{root}/o").awaitTermination()
    read["counts"] = sorted(
        row["count"] for row in spark.read.format("delta").load(f"{root}/o").collect()
    )
    try:
        read["changes"] = drained(feed, root, "changes")
    except PySparkException as error:
        read["changes"] = re.findall(r"\[(DELTA_\w+)\]", str(error))[:1]
    return read


@pytest.mark.more_connect
def test_stream_reads_a_table_with_its_options(server: ConnectServer, tmp_path: Path) -> None:
    read = server.call(read_with_options, str(tmp_path))
    day = "2024-02-03 04:05:06"
    assert read["all"] == [[0, day, 10], [2, day, 12], [3, day, 13], [7, None, None]]
    assert read["from version"] == [[7]]
    assert read["counts"] == [1, 3]
    # As on classic sessions: the stream would pass the version that renamed a column.
    assert read["changes"] == ["DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"]


def read_changes_and_commits(spark: SparkSession, root: str) -> Any:
    sparkdelta.enable(spark)
    path = f"{root}/table"
    spark.range(0, 3, numPartitions=1).write.format("delta").option(
        "delta.enableChangeDataFeed", "true"
    ).save(path)

    def stream(**options: str) -> DataFrame:
        return spark.readStream.format("delta").options(**options).load(path)

    latest = stream(startingVersion="latest")
    read = {"before": drained(latest, root, "latest")}
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    read["latest"] = drained(latest, root, "latest")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    try:
        drained(latest, root, "latest")
    except PySparkException as error:
        read["delete"] = re.findall(r"Error: \[(\w+)\]", str(error))[:1]
    skipping = stream(skipChangeCommits="true", startingVersion="latest")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (8)")
    read["skipping"] = drained(skipping, root, "latest")
    feed = stream(readChangeFeed="true", startingVersion="0")
    feed = feed.selectExpr("id", "_change_type AS kind", "_commit_version AS version")
    read["changes"] = drained(feed, root, "changes")
    return read


@pytest.mark.more_connect
def test_stream_of_changes_and_of_later_commits(server: ConnectServer, tmp_path: Path) -> None:
    read = server.call(read_changes_and_commits, str(tmp_path))
    assert read["before"] == []
    assert read["latest"] == [[7]]
    assert read["delete"] == ["DELTA_SOURCE_TABLE_IGNORE_CHANGES"]
    assert read["skipping"] == [[7], [8]]
    inserts = [[number, "insert", 0] for number in range(3)]
    changes = [*inserts, [1, "delete", 2], [7, "insert", 1], [8, "insert", 3]]
    assert read["changes"] == sorted(changes, key=repr)


def continue_query(spark: SparkSession, root: str) -> list[int]:
    rows = read_stream(spark, f"{root}/source")
    write_stream(rows, f"{root}/target", f"{root}/checkpoint", trigger=NOW).awaitTermination()
    return numbers(spark, f"{root}/target")


@pytest.mark.more_connect
def test_checkpoint_is_shared_with_classic_sessions(
    spark: SparkSession, server: ConnectServer, tmp_path: Path
) -> None:
    root = str(tmp_path)

    def grow(number: int) -> None:
        write_delta(spark.range(number, number + 1), f"{root}/source", mode="append")

    grow(0)
    assert server.call(continue_query, root) == [0]
    grow(1)
    assert continue_query(spark, root) == [0, 1]
    grow(2)
    assert server.call(continue_query, root) == [0, 1, 2]
    appliers = {application for application, _ in transactions(f"{root}/target")}
    assert len(appliers) == 1


def read_in_limits(spark: SparkSession, root: str) -> Any:
    try:
        rows = read_stream(spark, f"{root}/source", max_files_per_trigger=1)
    except DeltaError as error:
        return error.error_class
    write_stream(rows, f"{root}/target", f"{root}/checkpoint", trigger=NOW).awaitTermination()
    return [row["id"] for row in read_delta(spark, f"{root}/target").collect()]


@pytest.mark.more_connect
def test_limits_of_batches_hold_or_are_refused(
    spark: SparkSession, server: ConnectServer, tmp_path: Path
) -> None:
    for number in range(3):
        write_delta(spark.range(number, number + 1), str(tmp_path / "source"), mode="append")
    read = server.call(read_in_limits, str(tmp_path))
    if spark.version < "4.2":
        assert read == "DELTA_STREAM_NOT_SUPPORTED"
    else:
        assert sorted(read) == [0, 1, 2]
        assert len(transactions(str(tmp_path / "target"))) == 3


def run_until_killed(spark: SparkSession, root: str) -> None:
    rows = read_stream(spark, f"{root}/source")
    print("started", flush=True)
    write_stream(rows, f"{root}/target", f"{root}/checkpoint").awaitTermination()


@pytest.mark.more_connect
def test_query_loses_and_repeats_nothing_when_client_and_server_are_killed(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = ConnectServer(tmp_path_factory.mktemp("killed"))
    root, target = str(tmp_path), tmp_path / "target" / "_delta_log"
    written = 0
    for victim in ("client", "server", "server"):
        write_delta(spark.range(written, written + 5), f"{root}/source", mode="append")
        written += 5
        before = len(list(target.glob("*.json")))
        client = server.client(run_until_killed, root)
        deadline = time.monotonic() + 120
        while len(list(target.glob("*.json"))) == before and time.monotonic() < deadline:
            write_delta(spark.range(written, written + 1), f"{root}/source", mode="append")
            written += 1
        client.kill()
        client.communicate()
        if victim == "server":
            server.kill()
            server.start()
    assert server.call(continue_query, root) == list(range(written))
    server.kill()
