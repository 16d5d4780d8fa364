"""Writing checkpoints: against a copy of the same files, and by what has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import deltalake
import pyspark
from deltalake import DeltaTable as DeltaRsTable
from deltalake.exceptions import DeltaError as DeltaRsError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta.operations.checkpoint.checkpoint_writing import WrittenCheckpoint
from tests.benchmarks.file_actions import DAYS, FIRST_DAY, TIME
from tests.benchmarks.logs import CheckpointedLog
from tests.benchmarks.measurement import Comparison, Stopwatch, at_most, faster
from tests.benchmarks.parts import (
    SESSION,
    LogBench,
    Measured,
    against_delta_spark,
    linked,
    run_parts,
)
from tests.benchmarks.planning_tables import Planning, Size
from tests.support.delta_spark import (
    DELTA_SETTINGS,
    VERSION,
    DeltaSpark,
    DeltaSparkUnavailable,
)
from tests.support.spark_worker import REPOSITORY_ROOT, SparkWorkerError

_CODEC = "snappy"
_NEXT = count()


class _Bench(LogBench):
    __slots__ = ()

    @property
    def sizes(self) -> list[Size]:
        """The middle size; the large one only where it is asked for by `--most-files`."""
        most = self.planning.most_files
        wanted = [self.planning.middle]
        if most is not None and most >= self.planning.large.files:
            wanted.append(self.planning.large)
        return wanted

    def log(self, size: Size) -> tuple[CheckpointedLog, Path]:
        """A table with a V2 checkpoint by hash and a tail of commits, made unless it is there."""
        log = CheckpointedLog(
            layout="hash",
            statistics="both",
            files=size.files,
            sidecars=size.sidecars,
            tail_commits=self.planning.tail_commits,
            actions_per_commit=self.planning.actions_per_commit,
        )
        return log, log.write_once(self.spark, self.scratch)


class _Table:
    """A table that is put back to what it was after each checkpoint; its files are never touched,
    so links to them will do.
    """

    def __init__(self, source: Path, scratch: Path) -> None:
        self.path = scratch / f"table-{next(_NEXT)}"
        shutil.copytree(source, self.path, copy_function=linked)
        self._files = set(self._all())
        self._hint = (self.path / "_delta_log" / "_last_checkpoint").read_bytes()

    def checkpoint(self, spark: SparkSession, **options: Any) -> WrittenCheckpoint:
        written = sparkdelta.write_checkpoint(
            spark, str(self.path), kind="v2-json", compression=_CODEC, **options
        )
        self.put_back()
        return written

    def put_back(self) -> None:
        for file in set(self._all()) - self._files:
            file.unlink()
        hint = self.path / "_delta_log" / "_last_checkpoint"
        hint.unlink()
        hint.write_bytes(self._hint)

    def keep(self) -> None:
        """Record the current files and hint, to which `put_back` returns."""
        self._files = set(self._all())
        self._hint = (self.path / "_delta_log" / "_last_checkpoint").read_bytes()

    def _all(self) -> list[Path]:
        return [file for file in self.path.rglob("*") if file.is_file()]


def full(bench: _Bench) -> Iterator[Comparison]:
    """A full V2 checkpoint in each layout, against Spark copying the sidecars of the last one."""
    for size in bench.sizes:
        log, source = bench.log(size)
        table = _Table(source, bench.scratch)
        for layout, target in (("hash", at_most(1.3)), ("clustered", at_most(2.2))):
            yield bench.far.compare(
                f"{size}, full V2 checkpoint, {layout} layout",
                partial(
                    table.checkpoint,
                    bench.spark,
                    layout=layout,
                    incremental=False,
                    adds_per_sidecar=-(-size.files // size.sidecars),
                ),
                partial(_copy, bench.spark, log.checkpoint_files(source), bench.scratch),
                floor_name=f"Spark copies {size.sidecars} sidecars",
                target=target,
                same_result=False,
            )


def _copy(spark: SparkSession, files: Sequence[str], scratch: Path) -> None:
    """Decode and encode, to as many files: no reconciliation and no shuffle."""
    target = scratch / f"copy-{uuid4()}"
    options = {"compression": _CODEC, "outputTimestampType": "TIMESTAMP_MICROS"}
    spark.conf.set("spark.sql.files.minPartitionNum", str(len(files)))
    try:
        rows = spark.read.parquet(*files).coalesce(len(files))
        rows.write.options(**options).parquet(str(target))
    finally:
        spark.conf.unset("spark.sql.files.minPartitionNum")
    shutil.rmtree(target)


def incremental(bench: _Bench) -> Iterator[Comparison]:
    """One update of a thousandth of all files, against a full checkpoint of the same."""
    spark = bench.spark
    for size in bench.sizes:
        changed = size.files // 1_000
        near = f"day IN ({', '.join(str(day) for day in range(100, 100 + DAYS // 100 + 1))})"
        for what, where, told, targets in (
            ("within 1% of the partition values", near, True, (at_most(0.08), at_most(0.05))),
            ("of all partitions", "true", True, (at_most(1.1), None)),
            ("of those 1%, removes without partitionValues", near, False, (None, None)),
        ):
            _, source = bench.log(size)
            table = _Table(source, bench.scratch)
            sparkdelta.write_checkpoint(spark, str(table.path), kind="v2-json", compression=_CODEC)
            _update(spark, table.path, where=where, count=changed, told=told)
            table.keep()
            if size != bench.planning.large:  # what does not follow the change weighs more
                targets = (None, None)
            name = f"{size}, {changed:,} of them changed, {what}: incremental checkpoint"
            bytes_written: dict[bool, int] = {}
            write = partial(_write, spark, table, bytes_written)
            yield bench.slow.compare(
                name,
                partial(write, True),
                partial(write, False),
                floor_name="full checkpoint",
                target=targets[0],
                same_result=False,
            )
            yield Comparison(
                suite=bench.stopwatch.suite,
                name=f"{name}, MB written instead of seconds",
                floor_name="full checkpoint",
                target=targets[1],
                jobs=None,
                floor_seconds=(bytes_written[False] / 1e6,),
                seconds=(bytes_written[True] / 1e6,),
            )


def _write(
    spark: SparkSession, table: _Table, bytes_written: dict[bool, int], is_incremental: bool
) -> None:
    written = table.checkpoint(spark, incremental=is_incremental)
    bytes_written[is_incremental] = written.bytes_written


def _update(spark: SparkSession, root: Path, *, where: str, count: int, told: bool) -> None:
    """A commit that removes some of the files, and adds as many with the same rows."""
    snapshot = sparkdelta.load_snapshot(spark, str(root))
    day = F.datediff("partitionValues_parsed.date", F.lit(FIRST_DAY)).alias("day")
    files = snapshot.add_files().select("path", "partitionValues", "stats", "size", day)
    wanted = files.where(where).orderBy(F.xxhash64("path")).limit(count).collect()
    lines = []
    for number, row in enumerate(wanted):
        values = row["partitionValues"]
        gone = {"path": row["path"], "deletionTimestamp": _now_ms(), "dataChange": True}
        known = {"partitionValues": values, "extendedFileMetadata": True, "size": row["size"]}
        lines.append({"remove": {**gone, **(known if told else {})}})
        new = {"path": f"date={values['date']}/new-{number}.parquet", "partitionValues": values}
        same = {"size": row["size"], "modificationTime": TIME, "dataChange": True}
        lines.append({"add": {**new, **same, "stats": row["stats"]}})
    log = root / "_delta_log"
    commit = log / f"{snapshot.version + 1:020d}.json"
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def delta_rs(bench: _Bench) -> Measured:
    """Against delta-rs, which writes one file."""
    size = bench.planning.middle
    _, source = bench.log(size)
    table = _Table(source, bench.scratch)

    def theirs() -> None:
        DeltaRsTable(str(table.path)).create_checkpoint()
        table.put_back()

    name = f"{size}, full V2 checkpoint, clustered layout, log read in the same call"
    try:
        yield bench.slow.compare(
            name,
            partial(table.checkpoint, bench.spark, incremental=False),
            theirs,
            floor_name=f"delta-rs {deltalake.__version__}",
            same_result=False,
        )
    except DeltaRsError as error:
        yield bench.not_measured(name, error)


def delta_spark(bench: _Bench) -> Measured:
    """Against delta-spark in a JVM of its own, with a cold cache."""
    return against_delta_spark(
        bench.stopwatch, bench.planning.rival_memory, partial(_against, bench)
    )


def _against(bench: _Bench, rival: DeltaSpark) -> Measured:
    for size in bench.sizes:
        _, source = bench.log(size)
        table = _Table(source, bench.scratch)

        def theirs(table: _Table = table) -> None:
            rival.run(f"{__name__}:checkpoint_by_delta_spark", root=str(table.path))
            table.put_back()

        name = f"{size}, full V2 checkpoint, clustered layout, log read in the same call"
        try:
            yield bench.slow.compare(
                name,
                partial(table.checkpoint, bench.spark, incremental=False),
                theirs,
                floor_name=f"delta-spark {VERSION}, cold",
                target=faster(3),
                same_result=False,
            )
        except SparkWorkerError as error:
            yield bench.not_measured(f"{name}, delta-spark {VERSION}", error)


def checkpoint_by_delta_spark(spark: SparkSession, root: str) -> None:
    """Runs in the worker."""
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    log.forTable(spark._jsparkSession, root).checkpoint()


def job(bench: _Bench) -> Measured:
    """The job as a process of its own, from its start to its end, against one of delta-spark."""
    cores = bench.spark.sparkContext.defaultParallelism
    memory = bench.planning.rival_memory
    for size in bench.sizes:
        _, source = bench.log(size)
        table = _Table(source, bench.scratch)
        for layout in ("hash", "clustered"):

            def ours(table: _Table = table, layout: str = layout) -> None:
                _submit(table.path, layout, cores=cores, memory=memory)
                table.put_back()

            def theirs(table: _Table = table) -> None:
                rival = DeltaSpark(
                    session=SESSION, cores=cores, memory=memory, settings=DELTA_SETTINGS
                )
                rival.start()
                rival.run(f"{__name__}:checkpoint_by_delta_spark", root=str(table.path))
                rival.stop()
                table.put_back()

            try:
                yield bench.slow.compare(
                    f"{size}, jobs/checkpoint.py, {layout} layout",
                    ours,
                    theirs,
                    floor_name=f"a process of delta-spark {VERSION}",
                    target=at_most(0.25 if size == bench.planning.large else 0.5),
                    same_result=False,
                    counts_jobs=False,
                )
            except (SparkWorkerError, DeltaSparkUnavailable) as error:
                yield bench.not_measured(f"{size}, jobs/checkpoint.py, {layout} layout", error)


def _submit(table: Path, layout: str, *, cores: int, memory: str) -> None:
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", f"local[{cores}]", "--driver-memory", memory]
    arguments = [str(table), "--full", "--kind", "v2-json", "--layout", layout]
    command = [str(submit), *options, str(REPOSITORY_ROOT / "jobs" / "checkpoint.py"), *arguments]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY_ROOT),
    }
    subprocess.run(command, env=environment, check=True, capture_output=True)


CHECKPOINT_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "full-checkpoints": full,
    "incremental-checkpoints": incremental,
    "delta-rs-checkpoint": delta_rs,
    "delta-spark-checkpoint": delta_spark,
    "delta-spark-checkpoint-job": job,
}


def checkpoints(stopwatch: Stopwatch, scale: Planning, scratch: Path) -> Measured:
    """Writing V2 checkpoints; of ten million files only where `--most-files` asks for them."""
    return run_parts(CHECKPOINT_PARTS, _Bench(stopwatch, scale, scratch), scale.without)
