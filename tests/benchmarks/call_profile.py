"""Profile of the first, the second and the hundredth call of a session, as a Markdown table.

python -m tests.benchmarks.call_profile
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession

from tests.benchmarks.parts import SESSION
from tests.support.spark_worker import SparkWorker

_ROWS, _CALLS = 10, (1, 2, 100)
_COLUMNS = (
    "seconds", "imports, s", "calls of the JVM", "in them, s", "jobs", "in jobs, s",
    "Java compiled from plans", "classes loaded", "JIT, s",
)  # fmt: skip


def _spark_read(spark: SparkSession, path: str) -> None:
    spark.read.parquet(f"{path}/parquet").count()


def _spark_append(spark: SparkSession, path: str) -> None:
    spark.range(1).coalesce(1).write.mode("append").parquet(f"{path}/parquet")


def _read(spark: SparkSession, path: str) -> None:
    from sparkdelta import read_delta

    read_delta(spark, f"{path}/delta").count()


def _read_where(spark: SparkSession, path: str) -> None:
    from sparkdelta import read_delta

    read_delta(spark, f"{path}/delta").filter("id = 3").count()


def _append(spark: SparkSession, path: str) -> None:
    from sparkdelta import write_delta

    write_delta(spark.range(1).coalesce(1), f"{path}/delta", mode="append")


def _delete(spark: SparkSession, path: str) -> None:
    from sparkdelta import DeltaTable

    DeltaTable.forPath(spark, f"{path}/delta").delete("id = 3")


_OPERATIONS: dict[str, Callable[[SparkSession, str], None]] = {
    "Spark: `read.parquet(path).count()`": _spark_read,
    "`read_delta(spark, path).count()`": _read,
    "the same with `.filter`": _read_where,
    "Spark: append of a row": _spark_append,
    "append of a row": _append,
    "DELETE of nothing": _delete,
}


def write_tables(spark: SparkSession, path: str) -> None:
    """Runs in the worker: a table of ten commits, and the same rows as Parquet."""
    from sparkdelta import write_delta

    for number in range(_ROWS):
        row = spark.range(number, number + 1).coalesce(1)
        row.write.mode("append").parquet(f"{path}/parquet")
        write_delta(row, f"{path}/delta", mode="append")


def profile(spark: SparkSession, path: str, name: str) -> list[list[float]]:
    """Runs in the worker: the columns of the table for each of `_CALLS`."""
    found = []
    for number in range(1, max(_CALLS) + 1):
        if number in _CALLS:
            found.append(_profiled(spark, path, name, imports=number == 1))
        else:
            _OPERATIONS[name](spark, path)
    return found


def _profiled(spark: SparkSession, path: str, name: str, *, imports: bool) -> list[float]:
    jvm: Any = spark._jvm
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    management = jvm.java.lang.management.ManagementFactory
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def counters() -> list[float]:
        return [
            compiled.getCount(),
            management.getClassLoadingMXBean().getTotalLoadedClassCount(),
            management.getCompilationMXBean().getTotalCompilationTime() / 1000,
        ]

    in_jvm: list[float] = []
    send = client.send_command

    def timed(command: str, *arguments: Any) -> Any:
        start = time.perf_counter()
        try:
            return send(command, *arguments)
        finally:
            if not command.startswith(MEMORY_COMMAND_NAME):
                in_jvm.append(time.perf_counter() - start)

    before, jobs = counters(), _jobs(spark)
    start = time.perf_counter()
    if imports and not name.startswith("Spark"):
        from sparkdelta import DeltaTable, read_delta, write_delta  # noqa: F401 - measured
    imported = time.perf_counter()
    with patch.object(client, "send_command", timed):
        _OPERATIONS[name](spark, path)
    end = time.perf_counter()
    new = [seconds for job, seconds in _jobs(spark).items() if job not in jobs]
    changes = [after - b for after, b in zip(counters(), before, strict=True)]
    return [end - start, imported - start, len(in_jvm), sum(in_jvm), len(new), sum(new), *changes]


def _jobs(spark: SparkSession) -> dict[int, float]:
    """The seconds of the jobs of a session that ended, by their ids."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # type: ignore[union-attr]
    found = {}
    for number in range(jobs.size()):
        job = jobs.apply(number)
        times = job.submissionTime(), job.completionTime()
        if all(moment.isDefined() for moment in times):
            began, ended = (moment.get().getTime() for moment in times)
            found[int(job.jobId())] = (ended - began) / 1000
    return found


def main() -> None:
    """Profile each operation in a process of its own."""
    directory = Path(tempfile.mkdtemp(prefix="sparkdelta-profile-"))
    print(f"| operation | call | {' | '.join(_COLUMNS)} |")
    print(f"|---|---|{'---|' * len(_COLUMNS)}")
    try:
        with SparkWorker(SESSION, cores=2, memory="2g") as worker:
            worker.run(f"{_MODULE}:write_tables", path=str(directory))
        for name in _OPERATIONS:
            copy = directory / "copy"
            for table in ("delta", "parquet"):
                shutil.copytree(directory / table, copy / table)
            with SparkWorker(SESSION, cores=2, memory="2g") as worker:
                found = worker.run(f"{_MODULE}:profile", path=str(copy), name=name)
            shutil.rmtree(copy)
            for number, row in zip(_CALLS, found, strict=True):
                shown = " | ".join(f"{n:.3g}" if isinstance(n, float) else str(n) for n in row)
                print(f"| {name} | {number} | {shown} |")
            sys.stdout.flush()
    finally:
        shutil.rmtree(directory)


_MODULE = "tests.benchmarks.call_profile"

if __name__ == "__main__":
    main()
