"""DELETE, UPDATE and MERGE against delta-spark, on copies of one table."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from tests.benchmarks.copied_tables import Sizes
from tests.benchmarks.data import STORED
from tests.benchmarks.first_changes import first_changes
from tests.benchmarks.logs import large_log
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, run_parts
from tests.benchmarks.row_change_costs import memory, reads_after
from tests.benchmarks.row_operations import (
    RIVAL_MEMORY,
    STATEMENT,
    Change,
    RowBench,
    row_operations,
)
from tests.support.delta_spark import VERSION, DeltaSpark, DeltaSparkUnavailable
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_SMALL_HEAP = "1g"
_UPDATES, _THREADS = 20, 4
_SHARES = (0.01, 0.05, 0.1, 0.2, 0.4)
_UNPAIRED = -1  # the `id` of a row that no other file's statistics include


def changes_of_delta_spark(bench: RowBench, *, has_vectors: bool) -> Measured:
    """Each operation, on a table that has deletion vectors or not."""

    def measure(rival: DeltaSpark) -> Measured:
        for change in row_operations(bench):
            try:
                yield _compared(bench, rival, change, has_vectors=has_vectors)
            except SparkWorkerError as error:
                yield NotMeasured(bench.stopwatch.suite, change.name, str(error))

    return against_delta_spark(bench.stopwatch, RIVAL_MEMORY, measure)


def _compared(
    bench: RowBench, rival: DeltaSpark, change: Change, *, has_vectors: bool
) -> Comparison:
    table = bench.table(has_vectors=has_vectors)
    last: dict[str, Path] = {}

    def run(engine: str) -> None:
        if engine in last:
            shutil.rmtree(last[engine])
        copy = last[engine] = bench.copy(table)
        if engine == "delta":
            rival.run(STATEMENT, statement=change.sql(copy))
        else:
            change.apply(bench.spark, copy)

    try:
        found = bench.stopwatch.compare(
            f"{change.name}, {'deletion vectors' if has_vectors else 'rewrite'}",
            partial(run, "sparkdelta"),
            partial(run, "delta"),
            floor_name=f"delta-spark {VERSION}",
            target=change.with_vectors if has_vectors else change.with_rewrite,
            same_result=False,
        )
        ours, theirs = (_digest(bench.spark, last[name]) for name in ("sparkdelta", "delta"))
        if ours != theirs:
            raise ValueError(f"{found.name}: {ours} instead of {theirs}")
    finally:
        for copy in last.values():
            shutil.rmtree(copy)
    return found


def _digest(spark: SparkSession, table: Path) -> list[object]:
    """The number of rows and a sum over all values, which do not depend on the order of rows."""
    hashed = F.xxhash64(*STORED).cast("decimal(38, 0)")
    return list(read_delta(spark, str(table)).agg(F.count("*"), F.sum(hashed)).first() or [])


def deleted_shares(bench: RowBench) -> Iterator[Comparison]:
    """Reads of files a share of whose rows is deleted by vectors, against files written again: the
    reason for the default of the table property `sparkdelta.maxDeletedShare`.
    """
    for share in _SHARES:
        tables = []
        for kept in ("1", "0"):
            copy = bench.copy(bench.table(has_vectors=True))
            properties = {"sparkdelta.maxDeletedShare": kept}
            alter_table(bench.spark, str(copy)).set_properties(properties)
            DeltaTable.forPath(bench.spark, str(copy)).delete(f"quantity < {round(share * 1000)}")
            tables.append(copy)
        for columns in (["customer"], list(STORED)):
            frames = [read_delta(bench.spark, str(table)).select(*columns) for table in tables]
            with_vectors, rewritten = (partial(_read, frame) for frame in frames)
            yield bench.stopwatch.compare(
                f"reading {len(columns)} of {len(STORED)} columns, {share:.0%} of the rows deleted",
                with_vectors,
                rewritten,
                floor_name="rewritten",
            )
        for table in tables:
            shutil.rmtree(table)


def _read(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def concurrent_updates(bench: RowBench) -> Iterator[Comparison]:
    """Updates of different rows of one file by several threads, none of which fails."""
    table = bench.scratch / "one-file"
    write_delta(
        bench.spark.range(1000).coalesce(1).withColumn("note", F.lit("")),
        str(table),
        properties={"delta.enableDeletionVectors": "true"},
    )

    def update(path: str, number: int) -> int:
        rows = DeltaTable.forPath(bench.spark, path)
        return rows.update(f"id = {number * 7}", {"note": f"'{number}'"}).retries

    def run(threads: int) -> None:
        copy = bench.copy(table)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(partial(update, str(copy)), range(_UPDATES)))
        changed = read_delta(bench.spark, str(copy)).filter("note <> ''").count()
        if changed != _UPDATES:
            raise ValueError(f"{changed} rows have new values instead of {_UPDATES}")
        shutil.rmtree(copy)

    yield bench.stopwatch.compare(
        f"{_UPDATES} updates of one row of one file, {_THREADS} at a time",
        partial(run, _THREADS),
        partial(run, 1),
        floor_name="in turn",
        counts_jobs=False,
    )


def row_of_large_table(bench: RowBench) -> Iterator[Comparison]:
    """DELETE of a row by its key from a table of very many files, by a driver with little memory.

    The floor is a scan for the row.
    """
    log = large_log(bench.scale.checkpoint_files)
    table = log.write_once(bench.spark, bench.scratch)
    cores = bench.spark.sparkContext.defaultParallelism
    times = []
    with SparkWorker(SESSION, cores=cores, memory=_SMALL_HEAP) as worker:
        for _ in range(bench.stopwatch.pairs.first + 1):
            copy = bench.copy(table)
            times.append(worker.run(f"{__name__}:delete_one_row", path=str(copy)))
            shutil.rmtree(copy)
    yield Comparison(
        suite=bench.stopwatch.suite,
        name=f"DELETE of one row by key, {log.files:,} files, driver of {_SMALL_HEAP}",
        floor_name="count of the row",
        target=None,
        jobs=None,
        floor_seconds=tuple(each["floor_seconds"] for each in times[1:]),
        seconds=tuple(each["seconds"] for each in times[1:]),
    )


def delete_one_row(spark: SparkSession, path: str) -> dict[str, float]:
    """Add a row, the only one whose file is there, and delete it; runs in the worker."""
    schema = load_snapshot(spark, path).schema
    values = {"id": F.lit(_UNPAIRED), "date": F.lit("2024-06-01")}
    columns = [
        values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
        for field in schema
    ]
    write_delta(spark.range(1).select(*columns), path, mode="append")
    key = f"id = {_UNPAIRED}"
    start = time.perf_counter()
    if read_delta(spark, path, where=key).count() != 1:
        raise ValueError("the row is not there")
    between = time.perf_counter()
    result = DeltaTable.forPath(spark, path).delete(key)
    end = time.perf_counter()
    if result.num_deleted_rows != 1:
        raise ValueError(f"{result}")
    return {"floor_seconds": between - start, "seconds": end - between}


def first_changes_of_delta_spark(bench: RowBench) -> Measured:
    """Each operation as the first of a process."""
    try:
        yield from first_changes(bench)
    except DeltaSparkUnavailable as error:
        yield NotMeasured(bench.stopwatch.suite, "delta-spark", str(error).strip())


ROW_CHANGE_PARTS: dict[str, Callable[[RowBench], Measured]] = {
    "delta-spark-vectors": partial(changes_of_delta_spark, has_vectors=True),
    "delta-spark-rewrite": partial(changes_of_delta_spark, has_vectors=False),
    "delta-spark-first-changes": first_changes_of_delta_spark,
    "reads-after": reads_after,
    "memory": memory,
    "deleted-shares": deleted_shares,
    "concurrent-updates": concurrent_updates,
    "large-table": row_of_large_table,
}


def row_changes(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    return run_parts(ROW_CHANGE_PARTS, RowBench(stopwatch, scratch, scale), without)
