"""Tasks that fail while they commit, and run again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_delta, verify, write_delta
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.rows import modified_files
from sparkdelta.table.vectors.deletion_vector_writing_workers import DeletionVectorWriter
from tests.support.spark_worker import SparkWorker
from tests.support.unreferenced import unreferenced

pytestmark = pytest.mark.classic("runs processes of classic sessions")


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
        [directory] = Path(path).glob("_sparkdelta-*")
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
    except DeltaError as error:
        if error.getCondition() != "DELTA_WRITE_FAILED":
            raise
        return [True, DeltaTable.isDeltaTable(spark, path)]
    return [False, DeltaTable.isDeltaTable(spark, path)]


def delete_with_failing_tasks(spark: SparkSession, path: str) -> None:
    """Each task that writes deletion vectors fails once, when its files are written."""

    class FailingWriter(DeletionVectorWriter):
        def write(self, touched: Iterable[Any]) -> Iterator[dict[str, Any]]:
            yield from DeletionVectorWriter.write(self, touched)
            context = TaskContext.get()
            if context is not None and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")

    with (
        patch.object(modified_files, "DeletionVectorWriter", FailingWriter),
        patch.object(modified_files, "MAX_READ_POSITIONS", 0),
    ):
        DeltaTable.forPath(spark, path).delete("id % 10 = 3 OR id BETWEEN 20 AND 27")


@pytest.mark.slow
def test_files_of_both_runs_are_never_committed(table_path: str) -> None:
    """The write is refused: Hadoop's second algorithm of commits moves a task's files one by one,
    so that files of both runs would be in the table.
    """
    here = "tests.operations.write.test_retried_tasks"
    with SparkWorker(f"{here}:session_that_retries") as worker:
        outcome = worker.run(f"{here}:write_with_a_failing_commit", path=table_path)
    assert outcome == [True, False]


@pytest.mark.slow
def test_vectors_of_one_run_stay(spark: SparkSession, table_path: str) -> None:
    """Every run of a task, also a speculative one, writes separate vectors. Only the vectors of one
    run are moved and committed.

    PROTOCOL.md#deletion-vectors
    """
    properties = {"delta.enableDeletionVectors": "true"}
    write_delta(spark.range(0, 40, 1, 4), table_path, properties=properties)
    DeltaTable.forPath(spark, table_path).delete("id = 0")
    here = "tests.operations.write.test_retried_tasks"
    with SparkWorker(f"{here}:session_that_retries") as worker:
        worker.run(f"{here}:delete_with_failing_tasks", path=table_path)
    assert len([*Path(table_path).glob("*.bin")]) > 0
    assert not unreferenced(table_path)
    gone = {0, 3, 13, 23, 33, *range(20, 28)}
    found = sorted(row["id"] for row in read_delta(spark, table_path).collect())
    assert found == sorted({*range(40)} - gone)
    assert verify(spark, table_path, footers=True).is_clean
