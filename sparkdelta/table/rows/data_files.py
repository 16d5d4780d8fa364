"""New data files of conformed rows; no version of the table has them before a commit.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.iceberg_compatibility import has_nested_ids
from sparkdelta.base.protocol.log_files import data_directory
from sparkdelta.base.schema.nested_ids import nested_field_ids
from sparkdelta.base.spark.driver import delta_errors
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore, log_path
from sparkdelta.table.rows.file_descriptions import FileDescriber
from sparkdelta.table.rows.job_failures import write_failures
from sparkdelta.table.rows.layout import LaidOutRows
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.snapshot.staging import staging

CHANGE_DATA_DIRECTORY = "_change_data"
"""The directory of the change data files, below the table's root."""


def write_data_files(
    rows: LaidOutRows,
    store: LogStore,
    describer: FileDescriber,
    options: Mapping[str, str],
    *,
    is_change_data: bool = False,
) -> NewFiles:
    """Write rows into a directory of their own below the table's root, and describe its files.

    Simultaneous writes into one directory would lose rows: Spark's committer shares its temporary
    files. A write that fails deletes its directory.

    Parameters
    ----------
    options
        Of Spark's Parquet writer, and Hadoop's settings.
    is_change_data
        True to write below `CHANGE_DATA_DIRECTORY`.
    """
    spark, table, root = describer.spark, describer.table, store.table_root
    parent = f"{root}/{CHANGE_DATA_DIRECTORY}" if is_change_data else root
    directory = f"{parent}/{data_directory(str(uuid4()))}"
    # Spark's writer cannot give ids to elements, keys and values.
    with_ids = has_nested_ids(table.iceberg_version)
    field_ids = nested_field_ids(table.schema) if with_ids else {}
    with report_orphans(root, [directory], store.table_files().delete_directory):
        if not field_ids:
            write_parquet(rows, directory, options, spark=spark, table_root=root)
            return describer.describe(directory)
        with staging(spark, store) as stage:
            staged = log_path(root, f"{stage.name}/data")
            write_parquet(rows, staged, options, spark=spark, table_root=root)
            return describer.copy(staged, directory, field_ids)


def write_parquet(
    rows: LaidOutRows,
    directory: str,
    options: Mapping[str, str],
    *,
    spark: SparkSession,
    table_root: str,
) -> None:
    """Write rows by Spark's Parquet writer."""
    with write_failures(table_root), delta_errors(None), named_jobs(spark, "data files"):
        engine_of(spark).write_parquet(
            rows.rows,
            directory,
            partition_by=list(rows.directories),
            options=options,
            settings=rows.settings,
        )
