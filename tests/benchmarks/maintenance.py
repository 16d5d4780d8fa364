"""Maintenance of tables against delta-spark, on copies of one table."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, vacuum
from tests.benchmarks.file_actions import BYTES, path_of
from tests.benchmarks.logs import CheckpointedLog
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, Target, at_most
from tests.benchmarks.parts import SESSION, Measured, against_delta_spark, linked, run_parts
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.log_writer import write_commit
from tests.support.spark_worker import SparkWorker, SparkWorkerError
from tests.support.table_builder import add, metadata, protocol, remove

_RIVAL_MEMORY, _SMALL_HEAP = "2g", "1g"
_DIRECTORIES = 100
_HOUR = 3600
_RESTORED_COMMITS = 100


class Sizes(Protocol):
    """Of the benchmark's scale."""

    @property
    def checkpoint_files(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Bench:
    """What the parts need."""

    stopwatch: Stopwatch
    scratch: Path
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    def compare(
        self,
        name: str,
        table: Path,
        candidate: Callable[[str], object],
        floor: Callable[[str], object],
        target: Target,
        check: Callable[[Path], object],
    ) -> Comparison:
        """Run both in turns, each on a copy of a table whose files are links; the first pair is not
        counted. To copy takes no part of the time.

        Parameters
        ----------
        check
            What must be the same afterwards.
        """
        times: dict[Callable[[str], object], list[float]] = {candidate: [], floor: []}
        for _ in range(self.stopwatch.pairs.first + 1):
            found = []
            for run, seconds in times.items():
                copy = self.scratch / f"copy-{uuid4()}"
                shutil.copytree(table, copy, copy_function=linked)
                start = time.perf_counter()
                run(str(copy))
                seconds.append(time.perf_counter() - start)
                found.append(check(copy))
                shutil.rmtree(copy)
            if found[0] != found[1]:
                raise ValueError(f"{name}: {found[0]} instead of {found[1]}")
        return Comparison(
            suite=self.stopwatch.suite,
            name=name,
            floor_name=f"delta-spark {VERSION}",
            target=target,
            jobs=None,
            floor_seconds=tuple(times[floor][1:]),
            seconds=tuple(times[candidate][1:]),
        )


def vacuum_of_delta_spark(bench: Bench) -> Measured:
    """VACUUM of a table of which half of the files were removed, by listing and by the log."""
    files = bench.scale.checkpoint_files // 10
    table = bench.scratch / "removed"
    _write_removed(table, files)

    def measure(rival: DeltaSpark) -> Measured:
        for mode, target in (("full", at_most(0.5)), ("lite", at_most(0.3))):
            statement = "VACUUM delta.`{table}` " + mode.upper()
            yield from _tried(
                bench,
                partial(
                    bench.compare,
                    f"VACUUM {mode.upper()} of {files:,} files, {files // 2:,} to delete",
                    table,
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
        tail_commits=_RESTORED_COMMITS,
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
            yield from _tried(
                bench,
                partial(
                    bench.compare,
                    f"RESTORE of {files:,} files to {_RESTORED_COMMITS} versions ago, driver of "
                    f"{_SMALL_HEAP}",
                    table,
                    lambda copy: worker.run(f"{__name__}:restore_by_sparkdelta", path=copy),
                    partial(_run, rival, "RESTORE delta.`{table}` TO VERSION AS OF 10"),
                    at_most(0.3),
                    lambda _: None,
                ),
            )

    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, measure)


def _tried(bench: Bench, measure: Callable[[], Comparison]) -> Measured:
    try:
        yield measure()
    except SparkWorkerError as error:
        yield NotMeasured(bench.stopwatch.suite, "delta-spark", str(error))


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


def _run(rival: DeltaSpark, statement: str, path: str) -> None:
    rival.run(f"{__name__}:run_by_delta_spark", statement=statement.format(table=path))


def run_by_delta_spark(spark: SparkSession, statement: str) -> None:
    """Runs in the worker."""
    spark.sql(statement).collect()


def restore_by_sparkdelta(spark: SparkSession, path: str) -> str:
    """Runs in the worker."""
    (metrics,) = DeltaTable.forPath(spark, path).restoreToVersion(10).collect()
    return json.dumps(metrics.asDict())


MAINTENANCE_PARTS: dict[str, Callable[[Bench], Measured]] = {
    "delta-spark-vacuum": vacuum_of_delta_spark,
    "delta-spark-restore": restore_of_delta_spark,
}


def maintenance(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """All of it; `without` names parts that are left out."""
    return run_parts(MAINTENANCE_PARTS, Bench(stopwatch, scratch, scale), without)
