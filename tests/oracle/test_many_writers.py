"""Ten writers, ten mergers and an optimizer of one table at once, on a local disk, S3 and HDFS.

`SPARKDELTA_WRITER_SECONDS=600 pytest -s` lets them run for ten minutes, and prints what they did.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, optimize, read_delta, verify, write_delta
from sparkdelta.exceptions import DeltaConcurrentModificationException
from tests.benchmarks.parts import SESSION
from tests.support.mini_hdfs import MiniHdfs
from tests.support.s3_server import BUCKET, s3_session_settings
from tests.support.spark_worker import SparkWorker

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_MODULE = "tests.oracle.test_many_writers"
_SECONDS = int(os.environ.get("SPARKDELTA_WRITER_SECONDS", "30"))
_PROCESSES, _OF_EACH_KIND = 2, 5
_COUNTERS, _KEYS = 1_000, 5
_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}

Log = dict[str, list[Any]]
"""The work of a process: the seconds of each commit by its kind, and the rows that it changed."""


@pytest.mark.every_case
@pytest.mark.parametrize("place", ["disk", "s3", "hdfs"])
def test_nothing_of_many_writers_is_lost(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    """Each version has the rows of the appends and merges that were committed before it.

    References
    ----------
    PROTOCOL.md#delta-log-entries
    """
    monkeypatch.delenv("SPARK_CONF_DIR")  # settings for short tests
    with ExitStack() as stack:
        path, settings = _table_at(request, stack, tmp_path, place)
        workers = [
            stack.enter_context(SparkWorker(SESSION, cores=2, memory="2g", settings=settings))
            for _ in range(_PROCESSES)
        ]
        workers[0].run(f"{_MODULE}:create", path=path)
        with ThreadPoolExecutor(_PROCESSES) as threads:
            runs = [
                threads.submit(
                    worker.run, f"{_MODULE}:change", path=path, number=number, seconds=_SECONDS
                )
                for number, worker in enumerate(workers)
            ]
            logs: list[Log] = [run.result() for run in runs]
        print(f"\n{place}, {_SECONDS} s:\n{_report(logs)}")
        found = workers[0].run(f"{_MODULE}:inspect", path=path)
    assert [failure for log in logs for failure in log["failures"]] == []
    assert found["appended"] == sorted(number for log in logs for number in log["appended"])
    increments = Counter(low + n for log in logs for low in log["merged"] for n in range(_KEYS))
    assert found["counters"] == [increments[key] for key in range(_COUNTERS)]
    assert found["totals"] == found["expected totals"]
    assert found["problems"] is None


def _table_at(
    request: pytest.FixtureRequest, stack: ExitStack, scratch: Path, place: str
) -> tuple[str, dict[str, str]]:
    """Return the path of a table, and settings of sessions that reach it."""
    if place == "disk":
        return str(scratch / "table"), {}
    if place == "hdfs":
        server: MiniHdfs = request.getfixturevalue("hdfs")
        return f"{server.uri}/many writers", {}
    return f"s3a://{BUCKET}/table", stack.enter_context(s3_session_settings(scratch))


def _report(logs: list[Log]) -> str:
    """Return a line for each kind of commit."""
    lines = []
    for kind in ("append", "merge", "optimize"):
        of_threads = [seconds for log in logs for seconds in log[kind]]
        times = sorted(second for seconds in of_threads for second in seconds)
        counts = [len(seconds) for seconds in of_threads]
        if times:
            lines.append(
                f"{kind}: {len(times)} commits, {len(times) / _SECONDS:.2f}/s; by thread"
                f" {min(counts)} to {max(counts)}; median {median(times):.2f} s, 99% within"
                f" {times[int(len(times) * 0.99)]:.2f} s, all {times[-1]:.2f} s"
            )
    conflicts = Counter(name for log in logs for name in log["conflicts"])
    retries = sum(sum(log["retries"]) for log in logs)
    return "\n".join([*lines, f"retries: {retries}; conflicts: {dict(conflicts)}"])


def create(spark: SparkSession, path: str) -> None:
    """Make a table of counters; runs in the worker."""
    counters = spark.range(0, _COUNTERS, 1, 2).selectExpr("id", "0L AS v")
    write_delta(counters, path, properties=_PROPERTIES)


def change(spark: SparkSession, path: str, number: int, seconds: float) -> Log:
    """Append to the table, merge into it and optimize it by several threads; runs in the worker."""
    deadline = time.monotonic() + seconds
    log: Log = {
        name: []
        for name in ("append", "merge", "optimize", "appended", "merged", "retries", "conflicts",
                     "failures")
    }  # fmt: skip

    def repeat(kind: str, run: Callable[[], None]) -> None:
        times: list[float] = []
        log[kind].append(times)
        while time.monotonic() < deadline:
            start = time.monotonic()
            try:
                run()
                times.append(time.monotonic() - start)
            except DeltaConcurrentModificationException as conflict:
                log["conflicts"].append(f"{kind}: {type(conflict).__name__}")
            except Exception as error:  # noqa: BLE001  (reported to the test)
                log["failures"].append(f"{kind}: {type(error).__name__}: {str(error)[:1500]}")

    with ThreadPoolExecutor(2 * _OF_EACH_KIND + 1) as threads:
        for thread in range(number, _PROCESSES * _OF_EACH_KIND, _PROCESSES):
            threads.submit(repeat, "append", _appends(spark, path, thread, log))
            threads.submit(repeat, "merge", _merges(spark, path, thread, log))
        if number == 0:
            threads.submit(repeat, "optimize", lambda: _optimize(spark, path))
    return log


def _appends(spark: SparkSession, path: str, thread: int, log: Log) -> Callable[[], None]:
    new = itertools.count(_COUNTERS + thread, _PROCESSES * _OF_EACH_KIND)

    def append() -> None:
        number = next(new)
        rows = spark.range(number, number + 1, 1, 1).selectExpr("id", "0L AS v")
        done = write_delta(rows, path, mode="append")
        log["appended"].append(number)
        log["retries"].append(done.retries)

    return append


def _merges(spark: SparkSession, path: str, thread: int, log: Log) -> Callable[[], None]:
    chance = random.Random(thread)

    def merge() -> None:
        low = chance.randrange(_COUNTERS - _KEYS + 1)
        rows = spark.range(low, low + _KEYS, 1, 1).selectExpr("id", "1L AS v").alias("s")
        table = DeltaTable.forPath(spark, path).alias("t").merge(rows, "t.id = s.id")
        table = table.whenMatchedUpdate(set={"v": "t.v + s.v"})
        table.whenNotMatchedInsertAll().execute()
        log["merged"].append(low)

    return merge


def _optimize(spark: SparkSession, path: str) -> None:
    optimize(spark, path)
    time.sleep(2)


def inspect(spark: SparkSession, path: str) -> dict[str, Any]:
    """Read the rows of the latest version, and totals of earlier ones beside the totals that the
    history gives; runs in the worker.
    """
    rows = read_delta(spark, path)
    counters = rows.filter(F.col("id") < _COUNTERS).orderBy("id").collect()
    appended = rows.filter(F.col("id") >= _COUNTERS).select("id").orderBy("id").collect()
    operations = DeltaTable.forPath(spark, path).history().select("version", "operation").collect()
    kinds = [operation for _, operation in sorted(operations)]
    assert [version for version, _ in sorted(operations)] == list(range(len(kinds)))
    versions = range(1, len(kinds), max(1, len(kinds) // 10))
    sums = F.count_if(F.col("id") >= _COUNTERS), F.sum("v")
    report = verify(spark, path)
    return {
        "appended": [row["id"] for row in appended],
        "counters": [row["v"] for row in counters],
        "totals": [
            list(read_delta(spark, path, version=version).agg(*sums).head() or ())
            for version in versions
        ],
        "expected totals": [
            [kinds[1 : version + 1].count("WRITE"), kinds[: version + 1].count("MERGE") * _KEYS]
            for version in versions
        ],
        "problems": None if report.is_clean else str(report),
    }
