"""Benchmark of everyday operations on tables of 1M, 10M and 100M files, with a driver of 2 GB.

One file in a real partition is changed; all others are only in the log. Each size has a process of
its own, so that nothing is remembered of another.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    optimize,
    vacuum,
    write_checkpoint,
    write_delta,
)
from sparkdelta.operations.checkpoint.checkpoint_options import ADDS_PER_SIDECAR
from tests.benchmarks.file_actions import COLUMNS, DAYS, FIRST_DAY, PARTITION, ROWS
from tests.benchmarks.logs import CHECKPOINT_VERSION, large_log
from tests.benchmarks.measurement import Comparison, Stopwatch, at_most, say
from tests.benchmarks.parts import SESSION, linked
from tests.benchmarks.planning_tables import Planning
from tests.benchmarks.tagged_sidecars import tag_sidecars
from tests.support.spark_worker import SparkWorker

_MEMORY = "2g"
_GROWTH = 10.0  # ten times as many files: no worse than linear
_REAL_FILES, _REAL_DAY = 10, "2023-01-01"
_REAL = f"{PARTITION} = '{_REAL_DAY}'"


def growth(stopwatch: Stopwatch, scale: Planning, scratch: Path) -> Iterator[Comparison]:
    """Each operation on a table against the same on one of a tenth of its files."""
    sizes = [scale.middle.files, scale.large.files, 10 * scale.large.files]
    most = scale.large.files if scale.most_files is None else scale.most_files
    measured: dict[int, dict[str, float]] = {}
    for files in (size for size in sizes if size <= most):
        measured[files] = _operations(stopwatch.spark, scratch, files)
        say(f"{files:,} files: {measured[files]}")
        floor = measured.get(files // 10)
        for name, seconds in measured[files].items() if floor is not None else ():
            assert floor is not None
            yield Comparison(
                suite=stopwatch.suite,
                name=f"{name}, {files:,} files, driver of {_MEMORY}",
                floor_name=f"{files // 10:,} files",
                target=at_most(_GROWTH),
                jobs=None,
                floor_seconds=(floor[name],),
                seconds=(seconds,),
            )


def _operations(spark: SparkSession, scratch: Path, files: int) -> dict[str, float]:
    """Seconds of each operation."""
    log = large_log(files, statistics="few", sidecars=-(-files // ADDS_PER_SIDECAR))
    start = time.perf_counter()
    table = log.write_once(spark, scratch)
    tag_sidecars(spark, table, CHECKPOINT_VERSION)
    say(f"a log of {files:,} files made in {time.perf_counter() - start:.0f} s")
    copy = scratch / f"copy-{uuid4()}"
    shutil.copytree(table, copy, copy_function=linked)
    cores = spark.sparkContext.defaultParallelism
    with SparkWorker(SESSION, cores=cores, memory=_MEMORY) as worker:
        found: str = worker.run(f"{__name__}:measure", path=str(copy), files=files)
    shutil.rmtree(copy)
    seconds: dict[str, float] = json.loads(found)
    return seconds


def measure(spark: SparkSession, path: str, files: int) -> str:
    """Runs in the worker: seconds of each operation by its name, in this order."""
    seconds = {}
    for name, run in _OPERATIONS.items():
        start = time.perf_counter()
        run(spark, path, files)
        seconds[name] = round(time.perf_counter() - start, 2)
        print(f"{files:,} files: {name}: {seconds[name]} s", flush=True)
    return json.dumps(seconds)


def _plan(spark: SparkSession, path: str, files: int) -> None:
    day = FIRST_DAY.isoformat()
    where = f"{PARTITION} = '{day}' AND id < {DAYS * ROWS * 10}"
    found = load_snapshot(spark, path).scan(where=where).files().select("path").collect()
    _check(len(found), min(10, -(-files // DAYS)))


def _append(spark: SparkSession, path: str, files: int) -> None:
    columns = (
        f"CAST(id AS {data_type}) AS {name}"
        if name == "id"
        else f"CAST(NULL AS {data_type}) {name}"
        for name, (data_type, *_) in COLUMNS.items()
    )
    rows = spark.range(-_REAL_FILES * ROWS, 0, 1, 1)
    write_delta(
        rows.selectExpr(*columns, f"DATE'{_REAL_DAY}' AS {PARTITION}"),
        path,
        mode="append",
        max_records_per_file=ROWS,
    )


def _delete(spark: SparkSession, path: str, files: int) -> None:
    table = DeltaTable.forPath(spark, path)
    _check(table.delete(f"{_REAL} AND id = -5").num_deleted_rows, 1)


def _optimize(spark: SparkSession, path: str, files: int) -> None:
    _check(optimize(spark, path, where=_REAL).added.count, 1)


def _checkpoint(spark: SparkSession, path: str, files: int) -> None:
    written = write_checkpoint(spark, path, progress=False)
    _check(written.num_adds, files + 1)


def _restore(spark: SparkSession, path: str, files: int) -> None:
    before_the_delete = load_snapshot(spark, path).version - 2
    DeltaTable.forPath(spark, path).restoreToVersion(before_the_delete)
    _check(load_snapshot(spark, path).live_file_totals().first()[0], files + _REAL_FILES)


def _vacuum(spark: SparkSession, path: str, files: int) -> None:
    found = vacuum(
        spark, path, mode="lite", retention_hours=0, check_retention=False, progress=False
    )
    _check(found.deleted.count, 2)


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(f"{found} instead of {wanted}")


_OPERATIONS: dict[str, Callable[[SparkSession, str, int], None]] = {
    "a selective plan": _plan,
    "an append of ten files": _append,
    "DELETE of one row": _delete,
    "OPTIMIZE of one partition": _optimize,
    "an incremental checkpoint": _checkpoint,
    "RESTORE": _restore,
    "VACUUM LITE": _vacuum,
}
