"""Access to a table's files from Python workers and from the driver."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.worker_files import StoredFiles, WorkerFiles, setting_names

_FILES_PER_TASK = 1000
_MAX_TASKS = 10_000


def worker_files(spark: SparkSession, table_root: str, options: Mapping[str, str]) -> WorkerFiles:
    """Return a file reader for workers with the driver's Hadoop settings."""
    names = setting_names(table_root)
    return WorkerFiles(engine_of(spark).hadoop_settings(names, options))


def driver_files(spark: SparkSession, table_root: str, options: Mapping[str, str]) -> StoredFiles:
    """Return the table's files as the driver reaches them: on HDFS, through its JVM."""
    files = worker_files(spark, table_root, options)
    if files.is_near(table_root):
        return files
    return engine_of(spark).driver_files(options) or files


def task_count(files: int) -> int:
    """Return the number of tasks in which workers look into a number of files."""
    return min(files // _FILES_PER_TASK + 1, _MAX_TASKS)
