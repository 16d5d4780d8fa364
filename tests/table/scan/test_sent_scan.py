"""Scans on Spark Connect, whose files are chosen when a client sends a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from sparkdelta.base.spark import connect_late_rows
from sparkdelta.exceptions import DeltaError

pytestmark = [pytest.mark.connect, pytest.mark.full]

COLUMNS = ("id", "id % 5 AS part", "named_struct('f', id) AS s")


@pytest.fixture
def client(
    connect_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSession]:
    """An enabled client."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # for PySpark's functions
    sparkdelta.enable(connect_session)
    yield connect_session
    sparkdelta.disable(connect_session)


def _append(client: SparkSession, table: str, start: int, end: int) -> None:
    rows = client.range(start, end, 1, 1).selectExpr(*COLUMNS)
    write_delta(rows, table, mode="append", partition_by=["part"])


@pytest.fixture
def table(client: SparkSession, tmp_path: Path) -> str:
    """A table with a file in each of five partitions."""
    path = str(tmp_path / "t")
    _append(client, path, 0, 100)
    return path


def _files(frame: DataFrame) -> int:
    return len(frame.inputFiles())


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_filters_next_to_the_table_choose_files(client: SparkSession, table: str) -> None:
    frame = client.read.format("delta").load(table)
    assert _files(frame) == 5
    for chosen, files in (
        (frame.where("part = 3"), 1),
        (frame.where((F.col("part") == 3) | (frame["part"] == 4)), 2),
        (frame.sort("id").hint("rebalance").where(frame.part.isin(1, 2)).where("id >= 0"), 2),
        (frame.alias("t").where("part = 3"), 1),
        (frame.alias("t").where(F.col("T.part") == 3).where(F.col("t.s.f") < 9), 1),
        (frame.select("id", "part").where("part = 3").where("rand() >= 0"), 1),
        (frame.where("id > 98"), 1),  # by statistics
        # Not these: the rows below the filter depend on other rows, or have other columns.
        (frame.limit(100).where("part = 3"), 5),
        (frame.selectExpr("id", "part + 1 AS part").where("part = 3"), 5),
        (frame.alias("s").where(F.col("s.f") == 3), 5),  # s may be the alias or the column
    ):
        assert _files(chosen) == files
    assert _ids(frame.where("part = 3").where("id < 20")) == [3, 8, 13, 18]
    assert _ids(read_delta(client, table).where("part = 3 AND id < 20")) == [3, 8, 13, 18]
    assert _files(read_delta(client, table).where("part = 3")) == 1


@pytest.mark.more_connect
def test_filters_above_joins_choose_files(client: SparkSession, table: str) -> None:
    frame = client.read.format("delta").load(table)
    other = client.range(100).selectExpr("id AS key", "id % 7 AS label", "id % 5 AS part")
    named, only_ids = other.drop("part"), read_delta(client, table, columns=["id"])
    joined = frame.join(named, frame.id == named.key)
    for chosen, files in (
        (joined.where("part = 3"), 1),
        (joined.where((F.col("part") == 3) & (F.col("label") == 1)), 1),
        (joined.where(frame.part == 3).hint("rebalance").where("label = 1"), 1),
        (named.join(frame, frame.id == named.key).where("part IN (1, 2)"), 2),
        (frame.join(named, F.col("id") == F.col("key"), "left").where("part = 3"), 1),
        (named.join(frame, F.col("id") == F.col("key"), "right").where("part = 3"), 1),
        (frame.join(other, F.col("id") == F.col("key"), "semi").where("part = 3"), 1),
        (frame.join(other, F.col("id") == F.col("key"), "anti").where("part = 3"), 1),
        (frame.join(named.withColumnRenamed("key", "id"), "id").where("part = 3"), 1),
        (frame.crossJoin(named.limit(3)).where("part = 3").where("id < 50"), 1),
        # Not these.
        (joined.where("part = 3 OR label = 1"), 5),
        (frame.join(named, F.col("id") == F.col("key"), "full").where("part = 3"), 5),
        (named.join(frame, F.col("id") == F.col("key"), "left").where("part IS NULL"), 5),
        (frame.join(other, frame.id == other.key).where(other.part == 3), 5),
        (frame.join(other, frame.id == other.key).select("id", other.part).where("part = 3"), 5),
        (named.join(frame.withColumn("key", F.col("id")), "key").where("key = 3"), 5),
        (frame.select("id").join(other, F.col("id") == F.col("key")).where("part = 3"), 5),
        (only_ids.join(other, F.col("id") == F.col("key")).where("part = 3"), 5),
        (joined.alias("j").where("j.part = 3"), 5),
    ):
        assert _files(chosen) == files
    assert joined.where("part = 3").count() == 20
    shifted = client.range(100).selectExpr("id AS key", "(id + 1) % 5 AS part")
    for ids in (frame.select("id"), only_ids):
        found = ids.join(shifted, F.col("id") == F.col("key")).where("part = 3")
        assert _ids(found) == [*range(2, 100, 5)]
    assert _ids(frame.join(other, frame.id == other.key).where(other.part == 3)) == [
        *range(3, 100, 5)
    ]


def test_filters_above_joins_tell_apart_names_by_their_case(
    client: SparkSession, table: str
) -> None:
    frame = client.read.format("delta").load(table)
    other = client.range(100).selectExpr("id AS key", "7 - id % 5 AS PART")
    client.conf.set("spark.sql.caseSensitive", "true")
    try:
        joined = frame.join(other, F.col("id") == F.col("key"))
        for condition in ("PART = 4", F.col("PART") == 4):
            assert _ids(joined.where(condition)) == [*range(3, 100, 5)]
        assert _files(joined.where("part = 3")) == 1
    finally:
        client.conf.unset("spark.sql.caseSensitive")


def test_the_condition_of_a_query_chooses_files(client: SparkSession, table: str) -> None:
    for query, files, count in (
        ("SELECT id FROM {t} x WHERE x.part = 3 AND id > 50", 1, 10),
        ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.part = 3 AND b.part = 4", 2, 0),
        ("SELECT a.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id + 1 WHERE b.part IS NULL", 5, 1),
        ("WITH c AS (SELECT * FROM {t} WHERE part = 3) SELECT id FROM c WHERE id < 10", 1, 2),
        ("SELECT id FROM {t} WHERE part = (SELECT max(part) FROM {t} WHERE part < 2)", 5, 20),
    ):
        found = client.sql(query.format(t=f"delta.`{table}`"))
        assert (_files(found), found.count()) == (files, count), query


def test_queries_follow_the_table(client: SparkSession, table: str) -> None:
    frame, pinned = client.read.format("delta").load(table), read_delta(client, table)
    query = client.sql(f"SELECT count(*) AS rows FROM delta.`{table}`")
    cached = frame.where("part = 0").cache()
    assert cached.count() == 20
    _append(client, table, 100, 110)
    assert (frame.count(), pinned.count(), query.first()) == (110, 100, (110,))
    assert frame.join(frame.alias("other"), "id").count() == 110
    assert cached.count() == 20
    cached.unpersist()
    assert cached.count() == 22
    assert frame.cache().count() == 110
    client.catalog.clearCache()
    _append(client, table, 110, 111)
    assert frame.count() == 111


def test_the_log_counts_all_rows(client: SparkSession, tmp_path: Path) -> None:
    """`count()` follows the table's version; Spark counts filtered rows in the data files.

    PROTOCOL.md#per-file-statistics
    """
    path = str(tmp_path / "t")
    with_vectors = {"delta.enableDeletionVectors": "true"}
    write_delta(client.range(0, 100, 1, 2), path, properties=with_vectors)
    reader = client.read.format("delta")
    latest, pinned = reader.load(path), reader.option("versionAsOf", 0).load(path)
    ours, some, kept = read_delta(client, path), latest.where("id >= 50"), reader.load(path)
    kept.persist()
    DeltaTable.forPath(client, path).delete("id < 3")
    assert (some.count(), kept.count(), kept.limit(7).count()) == (50, 100, 7)
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    assert (latest.count(), pinned.count(), ours.count()) == (97, 100, 100)
    with pytest.raises(Exception, match=r"(?i)exist|found"):
        some.count()


@pytest.mark.more_connect
def test_temporary_views_follow_their_table(client: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    client.sql(f"CREATE OR REPLACE TEMP VIEW big AS SELECT id, part FROM {name} WHERE id >= 100")
    client.sql("CREATE TEMP VIEW bigger AS SELECT id FROM big WHERE id > 100")
    client.table(name).createOrReplaceTempView("all")
    client.sql(f"SELECT max(id) AS top FROM {name}").createOrReplaceGlobalTempView("top")
    _append(client, table, 100, 110)
    assert client.table("big").count() == client.sql("SELECT * FROM big").count() == 10
    assert client.read.table("bigger").where("id < 105").count() == 4
    assert client.sql("SELECT top FROM global_temp.top").collect() == [(109,)]
    assert _files(client.table("all").where("part = 3")) == 2
    joined = "SELECT count(*) FROM big a JOIN `ALL` b ON a.id = b.id WHERE a.part = 1"
    assert client.sql(joined).collect() == [(2,)]
    assert client.sql("WITH big AS (SELECT 1 AS x) SELECT * FROM big").collect() == [(1,)]
    client.sql(f"INSERT INTO {name} SELECT id + 10, part, named_struct('f', id) AS s FROM big")
    assert client.table("big").count() == 20

    client.sql("CREATE OR REPLACE TEMP VIEW big AS SELECT 1 AS x")
    assert client.table("big").collect() == [(1,)]
    assert client.table("bigger").count() == 19
    client.range(3).createOrReplaceTempView("all")
    assert client.table("all").count() == 3
    for dropped in ("bigger", "all"):
        client.catalog.dropTempView(dropped)
        with pytest.raises(AnalysisException):
            client.table(dropped).collect()
    client.sql("DROP VIEW big")
    with pytest.raises(AnalysisException):
        client.sql("SELECT * FROM big").collect()
    client.catalog.dropGlobalTempView("top")


@pytest.mark.more_connect
def test_a_write_reads_its_own_table_at_one_version(client: SparkSession, table: str) -> None:
    frame = client.read.format("delta").load(table)
    _append(client, table, 100, 105)
    frame.where("id >= 100").write.format("delta").mode("append").save(table)
    assert frame.where("id >= 100").count() == 10
    source = frame.where("id = 7").alias("s")
    merge = DeltaTable.forPath(client, table).alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdate(set={"s": F.expr("named_struct('f', -1L)")}).execute()
    assert _ids(frame.where("s.f = -1")) == [7]
    assert load_snapshot(client, table).version == 3


def test_not_null_columns_are_so_in_the_schema(client: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    client.sql(f"CREATE TABLE {table} (id BIGINT NOT NULL, name STRING)")
    frame = client.table(table)
    assert [field.nullable for field in frame.schema] == [False, True]
    client.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    assert frame.collect() == [(1, "a")]
    client.sql(f"CREATE OR REPLACE TABLE {table} (name STRING)")
    with pytest.raises(DeltaError, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
        frame.count()


@pytest.mark.more_connect
def test_not_null_columns_stay_so_in_what_is_made_of_them(
    client: SparkSession, tmp_path: Path
) -> None:
    types = (
        "TINYINT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP",
        "TIMESTAMP_NTZ", "DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(10, 2)", "ARRAY<INT>",
        "MAP<STRING, DATE>", "STRUCT<a: INT NOT NULL, b: STRUCT<c: INT>>",
    )  # fmt: skip
    table = f"delta.`{tmp_path / 't'}`"
    columns = [f"c{number} {each} NOT NULL" for number, each in enumerate(types)]
    client.sql(f"CREATE TABLE {table} ({', '.join(columns)}, n INT)")
    schema = client.table(table).schema
    for frame in (
        client.table(table).where("n = 1").select("*"),
        client.sql(f"SELECT * FROM {table} WHERE n = 1"),
    ):
        assert frame.schema == schema
        assert [field.nullable for field in schema] == [False] * len(types) + [True]
        assert not schema["c15"].dataType["a"].nullable
        assert frame.collect() == []


def test_a_plan_that_is_sent_otherwise_has_no_rows(
    client: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = client.read.format("delta").load(table)
    assert len(frame.collect()) == 100
    monkeypatch.setattr(connect_late_rows, "_late_rows", {})
    with pytest.raises(Exception, match="run it in the Python process that made the DataFrame"):
        frame.collect()
