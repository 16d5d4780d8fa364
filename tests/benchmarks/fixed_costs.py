"""Costs of calls that do little: warm, first in a session, and with filters that come late."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import disable, enable, read_delta, write_delta
from tests.benchmarks.measurement import Comparison, Stopwatch, Target, at_most
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, make_once, run_parts
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker

_COMMITS = 10
_COUNTED_FILES = 20
_RIVAL_MEMORY = "2g"
_NO_CHECKPOINTS = {"delta.checkpointInterval": "1000000"}


class Sizes(Protocol):
    """The sizes that this module takes from the benchmark's scale."""

    @property
    def checkpoint_files(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    scratch: Path
    num_files: int

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    def table(self) -> str:
        """A table of ten commits, of a row each."""
        table = self.scratch / "ten-commits"
        make_once(table, partial(_write_commits, self.spark, str(table)))
        return str(table)

    def counted_table(self) -> str:
        """A table of a thousand rows for each of the other table's files, in a few files."""
        table = self.scratch / "counted"
        rows = self.spark.range(0, 1_000 * self.num_files, 1, _COUNTED_FILES)
        make_once(table, lambda: _write(rows.selectExpr("id", "id % 7 AS k"), table))
        return str(table)

    def copies(self) -> tuple[str, str]:
        """A new copy of that table, and a directory with copies of its data files."""
        table, files = self.scratch / "copy", self.scratch / "data-files"
        for directory in (table, files):
            shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.table(), table)
        files.mkdir()
        for file in table.glob("*.parquet"):
            shutil.copy(file, files)
        return str(table), str(files)


def _write_commits(spark: SparkSession, table: str) -> None:
    for number in range(_COMMITS):
        properties = {} if number else _NO_CHECKPOINTS
        append_by_sparkdelta(spark, table, number, properties=properties)


def warm_calls(bench: _Bench) -> Measured:
    """A read and an append of a small table, against those of Parquet files."""
    spark = bench.spark
    ours, theirs = bench.copies()
    yield bench.stopwatch.compare(
        f"load and count of {_COMMITS} commits",
        partial(count_by_sparkdelta, spark, ours),
        partial(count_by_spark, spark, theirs),
        floor_name="spark.read.parquet",
        target=at_most(1.5),
    )
    yield bench.stopwatch.compare(
        "append of a row",
        partial(append_by_sparkdelta, spark, ours),
        partial(append_by_spark, spark, theirs),
        floor_name="df.write.parquet",
        target=at_most(1.3),
        same_result=False,
    )


def first_calls(bench: _Bench) -> Measured:
    """A read and an append of a small table, each the first call of a new process."""
    ours, theirs = bench.copies()
    for name, candidate, floor, floor_name in (
        ("load and count", "count_by_sparkdelta", "count_by_spark", "spark.read.parquet"),
        ("append of a row", "append_by_sparkdelta", "append_by_spark", "df.write.parquet"),
    ):
        yield _in_new_processes(
            bench,
            f"first call of a session: {name}",
            (candidate, ours),
            (floor, theirs),
            floor_name,
            at_most(2),
        )


def _in_new_processes(
    bench: _Bench,
    name: str,
    candidate: tuple[str, str],
    floor: tuple[str, str],
    floor_name: str,
    target: Target,
) -> Comparison:
    """Functions and their tables; what is measured is the call alone, not the start of Spark."""
    seconds: list[float] = []
    floor_seconds: list[float] = []
    cores = bench.spark.sparkContext.defaultParallelism
    for number in range(bench.stopwatch.pairs.first):
        turns = [(floor, floor_seconds), (candidate, seconds)]
        for (function, path), times in turns if number % 2 == 0 else reversed(turns):
            with SparkWorker(SESSION, cores=cores, memory=_RIVAL_MEMORY) as worker:
                times.append(worker.run(f"{__name__}:timed", name=function, path=path))
    return Comparison(
        suite=bench.stopwatch.suite,
        name=name,
        floor_name=floor_name,
        target=target,
        jobs=None,
        floor_seconds=tuple(floor_seconds),
        seconds=tuple(seconds),
    )


def small_table_of_delta_spark(bench: _Bench) -> Measured:
    """Load and count, warm, against delta-spark."""
    table = bench.table()

    def measure(rival: DeltaSpark) -> Measured:
        yield bench.stopwatch.compare(
            f"load and count of {_COMMITS} commits",
            partial(count_by_sparkdelta, bench.spark, table),
            partial(rival.run, f"{__name__}:count_loaded", path=table),
            floor_name=f"delta-spark {VERSION}, warm",
            target=at_most(0.5),
        )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def counts(bench: _Bench) -> Measured:
    """Count the rows of a table in an enabled session, and of the same files as Parquet."""
    spark, table = bench.spark, bench.counted_table()
    enable(spark)
    try:
        for count_rows in (count_loaded, count_in_sql):
            yield bench.stopwatch.compare(
                f"{count_rows.__name__} of {_COUNTED_FILES} files",
                partial(count_rows, spark, table),
                partial(count_by_spark, spark, table),
                floor_name="spark.read.parquet(...).count()",
                target=at_most(0.5),
            )
    finally:
        disable(spark)


def counts_of_delta_spark(bench: _Bench) -> Measured:
    """The same, against delta-spark."""
    spark, table = bench.spark, bench.counted_table()

    def measure(rival: DeltaSpark) -> Measured:
        for count_rows in (count_loaded, count_in_sql):
            name = count_rows.__name__
            yield bench.stopwatch.compare(
                f"{name} of {_COUNTED_FILES} files",
                partial(count_rows, spark, table),
                partial(rival.run, f"{__name__}:{name}", path=table),
                floor_name=f"delta-spark {VERSION}, warm",
                target=at_most(1),
            )

    enable(spark)
    try:
        yield from against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)
    finally:
        disable(spark)


def late_filters(bench: _Bench) -> Measured:
    """Planning with a filter that comes after the read, against `where=`."""
    spark, files = bench.spark, bench.num_files
    path = bench.scratch / f"{files}-files"
    rows = spark.range(0, 10 * files, 1, files).selectExpr("id", "id % 7 AS k")
    make_once(path, lambda: _write(rows, path))
    conditions = (f"id = {number}" for number in count())  # lists of files are kept by condition
    yield bench.stopwatch.compare(
        f"a row of {files:,} files by .filter",
        lambda: read_delta(spark, str(path)).filter(next(conditions)).count(),
        lambda: read_delta(spark, str(path), where=next(conditions)).count(),
        floor_name="where=",
        target=at_most(1.2),
    )


def _write(rows: DataFrame, path: Path) -> None:
    write_delta(rows, str(path))


def timed(spark: SparkSession, name: str, path: str) -> float:
    """Runs in the worker: the seconds of a function of this module."""
    call: Callable[[SparkSession, str], object] = globals()[name]
    start = time.perf_counter()
    call(spark, path)
    return time.perf_counter() - start


def count_by_sparkdelta(spark: SparkSession, path: str) -> int:
    """Runs in the worker."""
    return read_delta(spark, path).count()


def count_by_spark(spark: SparkSession, path: str) -> int:
    """Runs in the worker."""
    return spark.read.parquet(path).count()


def count_loaded(spark: SparkSession, path: str) -> int:
    """Runs in the worker of delta-spark, and in an enabled session."""
    return spark.read.format("delta").load(path).count()


def count_in_sql(spark: SparkSession, path: str) -> int:
    """Runs where `count_loaded` does."""
    [(found,)] = spark.sql(f"SELECT count(*) FROM delta.`{path}`").collect()
    return int(found)


def append_by_sparkdelta(
    spark: SparkSession, path: str, number: int = 0, properties: dict[str, str] | None = None
) -> None:
    """Runs in the worker."""
    rows = spark.range(number, number + 1).coalesce(1)
    write_delta(rows, path, mode="append", properties=properties or {})


def append_by_spark(spark: SparkSession, path: str) -> None:
    """Runs in the worker."""
    spark.range(1).coalesce(1).write.mode("append").parquet(path)


FIXED_COST_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "warm-calls": warm_calls,
    "first-calls": first_calls,
    "delta-spark-small-table": small_table_of_delta_spark,
    "counts": counts,
    "delta-spark-counts": counts_of_delta_spark,
    "late-filters": late_filters,
}


def fixed_costs(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    return run_parts(
        FIXED_COST_PARTS, _Bench(stopwatch, scratch, scale.checkpoint_files // 100), without
    )
