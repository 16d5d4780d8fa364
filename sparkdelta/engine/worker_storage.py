"""Access to a table's files from Python workers."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from sparkdelta.engine.sessions import is_connect
from sparkdelta.storage import connect
from sparkdelta.workers.files import WorkerFiles, setting_names


def worker_files(spark: SparkSession, table_root: str, options: Mapping[str, str]) -> WorkerFiles:
    """Return a file reader for workers with the driver's Hadoop settings."""
    names = setting_names(table_root)
    if is_connect(spark) or not names:
        known = connect.hadoop_settings(spark, names) if names else {}
        return WorkerFiles(known | {name: options[name] for name in names if name in options})
    from sparkdelta.storage import hadoop  # needs py4j: classic Spark only

    return WorkerFiles(hadoop.settings(spark, names, options))
