"""Writing: rows against Spark's own Parquet writer, commits against delta-spark's."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import write_delta
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import MAX_VALUE_ACTIONS, Transaction
from sparkdelta.table.snapshot.snapshot import open_snapshot
from tests.benchmarks.data import write_data_files
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, at_most
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, run_parts
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_APPENDS = 10
_NO_CHECKPOINTS = {"delta.checkpointInterval": "1000000"}  # they have a benchmark of their own
_WRITERS = 20
_SMALL_HEAP, _RIVAL_MEMORY = "512m", "2g"


class Sizes(Protocol):
    """The sizes that this module takes from the benchmark's scale."""

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


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    tables: _Tables
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    @property
    def size(self) -> str:
        return f"{self.scale.data_files * self.scale.rows_per_file:,} rows of 8 columns"

    def source(self) -> list[str]:
        """The files that rows come from."""
        directory = self.tables.scratch / "source"
        if not directory.exists():
            write_data_files(
                self.spark,
                directory,
                files=self.scale.data_files,
                rows_per_file=self.scale.rows_per_file,
            )
        return [str(path) for path in sorted(directory.glob("*.parquet"))]


def rows_of_spark(bench: _Bench) -> Iterator[Comparison]:
    """Rows against Spark's own Parquet writer."""
    rows = bench.spark.read.parquet(*bench.source())
    yield bench.stopwatch.compare(
        f"write_delta of {bench.size}",
        partial(bench.tables.written, rows, "write_delta"),
        partial(bench.tables.written, rows, "parquet"),
        floor_name="df.write.parquet",
        target=at_most(1.1),
    )


def concurrent_writers(bench: _Bench) -> Iterator[Comparison]:
    """Twenty threads, an append of a row each, against as many appends in turn."""
    spark, tables, retries = bench.spark, bench.tables, []

    def append(path: str, number: int) -> int:
        rows = spark.range(number, number + 1).coalesce(1)
        return write_delta(rows, path, mode="append").retries

    def run(threads: int) -> None:
        path = tables.new()
        write_delta(spark.range(0), path, properties=_NO_CHECKPOINTS)
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(partial(append, path), range(_WRITERS)))
        if threads > 1:
            retries.append(sum(found))
        shutil.rmtree(path)

    found = bench.stopwatch.compare(
        f"{_WRITERS} appends at once",
        partial(run, _WRITERS),
        partial(run, 1),
        floor_name="in turn",
        counts_jobs=False,
    )
    rate = _WRITERS / sorted(found.seconds)[len(found.seconds) // 2]
    said = f"{rate:.1f} commits per second, {min(retries)} to {max(retries)} retries"
    yield replace(found, name=f"{found.name} ({said})")


def commits_of_delta_spark(bench: _Bench) -> Measured:
    """One-row appends, against delta-spark in a JVM of its own with all of its caches."""

    def compared(rival: DeltaSpark) -> Comparison:
        theirs, ours = bench.tables.new(), bench.tables.new()
        return bench.stopwatch.compare(
            f"{_APPENDS} appends of one row, without a checkpoint",
            partial(append_rows, bench.spark, ours, "sparkdelta"),
            partial(rival.run, f"{__name__}:append_rows", path=theirs, engine="delta"),
            floor_name=f"delta-spark {VERSION}",
            target=at_most(1),
            same_result=False,
        )

    return _against(bench, compared)


def rows_of_delta_spark(bench: _Bench) -> Measured:
    """Many rows, against the same."""
    files = bench.source()
    rows = bench.spark.read.parquet(*files)

    def compared(rival: DeltaSpark) -> Comparison:
        def theirs() -> None:
            path = bench.tables.new()
            rival.run(f"{__name__}:write_by_delta_spark", files=files, path=path)
            shutil.rmtree(path)

        return bench.stopwatch.compare(
            f"write_delta of {bench.size}",
            partial(bench.tables.written, rows, "write_delta"),
            theirs,
            floor_name=f"delta-spark {VERSION}",
            target=at_most(1),
            same_result=False,
        )

    return _against(bench, compared)


def _against(bench: _Bench, compared: Callable[[DeltaSpark], Comparison]) -> Measured:
    def measure(rival: DeltaSpark) -> Measured:
        try:
            yield compared(rival)
        except SparkWorkerError as error:
            yield NotMeasured(bench.stopwatch.suite, f"delta-spark {VERSION}", str(error))

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def append_rows(spark: SparkSession, path: str, engine: str) -> None:
    """Append a row, ten times over, to a table that is made if need be; runs in the worker, too."""
    is_new = not Path(path, "_delta_log").exists()
    for number in range(_APPENDS):
        rows = spark.range(number, number + 1).coalesce(1)
        properties = _NO_CHECKPOINTS if is_new and number == 0 else {}
        if engine == "delta":
            rows.write.format("delta").options(**properties).mode("append").save(path)
        else:
            write_delta(rows, path, mode="append", properties=properties)


def write_by_delta_spark(spark: SparkSession, files: list[str], path: str) -> None:
    """Runs in the worker."""
    spark.read.parquet(*files).write.format("delta").save(path)


def large_commit(bench: _Bench) -> Iterator[Comparison]:
    """A commit of very many file actions by a driver with a small heap, which in local mode the
    executors share.
    """
    actions = max(bench.scale.checkpoint_files, 2 * MAX_VALUE_ACTIONS)
    path, told = bench.tables.new(), []
    cores = bench.spark.sparkContext.defaultParallelism
    with SparkWorker(SESSION, cores=cores, memory=_SMALL_HEAP) as worker:
        for _ in range(bench.stopwatch.pairs.first):
            told.append(worker.run(f"{__name__}:commit_many", path=path, actions=actions))
    yield Comparison(
        suite=bench.stopwatch.suite,
        name=f"a commit of {actions:,} file actions in a heap of {_SMALL_HEAP}",
        floor_name="df.write.json of them",
        target=None,
        jobs=None,
        floor_seconds=tuple(each["floor_seconds"] for each in told),
        seconds=tuple(each["seconds"] for each in told),
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
    begin = time.perf_counter()
    snapshot = open_snapshot(spark, path)
    Transaction(
        spark=spark,
        store=LocalLogStore(snapshot.path),
        snapshot=snapshot,
        operation=Operation("WRITE", {"mode": "Append"}, is_blind_append=True),
        file_actions=adds,
    ).commit()
    return {
        "seconds": time.perf_counter() - begin,
        "floor_seconds": between - start,
    }


WRITE_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "rows": rows_of_spark,
    "concurrent-writers": concurrent_writers,
    "large-commit": large_commit,
    "delta-spark-commits": commits_of_delta_spark,
    "delta-spark-rows": rows_of_delta_spark,
}


def writes(stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    return run_parts(WRITE_PARTS, _Bench(stopwatch, _Tables(scratch), scale), without)
