"""First operations of processes: this library, other engines, and Spark on plain Parquet files.

Each operation runs in a process that has done nothing else, with its session started. The module
imports no engine: a worker loads what it needs within the time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.copied_tables import Bench, Sizes
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, Target, at_most
from tests.benchmarks.parts import SESSION, Measured
from tests.support.delta_spark import DELTA_SETTINGS, DeltaSpark, DeltaSparkUnavailable
from tests.support.delta_spark import VERSION as DELTA_SPARK
from tests.support.spark_worker import SparkWorker, SparkWorkerError

_MEMORY = "2g"
_FILES = 20
_VECTORS, _REWRITE = "deletion vectors", "rewrite"

_WRITE, _SUM = "write", "sum of a column"
_DELETE, _DELETE_RANGE = "DELETE of 1/1000 of the rows in all files", "DELETE of a range of a file"
_UPDATE, _MERGE = "UPDATE of 1/1000 of the rows in all files", "MERGE in all files"
_READS = (_WRITE, _SUM)
"""Operations that change no table, so that deletion vectors make no difference."""
_CHANGES = (_DELETE, _DELETE_RANGE, _UPDATE, _MERGE)

_SOME = "quantity = 7"
_STATEMENTS = {
    _SUM: "SELECT sum(amount) FROM delta.`{table}`",
    _DELETE: f"DELETE FROM delta.`{{table}}` WHERE {_SOME}",
    _DELETE_RANGE: "DELETE FROM delta.`{table}` WHERE {range}",
    _UPDATE: f"UPDATE delta.`{{table}}` SET note = concat(note, '!') WHERE {_SOME}",
    _MERGE: "MERGE INTO delta.`{table}` t USING parquet.`{source}` s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}


@dataclass(frozen=True, slots=True)
class _Engine:
    """An engine, the function of this module that runs its operations, and the kind of its table.

    Attributes
    ----------
    target
        For this library with deletion vectors, or without where they make no difference.
    """

    name: str
    worker: Callable[[], SparkWorker]
    run: Callable[..., None]
    kind: str
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class _Tables(Bench):
    """The tables of a run: one of each kind, and the Parquet files of a MERGE's source."""

    @property
    def rows(self) -> int:
        return self.scale.data_files * self.scale.rows_per_file // 2

    def write(self) -> None:
        """Write the tables; the rows of a MERGE are updates and as many inserts."""
        from sparkdelta import write_delta
        from tests.benchmarks.data import stored_rows

        for kind in (_VECTORS, _REWRITE):
            write_delta(
                stored_rows(self.spark.range(0, self.rows, 1, _FILES)),
                str(self.table(kind)),
                properties={"delta.enableDeletionVectors": str(kind == _VECTORS).lower()},
            )
        merged = self.spark.range(0, self.rows, 200).union(
            self.spark.range(self.rows, self.rows + self.rows // 200)
        )
        write_delta(stored_rows(merged).withColumn("note", F.lit("merged")), str(self.source))

    def table(self, kind: str) -> Path:
        """The table of a kind."""
        return self.scratch / kind.replace(" ", "-")

    @property
    def source(self) -> Path:
        return self.scratch / "source"

    def seconds(self, engine: _Engine, operation: str) -> tuple[float, object]:
        """Run an operation on a copy; return the seconds, and a value of the rows after it."""
        copy = self.copy(self.table(engine.kind))
        result = copy.with_suffix(".result")
        begin, per_file = self.rows // 4, self.rows // _FILES  # the first row of a file
        try:
            with engine.worker() as worker:
                seconds: float = worker.run(
                    f"{__name__}:run_timed",
                    run=engine.run.__name__,
                    operation=operation,
                    table=str(copy),
                    source=str(self.source),
                    result=str(result),
                    kind=engine.kind,
                    range=f"id >= {begin} AND id < {begin + per_file // 10}",
                    file=f"id >= {begin} AND id < {begin + per_file}",
                    inserts=f"id >= {self.rows}",
                )
            is_table = engine.run is not run_parquet
            written = result if operation == _WRITE else copy
            return seconds, self._contents(written) if is_table else None
        finally:
            shutil.rmtree(copy)
            shutil.rmtree(result, ignore_errors=True)

    def _contents(self, table: Path) -> object:
        from sparkdelta import read_delta

        rows = read_delta(self.spark, str(table))
        lengths = F.sum(F.length("note"))
        return rows.agg(F.count("*"), F.sum("id"), F.sum("quantity"), lengths).collect()


def peers(stopwatch: Stopwatch, scale: Sizes, scratch: Path) -> Measured:
    """Each operation by all engines in turns, as many rounds as there are pairs."""
    cores = stopwatch.spark.sparkContext.defaultParallelism
    tables = _Tables(stopwatch, scratch, scale)
    tables.write()
    engines = list(_engines(cores))
    for operation in (*_READS, *_CHANGES):
        kinds = (_REWRITE,) if operation in _READS else (_VECTORS, _REWRITE)
        runs = [engine for engine in engines if engine.kind in kinds]
        times: dict[_Engine, list[float]] = {engine: [] for engine in runs}
        expected: object = None
        for _ in range(stopwatch.pairs.first):
            for engine in list(times):
                try:
                    seconds, found = tables.seconds(engine, operation)
                except (SparkWorkerError, DeltaSparkUnavailable) as error:
                    if engine.run is run_sparkdelta:
                        raise
                    del times[engine]
                    yield NotMeasured(stopwatch.suite, f"{operation}: {engine.name}", str(error))
                    continue
                times[engine].append(seconds)
                expected = expected or found
                if found not in (None, expected):
                    raise ValueError(f"{operation}: {engine.name}: {found}, not {expected}")
        name = f"{operation}, {tables.rows:,} rows"
        yield from _comparisons(stopwatch.suite, name, kinds, times)


def _comparisons(
    suite: str, name: str, kinds: tuple[str, ...], times: dict[_Engine, list[float]]
) -> Iterator[Comparison]:
    """Compare this library with the others; with deletion vectors, also with Sail and delta-rs."""
    for kind in kinds:
        ours = next(each for each in times if each.run is run_sparkdelta and each.kind == kind)
        for other, seconds in times.items():
            if other.run is run_sparkdelta or (other.kind != kind and other.target is None):
                continue
            yield Comparison(
                suite=suite,
                name=name if len(kinds) == 1 else f"{name}, {kind}",
                floor_name=other.name,
                target=other.target if kind == kinds[0] else None,
                jobs=None,
                floor_seconds=tuple(seconds),
                seconds=tuple(times[ours]),
            )


def _engines(cores: int) -> Iterator[_Engine]:
    spark = partial(SparkWorker, SESSION, cores=cores, memory=_MEMORY)
    delta = partial(DeltaSpark, None, SESSION, cores=cores, memory=_MEMORY, settings=DELTA_SETTINGS)
    for kind in (_VECTORS, _REWRITE):
        yield _Engine("sparkdelta", spark, run_sparkdelta, kind)
        yield _Engine("Spark on plain Parquet files", spark, run_parquet, kind)
        yield _Engine(f"delta-spark {DELTA_SPARK}", delta, run_session, kind)
    sail = partial(SparkWorker, f"{__name__}:sail_session")
    yield _Engine(f"Sail {_version('pysail')}", sail, run_session, _REWRITE, at_most(1))
    delta_rs = partial(SparkWorker, f"{__name__}:no_session")
    name = f"delta-rs {_version('deltalake')}"
    yield _Engine(name, delta_rs, run_delta_rs, _REWRITE, at_most(1.5))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


# In the workers.


class SailSession:
    """A session of a Sail server in this process."""

    def __init__(self) -> None:
        from pysail.spark import SparkConnectServer

        self._server = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)
        _, port = self._server.listening_address
        self.spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)

    def stop(self) -> None:
        """Stop the session and the server."""
        self.spark.stop()
        self._server.stop()


def sail_session(_: Path) -> SailSession:
    """Start Sail."""
    return SailSession()


class NoSession:
    """The session of an engine that has none."""

    def stop(self) -> None:
        """Do nothing."""


def no_session(_: Path) -> NoSession:
    """Start nothing."""
    return NoSession()


def run_timed(session: Any, run: str, **arguments: str) -> float:
    """Run an operation by a function of this module; return the seconds."""
    start = time.perf_counter()
    globals()[run](session, **arguments)
    return time.perf_counter() - start


def run_sparkdelta(spark: SparkSession, operation: str, **places: str) -> None:
    """Run an operation of this library."""
    import sparkdelta

    if operation == _WRITE:
        sparkdelta.write_delta(spark.read.parquet(places["table"]), places["result"])
    else:
        sparkdelta.sql(spark, _STATEMENTS[operation].format(**places)).collect()


def run_session(spark: SparkSession, operation: str, **places: str) -> None:
    """Run an operation of a session that knows Delta tables."""
    if operation == _WRITE:
        spark.read.parquet(places["table"]).write.format("delta").save(places["result"])
    else:
        spark.sql(_STATEMENTS[operation].format(**places)).collect()


def run_delta_rs(_: object, operation: str, **places: str) -> None:
    """Run an operation of delta-rs, which gets rows from pyarrow."""
    import deltalake
    import pyarrow.dataset as ds

    if operation == _WRITE:
        rows = ds.dataset(places["table"]).scanner().to_reader()
        deltalake.write_deltalake(places["result"], rows)
        return
    table = deltalake.DeltaTable(places["table"])
    if operation == _SUM:
        query = deltalake.QueryBuilder().register("t", table)
        query.execute("SELECT sum(amount) FROM t").read_all()
    elif operation == _UPDATE:
        table.update(updates={"note": "concat(note, '!')"}, predicate=_SOME)
    elif operation == _MERGE:
        rows = ds.dataset(places["source"]).to_table()
        merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        table.delete(_SOME if operation == _DELETE else places["range"])


def run_parquet(spark: SparkSession, operation: str, **places: str) -> None:
    """Read and write by Spark only what no engine can do without: with deletion vectors the
    positions of changed rows and the new rows, otherwise all rows of changed files.
    """
    rows = spark.read.parquet(places["table"])
    if operation == _SUM:
        rows.agg(F.sum("amount")).collect()
    else:
        has_vectors = places["kind"] == _VECTORS
        written = _changed if has_vectors else _rewritten
        result = rows if operation == _WRITE else written(spark, rows, operation, places)
        result.write.parquet(places["result"])


def _changed(
    spark: SparkSession, rows: DataFrame, operation: str, places: dict[str, str]
) -> DataFrame:
    position = [F.col("_metadata.file_name"), F.col("_metadata.row_index").alias("position")]
    if operation == _MERGE:
        source = spark.read.parquet(places["source"])
        pairs = rows.select("id", *position).join(F.broadcast(source), "id")
        return pairs.unionByName(source.where(places["inserts"]), allowMissingColumns=True)
    if operation == _UPDATE:
        found = rows.where(_SOME).select("*", *position)
        return found.withColumn("note", F.concat("note", F.lit("!")))
    return rows.where(places["range"] if operation == _DELETE_RANGE else _SOME).select(*position)


def _rewritten(
    spark: SparkSession, rows: DataFrame, operation: str, places: dict[str, str]
) -> DataFrame:
    if operation == _MERGE:
        source = spark.read.parquet(places["source"])
        pairs = rows.alias("t").join(F.broadcast(source).alias("s"), F.expr("t.id = s.id"), "left")
        columns = [F.coalesce(f"s.{name}", f"t.{name}").alias(name) for name in rows.columns]
        return pairs.select(*columns).union(source.where(places["inserts"]))
    if operation == _UPDATE:
        note = F.when(F.expr(_SOME), F.concat("note", F.lit("!"))).otherwise(F.col("note"))
        return rows.withColumn("note", note)
    if operation == _DELETE_RANGE:
        return rows.where(f"{places['file']} AND NOT ({places['range']})")
    return rows.where(f"NOT ({_SOME})")
