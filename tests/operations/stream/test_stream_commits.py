"""Tests that Python and Spark parse small commits into the same list of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, write_delta
from sparkdelta.operations.stream.indexed_files import file_list_columns
from sparkdelta.operations.stream.stream_commits import _parsed_files, _plain_files, added_files
from sparkdelta.table.listing.listing import list_log_files, open_log
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from tests.support.log_writer import write_commit

pytestmark = pytest.mark.classic("compares two ways on the driver")

ADD = {"partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True}


def commits_of(snapshot: Snapshot) -> CommitRange:
    files = list_log_files(open_log(snapshot.log.spark, snapshot.path, {}))
    commits = [file for file in files if file.name.endswith(".json")]
    return CommitRange.read(snapshot.log.reader, commits)


def test_files_are_those_that_spark_finds(spark: SparkSession, table: Path) -> None:
    """Partition values, vectors, removed files, absolute and encoded paths, missing values.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    rows = spark.range(0, 12, 1, 1).selectExpr("id", "id % 2 AS `a b`", "'ü %' AS s")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_delta(rows, str(table), partition_by=["a b", "s"], properties=properties)
    delta_table = DeltaTable.forPath(spark, str(table))
    delta_table.delete("id = 3")
    delta_table.delete("`a b` = 0")
    paths = ("x%20y.parquet", "s3://bucket/z.parquet", "/w.parquet", "file:///v.parquet")
    write_commit(table, 3, [{"add": {**ADD, "path": path}} for path in paths])
    write_commit(
        table,
        4,
        [
            {"remove": {"path": "u", "dataChange": True}},
            {"remove": {"path": "t", "dataChange": False}},
            {"add": {**ADD, "path": "r", "stats": "{}"}},
            {"txn": {"appId": "a", "version": 1}},
        ],
    )
    snapshot = open_snapshot(spark, str(table), version=2)
    commits, configuration = commits_of(snapshot), snapshot.configuration
    plain = _plain_files(commits, configuration)
    assert plain is not None
    parsed = _parsed_files(commits, file_list_columns(configuration, snapshot.path, None))
    assert {field.name: field.type for field in plain.schema} == {
        field.name: field.type for field in parsed.schema
    }
    for removed in (False, True):
        of_kind = [row for row in plain.to_pylist() if (row["removed"] is not None) == removed]
        expected = [row for row in parsed.to_pylist() if (row["removed"] is not None) == removed]
        names = ["version", "removed"] if removed else plain.schema.names
        assert [[row[name] for name in names] for row in of_kind] == [
            [row[name] for name in names] for row in expected
        ]


@pytest.mark.parametrize(
    "action",
    [
        {"add": {"path": "x", "dataChange": True, "size": "1"}},
        {"add": {"dataChange": True, "size": 1}},
        {"add": {"path": "x", "dataChange": True}},
        {"add": {**ADD, "path": "x", "deletionVector": {"storageType": "u", "cardinality": 1}}},
        {"remove": {"dataChange": True}},
        {"add": {"path": "x", "dataChange": True}, "remove": {"path": "x", "dataChange": True}},
        {"add": {"path": "é", "size": 1, "dataChange": True}},
    ],
    ids=[
        "another type",
        "no path",
        "no size",
        "no bytes of a vector",
        "no removed path",
        "two actions",
        "an escape",
    ],
)
@pytest.mark.every_case
def test_spark_decides_about_odd_lines(
    spark: SparkSession, table: Path, action: dict[str, object]
) -> None:
    write_delta(spark.range(1), str(table))
    write_commit(table, 1, [action])
    snapshot = open_snapshot(spark, str(table), version=0)
    assert _plain_files(commits_of(snapshot), snapshot.configuration) is None


def test_small_commits_take_no_query(spark: SparkSession, table: Path) -> None:
    write_delta(spark.range(1), str(table))
    snapshot = open_snapshot(spark, str(table))
    commits = commits_of(snapshot)
    files = added_files(commits, snapshot.configuration, None)
    assert files["index"].to_pylist() == [0]
    assert "lines" not in vars(commits)
    excluded = added_files(commits, snapshot.configuration, "parquet$")
    assert excluded["is_excluded"].to_pylist() == [True]
