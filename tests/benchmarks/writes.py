"""Writing: rows against Spark's own Parquet writer, commits against delta-spark's."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import write_delta
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.storage.local import LocalLogStore
from sparkdelta.table.snapshot import open_snapshot
from sparkdelta.table.transaction import MAX_VALUE_ACTIONS, Transaction
from tests.benchmarks.data import write_data_files
from tests.benchmarks.measurement import Comparison, NotMeasured, Pairs, Stopwatch, at_most
from tests.support.delta_spark import DELTA_SETTINGS, VERSION, DeltaSpark, DeltaSparkUnavailable
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_SESSION = "tests.benchmarks.session:local_session"
_APPENDS = 10  # one of them writes a checkpoint
_WRITERS = 20
_SMALL_HEAP = "512m"


class Sizes(Protocol):
    """Of the benchmark's scale."""

    @property
    def data_files(self) -> int: ...
    @property
    def rows_per_file(self) -> int: ...
    @property
    def checkpoint_files(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Tables:
    """New tables, each gone after its use."""

    scratch: Path

    def new(self) -> str:
        return str(self.scratch / f"table-{uuid4()}")

    def written(self, rows: DataFrame, how: str) -> None:
        path = self.new()
        try:
            if how == "write_delta":
                write_delta(rows, path)
            else:
                rows.write.parquet(path)
        finally:
            shutil.rmtree(path, ignore_errors=True)


def writes(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Iterator[Comparison | NotMeasured]:
    """All of it; `without` names parts that are left out."""
    spark, tables = stopwatch.spark, _Tables(scratch)
    source = scratch / "source"
    files = write_data_files(
        spark, source, files=scale.data_files, rows_per_file=scale.rows_per_file
    )
    size = f"{scale.data_files * scale.rows_per_file:,} rows of 8 columns"
    rows = spark.read.parquet(*map(str, files))
    yield stopwatch.compare(
        f"write_delta of {size}",
        partial(tables.written, rows, "write_delta"),
        partial(tables.written, rows, "parquet"),
        floor_name="df.write.parquet",
        target=at_most(1.1),
    )
    yield concurrent_writers(stopwatch, tables)
    if "delta-spark-writes" not in without:
        yield from against_delta_spark(stopwatch, tables, [str(f) for f in files], size)
    if "large-commit" not in without:
        yield large_commit(stopwatch, tables, max(scale.checkpoint_files, 2 * MAX_VALUE_ACTIONS))


def concurrent_writers(stopwatch: Stopwatch, tables: _Tables) -> Comparison:
    """Twenty threads, an append of a row each, against as many appends in turn."""
    spark, retries = stopwatch.spark, []

    def append(path: str, number: int) -> int:
        rows = spark.range(number, number + 1).coalesce(1)
        return write_delta(rows, path, mode="append").retries

    def run(threads: int) -> None:
        path = tables.new()
        write_delta(spark.range(0), path)
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(partial(append, path), range(_WRITERS)))
        if threads > 1:
            retries.append(sum(found))
        shutil.rmtree(path)

    found = stopwatch.compare(
        f"{_WRITERS} appends at once", partial(run, _WRITERS), partial(run, 1), floor_name="in turn"
    )
    rate = _WRITERS / sorted(found.seconds)[len(found.seconds) // 2]
    said = f"{rate:.1f} commits per second, {min(retries)} to {max(retries)} retries"
    return replace(found, name=f"{found.name} ({said})")


def against_delta_spark(
    stopwatch: Stopwatch, tables: _Tables, files: list[str], size: str
) -> Iterator[Comparison | NotMeasured]:
    """In a JVM of its own, with all of its caches."""
    spark = stopwatch.spark
    rival = DeltaSpark(
        session=_SESSION,
        cores=spark.sparkContext.defaultParallelism,
        memory="2g",
        settings=DELTA_SETTINGS,
    )
    try:
        rival.start()
    except DeltaSparkUnavailable as error:
        yield NotMeasured(stopwatch.suite, "delta-spark", str(error))
        return
    try:
        theirs, ours = tables.new(), tables.new()
        yield stopwatch.compare(
            f"{_APPENDS} appends of one row, one of them with a checkpoint",
            partial(append_rows, spark, ours, "sparkdelta"),
            partial(rival.run, f"{__name__}:append_rows", path=theirs, engine="delta"),
            floor_name=f"delta-spark {VERSION}",
            target=at_most(1),
            same_result=False,
        )

        def write_theirs() -> None:
            path = tables.new()
            rival.run(f"{__name__}:write_by_delta_spark", files=files, path=path)
            shutil.rmtree(path)

        rows = spark.read.parquet(*files)
        yield stopwatch.compare(
            f"write_delta of {size}",
            partial(tables.written, rows, "write_delta"),
            write_theirs,
            floor_name=f"delta-spark {VERSION}",
            target=at_most(1),
            same_result=False,
        )
    except SparkWorkerError as error:
        yield NotMeasured(stopwatch.suite, f"delta-spark {VERSION}", str(error))
    finally:
        rival.stop()


def append_rows(spark: SparkSession, path: str, engine: str) -> None:
    """Append a row, ten times over; runs in the worker, too."""
    for number in range(_APPENDS):
        rows = spark.range(number, number + 1).coalesce(1)
        if engine == "delta":
            rows.write.format("delta").mode("append").save(path)
        else:
            write_delta(rows, path, mode="append")


def write_by_delta_spark(spark: SparkSession, files: list[str], path: str) -> None:
    """Runs in the worker."""
    spark.read.parquet(*files).write.format("delta").save(path)


def large_commit(stopwatch: Stopwatch, tables: _Tables, actions: int) -> Comparison:
    """Of very many file actions, by a driver with a small heap, which in local mode is all that the
    executors have, too.
    """
    path, seconds, floor_seconds, peaks = tables.new(), [], [], []
    with SparkWorker(
        _SESSION, cores=stopwatch.spark.sparkContext.defaultParallelism, memory=_SMALL_HEAP
    ) as worker:
        for _ in range(Pairs(stopwatch.pairs.first, 0).first):
            told = worker.run(f"{__name__}:commit_many", path=path, actions=actions)
            seconds.append(told["seconds"])
            floor_seconds.append(told["floor_seconds"])
            peaks.append(told["peak_mb"])
    return Comparison(
        suite=stopwatch.suite,
        name=f"a commit of {actions:,} file actions, heap of {_SMALL_HEAP}, at most "
        f"{max(peaks):.0f} MB of it used",
        floor_name="df.write.json of them",
        target=None,
        jobs=None,
        floor_seconds=tuple(floor_seconds),
        seconds=tuple(seconds),
    )


def commit_many(spark: SparkSession, path: str, actions: int) -> dict[str, float]:
    """Runs in the worker, on a new table or after its last version."""
    if not Path(path, "_delta_log").exists():
        write_delta(spark.range(0), path)
    adds = spark.range(actions).selectExpr(
        f"struct(concat(uuid(), '-{uuid4()}.parquet') AS path, map() AS partitionValues, "
        "1000L AS size, 1L AS modificationTime, true AS dataChange, "
        """concat('{"numRecords":10,"minValues":{"id":', id, ',"note":"', md5(string(id)), """
        """'"},"maxValues":{"id":', id, '},"nullCount":{"id":0}}') AS stats) AS add"""
    )
    floor = f"{path}-floor"
    start = time.perf_counter()
    adds.write.json(floor)
    between = time.perf_counter()
    shutil.rmtree(floor)
    pools: Any = list(_memory_pools(spark))
    for pool in pools:
        pool.resetPeakUsage()
    begin = time.perf_counter()
    snapshot = open_snapshot(spark, path)
    Transaction(
        store=LocalLogStore(snapshot.path),
        snapshot=snapshot,
        operation=Operation("WRITE", {"mode": "Append"}, is_blind_append=True),
        file_actions=adds,
    ).commit()
    return {
        "seconds": time.perf_counter() - begin,
        "floor_seconds": between - start,
        "peak_mb": sum(pool.getPeakUsage().getUsed() for pool in pools) / 2**20,
    }


def _memory_pools(spark: SparkSession) -> Iterator[Any]:
    jvm: Any = spark._jvm
    for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans():
        if str(pool.getType()) == "Heap memory":
            yield pool


WRITE_PARTS = ("delta-spark-writes", "large-commit")
