"""`ALTER TABLE` against delta-spark, on copies of one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from tests.benchmarks.copied_tables import Bench, Sizes
from tests.benchmarks.data import STORED
from tests.benchmarks.logs import CHECKPOINT_VERSION, LARGE_TAIL, large_log
from tests.benchmarks.measurement import Stopwatch, at_most
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, run_parts
from tests.support.delta_spark import DeltaSpark
from tests.support.spark_worker import SparkWorker

_RIVAL_MEMORY, _SMALL_HEAP = "2g", "1g"

_LOG_ONLY = {
    "type widened": ("change_column", ["quantity", "long"], "ALTER COLUMN quantity TYPE BIGINT"),
    "column renamed": ("rename_column", ["city", "town"], "RENAME COLUMN city TO town"),
    "property set": (
        "set_properties",
        [{"delta.appendOnly": "true"}],
        "SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    ),
}
"""Each as a method of `AlterTable` with its arguments, and in SQL."""


def constraint_of_delta_spark(bench: Bench) -> Measured:
    """ADD CONSTRAINT, which all rows satisfy."""
    table, rows = _table(bench, "rows", {})
    yield from _compared(
        bench,
        f"ADD CONSTRAINT on {rows:,} rows",
        table,
        lambda path: alter_table(bench.spark, path).add_constraint("positive", "quantity >= 0"),
        "ALTER TABLE {table} ADD CONSTRAINT positive CHECK (quantity >= 0)",
        0.7,
        lambda copy: load_snapshot(bench.spark, str(copy)).properties["delta.constraints.positive"],
    )


def log_only_of_delta_spark(bench: Bench) -> Measured:
    """Statements that write no file, on a table of very many files, with a small heap."""
    table = _large_log(bench)
    for name, (method, arguments, clause) in _LOG_ONLY.items():
        yield from _by_worker(
            bench,
            f"{name}, {bench.scale.checkpoint_files:,} files, driver of {_SMALL_HEAP}",
            table,
            (method, arguments),
            f"ALTER TABLE {{table}} {clause}",
            0.3,
            lambda copy: sorted(
                field.name for field in load_snapshot(bench.spark, str(copy)).schema
            ),
        )


def row_tracking_of_delta_spark(bench: Bench) -> Measured:
    """Row ids for all files of a table of very many, with a small heap."""
    yield from _by_worker(
        bench,
        f"row tracking of {bench.scale.checkpoint_files:,} files, driver of {_SMALL_HEAP}",
        _large_log(bench),
        ("set_properties", [{"delta.enableRowTracking": "true"}]),
        "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        0.5,
        partial(_without_ids, bench.spark),
        is_long=True,
    )


def drop_of_delta_spark(bench: Bench) -> Measured:
    """DROP FEATURE deletionVectors where a tenth of the rows is deleted by them."""
    properties = {"delta.enableDeletionVectors": "true", "sparkdelta.maxDeletedShare": "1"}
    table, rows = _table(bench, "vectors", properties)
    if load_snapshot(bench.spark, str(table)).version == 0:
        DeltaTable.forPath(bench.spark, str(table)).delete("quantity < 100")
    yield from _compared(
        bench,
        f"deletionVectors dropped, {rows:,} rows, a tenth deleted",
        table,
        lambda path: DeltaTable.forPath(bench.spark, path).dropFeatureSupport("deletionVectors"),
        "ALTER TABLE {table} DROP FEATURE deletionVectors",
        0.8,
        lambda copy: [
            read_delta(bench.spark, str(copy)).count(),
            load_snapshot(bench.spark, str(copy)).protocol.reader_features,
        ],
    )


def _table(bench: Bench, name: str, properties: dict[str, str]) -> tuple[Path, int]:
    """A table of many rows in ranges of `id`, and how many."""
    table, rows = bench.scratch / name, bench.scale.data_files * bench.scale.rows_per_file
    if not table.exists():
        frame = bench.spark.range(0, rows, 1, bench.scale.data_files)
        columns = (f"{sql} AS {column}" for column, (_, sql) in STORED.items())
        write_delta(frame.selectExpr(*columns), str(table), properties=properties)
    return table, rows


def _large_log(bench: Bench) -> Path:
    """A log without data files, of a table with column mapping and type widening."""
    files = bench.scale.checkpoint_files
    table = large_log(files).write_once(bench.spark, bench.scratch)
    needed = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    if load_snapshot(bench.spark, str(table)).version == CHECKPOINT_VERSION + LARGE_TAIL:
        alter_table(bench.spark, str(table)).set_properties(needed)
    return table


def _without_ids(spark: SparkSession, table: Path) -> tuple[int, int]:
    """Return the numbers of all files and of files without row ids."""
    files = load_snapshot(spark, str(table)).add_files()
    return files.count(), files.filter("baseRowId IS NULL").count()


def _compared(
    bench: Bench,
    name: str,
    table: Path,
    candidate: Callable[[str], object],
    statement: str,
    most: float,
    check: Callable[[Path], object],
    *,
    is_long: bool = False,
) -> Measured:
    def measure(rival: DeltaSpark) -> Measured:
        def floor(path: str) -> None:
            sql = statement.format(table=f"delta.`{path}`")
            rival.run(f"{__name__}:alter_by_delta_spark", statement=sql)

        yield from bench.tried(
            partial(
                bench.compare,
                *(name, table, candidate, floor, at_most(most), check),
                is_long=is_long,
            )
        )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def _by_worker(
    bench: Bench,
    name: str,
    table: Path,
    call: tuple[str, list[object]],
    statement: str,
    most: float,
    check: Callable[[Path], object],
    *,
    is_long: bool = False,
) -> Measured:
    """Compare an alteration in a process with a small heap, otherwise as `_compared` does."""
    method, arguments = call
    cores = bench.spark.sparkContext.defaultParallelism
    with SparkWorker(SESSION, cores=cores, memory=_SMALL_HEAP) as worker:

        def candidate(path: str) -> None:
            run = f"{__name__}:alter_by_sparkdelta"
            worker.run(run, path=path, method=method, arguments=arguments)

        yield from _compared(bench, name, table, candidate, statement, most, check, is_long=is_long)


def alter_by_delta_spark(spark: SparkSession, statement: str) -> None:
    """Runs in the worker."""
    spark.sql(statement).collect()


def alter_by_sparkdelta(
    spark: SparkSession, path: str, method: str, arguments: list[object]
) -> None:
    """Runs in the worker."""
    getattr(alter_table(spark, path), method)(*arguments)


ALTERATION_PARTS: dict[str, Callable[[Bench], Measured]] = {
    "delta-spark-constraint": constraint_of_delta_spark,
    "delta-spark-log-only": log_only_of_delta_spark,
    "delta-spark-row-tracking": row_tracking_of_delta_spark,
    "delta-spark-drop-feature": drop_of_delta_spark,
}


def alterations(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    return run_parts(ALTERATION_PARTS, Bench(stopwatch, scratch, scale), without)
