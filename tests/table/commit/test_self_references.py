"""Rows that are made from rows of the table they are written to.

PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    read_delta,
    write_checkpoint,
    write_delta,
)
from sparkdelta.exceptions import ConcurrentAppendException, ConcurrentDeleteReadException
from sparkdelta.operations.merge import merge as merge_command
from sparkdelta.operations.write import write as write_command
from sparkdelta.table.scan.read_provenance import tables_read
from tests.support.distributed import distributed_scans


def numbers(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "k LONG").coalesce(1)


@pytest.fixture
def table(spark: SparkSession, table_path: str) -> str:
    write_delta(numbers(spark, 1), table_path)
    return table_path


def found(spark: SparkSession, table: str) -> list[int]:
    return sorted(row["k"] for row in read_delta(spark, table).collect())


def commit_info(table: str, version: int) -> dict[str, Any]:
    commit = Path(table, "_delta_log", f"{version:020d}.json")
    (info,) = (
        json.loads(line)["commitInfo"]
        for line in commit.read_text().splitlines()
        if "commitInfo" in json.loads(line)
    )
    return dict(info)


def absent(spark: SparkSession, table: str) -> DataFrame:
    """The rows that a table lacks, to be inserted."""
    return numbers(spark, 1, 2).join(read_delta(spark, table), "k", "left_anti")


def test_an_insert_of_what_is_absent(spark: SparkSession, table: str) -> None:
    """An insert of absent rows fails if another writer has inserted them since."""
    both = absent(spark, table), absent(spark, table)
    write_delta(both[0], table, mode="append")
    assert found(spark, table) == [1, 2]
    assert commit_info(table, 1)["isBlindAppend"] is False
    with pytest.raises(ConcurrentAppendException):
        write_delta(both[1], table, mode="append")
    assert found(spark, table) == [1, 2]
    write_delta(absent(spark, table), table, mode="append")
    assert found(spark, table) == [1, 2]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_commit_that_comes_meanwhile(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    written = write_command._Attempt._written

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(write_command._Attempt, "_written", written)
        write_delta(numbers(spark, 7), table, mode="overwrite")
        return written(*arguments)

    monkeypatch.setattr(write_command._Attempt, "_written", late)
    with pytest.raises((ConcurrentAppendException, ConcurrentDeleteReadException)):
        write_delta(absent(spark, table), table, mode=mode)
    assert found(spark, table) == [7]


def test_partitions_that_are_replaced(spark: SparkSession, table_path: str) -> None:
    """A write fails if the partition that its rows were computed from has been replaced since."""
    rows = spark.sql("SELECT * FROM VALUES ('source', 1), ('sum', 0) AS t (p, v)")
    write_delta(rows, table_path, partition_by=["p"])
    source = read_delta(spark, table_path, where="p = 'source'")
    summed = source.groupBy().sum("v").selectExpr("'sum' AS p", "CAST(`sum(v)` AS INT) AS v")
    new = spark.sql("SELECT 'source' AS p, 100 AS v")
    write_delta(new, table_path, mode="overwrite", replace_where="p = 'source'")
    with pytest.raises((ConcurrentAppendException, ConcurrentDeleteReadException)):
        write_delta(summed, table_path, mode="overwrite", partition_overwrite_mode="dynamic")


def test_a_table_that_is_written_from_itself(spark: SparkSession, table: str) -> None:
    doubled = read_delta(spark, table).selectExpr("k * 2 AS k")
    write_delta(doubled, table, mode="overwrite")
    assert found(spark, table) == [2]


@pytest.mark.full
def test_a_merge_of_rows_that_are_absent(spark: SparkSession, table: str) -> None:
    """Two merges of the same source would insert its rows twice."""
    source = absent(spark, table).alias("s")
    target = DeltaTable.forPath(spark, table).alias("t")
    target.merge(source, "t.k = s.k").whenNotMatchedInsertAll().execute()
    assert found(spark, table) == [1, 2]
    with pytest.raises(ConcurrentAppendException):
        target.merge(source, "false").whenNotMatchedInsertAll().execute()
    assert found(spark, table) == [1, 2]


def test_a_merge_that_would_find_nothing_to_do(spark: SparkSession, table: str) -> None:
    """Its source lacks the rows that were committed since, and matches none of the others."""
    source = read_delta(spark, table).selectExpr("k + 1 AS k").alias("s")
    write_delta(numbers(spark, 3), table, mode="append")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k")
    with pytest.raises(ConcurrentAppendException):
        merge.whenMatchedDelete().execute()


def _merge(rows: DataFrame, table: str) -> None:
    target = DeltaTable.forPath(rows.sparkSession, table).alias("t")
    target.merge(rows.alias("s"), "t.k = s.k").whenNotMatchedInsertAll().execute()


def _append(rows: DataFrame, table: str) -> None:
    write_delta(rows, table, mode="append")


def _replace(rows: DataFrame, table: str) -> None:
    write_delta(rows, table, mode="overwrite", replace_where="k < 9")


@pytest.mark.parametrize("write", [_merge, _replace, _append])
def test_earlier_appends_where_appends_are_no_conflicts(
    spark: SparkSession, table: str, write: Callable[[DataFrame, str], None]
) -> None:
    """PROTOCOL.md#table-properties: delta.isolationLevel is about concurrent commits alone."""
    alter_table(spark, table).set_properties({"delta.isolationLevel": "WriteSerializable"})
    rows = absent(spark, table)
    write_delta(numbers(spark, 2), table, mode="append")
    with pytest.raises(ConcurrentAppendException):
        write(rows, table)
    assert found(spark, table) == [1, 2]


@pytest.mark.full
def test_a_merge_during_which_another_commits(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum that the merge writes is of a version that is not current any more."""
    commit = merge_command.commit_delta

    def late(*arguments: Any) -> Any:
        write_delta(numbers(spark, 7), table, mode="append")
        return commit(*arguments)

    monkeypatch.setattr(merge_command, "commit_delta", late)
    summed = read_delta(spark, table).groupBy().sum("k").selectExpr("10 + `sum(k)` AS k")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(summed.alias("s"), "t.k = 1")
    with pytest.raises(ConcurrentAppendException):
        merge.whenMatchedUpdateAll().execute()
    assert found(spark, table) == [1, 7]


def test_an_older_version_is_no_read(spark: SparkSession, table: str) -> None:
    """A read of a version by number does not conflict with later commits: it may restore it."""
    write_delta(numbers(spark, 2), table, mode="append")
    before = read_delta(spark, table, version=0)
    write_delta(numbers(spark, 3), table, mode="append")
    write_delta(before, table, mode="overwrite")
    assert found(spark, table) == [1]


def _subquery(spark: SparkSession, table: str) -> DataFrame:
    read_delta(spark, table).createOrReplaceTempView("own")
    return spark.sql("SELECT id AS k FROM range(3) WHERE id NOT IN (SELECT k FROM own)")


def _cached(spark: SparkSession, table: str) -> DataFrame:
    rows = read_delta(spark, table).cache()
    rows.count()
    return rows.filter("k > 5")


def _by_executors(spark: SparkSession, table: str) -> DataFrame:
    write_checkpoint(spark, table)
    with distributed_scans():
        return read_delta(spark, table)


def _refreshed(spark: SparkSession, table: str) -> DataFrame:
    old = load_snapshot(spark, table, version=0)
    write_delta(numbers(spark, 5), table, mode="append")
    return old.refresh().scan().to_df()


@pytest.mark.parametrize(
    ("made", "version"),
    [
        (absent, 0), (_subquery, 0), (_cached, 0), (_by_executors, 0), (_refreshed, 1),
        (lambda spark, table: read_delta(spark, table).union(numbers(spark, 4)), 0),
        (lambda spark, table: read_delta(spark, table, version=0), None),
        (lambda spark, _: numbers(spark, 4), None),
    ],
)  # fmt: skip
def test_a_frame_depends_on_the_version_it_reads(
    spark: SparkSession,
    table: str,
    made: Callable[[SparkSession, str], DataFrame],
    version: int | None,
) -> None:
    rows = made(spark, table)
    root = load_snapshot(spark, table).path
    with tables_read(rows) as read:
        assert read.version_of(root, 7) == version
        assert read.version_of(f"{root}2", 7) is None
    spark.catalog.clearCache()
