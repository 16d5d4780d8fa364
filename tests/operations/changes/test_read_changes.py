"""Reads of changes, compared with the changes that made the table.

PROTOCOL.md#add-cdc-file, PROTOCOL.md#change-data-files, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, alter_table, read_changes, write_delta
from sparkdelta.base.protocol.change_types import CHANGE_COLUMNS
from sparkdelta.exceptions import ColumnNotFoundError
from sparkdelta.table.log.commit_timestamp_rules import utc_datetime
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import counted_jobs

CHANGES = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
Found = Counter[tuple[Any, ...]]


def changes(frame: DataFrame) -> Found:
    return Counter(tuple(row) for row in frame.drop("_commit_timestamp").collect())


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Found]:
    """A table with a version of each kind, and its changes: (id, n, part, kind, version)."""
    path = str(tmp_path_factory.mktemp("changes") / "a table")
    rows = spark.range(0, 20, 1, 2).selectExpr("id", "id % 3 AS `n.é`", "id % 2 AS part")
    write_delta(
        rows,
        path,
        partition_by=["part"],
        properties={**CHANGES, **VECTORS, "delta.columnMapping.mode": "name"},
    )
    table = DeltaTable.forPath(spark, path)
    live = {i: (i, i % 3, i % 2) for i in range(20)}
    found = Counter((*row, "insert", 0) for row in live.values())

    table.delete("id IN (3, 4)")
    found.update((*live.pop(i), "delete", 1) for i in (3, 4))
    table.update("id < 7", {"`n.é`": "`n.é` + 100"})
    for i in [i for i in live if i < 7]:
        new = (i, live[i][1] + 100, i % 2)
        found.update([(*live[i], "update_preimage", 2), (*new, "update_postimage", 2)])
        live[i] = new
    write_delta(spark.sql("SELECT 51L AS id, NULL AS `n.é`, 1L AS part"), path, mode="append")
    live[51] = (51, None, 1)
    found[51, None, 1, "insert", 3] += 1
    table.delete("part = 0")
    found.update((*live.pop(i), "delete", 4) for i in list(live) if i % 2 == 0)
    return path, found


def between(found: Found, start: int, end: int) -> Found:
    return Counter({row: count for row, count in found.items() if start <= row[-1] <= end})


@pytest.mark.classic("counts Spark's jobs")
def test_all_versions(spark: SparkSession, history: tuple[str, Found]) -> None:
    """PROTOCOL.md#change-data-files: change data files if a version has some, else whole files and
    the rows that deletion vectors differ in.
    """
    path, found = history
    with counted_jobs(spark) as jobs:
        frame = read_changes(spark, path, start_version=0)
    assert jobs.count == 2  # facts about the commits, and files
    assert frame.columns == ["id", "n.é", "part", *CHANGE_COLUMNS]
    assert changes(frame) == found
    logs = sorted(Path(path, "_delta_log").glob("0*.json"))
    assert any('"cdc"' in log.read_text() for log in logs)
    times = {
        row[0]: row[1]
        for row in frame.select("_commit_version", F.unix_millis("_commit_timestamp"))
        .distinct()
        .collect()
    }
    assert times == {n: log.stat().st_mtime_ns // 1_000_000 for n, log in enumerate(logs)}


@pytest.mark.full
@pytest.mark.parametrize(("start", "end"), [(1, 1), (0, 2), (2, 3), (3, 4), (4, 4)])
def test_ranges(spark: SparkSession, history: tuple[str, Found], start: int, end: int) -> None:
    path, found = history
    rows = read_changes(spark, path, start_version=start, end_version=end)
    assert changes(rows) == between(found, start, end)


@pytest.mark.full
def test_condition_and_columns(spark: SparkSession, history: tuple[str, Found]) -> None:
    """Partition values leave out files, and the condition may name the columns of changes."""
    path, found = history
    where = "part = 1 AND _change_type != 'insert' AND _commit_version < 4"
    frame = read_changes(
        spark, path, start_version=0, where=where, columns=["_commit_version", "id", "_change_type"]
    )
    assert all("part=0" not in file for file in frame.inputFiles())
    expected = [row for row in found if row[2] == 1 and row[3] != "insert" and row[4] < 4]
    assert sorted(map(tuple, frame.collect())) == sorted((r[4], r[0], r[3]) for r in expected)
    with pytest.raises(ColumnNotFoundError):
        read_changes(spark, path, start_version=0, columns=["_change_types"])


@pytest.mark.classic("counts Spark's jobs")
@pytest.mark.slow
def test_executors_read_the_commits(spark: SparkSession, history: tuple[str, Found]) -> None:
    """The number of jobs does not depend on that of the commits."""
    path, found = history
    counts = []
    with patch("sparkdelta.table.listing.line_reader.DRIVER_LOG_BYTES", 1):
        for end in (1, 4):
            with counted_jobs(spark) as jobs:
                frame = read_changes(spark, path, start_version=0, end_version=end)
            assert changes(frame) == between(found, 0, end)
            counts.append(jobs.count)
    assert counts[0] == counts[1]


@pytest.mark.full
@pytest.mark.parametrize("name", [*HOSTILE])
def test_executors_read_the_files(
    spark: SparkSession, history: tuple[str, Found], name: str
) -> None:
    """Executors read the files of a long list, under settings that could change the result."""
    path, found = history
    with settings(spark, HOSTILE[name]):
        frame = read_changes(spark, path, start_version=1, max_driver_files=0)
        assert changes(frame) == between(found, 1, 4)


@pytest.mark.slow
def test_rows_that_are_back(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#deletion-vectors: a row that the removed vector has and the added one has not is
    inserted; the condition of the reader is never evaluated on other rows.
    """
    path = str(tmp_path / "t")
    write_delta(spark.range(0, 10, 1, 1), path, properties={**CHANGES, **VECTORS})
    DeltaTable.forPath(spark, path).delete("id IN (2, 5)")
    log = Path(path, "_delta_log")
    actions = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    (remove,) = (action["remove"] for action in actions if "remove" in action)
    back = [
        {"add": {**add, "deletionVector": None}},
        {"remove": {**remove, "deletionVector": add["deletionVector"]}},
    ]
    (log / f"{2:020d}.json").write_text("\n".join(map(json.dumps, back)))
    expected = {(i, "insert", 0) for i in range(10)}
    expected |= {(i, kind, v) for i in (2, 5) for kind, v in (("delete", 1), ("insert", 2))}
    frame = read_changes(spark, path, start_version=0)
    assert changes(frame) == Counter(expected)
    assert sum(file.endswith(".parquet") for file in frame.inputFiles()) == 1
    fails = "IF(id IN (2, 5), TRUE, raise_error('evaluated') IS NULL)"
    few = read_changes(spark, path, start_version=1, where=fails)
    assert changes(few) == Counter(row for row in expected if row[2] > 0)


@pytest.mark.full
def test_versions_without_a_change(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#add-file-and-remove-file: `dataChange` is false where rows only move; the switch
    of the property is the first version that can be read.
    """
    path = str(tmp_path / "t")
    write_delta(spark.range(3), path)
    alter_table(spark, path).set_properties(CHANGES)
    write_delta(spark.range(3), path, mode="overwrite", data_change=False)
    assert changes(read_changes(spark, path, start_version=1)) == Counter()
    with raises("DELTA_MISSING_CHANGE_DATA") as refused:
        read_changes(spark, path, start_version=0)
    assert refused.value.version == 0
    alter_table(spark, path).unset_properties(list(CHANGES))
    with raises("DELTA_MISSING_CHANGE_DATA") as refused:
        read_changes(spark, path, start_version=1)
    assert refused.value.version == 3
    assert changes(read_changes(spark, path, start_version=1, end_version=2)) == Counter()


@pytest.mark.full
def test_changed_schemas(spark: SparkSession, tmp_path: Path) -> None:
    """Columns may be added; with mapped columns, the end of the range has the schema."""
    path = str(tmp_path / "t")
    write_delta(spark.range(1), path, properties={**CHANGES, "delta.columnMapping.mode": "name"})
    rows = spark.sql("SELECT 1L AS id, 'x' AS s")
    write_delta(rows, path, mode="append", merge_schema=True)
    alter_table(spark, path).rename_column("s", "t")
    assert changes(read_changes(spark, path, start_version=0, end_version=1)) == Counter(
        [(0, None, "insert", 0), (1, "x", "insert", 1)]
    )
    assert read_changes(spark, path, start_version=2).columns[:2] == ["id", "t"]
    with raises("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE") as refused:
        read_changes(spark, path, start_version=0)
    assert (refused.value.version, refused.value.schema_version) == (1, 2)
    with raises("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"):
        read_changes(spark, path, start_version=1)


@pytest.mark.full
def test_column_mapping_that_comes_or_goes(spark: SparkSession, table_path: str) -> None:
    """Files from before have the names of columns, or names that no column has any more.

    PROTOCOL.md#column-mapping
    """
    write_delta(spark.range(1), table_path, properties=CHANGES)
    table = alter_table(spark, table_path)
    table.set_properties({"delta.columnMapping.mode": "name"})
    write_delta(spark.range(1, 2), table_path, mode="append")
    expected = Counter([(0, "insert", 0), (1, "insert", 2)])
    assert changes(read_changes(spark, table_path, start_version=0)) == expected
    table.rename_column("id", "n")
    with raises("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"):
        read_changes(spark, table_path, start_version=0)
    table.set_properties({"delta.columnMapping.mode": "none"})
    for is_net in (False, True):
        with raises("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"):
            read_changes(spark, table_path, start_version=3 + is_net, net=is_net)
    assert read_changes(spark, table_path, start_version=3, end_version=3).isEmpty()


def test_a_remove_without_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#add-file-and-remove-file: they are optional in a remove."""
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT 1L AS id, 'x' AS p")
    write_delta(rows, path, partition_by=["p"], properties=CHANGES)
    DeltaTable.forPath(spark, path).delete()
    commit = Path(path, "_delta_log", f"{1:020d}.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        action.get("remove", {}).pop("partitionValues", None)
    commit.write_text("\n".join(map(json.dumps, actions)))
    with raises("DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA"):
        read_changes(spark, path, start_version=1)


@pytest.mark.slow
def test_merges_that_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark's MERGE may write files again; its metrics say that no row changed."""
    path = tmp_path / "t"
    write_delta(spark.range(0, 3, 1, 1), str(path), properties=CHANGES)
    lines = Path(path, "_delta_log", f"{0:020d}.json").read_text().splitlines()
    (add,) = (action["add"] for action in map(json.loads, lines) if "add" in action)
    metrics = {f"numTargetRows{what}": "0" for what in ("Inserted", "Updated", "Deleted")}
    for version, count in ((1, "0"), (2, "1")):
        info = {
            "operation": "MERGE",
            "operationMetrics": {**metrics, "numTargetRowsUpdated": count},
        }
        removal = {"path": add["path"], "dataChange": True, "partitionValues": {}, "size": 1}
        write_commit(path, version, [{"commitInfo": info}, {"remove": removal}])
    found = changes(read_changes(spark, str(path), start_version=1))
    assert found == Counter((i, "delete", 2) for i in range(3))


def test_in_commit_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#in-commit-timestamps: they are the commits' times, and bounds are compared with
    them.
    """
    path = tmp_path / "t"
    properties = {**CHANGES, "delta.enableInCommitTimestamps": "true"}
    write_delta(spark.range(1), str(path), properties=properties)
    write_delta(spark.range(1), str(path), mode="append")
    logs = sorted(Path(path, "_delta_log").glob("0*.json"))
    for log in logs:
        os.utime(log, (1, 1))
    infos = [json.loads(log.read_text().splitlines()[0])["commitInfo"] for log in logs]
    times = [info["inCommitTimestamp"] for info in infos]
    found = read_changes(spark, str(path), start_timestamp=utc_datetime(times[0] + 1))
    shown = found.select("_commit_version", F.unix_millis("_commit_timestamp")).collect()
    assert [tuple(row) for row in shown] == [(1, times[1])]
