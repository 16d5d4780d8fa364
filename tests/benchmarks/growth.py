"""Benchmark of everyday operations on tables of 10,000 to a billion files, with a driver of 2 GB.

Ten files in a real partition are changed; all others are only in the log. Each size has a process
of its own, so that nothing is remembered of another.
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
    read_changes,
    read_stream,
    vacuum,
    write_checkpoint,
    write_delta,
)
from tests.benchmarks.file_actions import COLUMNS, FIRST_DAY, PARTITION, ROWS
from tests.benchmarks.growth_logs import GrowthLog
from tests.benchmarks.measurement import Comparison, Stopwatch, at_most, say
from tests.benchmarks.parts import SESSION, linked
from tests.benchmarks.planning_tables import Planning
from tests.support.peak_memory import peak_memory
from tests.support.spark_worker import SparkWorker

_MEMORY = "2g"
_GROWTH = 10.0  # ten times as many files: no worse than linear
_MOST_FILES_OF_ALL = 100_000_000
"""Operations that read all files take an hour each where a table has more of them than this."""

_REAL_FILES, _REAL_DAY = 10, "2023-01-01"
_DELETED = 17  # 14 that DELETE, OPTIMIZE, MERGE and RESTORE have replaced, and 3 of change data
_REAL = f"{PARTITION} = '{_REAL_DAY}'"


def growth(stopwatch: Stopwatch, scale: Planning, scratch: Path) -> Iterator[Comparison]:
    """Each operation on a table against the same on one of a tenth of its files."""
    files = scale.small.files // 10
    most = scale.large.files if scale.most_files is None else scale.most_files
    floor: dict[str, float] = {}
    while files <= most:
        measured = _operations(stopwatch.spark, scratch, files)
        say(f"{files:,} files: {measured}")
        for name in (name for name in measured if name in floor):
            yield Comparison(
                suite=stopwatch.suite,
                name=f"{name}, {files:,} files, driver of {_MEMORY}",
                floor_name=f"{files // 10:,} files",
                target=at_most(_GROWTH),
                jobs=None,
                floor_seconds=(floor[name],),
                seconds=(measured[name],),
            )
        files, floor = 10 * files, measured


def _operations(spark: SparkSession, scratch: Path, files: int) -> dict[str, float]:
    """Seconds of each operation."""
    start = time.perf_counter()
    table = GrowthLog(files).write_once(spark, scratch)
    say(f"a log of {files:,} files made in {time.perf_counter() - start:.0f} s")
    copy = scratch / f"copy-{uuid4()}"
    shutil.copytree(table, copy, copy_function=linked)
    cores = spark.sparkContext.defaultParallelism
    try:
        with SparkWorker(SESSION, cores=cores, memory=_MEMORY) as worker:
            found = json.loads(worker.run(f"{__name__}:measure", path=str(copy), files=files))
    finally:
        shutil.rmtree(copy)
    say(f"{files:,} files: peak memory: {found['memory']}")
    seconds: dict[str, float] = found["seconds"]
    return seconds


def measure(spark: SparkSession, path: str, files: int) -> str:
    """Runs in the worker: seconds of each operation by its name, in this order, and the memory that
    they took in all.
    """
    seconds = {}
    operations = _OPERATIONS | (_OF_ALL_FILES if files <= _MOST_FILES_OF_ALL else {})
    with peak_memory() as peaks:
        for name, run in operations.items():
            start = time.perf_counter()
            run(spark, path, files)
            if name not in _PREPARATIONS:
                seconds[name] = round(time.perf_counter() - start, 2)
    memory = {"heap": _peak_heap(spark), **peaks}
    shown = {role: f"{size >> 20:,} MB" for role, size in memory.items()}
    return json.dumps({"seconds": seconds, "memory": shown})


def _peak_heap(spark: SparkSession) -> int:
    """The most bytes of the heap that were used at a time, garbage included."""
    management = spark._jvm.java.lang.management
    pools = management.ManagementFactory.getMemoryPoolMXBeans()
    heap = management.MemoryType.HEAP
    return sum(pool.getPeakUsage().getUsed() for pool in pools if pool.getType() == heap)


def _plan(spark: SparkSession, path: str, files: int) -> None:
    where = f"{PARTITION} = '{FIRST_DAY}' AND id < {10 * ROWS}"
    found = load_snapshot(spark, path).scan(where=where).files().select("path").collect()
    log = GrowthLog(files)
    _check(len(found), sum(log.day_of(number) == FIRST_DAY for number in range(10)))


def _append(spark: SparkSession, path: str, files: int) -> None:
    _append_rows(spark, path, -_REAL_FILES * ROWS, 0)


def _append_rows(spark: SparkSession, path: str, first: int, end: int) -> None:
    columns = (
        f"CAST(id AS {data_type}) AS {name}"
        if name == "id"
        else f"CAST(NULL AS {data_type}) {name}"
        for name, (data_type, *_) in COLUMNS.items()
    )
    write_delta(
        spark.range(first, end, 1, 1).selectExpr(*columns, f"DATE'{_REAL_DAY}' AS {PARTITION}"),
        path,
        mode="append",
        max_records_per_file=ROWS,
    )


def _delete(spark: SparkSession, path: str, files: int) -> None:
    table = DeltaTable.forPath(spark, path)
    _check(table.delete(f"{_REAL} AND id = -5").num_deleted_rows, 1)


def _optimize(spark: SparkSession, path: str, files: int) -> None:
    _check(optimize(spark, path, where=_REAL).added.count, 1)


def _merge(spark: SparkSession, path: str, files: int) -> None:
    source = spark.range(-2_000, -1_000).alias("s")
    table = DeltaTable.forPath(spark, path).alias("t")
    merge = table.merge(source, f"t.{PARTITION} = DATE'{_REAL_DAY}' AND t.id = s.id")
    done = merge.whenMatchedUpdate(set={"quantity": "1"}).execute()
    _check(done.first()["num_updated_rows"], 1_000)


def _small_appends(spark: SparkSession, path: str, files: int) -> None:
    for first in range(6):
        _append_rows(spark, path, first, first + 1)


def _changes(spark: SparkSession, path: str, files: int) -> None:
    newest = load_snapshot(spark, path).version
    changes = read_changes(spark, path, start_version=newest - 9, progress=False)
    # The ten files' rows, a deleted row, both images of each updated row, and six small appends.
    _check(changes.count(), _REAL_FILES * ROWS + 1 + 2 * 1_000 + 6)


def _stream(spark: SparkSession, path: str, files: int) -> None:
    newest = load_snapshot(spark, path).version
    counts: list[int] = []
    query = (
        read_stream(spark, path, starting_version=newest)
        .writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
        .option("checkpointLocation", f"{path}-stream")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shutil.rmtree(f"{path}-stream")
    _check(sum(counts), 1)


def _history(spark: SparkSession, path: str, files: int) -> None:
    _check(len(DeltaTable.forPath(spark, path).history(10).collect()), 10)


def _checkpoint(spark: SparkSession, path: str, files: int) -> None:
    written = write_checkpoint(spark, path, progress=False)
    _check(written.num_adds, files + 1 + 6 + 1)


def _count(spark: SparkSession, path: str, files: int) -> None:
    _check(load_snapshot(spark, path).live_file_totals().first()[0], files + 1 + 6 + 1)


def _restore(spark: SparkSession, path: str, files: int) -> None:
    two_ago = load_snapshot(spark, path).version - 2
    DeltaTable.forPath(spark, path).restoreToVersion(two_ago)
    _check(load_snapshot(spark, path).live_file_totals().first()[0], files + 1 + 4 + 1)


def _vacuum(spark: SparkSession, path: str, files: int) -> None:
    found = vacuum(
        spark, path, mode="lite", retention_hours=0, check_retention=False, progress=False
    )
    _check(found.deleted.count, _DELETED)


def _whole_checkpoint(spark: SparkSession, path: str, files: int) -> None:
    written = write_checkpoint(spark, path, incremental=False, progress=False)
    _check(written.num_adds, files + 1 + 4 + 1)


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(f"{found} instead of {wanted}")


_OPERATIONS: dict[str, Callable[[SparkSession, str, int], None]] = {
    "a selective plan, first call": _plan,
    "the plan again": _plan,
    "an append of ten files": _append,
    "DELETE of one row": _delete,
    "OPTIMIZE of one partition": _optimize,
    "MERGE in one partition": _merge,
    "six small appends": _small_appends,
    "changes of ten commits": _changes,
    "a stream of the last commit": _stream,
    "history(10)": _history,
    "an incremental checkpoint": _checkpoint,
    "a count of all files": _count,
}
_PREPARATIONS = ("six small appends",)
_OF_ALL_FILES: dict[str, Callable[[SparkSession, str, int], None]] = {
    "RESTORE": _restore,
    "VACUUM LITE": _vacuum,
    "a full checkpoint": _whole_checkpoint,
}
