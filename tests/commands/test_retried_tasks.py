"""Tasks that fail while they commit, and run again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, write_delta
from sparkdelta.exceptions import WriteFailedError
from tests.support.spark_worker import SparkWorker


def session_that_retries(scratch: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2,3]")
    return builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse")).getOrCreate()


def write_with_a_failing_commit(spark: SparkSession, path: str) -> list[bool]:
    """Return whether the write was refused, and whether there is a table.

    The first run of the task has twenty partitions. A link that leads nowhere keeps one of them
    from its place; the second run, which takes the link away, has other rows.
    """

    def rows(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        list(batches)
        [directory] = Path(path).glob("data-*")
        link = directory / "p=05"
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            link.symlink_to("/nowhere/at/all")
            yield pd.DataFrame({"n": range(20), "p": [f"{n:02}" for n in range(20)]})
        else:
            if os.path.islink(link):
                link.unlink()
            yield pd.DataFrame({"n": range(20), "p": "z"})

    spark.conf.set("mapreduce.fileoutputcommitter.algorithm.version", "2")
    frame = spark.range(0, 1, 1, 1).mapInPandas(rows, "n LONG, p STRING")
    try:
        write_delta(frame, path, partition_by=["p"])
    except WriteFailedError:
        return [True, DeltaTable.isDeltaTable(spark, path)]
    return [False, DeltaTable.isDeltaTable(spark, path)]


@pytest.mark.slow
def test_files_of_both_runs_are_never_committed(table_path: str) -> None:
    """With Hadoop's second algorithm of commits they would: it moves a task's files one by one."""
    here = "tests.commands.test_retried_tasks"
    with SparkWorker(f"{here}:session_that_retries") as worker:
        outcome = worker.run(f"{here}:write_with_a_failing_commit", path=table_path)
    assert outcome == [True, False]
