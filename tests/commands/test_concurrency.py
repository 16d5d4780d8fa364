"""Many writers of one table: versions without a gap, and every row exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta, write_delta
from sparkdelta.exceptions import ConcurrentAppendException
from sparkdelta.storage import hadoop
from tests.support.checksums import assert_checksums
from tests.support.spark_worker import SparkWorker, SparkWorkerError

WORKER = "tests.support.appender:session"


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


@pytest.mark.full
def test_twenty_threads(spark: SparkSession, table_path: str) -> None:
    """They commit while others do, and one writes a checkpoint meanwhile."""
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


def test_ten_writers_overlap_in_their_data_files(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's committer shares temporary files within a directory; no two share one."""
    write_delta(spark.range(0), table_path)
    write, together = hadoop.write_parquet, threading.Barrier(10)

    def overlapping(*arguments: object, **options: object) -> None:
        together.wait()
        write(*arguments, **options)  # type: ignore[arg-type]
        together.wait()

    monkeypatch.setattr(hadoop, "write_parquet", overlapping)

    def append(number: int) -> None:
        write_delta(spark.range(number * 5, number * 5 + 5), table_path, mode="append")

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(append, range(10)))
    assert_nothing_is_lost(spark, table_path, rows=50, commits=10)


def test_a_refused_commit_tells_what_it_leaves(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_delta(spark.range(2), table_path)
    write = hadoop.write_parquet

    def overtaken(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(hadoop, "write_parquet", write)
        write_delta(spark.range(2, 3), table_path, mode="append")
        write(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hadoop, "write_parquet", overtaken)
    with pytest.raises(ConcurrentAppendException) as raised:
        write_delta(spark.range(9), table_path, mode="overwrite")
    notes = getattr(raised.value, "__notes__", [caplog.text])
    [orphans] = [p for p in Path(table_path).glob("data-*") if str(p) in notes[0]]
    assert "Nothing was committed" in notes[0]
    assert list(orphans.glob("*.parquet"))
    assert notes[0] in caplog.text
    assert_nothing_is_lost(spark, table_path, rows=3, commits=1)


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
@pytest.mark.parametrize("stuck", ["stuck_in_data_files", "stuck_before_publishing"])
def test_a_process_that_is_killed(
    spark: SparkSession, table_path: str, tmp_path: Path, stuck: str
) -> None:
    """What Spark had written by then is no part of the table, and in nobody's way."""
    write_delta(spark.range(0, 4, 1, 2), table_path)
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


def in_workers(tmp_path: Path, count: int, run: Callable[[SparkWorker, int], object]) -> None:
    """Run something in processes of their own, all at once."""

    def one(number: int) -> None:
        scratch = tmp_path / f"worker-{number}"
        scratch.mkdir()
        with SparkWorker(WORKER, scratch) as worker:
            run(worker, number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(one, range(count)))
