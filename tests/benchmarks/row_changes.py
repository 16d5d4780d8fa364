"""DELETE, UPDATE and MERGE against delta-spark, on copies of one table."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from tests.benchmarks.copied_tables import Sizes
from tests.benchmarks.data import STORED
from tests.benchmarks.logs import large_log
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, Target, at_most
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, linked, run_parts
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_LEAST_FILES = 50
_RIVAL_MEMORY, _SMALL_HEAP = "2g", "1g"
_UPDATES, _THREADS = 20, 4
_SHARES = (0.01, 0.05, 0.1, 0.2, 0.4)
_UNPAIRED = -1  # the `id` of a row that no other file's statistics include


@dataclass(frozen=True, slots=True)
class _Change:
    """An operation as delta-spark's SQL and as a call of `DeltaTable`.

    Attributes
    ----------
    statement
        With ``{table}`` and ``{source}`` in it.
    source
        A query for the source of MERGE.
    with_vectors, with_rewrite
        What to reach on a table with deletion vectors, and without.
    """

    name: str
    statement: str
    call: Callable[[DeltaTable, DataFrame | None], object]
    with_vectors: Target
    with_rewrite: Target
    source: str | None = None


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    scratch: Path
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    @property
    def num_rows(self) -> int:
        return self.scale.data_files * self.scale.rows_per_file

    @property
    def num_files(self) -> int:
        return max(self.scale.data_files, _LEAST_FILES)

    def table(self, *, has_vectors: bool) -> Path:
        """The table that is copied; its files are ranges of `id`."""
        path = self.scratch / ("vectors" if has_vectors else "rewrite")
        if not path.exists():
            rows = self.spark.range(0, self.num_rows, 1, self.num_files)
            write_delta(
                rows.selectExpr(*(f"{sql} AS {name}" for name, (_, sql) in STORED.items())),
                str(path),
                properties={"delta.enableDeletionVectors": str(has_vectors).lower()},
            )
        return path

    def copy(self, table: Path) -> Path:
        """A copy whose files are links."""
        copy = self.scratch / f"copy-{uuid4()}"
        shutil.copytree(table, copy, copy_function=linked)
        return copy


def changes_of_delta_spark(bench: _Bench, *, has_vectors: bool) -> Measured:
    """Each operation, on a table that has deletion vectors or not."""

    def measure(rival: DeltaSpark) -> Measured:
        for change in _changes(bench):
            try:
                yield _compared(bench, rival, change, has_vectors=has_vectors)
            except SparkWorkerError as error:
                yield NotMeasured(bench.stopwatch.suite, change.name, str(error))

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def _changes(bench: _Bench) -> list[_Change]:
    rows, per_file = bench.num_rows, bench.num_rows // bench.num_files
    of_file = f"id BETWEEN {2 * per_file} AND {2 * per_file + per_file // 10}"

    def source(ids: str) -> str:
        values = {name: sql for name, (_, sql) in STORED.items()} | {"note": "'merged'"}
        columns = ", ".join(f"{sql} AS {name}" for name, sql in values.items())
        return f"SELECT {columns} FROM ({ids})"

    spread = f"SELECT id * 200 + 3 AS id FROM range({rows // 200})"
    new = f"SELECT id + {rows} AS id FROM range({rows // 200})"
    near = f"SELECT id * 2 + {2 * per_file} AS id FROM range({per_file // 4})"
    many = f"SELECT id * 4 + 1 AS id FROM range({rows // 4})"
    upsert = (
        "MERGE INTO {table} t USING ({source}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    return [
        _Change(
            "DELETE of 1/1000 of the rows in all files",
            "DELETE FROM {table} WHERE quantity = 7",
            lambda table, _: table.delete("quantity = 7"),
            at_most(0.7),
            at_most(0.8),
        ),
        _Change(
            "DELETE of one file's range",
            f"DELETE FROM {{table}} WHERE {of_file}",
            lambda table, _: table.delete(of_file),
            at_most(0.5),
            at_most(0.7),
        ),
        _Change(
            "UPDATE of 1/1000 of the rows in all files",
            "UPDATE {table} SET note = concat(note, '!') WHERE quantity = 7",
            lambda table, _: table.update("quantity = 7", {"note": "concat(note, '!')"}),
            at_most(0.7),
            at_most(0.8),
        ),
        *(
            _Change(name, upsert, _upsert, *targets, source=source(ids))
            for name, ids, targets in (
                (
                    f"MERGE of {rows // 200:,} updates in all files and as many inserts",
                    f"{spread} UNION ALL {new}",
                    (at_most(0.5), at_most(0.6)),
                ),
                (
                    "MERGE of keys in 2% of the files",
                    near,
                    (at_most(0.2), at_most(0.2)),
                ),
                (
                    f"MERGE of {rows // 4:,} updates",
                    many,
                    (at_most(0.8), at_most(0.8)),
                ),
            )
        ),
    ]


def _upsert(table: DeltaTable, source: DataFrame | None) -> object:
    assert source is not None
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _compared(
    bench: _Bench, rival: DeltaSpark, change: _Change, *, has_vectors: bool
) -> Comparison:
    table = bench.table(has_vectors=has_vectors)
    last: dict[str, Path] = {}

    def run(engine: str) -> None:
        if engine in last:
            shutil.rmtree(last[engine])
        copy = last[engine] = bench.copy(table)
        if engine == "delta":
            rival.run(
                f"{__name__}:change_by_delta_spark",
                statement=change.statement.format(table=f"delta.`{copy}`", source=change.source),
            )
            return
        source = None if change.source is None else bench.spark.sql(change.source)
        change.call(DeltaTable.forPath(bench.spark, str(copy)), source)

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


def change_by_delta_spark(spark: SparkSession, statement: str) -> None:
    """Runs in the worker."""
    spark.sql(statement).collect()


def deleted_shares(bench: _Bench) -> Iterator[Comparison]:
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


def concurrent_updates(bench: _Bench) -> Iterator[Comparison]:
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


def row_of_large_table(bench: _Bench) -> Iterator[Comparison]:
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


ROW_CHANGE_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "delta-spark-vectors": partial(changes_of_delta_spark, has_vectors=True),
    "delta-spark-rewrite": partial(changes_of_delta_spark, has_vectors=False),
    "deleted-shares": deleted_shares,
    "concurrent-updates": concurrent_updates,
    "large-table": row_of_large_table,
}


def row_changes(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """All of it; `without` names parts that are left out."""
    return run_parts(ROW_CHANGE_PARTS, _Bench(stopwatch, scratch, scale), without)
