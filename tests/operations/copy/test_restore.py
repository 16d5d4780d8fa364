"""RESTORE: rows, row ids, schema and marks of an earlier version; refusals and conflicts.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    read_changes,
    read_delta,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.exceptions import ConcurrentAppendException, InvalidArgumentError
from sparkdelta.operations.copy.restore import differing_files
from sparkdelta.table.commit import transaction
from sparkdelta.table.commit.transaction import Transaction
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import plan

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
ROW_ID_COLUMNS = ["_metadata.row_id", "_metadata.row_commit_version"]


def create(spark: SparkSession, path: str, properties: dict[str, str], **options: Any) -> None:
    """Thirty rows in three files, or in three of each partition."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id) AS `a-é.b`", "IF(id % 3 = 0, NULL, 'a b=%') AS part"
    )
    write_delta(rows, path, properties=properties, **options)


def stored(spark: SparkSession, path: str, *more: str, **options: Any) -> list[tuple[Any, ...]]:
    rows = read_delta(spark, path, columns=["id", "a-é.b", "part", *more], **options).collect()
    return sorted(map(tuple, rows), key=str)


def history(spark: SparkSession, path: str) -> dict[str, Any]:
    (row,) = DeltaTable.forPath(spark, path).history(1).collect()
    return dict(row.asDict(recursive=True))


@pytest.mark.parametrize(
    ("properties", "partition_by", "group"),
    [
        pytest.param({**VECTORS, **ROW_IDS}, None, None, id="vectors", marks=pytest.mark.slow),
        pytest.param({**VECTORS, **MAPPED, **ROW_IDS}, ["part"], "Parquet", id="all",
                     marks=pytest.mark.full),
        pytest.param({}, None, "plans", id="rewritten", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.full
def test_rows_are_those_of_then(
    spark: SparkSession,
    table_path: str,
    properties: dict[str, str],
    partition_by: Any,
    group: str | None,
) -> None:
    """PROTOCOL.md#add-file-and-remove-file: a file with another vector is another logical file."""
    create(spark, table_path, properties, partition_by=partition_by)
    table = DeltaTable.forPath(spark, table_path)
    more = ROW_ID_COLUMNS if "delta.enableRowTracking" in properties else []
    versions = [stored(spark, table_path, *more)]
    table.delete("id % 4 = 1")
    versions.append(stored(spark, table_path, *more))
    table.delete("id < 5 OR part = 'a b=%' AND id > 20")
    write_delta(spark.sql("SELECT 99L AS id, 1L AS `a-é.b`, 'é' AS part"), table_path,
                mode="append")  # fmt: skip
    with settings(spark, HOSTILE[group] if group else {}):
        (metrics,) = table.restoreToVersion(1).collect()
    assert stored(spark, table_path, *more) == versions[1]
    before, after = (load_snapshot(spark, table_path, version=v) for v in (3, 4))
    totals = after.live_file_totals().first()
    assert totals is not None
    assert metrics.num_of_files_after_restore == totals.num_files
    assert metrics.table_size_after_restore == totals.size_in_bytes
    keys = [
        {(row.path, row.deletionVector) for row in s.add_files().collect()} for s in (before, after)
    ]
    assert metrics.num_restored_files == len(keys[1] - keys[0]) > 0
    assert metrics.num_removed_files == len(keys[0] - keys[1]) > 0
    shown = history(spark, table_path)
    assert (shown["operation"], shown["operationParameters"]) == (
        "RESTORE", {"version": "1", "timestamp": None},
    )  # fmt: skip
    assert shown["operationMetrics"]["numRestoredFiles"] == str(metrics.num_restored_files)
    assert shown["operationMetrics"]["removedFilesSize"] == str(metrics.removed_files_size)
    table.restoreToVersion(0)
    assert stored(spark, table_path, *more) == versions[0]
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("is_enabled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_row_ids_are_those_of_before_they_were_dropped(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, is_enabled: bool
) -> None:
    """PROTOCOL.md#row-ids: a restored row has its row id, which no other row gets, whether its file
    has none now, has others, or was removed.
    """
    create(spark, table_path, {**ROW_IDS, "delta.enableChangeDataFeed": "true"})
    table = DeltaTable.forPath(spark, table_path)
    table.update("id % 20 < 2", {"part": "'new'"})  # other files, with the row ids of then
    before = stored(spark, table_path, *ROW_ID_COLUMNS)
    table.dropFeatureSupport("rowTracking")
    if is_enabled:
        alter_table(spark, table_path).set_properties(ROW_IDS)
        table.delete("id < 10")  # two files
    else:
        monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    (metrics,) = table.restoreToVersion(1).collect()
    assert (metrics.num_restored_files, metrics.num_removed_files) == (2 * is_enabled, 0)
    assert stored(spark, table_path, *ROW_ID_COLUMNS) == before
    version = load_snapshot(spark, table_path).version
    changes = read_changes(spark, table_path, start_version=version).collect()
    assert sorted(row["id"] for row in changes) == [*range(10 * is_enabled)]
    more = spark.sql("SELECT 99L AS id, 1L AS `a-é.b`, 'z' AS part")
    write_delta(more, table_path, mode="append")
    assert len({row[3] for row in stored(spark, table_path, *ROW_ID_COLUMNS)}) == 31
    files = load_snapshot(spark, table_path).add_files()
    assert not files.filter("baseRowId IS NULL OR defaultRowCommitVersion IS NULL").count()


@pytest.mark.full
def test_the_table_is_that_of_then(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#change-metadata: schema and properties go back, the protocol does not.

    PROTOCOL.md#identity-columns: values that were generated since are not generated again.
    """
    (
        DeltaTable.create(spark)
        .location(table_path)
        .addColumn("n", "LONG", generatedByDefaultAs=IdentityGenerator())
        .addColumn("s", "STRING")
        .property("delta.columnMapping.mode", "name")
        .clusterBy("s")
        .execute()
    )
    write_delta(spark.sql("SELECT 'a' AS s"), table_path, mode="append")
    then = load_snapshot(spark, table_path)
    alter_table(spark, table_path).add_columns("more INT")
    alter_table(spark, table_path).set_properties({**VECTORS, "user.key": "x"})
    alter_table(spark, table_path).cluster_by("n")
    write_delta(spark.sql("SELECT 'b' AS s, 1 AS more"), table_path, mode="append")
    now = load_snapshot(spark, table_path)
    DeltaTable.forPath(spark, table_path).restoreToVersion(then.version)
    restored = load_snapshot(spark, table_path)
    assert restored.schema.names == ["n", "s"]
    assert "user.key" not in restored.properties
    assert "deletionVectors" in (restored.protocol.writer_features or ())
    mapping = "delta.columnMapping.maxColumnId"
    assert restored.properties[mapping] == now.properties[mapping] == "3"
    assert restored.domain_metadata().collect() == then.domain_metadata().collect()
    write_delta(spark.sql("SELECT 'c' AS s"), table_path, mode="append")
    assert sorted(map(tuple, read_delta(spark, table_path).collect())) == [(1, "a"), (3, "c")]


def test_times_and_the_latest_version(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#writer-requirements-for-in-commit-timestamps: they stay, and go on."""
    create(spark, table_path, {})
    time.sleep(0.01)
    alter_table(spark, table_path).set_properties({"delta.enableInCommitTimestamps": "true"})
    table = DeltaTable.forPath(spark, table_path)
    assert table.restoreToVersion(1).collect() == []
    first = load_snapshot(spark, table_path, version=0).timestamp
    assert first is not None
    (metrics,) = table.restoreToTimestamp(first.isoformat()[:23] + "Z").collect()
    assert metrics.num_restored_files == metrics.num_removed_files == 0
    restored = load_snapshot(spark, table_path)
    assert restored.version == 2
    assert restored.properties["delta.inCommitTimestampEnablementVersion"] == "1"
    line = Path(table_path, "_delta_log", f"{2:020d}.json").read_text().splitlines()[0]
    assert json.loads(line)["commitInfo"]["inCommitTimestamp"]
    with raises("DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER", match="2000-01-01"):
        table.restoreToTimestamp("2000-01-01")
    with raises("DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", match="9999-01-01"):
        table.restoreToTimestamp("9999-01-01")


@pytest.mark.full
def test_refusals(spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(spark, table_path, {})
    table = DeltaTable.forPath(spark, table_path)
    for version in (7, -1):
        with raises("DELTA_CANNOT_RESTORE_TABLE_VERSION", match=r"0 to 0"):
            table.restoreToVersion(version)
    for wrong in ("1", None, True):
        with pytest.raises(InvalidArgumentError, match="version"):
            table.restoreToVersion(wrong)  # type: ignore[arg-type]
    table.delete("id < 20")
    commit = Transaction.commit

    def after_another(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.undo()
        write_delta(spark.range(1).withColumns({"a-é.b": F.lit(1), "part": F.lit("z")}),
                    table_path, mode="append")  # fmt: skip
        return commit(self, *arguments)

    monkeypatch.setattr(transaction.Transaction, "commit", after_another)
    with pytest.raises(ConcurrentAppendException):
        table.restoreToVersion(0)
    (gone, *_) = [row.path for row in load_snapshot(spark, table_path).remove_files().collect()]
    Path(table_path, gone).unlink()
    with raises("DELTA_CANNOT_RESTORE_FILES", match="is missing"):
        table.restoreToVersion(0)
    assert load_snapshot(spark, table_path).version == 2
    alter_table(spark, table_path).set_properties({"delta.appendOnly": "true"})
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        table.restoreToVersion(2)


@pytest.mark.slow
def test_changes_and_large_commits(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#add-cdc-file: changes follow from adds and removes with dataChange."""
    create(spark, table_path, {**VECTORS, **ROW_IDS, "delta.enableChangeDataFeed": "true"})
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id % 4 = 1")
    write_checkpoint(spark, table_path)
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    table.restoreToVersion(0)
    changes = read_changes(spark, table_path, start_version=2)
    found = sorted((row["id"], row["_change_type"]) for row in changes.collect())
    assert found == [(n, "insert") for n in range(1, 30, 4)]
    assert verify(spark, table_path).is_clean


@pytest.mark.classic("looks into plans")
@pytest.mark.full
def test_only_files_of_the_commits_between_are_compared(
    spark: SparkSession, table_path: str
) -> None:
    """The performance contract: each version is read once, and not all its files are shuffled."""
    create(spark, table_path, VECTORS)
    write_checkpoint(spark, table_path)
    DeltaTable.forPath(spark, table_path).delete("id = 1")
    now, then = load_snapshot(spark, table_path), load_snapshot(spark, table_path, version=0)
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        nodes = plan(differing_files(now, then))
    read = [node for node in nodes if node.text.startswith("FileScan parquet")]
    assert len(read) == 2
    for node in read:
        below_join = node.above[: node.above.index("BroadcastHashJoin")]
        assert "Exchange" not in below_join


@pytest.mark.slow
def test_a_log_without_the_commits_between(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#delta-log-entries: a checkpoint stands for the commits before it."""
    create(spark, table_path, VECTORS)
    write_checkpoint(spark, table_path)
    rows = stored(spark, table_path)
    table = DeltaTable.forPath(spark, table_path)
    for where in ("id = 1", "id < 20"):
        table.delete(where)
    write_checkpoint(spark, table_path)
    table.delete("id = 22")
    (Path(table_path) / "_delta_log" / f"{1:020}.json").unlink()
    (metrics,) = table.restoreToVersion(0).collect()
    assert (metrics.num_restored_files, metrics.num_removed_files) == (3, 1)
    assert stored(spark, table_path) == rows
