"""The Spark jobs of DELETE, UPDATE and MERGE, and what they read and shuffle."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, write_delta
from sparkdelta.storage import hadoop
from sparkdelta.table.staging import Staging
from tests.support.settings import settings
from tests.support.spark_jobs import counted_jobs, plan, shuffled_columns

NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """The frames that are written: staged rows, positions and data files."""
    frames: list[DataFrame] = []
    write, stage = hadoop.write_parquet, Staging.write_parquet

    def data(rows: DataFrame, *arguments: Any, **options: Any) -> None:
        frames.append(rows)
        write(rows, *arguments, **options)

    def staged(self: Staging, rows: DataFrame, *arguments: Any) -> Any:
        frames.append(rows)
        return stage(self, rows, *arguments)

    monkeypatch.setattr(hadoop, "write_parquet", data)
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
    spark: SparkSession, table_path: str, written: list[DataFrame], has_vectors: bool
) -> None:
    """The condition's columns are read once to find the rows; nothing is shuffled."""
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


def test_merge(
    spark: SparkSession, table_path: str, written: list[DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and positions are joined with the source; the payload of a row that stays is neither
    read to find it nor shuffled, even if the source is too large to be sent to all executors.
    """
    monkeypatch.setattr("sparkdelta.table.write.merge_matching.MAX_BROADCAST_BYTES", 0)
    own = table(spark, table_path, has_vectors=True)
    source = spark.range(0, 50, 10).selectExpr("id", "id AS n", "'new' AS payload")
    merge = own.alias("t").merge(source.alias("s"), F.col("t.id") == F.col("s.id"))
    written.clear()
    with counted_jobs(spark) as jobs:
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert jobs.count <= 20
    _, pairs, _, data = written
    assert len(scans(pairs)) == 1
    assert "payload" not in scans(pairs)[0]
    for frame in (pairs, data):
        for columns in shuffled_columns(frame):
            assert not [name for name in columns if "payload" in name and "source" not in name]
