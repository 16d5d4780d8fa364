"""Statements as the first of a process, as jobs run them. The module imports no sparkdelta: what a
worker needs of it is loaded within the time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import SparkSession

from tests.benchmarks.measurement import Comparison, at_most
from tests.benchmarks.parts import SESSION
from tests.support.delta_spark import DELTA_SETTINGS, VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker

if TYPE_CHECKING:
    from tests.benchmarks.row_operations import RowBench

Statement: TypeAlias = Callable[[Path], str]
"""Returns the statement for a table."""

_MEMORY = "2g"
_TARGETS = {
    "DELETE of 1/1000": (0.45, 0.7),
    "DELETE of one file": (0.3, 0.4),
    "UPDATE": (0.55, 0.6),
    "MERGE of keys in 2%": (0.35, 0.25),
    "OPTIMIZE": (0.5, 0.5),
    "MERGE": (0.5, 0.5),
}
"""By the beginning of an operation's name: on a table with deletion vectors, and on another one."""


def first_changes(bench: RowBench) -> Iterator[Comparison]:
    """Each operation in a process of its own, against delta-spark in another one."""
    from tests.benchmarks.row_operations import row_operations

    *changes, _ = row_operations(bench)
    statements = {change.name: change.sql for change in changes}
    statements["OPTIMIZE of all files"] = lambda table: f"OPTIMIZE delta.`{table}`"
    for has_vectors in (True, False):
        for name, statement in statements.items():
            yield _compared(bench, name, statement, has_vectors=has_vectors)


def _compared(bench: RowBench, name: str, statement: Statement, *, has_vectors: bool) -> Comparison:
    table, cores = bench.table(has_vectors=has_vectors), bench.spark.sparkContext.defaultParallelism
    start = partial(SparkWorker, SESSION, cores=cores, memory=_MEMORY)
    start_delta = partial(
        DeltaSpark, session=SESSION, cores=cores, memory=_MEMORY, settings=DELTA_SETTINGS
    )
    seconds: list[float] = []
    floor_seconds: list[float] = []
    for number in range(bench.stopwatch.pairs.first):
        turns = [(start_delta, floor_seconds), (start, seconds)]
        for worker_of, times in turns if number % 2 == 0 else reversed(turns):
            copy = bench.copy(table)
            with worker_of() as worker:
                times.append(
                    worker.run(
                        f"{__name__}:run_first",
                        statement=statement(copy),
                        has_delta=worker_of is start_delta,
                    )
                )
            shutil.rmtree(copy)
    targets = next(found for begin, found in _TARGETS.items() if name.startswith(begin))
    return Comparison(
        suite=bench.stopwatch.suite,
        name=f"first of a process: {name}, {'deletion vectors' if has_vectors else 'rewrite'}",
        floor_name=f"delta-spark {VERSION}",
        target=at_most(targets[0 if has_vectors else 1]),
        jobs=None,
        floor_seconds=tuple(floor_seconds),
        seconds=tuple(seconds),
    )


def run_first(spark: SparkSession, statement: str, *, has_delta: bool) -> float:
    """Runs in the worker: the seconds of a statement, by the engine that is there."""
    start = time.perf_counter()
    if has_delta:
        spark.sql(statement).collect()
    else:
        import sparkdelta

        sparkdelta.sql(spark, statement).collect()
    return time.perf_counter() - start
