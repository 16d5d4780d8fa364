"""Access to a table's files from Python workers and from the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.hadoop import HADOOP_SCHEMES, WorkerHadoop, all_hadoop_settings
from sparkdelta.base.jvm.hadoop_files import HadoopFiles
from sparkdelta.base.spark.server_store import ServerFiles
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.worker_files import ArrowFiles, StoredFiles, WorkerFiles, setting_names

_FILES_PER_TASK = 1000
_MAX_TASKS = 10_000


def worker_files(
    spark: SparkSession, table_root: str, options: Mapping[str, str], *more: str
) -> WorkerFiles:
    """Return access for workers to the files of a table, and of `more` tables, with the driver's
    Hadoop settings.
    """
    roots = (table_root, *more)
    if any(root.startswith(HADOOP_SCHEMES) for root in roots):
        return HadoopFiles(WorkerHadoop(all_hadoop_settings(spark, options)), {})
    names = [name for root in roots for name in setting_names(root)]
    return ArrowFiles(engine_of(spark).hadoop_settings(names, options))


def driver_files(spark: SparkSession, table_root: str, options: Mapping[str, str]) -> StoredFiles:
    """Return the table's files as the driver reaches them, see `SparkEngine.reachable_files`."""
    files = worker_files(spark, table_root, options)
    return engine_of(spark).reachable_files(files, table_root, options)


def is_like_workers(files: StoredFiles) -> bool:
    """Return True if the driver opens files as workers do, and not through its JVM."""
    return isinstance(files, ArrowFiles | ServerFiles)


def table_of(
    files: StoredFiles, function: Callable[[StoredFiles], pa.Table | None]
) -> pa.Table | None:
    """Return the table that a function makes of files, where these are; it can be pickled."""
    return files.table_of(function) if isinstance(files, ServerFiles) else function(files)


def task_count(files: int) -> int:
    """Return the number of tasks in which workers look into a number of files."""
    return min(files // _FILES_PER_TASK + 1, _MAX_TASKS)
