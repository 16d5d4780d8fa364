"""Many writers of one table: versions without a gap, and every row exactly once."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, optimize, read_delta, sql, verify, write_delta
from sparkdelta.base.spark.classic_engine import ClassicEngine
from sparkdelta.exceptions import (
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
)
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows.row_changes import ChangeResult
from tests.support import shared_table as shared
from tests.support.checksums import assert_checksums
from tests.support.spark_worker import SparkWorker, SparkWorkerError
from tests.support.unreferenced import unreferenced

pytestmark = pytest.mark.classic("runs processes and threads of classic sessions")

WORKER = "tests.support.appender:session"
TOGGLES = (
    "delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking",
    "delta.enableInCommitTimestamps",
)  # fmt: skip
STEPS_OF_PROCESSES = 12


def versions(path: str) -> list[int]:
    return sorted(int(p.stem) for p in Path(path, "_delta_log").glob("*.json") if p.stem.isdigit())


def assert_nothing_is_lost(
    spark: SparkSession, path: str, rows: int, commits: int, others: Iterable[int] = ()
) -> None:
    """Parameters
    ----------
    others
        Versions of writers that write no checksums.
    """
    assert versions(path) == list(range(commits + 1))
    found = sorted(row["id"] for row in read_delta(spark, path).collect())
    assert found == list(range(rows))
    assert set(range(1, commits + 1)) <= {*assert_checksums(path), *others}


@pytest.mark.slow
def test_twenty_threads(spark: SparkSession, table_path: str) -> None:
    """Twenty threads commit while others do, and one of them writes a checkpoint."""
    write_delta(spark.range(0), table_path, properties={"delta.checkpointInterval": "15"})

    def append(number: int) -> int | None:
        rows = spark.range(number, number + 1).coalesce(1)
        return write_delta(rows, table_path, mode="append").version

    with ThreadPoolExecutor(20) as threads:
        done = sorted(version or 0 for version in threads.map(append, range(20)))
    assert done == list(range(1, 21))
    assert_nothing_is_lost(spark, table_path, rows=20, commits=20)
    checkpoints = {p.name[:20] for p in Path(table_path, "_delta_log").glob("*.checkpoint.*")}
    assert checkpoints == {f"{15:020d}"}


@pytest.mark.slow
def test_ten_writers_overlap_in_their_data_files(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's committer shares temporary files within a directory; no two share one."""
    write_delta(spark.range(0), table_path)
    write, together = ClassicEngine.write_parquet, threading.Barrier(10)

    def overlapping(*arguments: object, **options: object) -> None:
        together.wait()
        write(*arguments, **options)  # type: ignore[arg-type]
        together.wait()

    monkeypatch.setattr(ClassicEngine, "write_parquet", overlapping)

    def append(number: int) -> None:
        write_delta(spark.range(number * 5, number * 5 + 5), table_path, mode="append")

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(append, range(10)))
    assert_nothing_is_lost(spark, table_path, rows=50, commits=10)


def test_threads_of_a_process_do_not_race(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All read the same version; each follows the commits of the others at its first attempt, and
    the blind appends become a serial history.
    """
    write_delta(spark.range(0), table_path)
    write, together = ClassicEngine.write_parquet, threading.Barrier(6)

    def at_once(*arguments: object, **options: object) -> None:
        write(*arguments, **options)  # type: ignore[arg-type]
        together.wait()

    monkeypatch.setattr(ClassicEngine, "write_parquet", at_once)

    def append(number: int) -> int:
        rows = spark.range(number, number + 1).coalesce(1)
        return write_delta(rows, table_path, mode="append").retries

    with ThreadPoolExecutor(6) as threads:
        retries = list(threads.map(append, range(6)))
    assert retries == [0] * 6
    assert_nothing_is_lost(spark, table_path, rows=6, commits=6)


def test_a_refused_commit_tells_what_it_leaves(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_delta(spark.range(2), table_path)
    write = ClassicEngine.write_parquet

    def overtaken(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(ClassicEngine, "write_parquet", write)
        write_delta(spark.range(2, 3), table_path, mode="append")
        write(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ClassicEngine, "write_parquet", overtaken)
    with pytest.raises(ConcurrentAppendException) as raised:
        write_delta(spark.range(9), table_path, mode="overwrite")
    notes = getattr(raised.value, "__notes__", [caplog.text])
    orphans = unreferenced(table_path)
    assert "Nothing was committed" in notes[0]
    assert orphans
    assert all(str(Path(table_path, file)) in notes[0] for file in orphans)
    assert notes[0] in caplog.text
    assert_nothing_is_lost(spark, table_path, rows=3, commits=1)


@pytest.mark.full
def test_delta_rs_appends_meanwhile(spark: SparkSession, table_path: str) -> None:
    """Both commit by a hard link, and see each other's commits."""
    deltalake = pytest.importorskip("deltalake")
    pa = pytest.importorskip("pyarrow")
    write_delta(spark.range(0), table_path)

    def ours() -> None:
        for number in range(4):
            write_delta(spark.range(number, number + 1), table_path, mode="append")

    def theirs() -> None:
        for number in range(4, 24):
            table = pa.table({"id": pa.array([number], pa.int64())})
            deltalake.write_deltalake(table_path, table, mode="append")

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(ours), threads.submit(theirs)]:
            done.result()
    assert_nothing_is_lost(spark, table_path, rows=24, commits=24, others=range(25))
    assert deltalake.DeltaTable(table_path).to_pyarrow_table().num_rows == 24


ONE_FILE = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}


@pytest.mark.full
def test_other_rows_of_one_file(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#deletion-vectors: the vector that is committed has the rows of both, and each
    version has the changes of its own.
    """
    write_delta(spark.range(20).coalesce(1), table_path, properties=ONE_FILE)
    table = DeltaTable.forPath(spark, table_path)
    columns = ["id", "_metadata.row_id"]
    before = {row[1]: row[0] for row in read_delta(spark, table_path, columns=columns).collect()}
    commit = Transaction.commit

    def after_others(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        table.update("id = 3", {"id": "103"})
        table.delete("id IN (4, 5)")
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_others)
    done = table.update("id = 7", {"id": "107"})
    assert (done.version, done.retries, done.num_updated_rows) == (3, 0, 1)
    after = {row[1]: row[0] for row in read_delta(spark, table_path, columns=columns).collect()}
    gone = {row_id for row_id, value in before.items() if value in (4, 5)}
    assert after == {
        row_id: {3: 103, 7: 107}.get(value, value)
        for row_id, value in before.items()
        if row_id not in gone
    }
    lines = Path(table_path, "_delta_log", f"{3:020d}.json").read_text().splitlines()
    files = list(map(json.loads, lines))
    again = next(f["add"] for f in files if "deletionVector" in f.get("add", {}))
    [remove] = [f["remove"] for f in files if "remove" in f]
    assert (again["deletionVector"]["cardinality"], again["baseRowId"]) == (4, 0)
    assert remove["deletionVector"]["cardinality"] == 3
    stats = json.loads(again["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (20, False)
    assert any("cdc" in f for f in files)
    assert verify(spark, table_path, footers=True).is_clean


@dataclass(frozen=True)
class Change:
    """A change of the rows whose ids are in a range; `number` is its own."""

    kind: str
    low: int
    high: int
    number: int

    @property
    def ids(self) -> range:
        return range(self.low, self.high + 1)

    def run(self, table: DeltaTable) -> int | None:
        """The number of retries; None if a concurrent commit conflicts."""
        where, spark = f"id BETWEEN {self.low} AND {self.high} AND {self.mark}", table._spark
        rows = spark.range(self.low, self.high + 1).selectExpr("id", f"{self.number}L AS v")
        try:
            if self.kind == "delete":
                return table.delete(where).retries
            if self.kind == "update":
                return table.update(where, {"v": "v * 2 + 1"}).retries
            if self.kind == "optimize":
                return optimize(spark, table._path).retries
            if self.kind == "append":
                marked = {"mode": "append", "user_metadata": self.mark}
                return write_delta(rows, table._path, **marked).retries  # type: ignore[arg-type]
            merge = table.alias("t").merge(rows.alias("s"), f"t.id = s.id AND {self.mark}")
            merge = merge.whenMatchedUpdate(set={"v": "t.v + s.v"}).whenNotMatchedInsertAll()
            merge.execute()
        except DeltaConcurrentModificationException:
            return None
        return 0

    @property
    def mark(self) -> str:
        """A condition, by which its commit can be found."""
        return f"'change {self.number}' <> ''"

    def applied(self, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
        known = {key for key, _ in rows}
        if self.kind == "delete":
            return [row for row in rows if row[0] not in self.ids]
        new = {"update": lambda v: v * 2 + 1, "merge": lambda v: v + self.number}.get(self.kind)
        if new is not None:
            rows = [(key, new(v) if key in self.ids else v) for key, v in rows]
        if self.kind in ("append", "merge"):
            added = [key for key in self.ids if self.kind == "append" or key not in known]
            rows = rows + [(key, self.number) for key in added]
        return rows


KINDS = ("delete", "update", "append", "merge", "optimize", "update", "merge", "delete")


@pytest.mark.slow
@pytest.mark.parametrize(
    "schedules",
    [
        pytest.param(range(1), marks=pytest.mark.full),
        pytest.param(range(1, 200), marks=pytest.mark.slow),
    ],
)
def test_a_history_of_changed_rows(
    spark: SparkSession, tmp_path: Path, schedules: Iterable[int]
) -> None:
    """Threads change the rows of two files in all ways: what was committed, once each in the order
    of versions, gives the rows of the table.
    """
    done = 0
    for seed in schedules:
        path, chance = str(tmp_path / f"{seed}"), random.Random(seed)
        rows = spark.range(0, 40, 1, 2).selectExpr("id", "0L AS v")
        write_delta(rows, path, properties=ONE_FILE)
        table = DeltaTable.forPath(spark, path)
        changes = []
        for number, kind in enumerate(chance.sample(KINDS, len(KINDS)), start=1):
            low = chance.randrange(42)
            changes.append(Change(kind, low, low + chance.randrange(3), number))
        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(Change.run, changes, repeat(table)))
        expected = [(key, 0) for key in range(40)]
        log = [Path(path, "_delta_log", f"{v:020d}.json").read_text() for v in versions(path)]
        for text in log:
            for change in changes:
                if change.mark in text:
                    assert results[change.number - 1] is not None
                    expected = change.applied(expected)
                    done += 1
        found = [tuple(row) for row in read_delta(spark, path, columns=["id", "v"]).collect()]
        assert sorted(found) == sorted(expected), seed
        assert_checksums(path)
    assert done > 3 * len(list(schedules))


@pytest.mark.slow
def test_twenty_updates_of_one_file(spark: SparkSession, table_path: str) -> None:
    """Each of another row, four at a time: none fails."""
    write_delta(spark.range(40).coalesce(1), table_path, properties=ONE_FILE)
    table = DeltaTable.forPath(spark, table_path)

    def update(number: int) -> ChangeResult:
        return table.update(f"id = {number}", {"id": f"{number} + 100"})

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(update, range(20)))
    assert sorted(result.version or 0 for result in done) == list(range(1, 21))
    found = sorted(row["id"] for row in read_delta(spark, table_path).collect())
    assert found == [*range(20, 40), *range(100, 120)]


@pytest.mark.slow
def test_three_processes_with_spark(spark: SparkSession, table_path: str, tmp_path: Path) -> None:
    write_delta(spark.range(0), table_path)
    in_workers(
        tmp_path,
        3,
        lambda worker, n: worker.run(
            "tests.support.appender:append", path=table_path, first=n * 20, commits=20
        ),
    )
    assert_nothing_is_lost(spark, table_path, rows=60, commits=60)


@pytest.mark.slow
def test_processes_overlap_in_their_data_files(
    spark: SparkSession, table_path: str, tmp_path: Path
) -> None:
    write_delta(spark.range(0), table_path)
    in_workers(
        tmp_path,
        3,
        lambda worker, n: worker.run(
            "tests.support.appender:append_together",
            path=table_path, first=n, meeting=str(tmp_path / "meeting"), writers=3,
        ),
    )  # fmt: skip
    assert_nothing_is_lost(spark, table_path, rows=3, commits=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stuck",
    [
        "stuck_in_data_files",
        "stuck_in_update",
        "stuck_before_commit",
        "stuck_before_publishing",
    ],
)
def test_a_process_that_is_killed(
    spark: SparkSession, table_path: str, tmp_path: Path, stuck: str
) -> None:
    """Files that Spark had written are no part of the table and do not hinder later writes."""
    names = ("delta.enableDeletionVectors", "delta.enableChangeDataFeed")
    write_delta(spark.range(0, 4, 1, 2), table_path, properties=dict.fromkeys(names, "true"))
    reached = tmp_path / "reached"
    with SparkWorker(WORKER) as worker, ThreadPoolExecutor(1) as threads:
        running = threads.submit(
            worker.run, f"tests.support.appender:{stuck}", path=table_path, reached=str(reached)
        )
        while not reached.exists() and not running.done():
            time.sleep(0.05)
        worker.kill()
        with pytest.raises(SparkWorkerError):
            running.result()
    assert_nothing_is_lost(spark, table_path, rows=4, commits=0)
    write_delta(spark.range(4, 5), table_path, mode="append")
    assert_nothing_is_lost(spark, table_path, rows=5, commits=1)


MAINTENANCE = ("optimize", "cluster", "purge", "checkpoint", "compact log", "clean log")
CHANGES = ("append", "append", "delete", "update", "merge")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_change_and_maintain_one_table(
    spark: SparkSession, table_path: str, tmp_path: Path, seed: int
) -> None:
    """Each process changes rows of its own; what is refused has changed nothing."""
    chance = random.Random(f"two processes {seed}")
    on = [f"'{name}' = 'true'" for name in TOGGLES if chance.random() < 0.5]
    listed = ", ".join([*on, f"'delta.checkpointInterval' = '{chance.choice((2, 3, 100))}'"])
    by = chance.choice(("", " PARTITIONED BY (p)"))
    sql(
        spark,
        f"CREATE TABLE delta.`{table_path}` ({shared.DECLARED}) USING delta{by}"
        f" TBLPROPERTIES ({listed})",
    )
    first = shared.random_rows(chance, range(30))
    assert shared.carry_out(spark, table_path, [["append", first]]) == [None]
    kinds = (*CHANGES, *CHANGES, *MAINTENANCE)
    plans = [
        shared.own_operations(chance, kinds, n, writers=2, steps=STEPS_OF_PROCESSES)
        for n in range(2)
    ]
    told: dict[int, list[str | None]] = {}

    def run(worker: SparkWorker, number: int) -> None:
        told[number] = worker.run(
            "tests.support.shared_table:carry_out", path=table_path, operations=plans[number]
        )

    in_workers(tmp_path, 2, run)
    rows, story = {row[0]: row for row in first}, [f"seed {seed}: {listed}{by}"]
    for number, plan in enumerate(plans):
        for operation, error in zip(plan, told[number], strict=True):
            story.append(f"{number}: {operation} {error or ''}")
            if error is None:
                rows = shared.after(operation, rows)
            else:
                # The other process may have cleaned up the commits that one compacts.
                allowed = ("Concurrent", "VersionsNotContiguousError: ")
                is_compaction = operation[0] == "compact log"
                assert error.startswith(allowed[: 1 + is_compaction]), "\n".join(story)
    found = shared.shown(read_delta(spark, table_path))
    assert found == sorted(rows.values()), "\n".join(story)
    report = verify(spark, table_path)
    assert report.is_clean, f"{report}\n" + "\n".join(story)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_two_processes_change_the_same_rows(
    spark: SparkSession, table_path: str, tmp_path: Path, seed: int
) -> None:
    """Each version has the rows that the operations leave in the order of their commits."""
    chance = random.Random(f"same rows {seed}")
    on = [f"'{name}' = 'true'" for name in TOGGLES if chance.random() < 0.5]
    interval, policy = chance.choice((2, 3, 100)), chance.choice(("classic", "v2"))
    listed = ", ".join(
        [
            *on,
            f"'delta.checkpointInterval' = '{interval}'",
            f"'delta.checkpointPolicy' = '{policy}'",
        ]
    )
    by = chance.choice(("", " PARTITIONED BY (p)"))
    sql(
        spark,
        f"CREATE TABLE delta.`{table_path}` ({shared.DECLARED}) USING delta{by}"
        f" TBLPROPERTIES ({listed})",
    )
    first = shared.random_rows(chance, range(30))
    assert shared.carry_out(spark, table_path, [["append", first]]) == [None]
    maintenance = ("optimize", "cluster", "checkpoint", "compact log", "mislead", "vacuum old")
    kinds = (*CHANGES, *CHANGES, *maintenance)
    plans = [
        shared.shared_operations(chance, kinds, first_new=1000 * n, steps=STEPS_OF_PROCESSES)
        for n in (1, 2)
    ]
    told: dict[int, list[str | None]] = {}

    def run(worker: SparkWorker, number: int) -> None:
        told[number] = worker.run(
            "tests.support.shared_table:carry_out_marked",
            path=table_path, operations=plans[number], mark=f"{number}-",
        )  # fmt: skip

    in_workers(tmp_path, 2, run)
    story = [f"seed {seed}: {listed}{by}"]
    operations = {}
    for number, plan in enumerate(plans):
        for step, (operation, error) in enumerate(zip(plan, told[number], strict=True)):
            story.append(f"{number}-{step}: {operation} {error or ''}")
            operations[f"{number}-{step}"] = operation, error
    rows = {row[0]: row for row in first}
    for version, mark in enumerate(shared.marks(table_path)):
        story.append(f"version {version}: {mark}")
        if mark is not None:
            operation, error = operations[mark]
            assert error is None, "\n".join(story)
            rows = shared.after(operation, rows)
        if version:
            found = shared.shown(read_delta(spark, table_path, version=version))
            assert found == sorted(rows.values()), "\n".join(story)
    errors = [error for _, error in operations.values() if error is not None]
    assert all(error.startswith("Concurrent") for error in errors), "\n".join(story)
    assert verify(spark, table_path).is_clean, "\n".join(story)


def in_workers(tmp_path: Path, count: int, run: Callable[[SparkWorker, int], object]) -> None:
    """Run something in processes of their own, all at once."""

    def one(number: int) -> None:
        scratch = tmp_path / f"worker-{number}"
        scratch.mkdir()
        with SparkWorker(WORKER, scratch) as worker:
            run(worker, number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(one, range(count)))
