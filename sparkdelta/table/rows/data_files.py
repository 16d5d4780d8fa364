"""New data files of conformed rows; no version of the table has them before a commit.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.protocol.iceberg_compatibility import has_nested_ids
from sparkdelta.base.protocol.log_files import data_directory, staged_data_directory
from sparkdelta.base.schema.nested_ids import nested_field_ids
from sparkdelta.base.spark.driver import delta_errors
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore, log_path
from sparkdelta.base.storage.table_files import TableFiles
from sparkdelta.exceptions import StorageError
from sparkdelta.table.rows.file_descriptions import FileDescriber
from sparkdelta.table.rows.footer_statistics_workers import URI_CHARACTERS
from sparkdelta.table.rows.job_failures import write_failures
from sparkdelta.table.rows.layout import CHANGE_DATA_DIRECTORY, LaidOutRows, placed_file
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import delete_emptied, report_orphans
from sparkdelta.table.snapshot.staging import staging


def write_data_files(
    rows: LaidOutRows,
    store: LogStore,
    describer: FileDescriber,
    options: Mapping[str, str],
    *,
    is_change_data: bool = False,
) -> NewFiles:
    """Write rows into a directory of their own, and move its files to their places below the
    table's root, see `placed_file`. A write that fails deletes them.

    Simultaneous writes into one directory would lose rows: Spark's committer shares its temporary
    files. Files stay in a directory of their own where the storage cannot rename them, and if they
    are too many for the driver.

    Parameters
    ----------
    options
        Of Spark's Parquet writer, and Hadoop's settings.
    is_change_data
        True to write below `CHANGE_DATA_DIRECTORY`.
    """
    spark, table, root = describer.spark, describer.table, store.table_root
    files, uuid = store.table_files(), str(uuid4())
    parent = f"{root}/{CHANGE_DATA_DIRECTORY}" if is_change_data else root
    kept = f"{parent}/{data_directory(uuid)}"
    written = f"{root}/{staged_data_directory(uuid)}" if files.can_move else kept
    # Spark's writer cannot give ids to elements, keys and values.
    with_ids = has_nested_ids(table.iceberg_version)
    field_ids = nested_field_ids(table.schema) if with_ids else {}
    places = [f"{written}/"]
    with report_orphans(root, places, files):
        if not field_ids:
            write_parquet(rows, written, options, spark=spark, table_root=root)
            described = describer.describe(written)
        else:
            with staging(spark, store) as stage:
                staged = log_path(root, f"{stage.name}/data")
                write_parquet(rows, staged, options, spark=spark, table_root=root)
                described = describer.copy(staged, written, field_ids)
        if described is None:
            if files.can_move:
                places.append(f"{kept}/")
                files.move_directory(written, kept)
            return NewFiles.many(describer.described(kept), [f"{kept}/"])
        if files.can_move:
            described = _moved(
                described, written, describer, files, places, is_change_data=is_change_data
            )
    return describer.new_files(described, places)


def _moved(
    described: pa.Table,
    written: str,
    describer: FileDescriber,
    files: TableFiles,
    places: list[str],
    *,
    is_change_data: bool,
) -> pa.Table:
    """Move files from the directory that holds them to their places, which are then `places`, and
    return their descriptions with the new paths.
    """
    root = describer.table_root
    sources = [unquote(path) for path in described["path"].to_pylist()]
    prefix = f"{written.removeprefix(f'{root}/')}/"
    targets = [
        placed_file(source.removeprefix(prefix), describer.table, is_change_data=is_change_data)
        for source in sources
    ]
    places += (f"{root}/{target}" for target in targets)
    try:
        files.move(dict(zip(sources, targets, strict=True)))
    except FileNotFoundError as error:
        problem = "the new file was deleted before it was moved"
        raise StorageError(path=str(error.filename), problem=problem) from None
    delete_emptied(written, files)
    places.remove(f"{written}/")
    paths = pa.array([quote(target, safe=URI_CHARACTERS) for target in targets], pa.string())
    return described.set_column(0, "path", paths)


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
