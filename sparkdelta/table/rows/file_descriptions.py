"""Descriptions of new data files: the add actions that their footers give.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.nested_ids import ParquetPath
from sparkdelta.base.schema.statistics_columns import string_prefix_length
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import (
    driver_files,
    is_like_workers,
    table_of,
    worker_files,
)
from sparkdelta.base.storage.worker_files import StoredFiles, WorkerFiles
from sparkdelta.exceptions import DriverReadTooLargeError, StorageError
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.field_id_workers import FileCopier, copied_files
from sparkdelta.table.rows.footer_statistics_workers import LISTED, FooterReader, describe_files
from sparkdelta.table.rows.new_files import MAX_NEW_FILES, NewFiles

_LOGGER = logging.getLogger(__name__)

MAX_DRIVER_FOOTERS = 16
"""Up to this many footers are read by the driver: a Spark job would take longer to start."""

MAX_COPIED_FILES = 100_000
"""The most files that a write can copy to add the field ids of elements, keys and values, which
Spark's writer cannot write: the driver learns their names, as files of failed tasks lie beside
them."""

_THREADS = 16
_LIST_OPTIONS = {
    "recursiveFileLookup": "true",
    "pathGlobFilter": "*.parquet",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDescriber:
    """The reader of the footers of one table's new data files.

    Attributes
    ----------
    statistics_columns
        The physical paths of the columns that get statistics; one may be named twice.
    options
        Hadoop's settings.
    """

    spark: SparkSession
    table_root: str
    table: TableConfiguration
    statistics_columns: tuple[ColumnPath, ...]
    data_change: bool = True
    options: Mapping[str, str]

    def describe(self, directory: str) -> pa.Table | None:
        """Return the columns of `footer_statistics_workers.ADDED` for the files below a directory;
        those without rows are left out.

        None if they are more than `MAX_NEW_FILES`.
        """
        files = driver_files(self.spark, self.table_root, self.options)
        most = MAX_DRIVER_FOOTERS if is_like_workers(files) else MAX_NEW_FILES
        few = describe_few_files(files, directory, self._reader(), most)
        if few is not None:
            return few
        described = self.described(directory).limit(MAX_NEW_FILES + 1)
        try:
            return read_table(described, what="new data files", bound=MAX_NEW_FILES)
        except DriverReadTooLargeError:
            return None

    def described(self, directory: str) -> DataFrame:
        """Return the columns of `footer_statistics_workers.ADDED` as `describe` does; lazy."""
        listed = self._listed(directory).select(
            "path", "length", F.unix_millis("modificationTime").alias("modificationTime")
        )
        with worker_python(self.spark):
            return describe_files(listed, self._reader())

    def copy(self, source: str, target: str, field_ids: Mapping[ParquetPath, int]) -> pa.Table:
        """Copy the files below a directory with these field ids, and describe the copies."""
        copier = FileCopier(self._worker_files(), source, target, field_ids)
        with worker_python(self.spark):
            copied = copied_files(self._listed(source).select("path"), copier, self._reader())
        with named_jobs(self.spark, "field ids of data files"):
            return read_table(copied, what="copied data files", bound=MAX_COPIED_FILES)

    def new_files(self, described: pa.Table, places: Sequence[str]) -> NewFiles:
        """Return files that `describe` or `copy` described."""
        if described.num_rows <= MAX_NEW_FILES:
            return NewFiles.known(self.spark, described, places)
        return NewFiles.many(arrow_frame(self.spark, described), places)

    def _reader(self) -> FooterReader:
        return FooterReader(
            self._worker_files(),
            self.table_root,
            tuple(key for key, _ in self.table.partition_keys),
            tuple(dict.fromkeys(self.statistics_columns)),
            self.data_change,
            string_prefix_length(self.table.properties),
        )

    def _listed(self, directory: str) -> DataFrame:
        return engine_of(self.spark).read_files("binaryFile", [directory], options=_LIST_OPTIONS)

    def _worker_files(self) -> WorkerFiles:
        return worker_files(self.spark, self.table_root, self.options)


def describe_few_files(
    files: StoredFiles, directory: str, reader: FooterReader, most: int
) -> pa.Table | None:
    """Return the columns of `footer_statistics.ADDED` for the data files below a directory.

    None if they are more than `most`, or if the driver cannot reach them.
    """

    def described(near: StoredFiles) -> pa.Table | None:
        found = near.data_files(directory)
        return None if len(found) > most else _described(found, replace(reader, files=near))

    try:
        return table_of(files, described)
    except (OSError, StorageError) as error:
        _LOGGER.info("Executors read the footers in %s; the driver cannot: %s", directory, error)
        return None


def _described(found: Sequence[tuple[str, int, int]], reader: FooterReader) -> pa.Table:
    def described(part: list[tuple[str, int, int]]) -> list[pa.RecordBatch]:
        rows = [dict(zip(LISTED.names, file, strict=True)) for file in part]
        return list(reader.read(iter([pa.RecordBatch.from_pylist(rows, schema=LISTED)])))

    parts = [[file] for file in found] or [[]]
    with ThreadPoolExecutor(min(len(parts), _THREADS)) as threads:
        return pa.Table.from_batches([b for part in threads.map(described, parts) for b in part])
