"""From a cold log to the list of files: what planning costs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import Snapshot, load_snapshot
from tests.benchmarks.data import write_small_files
from tests.benchmarks.file_actions import Statistics
from tests.benchmarks.logs import Layout
from tests.benchmarks.measurement import Comparison, Stopwatch, Target, at_most, faster
from tests.benchmarks.parts import (
    SESSION,
    LogBench,
    Measured,
    against_delta_spark,
    linked,
    run_parts,
)
from tests.benchmarks.planners import by_delta_rs, by_snapshot, by_sparkdelta
from tests.benchmarks.planning_tables import Planning, Size, Table
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.spark_worker import SparkWorker, SparkWorkerError

Shape = tuple[Size, Layout, Statistics]
Targets = tuple[Target | None, Target | None]
"""The targets of the two ways in which a table is measured."""

_NO_TARGETS: Targets = (None, None)
_PLANNERS = "tests.benchmarks.planners"


class _Bench(LogBench):
    __slots__ = ()

    def tables(self, *shapes: Shape) -> Iterator[Table]:
        """The tables of these shapes but for those that are too large."""
        for size, layout, statistics in shapes:
            if self.planning.has(size):
                yield self.planning.table(self.spark, self.scratch, size, layout, statistics)

    def cold(self, table: Table) -> list[str]:
        return by_sparkdelta(self.spark, table.root, table.where)


def checkpoints(bench: _Bench) -> Iterator[Comparison]:
    """Against reading one column of the checkpoint."""
    plan, spark = bench.planning, bench.spark
    targets: dict[Shape, Targets] = {
        (plan.small, "classic", "both"): _NO_TARGETS,
        (plan.small, "sorted", "struct"): _NO_TARGETS,
        (plan.middle, "classic", "both"): _NO_TARGETS,
        (plan.middle, "hash", "struct"): (None, at_most(1.8)),
        (plan.middle, "hash", "json"): (None, at_most(2.5)),
        (plan.middle, "sorted", "struct"): _NO_TARGETS,
        (plan.large, "hash", "struct"): (None, at_most(1.8)),
        (plan.large, "hash", "json"): (None, at_most(2.5)),
        (plan.large, "sorted", "struct"): (at_most(0.15), at_most(0.2)),
    }
    for shape, (loaded_target, cold_target) in targets.items():
        for table in bench.tables(shape):
            files = table.log.checkpoint_files(table.path)
            snapshot = load_snapshot(spark, table.root)
            table.check(by_snapshot(snapshot, table.where))
            table.check(bench.cold(table))

            def loaded(table: Table = table, snapshot: Snapshot = snapshot) -> object:
                return by_snapshot(snapshot, table.where)

            for name, candidate, target in (
                ("snapshot loaded", loaded, loaded_target),
                ("log read in the query", partial(bench.cold, table), cold_target),
            ):
                yield bench.far.compare(
                    f"{table.name}, {name}",
                    candidate,
                    partial(_paths, spark, files),
                    floor_name="add.path of it",
                    target=target,
                    same_result=False,
                )


def own_checkpoints(bench: _Bench) -> Iterator[Comparison]:
    """Scans of the checkpoint that sparkdelta writes, clustered and with ranges in its tags; of the
    largest table only where `--most-files` asks for it.
    """
    plan, spark = bench.planning, bench.spark
    most = plan.most_files
    is_large = most is not None and most >= plan.large.files
    for size in [plan.middle, plan.large] if is_large else [plan.middle]:
        for source in bench.tables((size, "hash", "both")):
            table = _rewritten(bench, source)
            files = table.log.checkpoint_files(table.path)
            snapshot = load_snapshot(spark, table.root)
            table.check(by_snapshot(snapshot, table.where))
            targets = (at_most(0.15), at_most(0.2)) if size == plan.large else _NO_TARGETS
            for name, candidate, target in (
                ("snapshot loaded", partial(by_snapshot, snapshot, table.where), targets[0]),
                ("log read in the query", partial(bench.cold, table), targets[1]),
            ):
                yield bench.far.compare(
                    f"{table.name}, {name}",
                    candidate,
                    partial(_paths, spark, files),
                    floor_name="add.path of it",
                    target=target,
                    same_result=False,
                )


def _rewritten(bench: _Bench, source: Table) -> Table:
    """A table with another checkpoint of the same version, and the same commits after it."""
    root = bench.scratch / f"own-{source.path.name}"
    if not root.exists():
        unfinished = bench.scratch / f"{root.name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(source.path, unfinished, copy_function=linked)
        log = unfinished / "_delta_log"
        old = [*log.glob("*.checkpoint.*.json"), *log.glob("_sidecars/*.parquet")]
        (first,) = log.glob("*.checkpoint.*.json")
        version = int(first.name.partition(".")[0])
        sparkdelta.write_checkpoint(
            bench.spark, str(unfinished), version=version, kind="v2-json", incremental=False
        )
        for file in old:
            file.unlink()
        unfinished.rename(root)
    return replace(source, name=f"{source.log.files:,} files, our own checkpoint", path=root)


def _paths(spark: SparkSession, files: list[str]) -> object:
    paths = spark.read.parquet(*files).select("add.path")
    return paths.agg(F.count("path"), F.sum(F.length("path"))).collect()


def growth(bench: _Bench) -> Iterator[Comparison]:
    """The largest table against the smallest, both sorted."""
    plan = bench.planning
    tables = list(bench.tables((plan.large, "sorted", "struct"), (plan.small, "sorted", "struct")))
    if len(tables) < 2:
        return
    large, small = tables
    snapshots = [load_snapshot(bench.spark, table.root) for table in tables]
    yield bench.far.compare(
        f"{large.name}, snapshot loaded",
        lambda: by_snapshot(snapshots[0], large.where),
        lambda: by_snapshot(snapshots[1], small.where),
        floor_name=str(plan.small),
        target=at_most(2.5),
        same_result=False,
    )
    yield bench.far.compare(
        f"{large.name}, log read in the query",
        lambda: bench.cold(large),
        lambda: bench.cold(small),
        floor_name=str(plan.small),
        target=at_most(2.5),
        same_result=False,
    )


def low_memory(bench: _Bench) -> Measured:
    """The largest tables in a process of little memory, against one as young with this one's."""
    plan = bench.planning
    tables = list(bench.tables((plan.large, "hash", "struct"), (plan.large, "sorted", "struct")))
    if not tables:
        return
    cores = bench.spark.sparkContext.defaultParallelism
    memory = bench.spark.conf.get("spark.driver.memory", "2g")
    with (
        SparkWorker(SESSION, cores=cores, memory=plan.low_memory) as worker,
        SparkWorker(SESSION, cores=cores, memory=memory) as usual,
    ):
        for table in tables:
            name = f"{table.name}, {plan.low_memory} of memory, log read in the query"
            arguments = {"root": table.root, "where": table.where}
            try:
                yield bench.stopwatch.compare(
                    name,
                    partial(worker.run, f"{_PLANNERS}:by_sparkdelta", **arguments),
                    partial(usual.run, f"{_PLANNERS}:by_sparkdelta", **arguments),
                    floor_name=f"with {memory}",
                    target=at_most(1.3),
                    counts_jobs=False,
                )
            except SparkWorkerError as error:
                yield bench.not_measured(name, error)


def delta_rs(bench: _Bench) -> Iterator[Comparison]:
    """Against delta-rs on the checkpoint that all writers make."""
    for table in bench.tables((bench.planning.middle, "classic", "both")):
        yield bench.far.compare(
            f"{table.name}, log read in the query",
            partial(bench.cold, table),
            partial(by_delta_rs, table.root, table.where),
            floor_name=f"delta-rs {deltalake.__version__}",
            target=faster(4),
        )


def delta_spark(bench: _Bench) -> Measured:
    """Against delta-spark in a JVM of its own: with a cold cache, and with its state in memory.

    It skips by the JSON alone, so the tables have that too.
    """
    size = bench.planning.middle
    targets: dict[Shape, Targets] = {
        (size, "classic", "both"): _NO_TARGETS,
        (size, "sorted", "both"): _NO_TARGETS,
    }
    return _against(bench, targets)


def delta_spark_large(bench: _Bench) -> Measured:
    """Scans of the largest tables, against delta-spark."""
    size = bench.planning.large
    return _against(
        bench,
        {
            (size, "hash", "both"): (faster(12), None),
            (size, "sorted", "both"): (faster(100), faster(1)),
        },
    )


def _against(bench: _Bench, targets: Mapping[Shape, Targets]) -> Measured:
    tables = list(bench.tables(*targets))
    if not tables:
        return

    def measure(rival: DeltaSpark) -> Measured:
        for table, of_table in zip(tables, targets.values(), strict=True):
            yield from _cold_and_warm(bench, rival, table, of_table)

    yield from against_delta_spark(bench.stopwatch, bench.planning.rival_memory, measure)


def _cold_and_warm(bench: _Bench, rival: DeltaSpark, table: Table, targets: Targets) -> Measured:
    name = f"{table.name}, log read in the query"
    # The cold run leaves its state in delta-spark's cache for the warm one.
    temperatures = (("cold", bench.slow), ("warm", bench.stopwatch))
    for (temperature, stopwatch), target in zip(temperatures, targets, strict=True):
        ask = partial(
            rival.run,
            f"{_PLANNERS}:by_delta_spark",
            root=table.root,
            where=table.where,
            cold=temperature == "cold",
        )
        try:
            yield stopwatch.compare(
                name,
                partial(bench.cold, table),
                ask,
                floor_name=f"delta-spark {VERSION}, {temperature}",
                target=target,
            )
        except SparkWorkerError as error:
            yield bench.not_measured(f"{name}, delta-spark {VERSION}, {temperature}", error)
            return


def file_lists(bench: _Bench) -> Iterator[Comparison]:
    """The DataFrame of a scan of many files, against the native reader on their paths."""
    spark = bench.spark
    for count in bench.planning.lists:
        root = bench.scratch / f"{count}-data-files"
        paths = write_small_files(spark, root, files=count)
        snapshot = load_snapshot(spark, str(root))

        def plain(paths: list[str] = paths) -> object:
            return spark.read.parquet(*paths).schema.names

        def scan(snapshot: Snapshot = snapshot) -> object:
            return snapshot.scan().to_df().schema.names

        yield bench.slow.compare(
            f"scan().to_df() of {count:,} files, not read", scan, plain,
            floor_name="spark.read.parquet(*paths)",
        )  # fmt: skip


PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "checkpoints": checkpoints,
    "own-checkpoints": own_checkpoints,
    "growth": growth,
    "low-memory": low_memory,
    "delta-rs": delta_rs,
    "delta-spark": delta_spark,
    "delta-spark-large": delta_spark_large,
    "file-lists": file_lists,
}


def planning(stopwatch: Stopwatch, scale: Planning, scratch: Path) -> Measured:
    """`date = X AND id BETWEEN a AND b`, from the log to the list of files."""
    return run_parts(PARTS, _Bench(stopwatch, scale, scratch), scale.without)
