"""Streams: rows of a source, batches of a sink, and whether batches become slower with time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from sparkdelta import read_delta, read_stream, write_delta, write_stream
from tests.benchmarks.changed_table import first_version_of
from tests.benchmarks.measurement import Comparison, Stopwatch, at_most, say
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker

_NOW = {"availableNow": True}
_RIVAL_MEMORY = "2g"
_BATCHES = 20
_FILES_PER_BATCH = 20
_FIRST_COMMITS = 10  # which load classes


class Sizes(Protocol):
    """The sizes that this module takes from the benchmark's scale."""

    @property
    def batches(self) -> int: ...
    @property
    def data_files(self) -> int: ...
    @property
    def rows_per_file(self) -> int: ...


class Bench(Protocol):
    """The stopwatch, directories and table that the parts use."""

    @property
    def stopwatch(self) -> Stopwatch: ...
    @property
    def scratch(self) -> Path: ...
    @property
    def scale(self) -> Sizes: ...
    @property
    def spark(self) -> SparkSession: ...
    @property
    def num_rows(self) -> int: ...
    def table(self) -> Path: ...


def stream_source(bench: Bench) -> Iterator[Comparison]:
    """Rows of a table, against Spark's stream of the same Parquet files; twenty files a batch."""
    path = bench.scratch / "stream-source"
    first_version_of(bench.table(), path)
    schema = read_delta(bench.spark, str(path)).schema

    def table() -> int:
        rows = read_stream(bench.spark, str(path), max_files_per_trigger=_FILES_PER_BATCH)
        return _read(rows, bench.scratch)

    def files() -> int:
        reader = bench.spark.readStream.schema(schema).option("recursiveFileLookup", "true")
        reader = reader.option("maxFilesPerTrigger", _FILES_PER_BATCH)
        return _read(reader.parquet(str(path)), bench.scratch)

    yield bench.stopwatch.compare(
        f"a stream of {bench.num_rows:,} rows of 8 columns",
        table,
        files,
        floor_name="readStream.parquet",
        target=at_most(1 / 0.9),
    )


def _read(rows: DataFrame, scratch: Path) -> int:
    """Read a stream to its end; the number of rows."""
    checkpoint = scratch / f"checkpoint-{uuid4()}"
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    shutil.rmtree(checkpoint)
    return sum(batch["numInputRows"] for batch in query.recentProgress)


def small_batches(bench: Bench) -> Iterator[Comparison]:
    """The last batches of many, against the first ones after the start."""
    last = bench.scale.batches
    reader = bench.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
    rows = reader.option("numPartitions", 1).load()
    paths = (str(bench.scratch / f"{what}-{uuid4()}") for what in ("small-batches", "checkpoint"))
    query = write_stream(rows, *paths)
    seconds: dict[int, float] = {}
    while max(seconds, default=0) < last:
        time.sleep(1)
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        found: list[dict[str, Any]] = list(query.recentProgress)
        if found and found[-1]["batchId"] // 100 > max(seconds, default=0) // 100:
            say(f"batch {found[-1]['batchId']:,}")
        seconds |= _seconds_of_batches(found)
    query.stop()
    first = range(10, 10 + _BATCHES)
    yield Comparison(
        suite=bench.stopwatch.suite,
        name=f"a batch of one row, the last {_BATCHES} of {last:,}",
        floor_name=f"batches {first[0]} to {first[-1]}",
        target=at_most(1.3),
        jobs=None,
        floor_seconds=tuple(seconds[number] for number in first),
        seconds=tuple(seconds[number] for number in range(last - _BATCHES + 1, last + 1)),
    )


def steady_rows(bench: Bench) -> Iterator[Comparison]:
    """Batches of a stream from table to table while a thousand rows a second are appended to the
    first one: the last tenth of the time, against the second tenth.
    """
    commits = bench.scale.batches * 3 // 5
    names = ("source", "sink", "checkpoint")
    source, target, checkpoint = (str(bench.scratch / f"{name}-{uuid4()}") for name in names)
    _append_thousand(bench.spark, source, 0)
    query = write_stream(read_stream(bench.spark, source), target, checkpoint)
    found: dict[int, tuple[float, float]] = {}
    start = time.monotonic()
    for number in range(1, commits + 1):
        time.sleep(max(0.0, start + number - time.monotonic()))
        _append_thousand(bench.spark, source, number)
        for batch, seconds in _seconds_of_batches(query.recentProgress).items():
            found.setdefault(batch, (time.monotonic() - start, seconds))
    late = time.monotonic() - start - commits
    query.processAllAvailable()
    query.stop()
    copied = read_delta(bench.spark, target).count()
    if copied != 1000 * (commits + 1):
        raise RuntimeError(f"{copied} rows of {1000 * (commits + 1)} were copied")

    def batches_of_tenth(number: int) -> tuple[float, ...]:
        moments = found.values()
        return tuple(took for at, took in moments if number <= 10 * at / commits < number + 1)

    first, last = batches_of_tenth(1), batches_of_tenth(9)
    said = f"{late:.1f} s late at the end; a batch took {median(first):.2f} s, then"
    say(f"{said} {median(last):.2f} s, and {max(took for _, took in found.values()):.2f} s at most")
    yield Comparison(
        suite=bench.stopwatch.suite,
        name=f"a batch in the last tenth of {commits} s with 1,000 rows a second",
        floor_name="a batch in the second tenth",
        target=at_most(1.3),
        jobs=None,
        floor_seconds=first,
        seconds=last,
    )


def _seconds_of_batches(progress: Sequence[Any]) -> dict[int, float]:
    """Return the seconds of each batch by its id, from the progress of a query."""
    return {b["batchId"]: b["durationMs"]["triggerExecution"] / 1000 for b in progress}


def _append_thousand(spark: SparkSession, path: str, number: int) -> None:
    rows = spark.range(1000 * number, 1000 * (number + 1), 1, 1)
    rows = rows.selectExpr("id", "current_timestamp() AS moment", "hex(id) AS text")
    write_delta(rows, path, mode="append")


def stream_latency(bench: Bench) -> Measured:
    """The time from each of many small commits at a source to the commit of its row at a sink,
    against delta-spark and Spark's own stream of files: each engine in a process of its own, on
    both sides.
    """
    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, partial(_latencies, bench))


def _latencies(bench: Bench, rival: DeltaSpark) -> Measured:
    commits = bench.scale.batches // 25
    cores = bench.spark.sparkContext.defaultParallelism
    with SparkWorker(SESSION, cores=cores, memory=_RIVAL_MEMORY) as worker:
        ours = _relayed(bench, worker, "sparkdelta", commits)
    with SparkWorker(SESSION, cores=cores, memory=_RIVAL_MEMORY) as worker:
        files = _relayed(bench, worker, "parquet", commits)
    theirs = _relayed(bench, rival, "delta-spark", commits)
    floors = (("a stream of Parquet files", files, None), (f"delta-spark {VERSION}", theirs, 1))
    for name, seconds, target in floors:
        yield Comparison(
            suite=bench.stopwatch.suite,
            name=f"a row from table to table by a stream, {commits} commits",
            floor_name=name,
            target=None if target is None else at_most(target),
            jobs=None,
            floor_seconds=seconds,
            seconds=ours,
        )


def _relayed(bench: Bench, worker: SparkWorker, engine: str, commits: int) -> tuple[float, ...]:
    root = bench.scratch / f"relay-{uuid4()}"
    seconds = worker.run(f"{__name__}:relay", path=str(root), engine=engine, commits=commits)
    most = quantiles(seconds, n=100)[-1]
    say(f"{engine}: median {median(seconds):.2f} s, 99% within {most:.2f} s")
    return tuple(seconds)


def relay(spark: SparkSession, path: str, engine: str, commits: int) -> list[float]:
    """Runs in the worker: commit rows, one by one, to a table that a stream copies to another, and
    return the seconds from each commit to the other one, by the times of their files.
    """
    source, sink, checkpoint = (f"{path}/{name}" for name in ("source", "sink", "checkpoint"))
    append = _APPENDS[engine]
    append(spark, source, 0)
    query = _started(spark, engine, source, sink, checkpoint)
    seconds = []
    for version in range(commits):
        copied = _commit(sink, version, engine)
        while not copied.exists():
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            time.sleep(0.002)
        committed = _commit_time(source, version, engine)
        seconds.append((copied.stat().st_mtime_ns - committed) / 1e9)
        append(spark, source, version + 1)
    query.stop()
    shutil.rmtree(path)
    return seconds[_FIRST_COMMITS:]


def _started(
    spark: SparkSession, engine: str, source: str, sink: str, checkpoint: str
) -> StreamingQuery:
    if engine == "sparkdelta":
        return write_stream(read_stream(spark, source), sink, checkpoint)
    kind = "delta" if engine == "delta-spark" else "parquet"
    # Spark would compact the commits of batches, and name their files otherwise.
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", 1_000_000)
    reader = spark.readStream.format(kind)
    rows = (reader if kind == "delta" else reader.schema("id LONG")).load(source)
    writer = rows.writeStream.format(kind).option("checkpointLocation", checkpoint)
    return writer.start(sink)


def _commit(table: str, version: int, engine: str) -> Path:
    """Return the path of the file that commits a batch."""
    name = f"_spark_metadata/{version}" if engine == "parquet" else f"_delta_log/{version:020}.json"
    return Path(table, name)


def _commit_time(table: str, version: int, engine: str) -> int:
    """Return the modification time of a commit, in nanoseconds."""
    files = Path(table).glob("*.parquet")
    if engine == "parquet":
        return max(file.stat().st_mtime_ns for file in files)
    return _commit(table, version, engine).stat().st_mtime_ns


def _append_by_sparkdelta(spark: SparkSession, path: str, number: int) -> None:
    write_delta(spark.range(number, number + 1, 1, 1), path, mode="append")


def _append_by_spark(spark: SparkSession, path: str, number: int, kind: str) -> None:
    spark.range(number, number + 1, 1, 1).write.format(kind).mode("append").save(path)


_APPENDS: dict[str, Callable[[SparkSession, str, int], None]] = {
    "sparkdelta": _append_by_sparkdelta,
    "delta-spark": partial(_append_by_spark, kind="delta"),
    "parquet": partial(_append_by_spark, kind="parquet"),
}


def stream_sink(bench: Bench) -> Measured:
    """Small batches, against delta-spark's sink."""
    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, partial(_sinks, bench))


def _sinks(bench: Bench, rival: DeltaSpark) -> Measured:
    files = bench.scratch / "stream-sink"
    bench.spark.range(0, _BATCHES, 1, _BATCHES).write.parquet(str(files))

    def paths() -> list[str]:
        return [str(files), *(str(bench.scratch / str(uuid4())) for _ in range(2))]

    yield bench.stopwatch.compare(
        f"a sink of {_BATCHES} batches of one row",
        lambda: sink(bench.spark, paths(), engine="sparkdelta"),
        lambda: rival.run(f"{__name__}:sink", paths=paths(), engine="delta-spark"),
        floor_name=f"delta-spark {VERSION}",
        target=at_most(1),
    )


def sink(spark: SparkSession, paths: list[str], engine: str) -> None:
    """Write a file a batch to a new table; runs in the worker, too."""
    files, target, checkpoint = paths
    reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    rows = reader.parquet(files)
    if engine == "sparkdelta":
        query = write_stream(rows, target, checkpoint, trigger=_NOW)
    else:
        writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start(target)
    query.awaitTermination()
    for path in (target, checkpoint):
        shutil.rmtree(path)
