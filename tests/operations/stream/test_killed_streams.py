"""Streams whose process is killed: no row is lost, and none is there twice."""

from __future__ import annotations

import gc
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, read_stream, write_delta, write_stream
from tests.support.appender import stream
from tests.support.spark_worker import SparkWorker, SparkWorkerError

pytestmark = pytest.mark.classic("kills processes of classic sessions")

WORKER = "tests.support.appender:session"
FILES = 4


@pytest.fixture
def paths(spark: SparkSession, tmp_path: Path) -> list[str]:
    """The source, with FILES files in two versions, the target, and the checkpoint."""
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "state"))
    write_delta(spark.range(0, 2, 1, 2), source)
    write_delta(spark.range(2, FILES, 1, 2), source, mode="append")
    return [source, target, checkpoint]


def assert_each_row_once(spark: SparkSession, target: str, rows: int, batches: int) -> None:
    assert sorted(row["id"] for row in read_delta(spark, target).collect()) == list(range(rows))
    transactions = load_snapshot(spark, target).transactions().collect()
    assert [transaction["version"] for transaction in transactions] == [batches - 1]


def killed(tmp_path: Path, paths: list[str], stop: list[object] | None, after: float = 600) -> None:
    """Run the query in a process, and kill it when it halts or after some seconds."""
    reached = tmp_path / "reached"
    with SparkWorker(WORKER) as worker, ThreadPoolExecutor(1) as threads:
        until = time.monotonic() + after
        stop = None if stop is None else [*stop, str(reached)]
        running = threads.submit(
            worker.run, "tests.support.appender:stream", paths=paths, stop=stop
        )
        while not reached.exists() and not running.done() and time.monotonic() < until:
            time.sleep(0.02)
        worker.kill()
        if stop is not None:
            with pytest.raises(SparkWorkerError):
                running.result()
    reached.unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "when"),
    [
        pytest.param(1, "after", marks=pytest.mark.full),
        *(
            pytest.param(batch, when, marks=pytest.mark.slow)
            for batch, when in ((0, "before"), (0, "after"), (1, "before"), (3, "after"))
        ),
    ],
)
def test_a_kill_at_a_commit(
    spark: SparkSession, tmp_path: Path, paths: list[str], batch: int, when: str
) -> None:
    """Before the commit of a batch, and between it and the checkpoint.

    PROTOCOL.md#transaction-identifiers
    """
    killed(tmp_path, paths, [batch, when])
    assert Path(paths[2], "offsets", str(batch)).exists()
    assert not Path(paths[2], "commits", str(batch)).exists()
    stream(spark, paths)
    assert_each_row_once(spark, paths[1], FILES, FILES)


@pytest.mark.slow
def test_many_kills(spark: SparkSession, tmp_path: Path, paths: list[str]) -> None:
    """At any time, while rows are appended to the source."""
    rng, rows = random.Random(0), FILES
    for _ in range(12):
        killed(tmp_path, paths, None, after=rng.uniform(4, 12))
        write_delta(spark.range(rows, rows + 2, 1, 2), paths[0], mode="append")
        rows += 2
    last = stream(spark, paths)
    assert_each_row_once(spark, paths[1], rows, last + 1)


@pytest.mark.slow
def test_nothing_is_kept_of_a_query_that_is_over(spark: SparkSession, paths: list[str]) -> None:
    """Spark's references to a source end, and with them the Python objects that it called."""
    pool = spark.sparkContext._gateway.gateway_property.pool

    def sources() -> int:
        gc.collect()
        spark._jvm.System.gc()
        return sum(type(proxy).__name__ == "_Source" for proxy in [*pool.dict.values()])

    before = sources()
    for _ in range(3):
        rows = read_stream(spark, paths[0])
        query = write_stream(rows, paths[1], paths[2], trigger={"availableNow": True})
        assert query.awaitTermination(120)
        del rows, query
    until = time.monotonic() + 60
    while sources() > before and time.monotonic() < until:
        time.sleep(0.2)
    assert sources() <= before
