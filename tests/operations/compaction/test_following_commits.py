"""OPTIMIZE and REORG of files that other commits change meanwhile: both commit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    reorg,
    sql,
    verify,
    write_delta,
)
from sparkdelta.base.protocol.roaring_bitmaps import Chunks, chunks_of_rows
from sparkdelta.exceptions import (
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from sparkdelta.operations.compaction import moved_vectors, optimize_run
from sparkdelta.operations.upkeep import auto_compaction
from tests.operations.write.test_moved_rows import (
    ALL,
    ROWS,
    VECTORS,
    create,
    expected,
    meanwhile,
    stored,
    upsert,
)
from tests.support import shared_table as shared
from tests.support.unreferenced import unreferenced


def commit_of(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, action in json.loads(line).items():
            found.setdefault(name, []).append(action)
    return found


def deleted_rows(path: str, version: int) -> list[int]:
    """The numbers of rows that the vectors of the added files delete."""
    adds = commit_of(path, version)["add"]
    vectors = [add.get("deletionVector") for add in adds]
    return sorted(0 if each is None else each["cardinality"] for each in vectors)


OTHERS: dict[str, tuple[Callable[[SparkSession, DeltaTable], Any], dict[int, int | None]]] = {
    "delete": (lambda _, t: t.delete("id IN (3, 4, 9)"), dict.fromkeys((3, 4, 9))),
    "update": (lambda _, t: t.update("id IN (3, 9)", {"v": "v + 5"}), {3: 5, 9: 5}),
    "merge": (upsert, {2: 7, 99: 7}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_new_files_get_the_vectors_of_the_old_ones(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """PROTOCOL.md#deletion-vectors, PROTOCOL.md#row-tracking: rows keep their ids, and statistics
    are wide.
    """
    table, (other, changed) = create(spark, table_path, ALL), OTHERS[kind]
    columns = ("_metadata.row_id", "_metadata.row_commit_version")
    meanwhile(monkeypatch, lambda: other(spark, table))
    done = optimize(spark, table_path)
    assert (done.versions, done.num_bins, done.added.count) == ((2,), 2, 2)
    found = stored(spark, table_path, *columns)
    assert [row[:2] for row in found] == expected(changed)
    at_other = read_delta(spark, table_path, version=1, columns=["id", "v", *columns]).collect()
    assert found == sorted(map(tuple, at_other))
    log = commit_of(table_path, 2)
    assert sum(deleted_rows(table_path, 2)) == len([key for key in changed if key < ROWS])
    for add in log["add"]:
        stats = json.loads(add["stats"])
        assert not add["dataChange"]
        assert stats["numRecords"] == ROWS / 2
        assert stats.get("tightBounds", True) == ("deletionVector" not in add)
    assert not unreferenced(table_path)
    assert not read_changes(spark, table_path, start_version=2).collect()
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
def test_several_commits_in_a_row(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two attempts and within one, on files that had vectors before."""
    table = create(spark, table_path, {**VECTORS, "sparkdelta.maxDeletedShare": "1"})
    table.delete("id IN (0, 7, 10)")

    def twice() -> None:
        table.delete("id = 1")
        table.delete("id IN (2, 13)")

    meanwhile(monkeypatch, twice, lambda: table.delete("id IN (3, 23)"))
    done = optimize(spark, table_path)
    assert (done.versions, done.num_bins) == ((5,), 2)
    assert sum(deleted_rows(table_path, 5)) == 5
    gone = (0, 7, 10, 1, 2, 13, 3, 23)
    assert stored(spark, table_path) == expected(dict.fromkeys(gone))
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
def test_no_row_of_a_new_file_is_left(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, table_path, {**VECTORS, "sparkdelta.maxDeletedShare": "1"})
    table.delete("id % 2 = 1 AND id > 20")
    other = "id % 2 = 1 AND id % 6 <> 1"
    meanwhile(
        monkeypatch, lambda: table.delete(other), lambda: table.delete("id % 6 = 1 AND id > 1")
    )
    optimize(spark, table_path)
    gone = [key for key in range(ROWS) if key % 2 == 1 and (key > 1)]
    assert stored(spark, table_path) == expected(dict.fromkeys(gone))
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"zorder_by": ["id"], "target_file_size": 500},
    ],
)
def test_files_that_are_rewritten_meanwhile(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
) -> None:
    """OPTIMIZE first commits the partition that stayed the same, then rewrites the changed one."""
    table = create(spark, table_path, {})
    meanwhile(monkeypatch, lambda: table.delete("id = 2"))
    done = optimize(spark, table_path, **arguments)
    assert done.versions == (2, 3)
    assert (done.num_bins, done.num_partitions, done.removed.count) == (2, 2, 7)
    assert {add["partitionValues"]["part"] for add in commit_of(table_path, 2)["add"]} == {"1"}
    assert stored(spark, table_path) == expected({2: None})
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
def test_rows_in_another_order_are_written_again(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z-order: the position of a row is not known; files that nobody changed are not written
    again.
    """
    table = create(spark, table_path, ALL)
    meanwhile(monkeypatch, lambda: table.delete("id IN (2, 8)"))
    done = optimize(spark, table_path, zorder_by=["id"], target_file_size=500)
    assert (done.versions, done.num_bins, done.num_deleted_rows) == ((2, 3), 2, 2)
    assert stored(spark, table_path) == expected({2: None, 8: None})
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.full
def test_clustering(spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PROTOCOL.md#writer-requirements-for-clustered-table: the new files are one Z-cube."""
    rows = spark.range(0, 400, 1, 4).selectExpr("id", "0L AS v")
    write_delta(rows, table_path, properties=VECTORS)
    alter_table(spark, table_path).cluster_by("id")
    table = DeltaTable.forPath(spark, table_path)
    meanwhile(monkeypatch, lambda: table.delete("id = 7"))
    done = optimize(spark, table_path, target_file_size=1500)
    assert done.versions == (3,)
    assert len({add["tags"]["ZCUBE_ID"] for add in commit_of(table_path, 3)["add"]}) == 1
    assert [row[0] for row in stored(spark, table_path)] == [n for n in range(400) if n != 7]


@pytest.mark.full
def test_auto_compaction(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_compaction, "MIN_SMALL_FILES", 3)
    table = create(spark, table_path, VECTORS)
    alter_table(spark, table_path).set_properties({"delta.autoOptimize.autoCompact": "true"})
    appended = spark.sql("SELECT 50L AS id, 0L AS part, 0L AS v")
    meanwhile(monkeypatch, lambda: None, lambda: table.delete("id = 4"))
    write_delta(appended, table_path, mode="append")
    names = [commit_of(table_path, v)["commitInfo"][0]["operation"] for v in range(5)]
    assert names[2:] == ["WRITE", "DELETE", "OPTIMIZE"]
    assert stored(spark, table_path) == expected({4: None, 50: 0})


@pytest.mark.full
@pytest.mark.parametrize("limit", ["MAX_MOVED_FILES", "MAX_MOVED_ROWS"])
def test_too_many_vectors_or_rows(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(moved_vectors, limit, 0)
    table = create(spark, table_path, VECTORS)
    meanwhile(monkeypatch, lambda: table.delete("id = 4"))
    assert optimize(spark, table_path).versions == (2, 3)
    assert deleted_rows(table_path, 3) == [0]
    assert stored(spark, table_path) == expected({4: None})


@pytest.mark.full
def test_an_order_that_is_not_the_expected_one(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are compared, so that no other row is deleted; the vectors' file is deleted."""

    def others(_: object) -> Chunks:
        return chunks_of_rows(np.array([0, 1], np.int64))

    monkeypatch.setattr(moved_vectors, "deleted_since", others)
    table = create(spark, table_path, VECTORS)
    meanwhile(monkeypatch, lambda: table.delete("id IN (10, 16)"))
    assert optimize(spark, table_path).versions == (2, 3)
    assert stored(spark, table_path) == expected({10: None, 16: None})
    assert not unreferenced(table_path)


@pytest.mark.full
def test_an_optimize_that_never_comes_first(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It leaves the files as they are, and deletes the new ones."""
    monkeypatch.setattr(optimize_run, "MAX_RUNS", 2)
    table = create(spark, table_path, {})
    updates = [lambda key=key: table.update(f"id = {key}", {"v": "1"}) for key in (0, 6)]
    meanwhile(monkeypatch, *updates)
    done = optimize(spark, table_path, where="part = 0")
    assert (done.versions, done.num_bins, done.num_partitions) == ((), 0, 0)
    assert "OPTIMIZE left 2 files of" in caplog.text
    assert stored(spark, table_path) == expected({0: 1, 6: 1})
    assert not unreferenced(table_path)


@pytest.mark.full
def test_a_purge_that_never_comes_first(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails, as rows that should be gone are in files of the table."""
    monkeypatch.setattr(optimize_run, "MAX_RUNS", 2)
    monkeypatch.setattr(moved_vectors, "MAX_MOVED_FILES", 0)
    table = create(spark, table_path, {**VECTORS, "sparkdelta.maxDeletedShare": "1"})
    table.delete("id IN (0, 6, 12, 18)")
    deletes = [lambda key=key: table.delete(f"id = {key}") for key in (2, 4)]
    meanwhile(monkeypatch, *deletes)
    with pytest.raises(ConcurrentDeleteReadException):
        reorg(spark, table_path)
    assert stored(spark, table_path) == expected(dict.fromkeys((0, 6, 12, 18, 2, 4)))
    assert not unreferenced(table_path)


def test_other_conflicts_are_errors(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if rows of the files were deleted before."""
    table = create(spark, table_path, VECTORS)

    def others() -> None:
        table.delete("id = 1")
        alter_table(spark, table_path).set_properties({"delta.enableDeletionVectors": "false"})

    meanwhile(monkeypatch, others)
    with pytest.raises(DeltaConcurrentModificationException):
        optimize(spark, table_path)
    assert load_snapshot(spark, table_path).version == 2


MOVES = ("optimize", "optimize", "cluster", "purge")
CHANGES = ("delete", "update", "merge", "delete")
SWITCHES = (
    "delta.enableDeletionVectors", "delta.enableDeletionVectors", "delta.enableChangeDataFeed",
    "delta.enableRowTracking", "delta.enableInCommitTimestamps",
)  # fmt: skip


def random_schedule(
    spark: SparkSession, path: str, patch: pytest.MonkeyPatch, seed: int, steps: int = 6
) -> shared.Model:
    """Run moves and changes of rows, of which each is overtaken by one or two of the other kind,
    and return the rows that all of them give.
    """
    chance = random.Random(f"moved rows {seed}")
    on = ", ".join(f"'{name}' = 'true'" for name in SWITCHES if chance.random() < 0.6)
    by = chance.choice(("", " PARTITIONED BY (p)"))
    properties = f" TBLPROPERTIES ({on})" if on else ""
    sql(spark, f"CREATE TABLE delta.`{path}` ({shared.DECLARED}) USING delta{by}{properties}")
    rows: shared.Model = {}

    def run(*operations: shared.Operation) -> None:
        nonlocal rows
        assert shared.carry_out(spark, path, [*operations]) == [None] * len(operations), operations
        for operation in operations:
            rows = shared.after(operation, rows)

    for first in range(0, 40, 10):
        run(["append", shared.random_rows(chance, range(first, first + 10))])
    for step in range(steps):
        kinds = (MOVES, CHANGES) if chance.random() < 0.6 else (CHANGES, MOVES)
        late, *others = shared.shared_operations(
            chance, kinds[0], first_new=0, steps=1
        ) + shared.shared_operations(chance, kinds[1], first_new=0, steps=chance.choice((1, 2)))
        with patch.context() as patched:
            meanwhile(patched, *(partial(run, other) for other in others))
            run(late)
        new = shared.random_rows(chance, range(100 + step * 4, 104 + step * 4))
        run(["append", new])
        assert shared.shown(read_delta(spark, path)) == sorted(rows.values()), (seed, step)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1), range(1, 30)], ids=str)
def test_random_schedules(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    for seed in seeds:
        path = str(tmp_path / f"{seed}")
        random_schedule(spark, path, monkeypatch, seed)
        report = verify(spark, path, footers=True)
        assert report.is_clean, f"{seed}: {report}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_threads_that_optimize_and_change_rows(
    spark: SparkSession, table_path: str, seed: int
) -> None:
    """Commits that move rows and commits of other threads do not conflict."""
    chance = random.Random(f"threads {seed}")
    properties = dict.fromkeys(SWITCHES[seed:], "true")
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    sql(
        spark,
        f"CREATE TABLE delta.`{table_path}` ({shared.DECLARED}) USING delta"
        f" TBLPROPERTIES ({listed})",
    )
    first = shared.random_rows(chance, range(30))
    for start in range(0, 30, 6):
        assert shared.carry_out(spark, table_path, [["append", first[start : start + 6]]]) == [None]
    plans = [
        shared.own_operations(chance, ("append", *CHANGES), n, writers=2, steps=6) for n in range(2)
    ]
    moves = [[chance.choice(MOVES)] for _ in range(8)]
    with ThreadPoolExecutor(3) as threads:
        told = [*threads.map(partial(shared.carry_out, spark, table_path), [*plans, moves])]
    assert told[2] == [None] * len(moves)
    rows = {row[0]: row for row in first}
    for plan, errors in zip(plans, told[:2], strict=True):
        for operation, error in zip(plan, errors, strict=True):
            if error is None:
                rows = shared.after(operation, rows)
            else:
                assert error.startswith("Concurrent")
                assert "(OPTIMIZE)" not in error
                assert "(REORG)" not in error
    assert shared.shown(read_delta(spark, table_path)) == sorted(rows.values())
    assert verify(spark, table_path, footers=True).is_clean
