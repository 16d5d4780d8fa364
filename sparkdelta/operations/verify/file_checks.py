"""Checks of data files and deletion vectors, by workers, or by the driver where they cannot.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-file-storage-format
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import task_count, worker_files
from sparkdelta.operations.verify.file_check_workers import (
    FileChecker,
    Finding,
    file_findings,
    findings_of,
)

MAX_DRIVER_CHECKED_FILES = 100_000
"""Up to this many files of HDFS are checked by the driver."""


def file_checker(
    spark: SparkSession,
    table_root: str,
    *,
    with_footers: bool = False,
    columns: tuple[tuple[str, ...], ...] = (),
) -> FileChecker:
    """Return a checker of the files of a table, for workers."""
    return FileChecker(
        files=worker_files(spark, table_root, {}),
        table_root=table_root,
        with_footers=with_footers,
        columns=columns,
    )


def check_files(
    spark: SparkSession, files: DataFrame, count: int, checker: FileChecker
) -> DataFrame | list[Finding]:
    """Return the problems of files: a lazy DataFrame of workers, or what the driver found.

    Parameters
    ----------
    files
        See `file_findings`.
    count
        The number of files.
    """
    if not worker_files(spark, checker.table_root, {}).is_near(checker.table_root):
        # Each worker would start a JVM.
        on_driver = engine_of(spark).driver_files({})
        if on_driver is not None and count <= MAX_DRIVER_CHECKED_FILES:
            rows = read_table(files, what="files to verify", bound=MAX_DRIVER_CHECKED_FILES)
            return findings_of(rows.to_pylist(), replace(checker, files=on_driver))
    with worker_python(spark):
        return file_findings(files.repartition(task_count(count)), checker)
