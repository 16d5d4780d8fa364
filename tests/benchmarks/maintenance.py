"""Maintenance of tables, clones and conversions against delta-spark, on copies of one table."""

from __future__ import annotations

import json
import operator
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    clone,
    convert_to_delta,
    load_snapshot,
    optimize,
    read_delta,
    vacuum,
    write_checkpoint,
    write_delta,
)
from tests.benchmarks.copied_tables import Bench, Sizes
from tests.benchmarks.file_actions import BYTES, path_of
from tests.benchmarks.logs import CheckpointedLog, large_log
from tests.benchmarks.measurement import Stopwatch, at_most, say
from tests.benchmarks.parts import (
    SESSION,
    Measured,
    against_delta_spark,
    linked,
    make_once,
    run_parts,
)
from tests.support.delta_spark import DeltaSpark
from tests.support.log_writer import write_commit
from tests.support.spark_worker import SparkWorker
from tests.support.table_builder import add, metadata, protocol, remove

_RIVAL_MEMORY, _SMALL_HEAP = "2g", "1g"
_RIVAL_CLONE_MEMORY = "8g"  # with 2 GB it fails: the heap is too small
_DIRECTORIES = 100
_HOUR = 3600
_RESTORED_COMMITS, _FIRST_COMMIT = 100, 11
_ROWS_PER_SMALL_FILE = 10_000
_FILES_AFTER = 16  # an optimized table, about
_SELECTIVE = ("x BETWEEN 300000 AND 301000", "y = '400000'")  # away from the halves of a curve
_ROWS_PER_CONVERTED_FILE = 100


def vacuum_of_delta_spark(bench: Bench) -> Measured:
    """VACUUM of a table of which half of the files were removed, by listing and by the log, which
    has a checkpoint or not.
    """
    files = bench.scale.checkpoint_files // 10
    table, with_checkpoint = bench.scratch / "removed", bench.scratch / "removed-checkpoint"
    _write_removed(table, files)
    shutil.copytree(table, with_checkpoint, copy_function=linked)
    write_checkpoint(bench.spark, str(with_checkpoint))

    def measure(rival: DeltaSpark) -> Measured:
        for mode, root, what, target in (
            ("full", table, "", at_most(0.5)),
            ("lite", table, "", at_most(0.3)),
            ("lite", with_checkpoint, ", with a checkpoint", at_most(0.3)),
        ):
            statement = "VACUUM delta.`{table}` " + mode.upper()
            yield from bench.tried(
                partial(
                    bench.compare,
                    f"VACUUM {mode.upper()} of {files:,} files, {files // 2:,} to delete{what}",
                    root,
                    partial(vacuum, bench.spark, mode=mode, progress=False),
                    partial(_run, rival, statement),
                    target,
                    lambda copy: sum(len(names) for *_, names in os.walk(copy / "data")),
                ),
            )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def restore_of_delta_spark(bench: Bench) -> Measured:
    """RESTORE of a table of very many files to a hundred versions ago, with a small heap."""
    files = bench.scale.checkpoint_files
    log = CheckpointedLog(
        layout="sorted",
        statistics="both",
        files=files,
        sidecars=8,
        tail_commits=_RESTORED_COMMITS + 1,  # delta-spark restores only versions with a commit
        actions_per_commit=min(100, files // _RESTORED_COMMITS),
    )
    table = log.write_once(bench.spark, bench.scratch)
    count = log.tail_commits * log.actions_per_commit
    for number in range(0, count * (files // count), files // count):
        file = table / path_of(number, number)
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.truncate(file, BYTES)
    cores = bench.spark.sparkContext.defaultParallelism

    def measure(rival: DeltaSpark) -> Measured:
        with SparkWorker(SESSION, cores=cores, memory=_SMALL_HEAP) as worker:
            yield from bench.tried(
                partial(
                    bench.compare,
                    f"RESTORE of {files:,} files to {_RESTORED_COMMITS} versions ago, driver of "
                    f"{_SMALL_HEAP}",
                    table,
                    lambda copy: worker.run(f"{__name__}:restore_by_sparkdelta", path=copy),
                    partial(
                        _run, rival, f"RESTORE delta.`{{table}}` TO VERSION AS OF {_FIRST_COMMIT}"
                    ),
                    at_most(0.3),
                    lambda _: None,
                ),
            )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def optimize_of_delta_spark(bench: Bench) -> Measured:
    """OPTIMIZE of many small files: compacted, in Z-order by two columns, clustered by them."""
    rows = bench.scale.data_files * bench.scale.rows_per_file
    plain, clustered = bench.scratch / "small-files", bench.scratch / "clustered"
    for table, columns in ((plain, None), (clustered, ["x", "y"])):
        write_delta(_points(bench.spark, 0, rows), str(table), cluster_by=columns)
    totals = load_snapshot(bench.spark, str(plain)).add_files().selectExpr("sum(size)", "count(*)")
    [(total, files)] = totals.collect()
    size, shown = total // _FILES_AFTER, f"{rows:,} rows in {files:,} files"

    def measure(rival: DeltaSpark) -> Measured:
        for name, table, options, clause, target, check, agrees in (
            ("OPTIMIZE", plain, {}, "", at_most(0.7), _files, operator.eq),
            ("Z-order by two columns", plain, {"zorder_by": ["x", "y"]}, "ZORDER BY (x, y)",
             at_most(0.8), _selected_files, _no_more),
            ("clustering by two columns", clustered, {}, "", at_most(0.8),
             _selected_files, _no_more),
        ):  # fmt: skip
            yield from bench.tried(
                partial(
                    bench.compare,
                    f"{name} of {shown}",
                    table,
                    partial(optimize, bench.spark, target_file_size=size, **options),
                    partial(_run, rival, "OPTIMIZE delta.`{table}` " + clause, max_file_size=size),
                    target,
                    partial(check, bench.spark),
                    agrees,
                ),
            )
        again = partial(optimize, bench.spark, target_file_size=size)
        again(str(clustered), min_cube_size=1)
        write_delta(_points(bench.spark, rows, rows + rows // 100), str(clustered), mode="append")
        found = bench.compare(
            f"clustering after 1% new rows, {shown}",
            clustered,
            partial(again, min_cube_size=1),
            again,
            at_most(0.1),
            lambda _: None,
        )
        yield replace(found, floor_name="clustering of all")

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def clone_of_delta_spark(bench: Bench) -> Measured:
    """SHALLOW CLONE of a table of very many files, with a small heap."""
    files = bench.scale.checkpoint_files
    table = large_log(files).write_once(bench.spark, bench.scratch)
    cores = bench.spark.sparkContext.defaultParallelism

    def cloned(copy: Path) -> int:
        target = _clone_of(str(copy))
        count = load_snapshot(bench.spark, target).add_files().count()
        shutil.rmtree(target)
        return count

    def measure(rival: DeltaSpark) -> Measured:
        with SparkWorker(SESSION, cores=cores, memory=_SMALL_HEAP) as worker:
            yield from bench.tried(
                partial(
                    bench.compare,
                    f"shallow clone of {files:,} files, driver of {_SMALL_HEAP}",
                    table,
                    lambda copy: worker.run(f"{__name__}:clone_by_sparkdelta", path=copy),
                    partial(
                        _run,
                        rival,
                        f"CREATE TABLE delta.`{_clone_of('{table}')}` "
                        "SHALLOW CLONE delta.`{table}`",
                    ),
                    at_most(0.3),
                    cloned,
                ),
            )

    return against_delta_spark(bench.stopwatch, _RIVAL_CLONE_MEMORY, measure)


def convert_of_delta_spark(bench: Bench) -> Measured:
    """CONVERT TO DELTA of many Parquet files, with statistics."""
    files = bench.scale.checkpoint_files // 100
    directory = bench.scratch / f"parquet-{files}"
    rows = bench.spark.range(0, files * _ROWS_PER_CONVERTED_FILE, 1, files)
    columns = ("id", "CAST(id AS STRING) AS s", "CAST(id AS DOUBLE) AS d", "id % 7 AS k")
    make_once(directory, lambda: rows.selectExpr(*columns).write.parquet(str(directory)))

    def measure(rival: DeltaSpark) -> Measured:
        yield from bench.tried(
            partial(
                bench.compare,
                f"CONVERT TO DELTA of {files:,} Parquet files",
                directory,
                partial(convert_to_delta, bench.spark),
                partial(_run, rival, "CONVERT TO DELTA parquet.`{table}`"),
                at_most(0.5),
                lambda copy: (
                    load_snapshot(bench.spark, str(copy)).add_files().filter("stats != ''").count()
                ),
            ),
        )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def _clone_of(path: str) -> str:
    return f"{path}-clone"


def _files(spark: SparkSession, table: Path) -> list[int]:
    return [load_snapshot(spark, str(table)).add_files().count()]


def _no_more(counts: list[int], others: list[int]) -> bool:
    """True if as many files or fewer are read in all: the columns have equal rights."""
    return sum(counts) <= sum(others)


def _selected_files(spark: SparkSession, table: Path) -> list[int]:
    """The number of files, and of those which a query of one column after the other reads."""
    queries = [read_delta(spark, str(table), where=where) for where in _SELECTIVE]
    counts = [*_files(spark, table), *(len(query.inputFiles()) for query in queries)]
    say(f"files, and files read for {', '.join(_SELECTIVE)}: {counts}")
    return counts


def _points(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Rows whose columns `x` and `y` are spread over all files."""
    return spark.range(start, end, 1, max(1, (end - start) // _ROWS_PER_SMALL_FILE)).selectExpr(
        "id",
        "pmod(hash(id), 1000000) AS x",
        "CAST(pmod(hash(id, 1), 1000000) AS STRING) AS y",
        "CAST(hash(id, 2) AS DOUBLE) / 100 AS amount",
        "timestamp_micros(id * 1000003) AS moment",
        "sha2(CAST(id % 1000 AS STRING), 256) AS text",
    )


def _write_removed(table: Path, count: int) -> None:
    """Files of a byte, every other of which a commit removed two hours ago."""
    moment = time.time() - 2 * _HOUR
    names = [f"data/{n % _DIRECTORIES}/part-{n}.parquet" for n in range(count)]
    for name in names:
        file = table / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        os.utime(file, (moment, moment))
    properties = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
    opening = [protocol(), metadata(configuration=properties)]
    write_commit(table, 0, [*opening, *(add(name) for name in names)])
    removed = [remove(name, deletionTimestamp=int(moment * 1000), size=1) for name in names[::2]]
    write_commit(table, 1, removed)
    for log in (table / "_delta_log").iterdir():
        os.utime(log, (moment, moment))


def _run(rival: DeltaSpark, statement: str, path: str, *, max_file_size: int | None = None) -> None:
    run = f"{__name__}:run_by_delta_spark"
    rival.run(run, statement=statement.format(table=path), max_file_size=max_file_size)


def run_by_delta_spark(spark: SparkSession, statement: str, max_file_size: int | None) -> None:
    """Runs in the worker."""
    if max_file_size is not None:
        for name in ("minFileSize", "maxFileSize"):
            spark.conf.set(f"spark.databricks.delta.optimize.{name}", str(max_file_size))
    spark.sql(statement).collect()


def restore_by_sparkdelta(spark: SparkSession, path: str) -> str:
    """Runs in the worker."""
    (metrics,) = DeltaTable.forPath(spark, path).restoreToVersion(_FIRST_COMMIT).collect()
    return json.dumps(metrics.asDict())


def clone_by_sparkdelta(spark: SparkSession, path: str) -> None:
    """Runs in the worker."""
    clone(spark, path, _clone_of(path))


MAINTENANCE_PARTS: dict[str, Callable[[Bench], Measured]] = {
    "delta-spark-vacuum": vacuum_of_delta_spark,
    "delta-spark-restore": restore_of_delta_spark,
    "delta-spark-optimize": optimize_of_delta_spark,
    "delta-spark-clone": clone_of_delta_spark,
    "delta-spark-convert": convert_of_delta_spark,
}


def maintenance(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    return run_parts(MAINTENANCE_PARTS, Bench(stopwatch, scratch, scale), without)
