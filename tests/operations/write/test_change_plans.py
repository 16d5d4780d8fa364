"""The Spark jobs of DELETE, UPDATE and MERGE, and what they read and shuffle."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, read_delta, write_delta
from sparkdelta.base.spark.classic_engine import ClassicEngine
from sparkdelta.operations.merge.merge_keys import MAX_ROW_RANGES
from sparkdelta.table.scan import native_scan
from sparkdelta.table.snapshot.staging import Staging
from tests.support.settings import settings
from tests.support.spark_jobs import counted_jobs, plan, shuffled_columns, shuffled_rows

pytestmark = pytest.mark.classic("looks into plans")

NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """The frames that are written: staged rows, positions and data files."""
    frames: list[DataFrame] = []
    write, stage = ClassicEngine.write_parquet, Staging.write_parquet

    def data(engine: ClassicEngine, rows: DataFrame, *arguments: Any, **options: Any) -> None:
        frames.append(rows)
        write(engine, rows, *arguments, **options)

    def staged(self: Staging, rows: DataFrame, *arguments: Any) -> Any:
        frames.append(rows)
        return stage(self, rows, *arguments)

    monkeypatch.setattr(ClassicEngine, "write_parquet", data)
    monkeypatch.setattr(Staging, "write_parquet", staged)
    return frames


def table(spark: SparkSession, path: str, *, has_vectors: bool) -> DeltaTable:
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 4 AS n", "uuid() AS payload")
    write_delta(rows, path, properties={"delta.enableDeletionVectors": str(has_vectors).lower()})
    return DeltaTable.forPath(spark, path)


def scans(frame: DataFrame) -> list[str]:
    """The scans of data files in a plan."""
    return [node.text for node in plan(frame) if "FileScan" in node.text and "id:" in node.text]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_delete_and_update(
    spark: SparkSession,
    table_path: str,
    written: list[DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    has_vectors: bool,
) -> None:
    """The condition's columns are read once to find the rows; nothing is shuffled."""
    monkeypatch.setattr("sparkdelta.table.log.local_add_files.LocalAddFiles.num_rows", None)
    own = table(spark, table_path, has_vectors=has_vectors)
    written.clear()
    with settings(spark, NO_BROADCAST), counted_jobs(spark) as jobs:
        own.delete("id % 10 = 3")
    assert jobs.count <= (6 if has_vectors else 11)
    assert len(written) == (1 if has_vectors else 2)
    assert len(scans(written[0])) == 1
    assert "payload" not in scans(written[0])[0]
    found = list(written)
    written.clear()
    with settings(spark, NO_BROADCAST), counted_jobs(spark) as jobs:
        own.update("id % 10 = 4", {"payload": "upper(payload)"})
    assert jobs.count <= 18
    assert "payload" not in scans(written[0])[0]
    assert len(scans(written[1])) == (1 if has_vectors else 2)  # new rows, and those that stay
    for frame in found + written:
        assert shuffled_columns(frame) == []


def test_positions_in_few_rows_are_read_in_one_job(
    spark: SparkSession, table_path: str, written: list[DataFrame]
) -> None:
    own = table(spark, table_path, has_vectors=True)
    written.clear()
    with counted_jobs(spark) as jobs:
        own.delete("id % 10 = 3")
    assert (jobs.count, written) == (1, [])


@pytest.mark.full
def test_merge(
    spark: SparkSession, table_path: str, written: list[DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and positions are joined with the source; the payload of a row that stays is neither
    read to find it nor shuffled, even if the source is too large to be sent to all executors.
    """
    monkeypatch.setattr("sparkdelta.operations.merge.merge_sides.MAX_BROADCAST_BYTES", 0)
    own = table(spark, table_path, has_vectors=True)
    source = spark.range(0, 300, 3).selectExpr("id", "id AS n", "'new' AS payload")
    merge = own.alias("t").merge(source.alias("s"), F.col("t.id") == F.col("s.id"))
    written.clear()
    with counted_jobs(spark) as jobs:
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert jobs.count <= 20
    _, pairs, data = written
    assert len(scans(pairs)) == 1
    assert "payload" not in scans(pairs)[0]
    for node in plan(pairs):  # not all ranges of keys that choose files
        assert node.text.count("<=") <= MAX_ROW_RANGES + 1
    assert any("<=" in node.text for node in plan(pairs))
    for frame in (pairs, data):
        for columns in shuffled_columns(frame):
            assert not [name for name in columns if "payload" in name and "source" not in name]


@pytest.mark.full
@pytest.mark.parametrize("changes", [False, True])
def test_a_small_merge(
    spark: SparkSession,
    table_path: str,
    written: list[DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    changes: bool,
) -> None:
    """A source that every executor gets is joined with whole rows of the touched files by the
    condition of the merge, however many rows these have; or by their positions if the condition
    depends on the current time.
    """
    if not changes:
        monkeypatch.setattr("sparkdelta.operations.merge.merge_output.MAX_COMPARED_ROWS", 0)
    own = table(spark, table_path, has_vectors=True)
    source = spark.range(0, 12, 2).selectExpr("id", "-id AS n")
    condition = "t.id = s.id AND t.id < 8" + (" AND now() > '2020-01-01'" if changes else "")
    merge = own.alias("t").merge(source.alias("s"), condition)
    written.clear()
    with counted_jobs(spark) as jobs:
        merge.whenMatchedUpdate(set={"n": "s.n"}).execute()
    assert jobs.count <= (7 if changes else 6)
    _, pairs, data = written
    joins = [sum("Join" in node.text for node in plan(frame)) for frame in (pairs, data)]
    assert joins == [1, 2 if changes else 1]
    found = {(row["id"], row["n"]) for row in read_delta(spark, table_path).collect()}
    assert found == {(n, -n if n in range(0, 8, 2) else n % 4) for n in range(40)}


@pytest.mark.full
@pytest.mark.parametrize("large", ["rows", "bitmaps"])
def test_a_large_merge(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, large: str
) -> None:
    """A merge of more rows than are sent to all executors shuffles the rows that change, and none
    that stays: neither one of an earlier vector nor one of a file that is written again.
    """
    monkeypatch.setattr("sparkdelta.operations.merge.merge_output.MAX_BROADCAST_ROWS", 0)
    if large == "bitmaps":
        monkeypatch.setattr(native_scan, "DELETION_VECTOR_BROADCAST_BYTES", -1)
    own = table(spark, table_path, has_vectors=True)
    own.delete("id = 1")
    source = spark.range(0, 14, 2).selectExpr("id", "-id AS n")
    shuffled: dict[str, int] = {}
    write = ClassicEngine.write_parquet

    def observed(engine: ClassicEngine, rows: DataFrame, *arguments: Any, **options: Any) -> None:
        if "payload" in rows.columns:
            rows.collect()
            for columns, count in shuffled_rows(rows):
                if any("payload" in name for name in columns):
                    shuffled[",".join(columns)] = count
        write(engine, rows, *arguments, **options)

    monkeypatch.setattr(ClassicEngine, "write_parquet", observed)
    merge = own.alias("t").merge(source.alias("s"), "t.id = s.id")
    with settings(spark, NO_BROADCAST):
        merge.whenMatchedUpdate("s.id < 12", {"n": "s.n"}).whenMatchedDelete().execute()
    assert sorted(shuffled.values()) == [6, 7], shuffled  # updated rows, and with the deleted one
    found = {(row["id"], row["n"]) for row in read_delta(spark, table_path).collect()}
    expected = {n: n % 4 for n in range(40) if n not in (1, 12)} | {n: -n for n in range(0, 12, 2)}
    assert found == {*expected.items()}


@pytest.mark.slow
def test_large_bitmaps(
    spark: SparkSession, table_path: str, written: list[DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is shuffled because earlier deletion vectors are too large for every executor."""
    own = table(spark, table_path, has_vectors=True)
    own.delete("id % 10 = 3")
    monkeypatch.setattr(native_scan, "DELETION_VECTOR_BROADCAST_BYTES", -1)
    written.clear()
    with settings(spark, NO_BROADCAST):
        own.update("id % 10 = 4", {"n": "n + 10"})
        source = spark.range(0, 50, 10).selectExpr("id", "-1L AS n")
        merge = own.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdate(set={"n": "s.n"}).execute()
    shuffled = {name for frame in written for names in shuffled_columns(frame) for name in names}
    assert not {"n", "payload"} & {name.partition("#")[0] for name in shuffled}
    monkeypatch.undo()
    found = {row["id"]: row["n"] for row in read_delta(spark, table_path).collect()}
    changed = {0: -1, 4: 10}
    kept = (n for n in range(40) if n % 10 != 3)
    assert found == {n: changed.get(n % 10, 0) + (n % 4 if n % 10 else 0) for n in kept}
