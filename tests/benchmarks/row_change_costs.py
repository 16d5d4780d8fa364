"""Benchmarks of reads after row changes, and of the memory that row changes take."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta import read_delta
from tests.benchmarks.data import STORED
from tests.benchmarks.measurement import Comparison, NotMeasured, say
from tests.benchmarks.parts import Measured, against_delta_spark
from tests.benchmarks.row_operations import RIVAL_MEMORY, Change, RowBench, row_operations
from tests.support.delta_spark import DELTA_SETTINGS, VERSION, DeltaSpark, DeltaSparkUnavailable
from tests.support.peak_memory import peak_memory
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_COLUMNS = (["customer"], list(STORED))
_RIVAL = f"delta-spark {VERSION}"
_CLUSTER = "tests.benchmarks.session:cluster_session"
READ_BY_DELTA_SPARK = f"{__name__}:read_by_delta_spark"
# By default a heap grows before it is collected, so that its size says little about what is used.
_TIGHT = "-XX:+UseSerialGC -Xms32m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20"
_TIGHT_HEAPS = {f"spark.{role}.extraJavaOptions": _TIGHT for role in ("driver", "executor")}


def reads_after(bench: RowBench) -> Measured:
    """Reads of all rows after operations with deletion vectors in all files."""
    before = str(bench.table(has_vectors=True))
    delete, _, update, merge, *_ = row_operations(bench)
    tables = {}
    for change in (delete, update, merge):
        tables[change.name] = bench.copy(Path(before))
        change.apply(bench.spark, tables[change.name])

    def measure(rival: DeltaSpark) -> Measured:
        def read(path: str, columns: list[str]) -> None:
            rival.run(READ_BY_DELTA_SPARK, path=path, columns=columns)

        try:
            yield from _reads(bench, tables, read, _RIVAL)
        except SparkWorkerError as error:
            yield NotMeasured(bench.stopwatch.suite, _RIVAL, str(error))

    yield from _reads(
        bench, tables, lambda _, columns: read_columns(bench.spark, before, columns), "before it"
    )
    yield from against_delta_spark(bench.stopwatch, RIVAL_MEMORY, measure)
    for table in tables.values():
        shutil.rmtree(table)


def _reads(
    bench: RowBench,
    tables: Mapping[str, Path],
    floor: Callable[[str, list[str]], None],
    floor_name: str,
) -> Iterator[Comparison]:
    for name, table in tables.items():
        for columns in _COLUMNS:
            yield bench.stopwatch.compare(
                f"reading {len(columns)} of {len(STORED)} columns after {name}, deletion vectors",
                partial(read_columns, bench.spark, str(table), columns),
                partial(floor, str(table), columns),
                floor_name=floor_name,
            )


def read_columns(
    spark: SparkSession, path: str, columns: list[str], version: int | None = None
) -> None:
    """Read all rows of a table, or of one of its versions."""
    _compute(read_delta(spark, path, version=version).select(*columns))


def read_by_delta_spark(
    spark: SparkSession, path: str, columns: list[str], version: int | None = None
) -> None:
    """Runs in the worker."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    _compute(reader.load(path).select(*columns))


def _compute(frame: DataFrame) -> None:
    """Compute all values. delta-spark fails to write those of a table with deletion vectors to
    Spark's `noop`.
    """
    plan: Any = frame._jdf.queryExecution()
    plan.toRdd().count()


def memory(bench: RowBench) -> Measured:
    """The most memory that driver and executor have, each operation in processes of its own."""
    delete, _, update, merge, _, many = row_operations(bench)
    for change in (delete, update, merge, many):
        try:
            ours = _peaks(bench, change, SparkWorker, {})
            theirs = _peaks(bench, change, DeltaSpark, DELTA_SETTINGS)
        except DeltaSparkUnavailable as error:
            yield NotMeasured(bench.stopwatch.suite, "delta-spark", str(error).strip())
            return
        except SparkWorkerError as error:
            yield NotMeasured(bench.stopwatch.suite, f"memory of {change.name}", str(error))
            continue
        say(f"{change.name}, MB: {ours}, {_RIVAL}: {theirs}")
        for role in ("driver", "executor"):
            found, floor = (
                sum(size for name, size in peaks.items() if name.startswith(role))
                for peaks in (ours, theirs)
            )
            yield Comparison(
                suite=bench.stopwatch.suite,
                name=f"{change.name}, deletion vectors, peak MB of the {role} instead of seconds",
                floor_name=_RIVAL,
                target=None,
                jobs=None,
                floor_seconds=(floor,),
                seconds=(found,),
            )


def _peaks(
    bench: RowBench, change: Change, worker: type[SparkWorker], settings: Mapping[str, str]
) -> dict[str, float]:
    copy = bench.copy(bench.table(has_vectors=True))
    try:
        with worker(
            session=_CLUSTER,
            cores=bench.spark.sparkContext.defaultParallelism,
            memory=RIVAL_MEMORY,
            settings={**_TIGHT_HEAPS, **settings},
        ) as started:
            peaks: dict[str, float] = started.run(
                f"{__name__}:peaks_of_statement",
                statement=change.sql(copy),
                is_ours=worker is SparkWorker,
            )
    finally:
        shutil.rmtree(copy)
    return peaks


def peaks_of_statement(spark: SparkSession, statement: str, is_ours: bool) -> dict[str, float]:
    """Runs in the worker: megabytes by process."""
    with peak_memory() as peaks:
        frame = sparkdelta.sql(spark, statement) if is_ours else spark.sql(statement)
        frame.collect()
    return {name: size / 1e6 for name, size in sorted(peaks.items())}
