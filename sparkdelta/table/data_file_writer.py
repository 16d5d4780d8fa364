"""Rows to new data files and their add actions; nothing of it is in the table before a commit.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.frames.footer_statistics import ADDED, NUM_RECORDS, FooterReader, describe_files
from sparkdelta.frames.written_rows import WrittenColumn, written_rows
from sparkdelta.storage.worker_files import WorkerFiles, setting_names
from sparkdelta.table.driver import our_errors, read_rows, read_table

log = logging.getLogger(__name__)

MAX_NEW_FILES = 10_000
"""Up to this many new files are known to the driver one by one."""

_FILE_LIST = "path STRING, modificationTime TIMESTAMP_LTZ, length LONG, content BINARY"
_LIST_OPTIONS = {
    "recursiveFileLookup": "true",
    "pathGlobFilter": "*.parquet",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Data files that nobody refers to yet.

    Attributes
    ----------
    adds
        A column `add`.
    """

    adds: DataFrame
    count: int
    num_rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileWriter:
    """Writes rows below the root of one table.

    Attributes
    ----------
    columns
        The table's columns in its order, with where their values come from.
    partition_columns
        In the order of `metaData.partitionColumns`.
    statistics_columns
        The paths of the columns that get statistics.
    options
        Options of Spark's Parquet writer, and Hadoop's settings.
    """

    spark: SparkSession
    table_root: str
    columns: Sequence[WrittenColumn]
    partition_columns: tuple[str, ...]
    statistics_columns: tuple[tuple[str, ...], ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def write(self, rows: DataFrame, *, where: str | Column | None = None) -> NewFiles:
        """Write the rows into a directory of their own, and describe its files.

        Simultaneous writes into one directory would lose rows: Spark's committer shares its
        temporary files.

        Raises
        ------
        DeltaError
            What a row breaks; also PySpark's errors of the rows' own query.
        """
        from sparkdelta.storage.hadoop import write_parquet  # needs py4j: classic Spark only

        directory = f"{self.table_root}/data-{uuid4()}"
        names = {name: _directory_name(name, i) for i, name in enumerate(self.partition_columns)}
        columns = [WrittenColumn(c.field, c.source, names.get(c.field.name)) for c in self.columns]
        try:
            with our_errors(None):
                write_parquet(
                    written_rows(rows, columns, where=where),
                    directory,
                    partition_by=list(names.values()),
                    options={
                        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
                        **self.options,
                    },
                )
            return self._described(directory)
        except Exception:
            log.warning(
                "Nothing was committed to %s; files that no version refers to may be in %s",
                self.table_root, directory,
            )  # fmt: skip
            raise

    def _described(self, directory: str) -> NewFiles:
        listing = self.spark.read.format("binaryFile").schema(_FILE_LIST)
        files = listing.options(**_LIST_OPTIONS).load(directory)
        described = describe_files(
            files.select(
                "path", "length", F.unix_millis("modificationTime").alias("modificationTime")
            ),
            FooterReader(
                self._worker_files(),
                self.table_root,
                self.partition_columns,
                self.statistics_columns,
            ),
        )
        try:
            table = read_table(
                described.limit(MAX_NEW_FILES + 1), what="new data files", bound=MAX_NEW_FILES
            )
        except DriverReadTooLargeError:
            return self._many(described)
        if table.num_rows == 0:
            empty = self.spark.createDataFrame([], ADDED)
            return NewFiles(_adds(empty), 0, 0, 0)
        return NewFiles(
            _adds(self.spark.createDataFrame(table)),
            table.num_rows,
            pc.sum(table[NUM_RECORDS]).as_py(),
            pc.sum(table["size"]).as_py(),
        )

    def _many(self, described: DataFrame) -> NewFiles:
        """As `_described`, for more files than the driver should know; their footers are read by
        each query.
        """
        totals = described.agg(
            F.count("*").alias("count"),
            F.sum(NUM_RECORDS).alias("rows"),
            F.sum("size").alias("size"),
        )
        (row,) = read_rows(totals, what="totals of the new data files", bound=1)
        return NewFiles(_adds(described), row["count"], row["rows"], row["size"])

    def _worker_files(self) -> WorkerFiles:
        from sparkdelta.storage import hadoop  # needs py4j: classic Spark only

        names = setting_names(self.table_root)
        return WorkerFiles(hadoop.settings(self.spark, names, self.options) if names else {})


def _adds(described: DataFrame) -> DataFrame:
    fields = [name for name in ADDED.names if name != NUM_RECORDS]
    return described.select(F.struct(*fields).alias("add"))


def _directory_name(column: str, index: int) -> str:
    """The name of a partition column's directories: Spark hides some that begin otherwise."""
    return column if column[0] in _PLAIN else f"p{index}"
