"""DELETE, UPDATE and MERGE of rows that a concurrent OPTIMIZE moves to other files: both commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    optimize,
    read_changes,
    read_delta,
    verify,
    write_delta,
)
from sparkdelta.exceptions import ConcurrentAppendException
from sparkdelta.table.commit import spark_conflict_detection
from sparkdelta.table.commit.transaction import Transaction
from tests.support.unreferenced import unreferenced

VECTORS = {"delta.enableDeletionVectors": "true"}
ALL = {
    **VECTORS,
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
}
ROWS = 24


def create(spark: SparkSession, path: str, properties: dict[str, str]) -> DeltaTable:
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 2 AS part", "0L AS v")
    write_delta(rows, path, properties=properties, partition_by=["part"])
    return DeltaTable.forPath(spark, path)


def meanwhile(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> None:
    """Let each of the others commit before one of the next commits."""
    commit, left = Transaction.commit, list(others)

    def after_another(self: Transaction, *arguments: Any) -> Any:
        if left:
            other = left.pop(0)
            with monkeypatch.context() as patched:
                patched.setattr(Transaction, "commit", commit)
                other()
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_another)


def stored(spark: SparkSession, path: str, *more: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, read_delta(spark, path, columns=["id", "v", *more]).collect()))


def upsert(spark: SparkSession, table: DeltaTable) -> None:
    source = spark.sql("SELECT 2L AS id, 0L AS part, 7L AS v UNION ALL SELECT 99L, 1L, 7L")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()


CHANGES: dict[str, tuple[Callable[[SparkSession, DeltaTable], Any], dict[int, int | None]]] = {
    "delete": (lambda _, t: t.delete("id IN (2, 3)"), {2: None, 3: None}),
    "update": (lambda _, t: t.update("id IN (2, 3)", {"v": "v + 5"}), {2: 5, 3: 5}),
    "merge": (upsert, {2: 7, 99: 7}),
    "delete all": (lambda _, t: t.delete(), dict.fromkeys(range(ROWS))),
    "delete part": (lambda _, t: t.delete("part = 1"), dict.fromkeys(range(1, ROWS, 2))),
}


def expected(changed: dict[int, int | None]) -> list[tuple[int, int]]:
    after = {**dict.fromkeys(range(ROWS), 0), **changed}
    return sorted((key, v) for key, v in after.items() if v is not None)


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("delete", ALL),
        pytest.param("delete", {}, marks=pytest.mark.full),
        ("update", ALL),
        pytest.param("update", {}, marks=pytest.mark.full),
        ("merge", ALL),
        pytest.param("merge", {}, marks=pytest.mark.full),
        pytest.param("delete all", VECTORS, marks=pytest.mark.full),
        pytest.param("delete part", VECTORS, marks=pytest.mark.full),
    ],
)
def test_a_change_is_done_again_after_an_optimize(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    properties: dict[str, str],
) -> None:
    """PROTOCOL.md#add-file-and-remove-file: without `dataChange`, rows are only moved. The files of
    the first attempt are deleted, and each change is in the change data once.
    """
    table, (change, changed) = create(spark, table_path, properties), CHANGES[kind]
    columns = ["_metadata.row_id"] if properties == ALL else []
    before = {row[0]: row[2:] for row in stored(spark, table_path, *columns)}
    meanwhile(monkeypatch, lambda: optimize(spark, table_path))
    done = change(spark, table)
    found = stored(spark, table_path, *columns)
    assert [row[:2] for row in found] == expected(changed)
    assert all(row[2:] == before[row[0]] for row in found if row[0] in before)
    assert kind == "merge" or (done.version, done.retries) == (2, 1)
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean
    if properties == ALL:
        changes = read_changes(spark, table_path, start_version=2).filter(
            "_change_type <> 'insert'"
        )
        touched = sorted(key for key in changed if key < ROWS)
        assert sorted({row["id"] for row in changes.collect()}) == touched


OVERWRITES: dict[str, dict[str, Any]] = {
    "everything": {},
    "where": {"replace_where": "part = 1 AND id < 5"},
    "partitions": {"partition_overwrite_mode": "dynamic"},
}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k == "where" else pytest.mark.full) for k in OVERWRITES]
)
def test_an_overwrite_is_done_again_after_an_optimize(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It replaces the rows of the version before it, wherever these are."""
    create(spark, table_path, ALL)
    rows = spark.sql("SELECT 1L AS id, 1L AS part, 9L AS v")
    meanwhile(monkeypatch, lambda: optimize(spark, table_path))
    done = write_delta(rows, table_path, mode="overwrite", **OVERWRITES[kind])
    assert (done.version, done.retries) == (2, 1)
    gone = {"everything": range(ROWS), "where": (1, 3), "partitions": range(1, ROWS, 2)}
    assert stored(spark, table_path) == expected({**dict.fromkeys(gone[kind]), 1: 9})
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.full
def test_an_overwrite_still_conflicts_with_new_rows(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark, table_path, VECTORS)
    rows = spark.sql("SELECT 1L AS id, 1L AS part, 9L AS v")

    def others() -> None:
        optimize(spark, table_path)
        write_delta(rows, table_path, mode="append")

    meanwhile(monkeypatch, others)
    with pytest.raises(ConcurrentAppendException):
        write_delta(rows, table_path, mode="overwrite", replace_where="part = 1")


@pytest.mark.full
def test_rearrangements_in_a_row(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, table_path, VECTORS)
    meanwhile(
        monkeypatch,
        lambda: optimize(spark, table_path),
        lambda: optimize(spark, table_path, zorder_by=["id"], target_file_size=200),
    )
    done = table.update("id = 5", {"v": "1"})
    assert (done.version, done.retries, done.num_updated_rows) == (3, 2, 1)
    assert stored(spark, table_path) == expected({5: 1})


@pytest.mark.full
def test_a_large_commit_that_moves_rows(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark job finds out that a commit too large for the driver changes no rows."""
    monkeypatch.setattr(spark_conflict_detection, "DRIVER_LOG_BYTES", 0)
    table = create(spark, table_path, VECTORS)
    meanwhile(monkeypatch, lambda: optimize(spark, table_path))
    assert table.delete("id = 5").retries == 1
    assert stored(spark, table_path) == expected({5: None})
    meanwhile(monkeypatch, lambda: table.delete("id = 6"))
    with pytest.raises(ConcurrentAppendException):
        table.delete("id > 5")


def test_files_that_the_change_leaves_alone_are_no_conflict(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though statistics say that the new files may have rows that match."""
    table = create(spark, table_path, VECTORS)
    meanwhile(monkeypatch, lambda: optimize(spark, table_path, where="part = 1"))
    assert table.delete("id * (1 - part) = 2").retries == 0
    assert stored(spark, table_path) == expected({2: None})


@pytest.mark.parametrize(
    ("level", "other", "error"),
    [
        ("Serializable", "append", ConcurrentAppendException),
        ("WriteSerializable", "append", None),
        ("WriteSerializable", "update", ConcurrentAppendException),
    ],
)
def test_changed_data_beside_moved_rows_conflicts_as_before(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    other: str,
    error: type[Exception] | None,
) -> None:
    """The change is repeated as of the OPTIMIZE; what follows that is compared with it."""
    table = create(spark, table_path, VECTORS)
    alter_table(spark, table_path).set_properties({"delta.isolationLevel": level})

    def others() -> None:
        optimize(spark, table_path)
        if other == "append":
            rows = spark.sql("SELECT 2L AS id, 0L AS part, 1L AS v")
            write_delta(rows, table_path, mode="append")
        else:
            table.update("id = 2", {"v": "1"})

    meanwhile(monkeypatch, others)
    if error is not None:
        with pytest.raises(error):
            table.delete("id = 2")
        return
    table.delete("id = 2")
    assert stored(spark, table_path) == sorted([*expected({2: None}), (2, 1)])
