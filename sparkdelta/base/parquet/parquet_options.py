"""Options, settings and results of Parquet scans and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

PARQUET_OPTIONS = {
    "__globPaths__": "false",
    "mergeSchema": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "recursiveFileLookup": "false",
}
"""Read options that keep scans of the log and of data independent of the session's settings."""


WRITE_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no bounds in footers
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.parquet.annotateVariantLogicalType": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.caseSensitive": "false",
}
"""Settings that data files depend on and that have no write option."""

PINNED_SETTINGS = {
    "spark.sql.sources.partitionOverwriteMode", "spark.sql.files.maxRecordsPerFile",
}  # fmt: skip
"""`WRITE_SETTINGS` without a meaning for writers of a new directory with `maxRecordsPerFile`."""

TIMESTAMP_SETTINGS = {
    "spark.sql.parquet.outputTimestampType", "spark.sql.parquet.int96RebaseModeInWrite",
}  # fmt: skip
CALENDAR_SETTINGS = {"spark.sql.parquet.datetimeRebaseModeInWrite"}
VARIANT_SETTINGS = {
    "spark.sql.variant.writeShredding.enabled", "spark.sql.parquet.annotateVariantLogicalType",
}  # fmt: skip
"""`WRITE_SETTINGS` for files with values of some types: timestamps with a time zone; these and
dates; variants."""

WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
"""Options of Hadoop's output committer. Version 2 of its algorithm moves the files of a task before
the job commits, even after a failed attempt.
"""

_COMMIT_PROTOCOL = "spark.sql.sources.commitProtocolClass"
_COMMITTER = "spark.sql.parquet.output.committer.class"
COMMITTERS = {
    _COMMIT_PROTOCOL: (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    ),
    _COMMITTER: (
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    ),
}
"""Supported committers for each setting: Spark's default and the one for object stores. All of them
make files visible only when the job commits.
"""


def committer_settings(setting: Callable[[str, str], str]) -> dict[str, str]:
    """Return the committer settings of a write: the user's if supported, else Spark's defaults.

    `setting` returns a setting of the session, or its second argument if it is not set.
    """
    configured = {key: setting(key, classes[0]) for key, classes in COMMITTERS.items()}
    return {k: v if v in COMMITTERS[k] else COMMITTERS[k][0] for k, v in configured.items()}


@dataclass(frozen=True, slots=True)
class PartitionDirectories:
    """The partition values of every directory of a scan.

    Attributes
    ----------
    schema
        The partition columns.
    directories
        Qualified, decoded paths, one per row of `values`.
    values
        The typed partition values in the order of `directories`, as local data that is evaluated
        without a Spark job.
    """

    schema: StructType
    directories: Sequence[str]
    values: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetScan:
    """A scan of exactly the given Parquet files.

    Attributes
    ----------
    files
        Absolute, decoded paths; Spark's file sources must ignore the names of all of them or of
        none.
    schema
        The columns to read, with physical names, and with `parquet.field.id` in the metadata of
        those to match by field id.
    options
        Options of Spark's Parquet source and of the storage.
    partitions
        Partition values by directory; classic Spark only.
    size_bytes
        The sum of the files' sizes in the log. If it differs, the size of each file is checked.
    is_streaming
        True if the rows are a batch of a stream.
    """

    files: Sequence[str]
    schema: StructType
    options: Mapping[str, str]
    partitions: PartitionDirectories | None
    size_bytes: int
    is_streaming: bool


@dataclass(frozen=True, slots=True)
class ParquetRelation:
    """A scan of Parquet files.

    Attributes
    ----------
    rows
        The stored columns, followed by the given partition columns.
    metadata
        STRUCT<file_path STRING, row_index LONG, ...> for each row, independent of the table's
        column names.
    input_files
        URIs of the files that the scan reads; Spark leaves out missing files and hidden names.
    stamps
        The size in bytes and modification time in milliseconds of each of these files, as in
        `metadata`; None if they are not known.
    """

    rows: DataFrame
    metadata: Column
    input_files: Sequence[str]
    empty: Sequence[str] = ()
    stamps: Sequence[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListedFiles:
    """The files of a scan that a query reads, those with the same partition values together.

    Attributes
    ----------
    files
        Absolute, decoded paths.
    counts
        The number of files of each row of `values`.
    values
        The typed partition values and, as the last column, the number of the row, as local data
        that is evaluated without a Spark job; None of a table without partition columns.
    check
        A function of some of these files, the URIs that the storage has, and the URIs of empty
        files. It raises a `DeltaError` rather than let a query read fewer files, or others.
    statuses
        The files as the storage has them, in the form of the JVM, by the numbers of rows.
    """

    files: Sequence[str]
    counts: Sequence[int]
    values: DataFrame | None
    check: Callable[[Sequence[str], Sequence[str], Sequence[str]], None]
    statuses: dict[tuple[int, ...], Any] = field(default_factory=dict)


QueryId = Callable[[], str | None]
"""A function that returns the id of the query that runs, or of the operation that it is a part of;
None if Spark gives it none."""


@dataclass(frozen=True, slots=True)
class LateRelation:
    """A scan of Parquet files that are chosen when a query runs.

    Attributes
    ----------
    list_files
        A function that returns the files that may have rows matching a condition. It takes
        the SQL text of the analyzed condition, with timestamps in UTC, or None for all files; a
        function that returns True if the condition calls functions that are not Spark's own; and
        the query.
    identity
        A text that only scans of the same files have.
    size_bytes
        A function of the query that returns the size of all files as far as it is known without
        listing them; None if it is not.
    schema
        The columns to read, with `parquet.field.id` in the metadata of those to match by field id.
    partitions
        The types of the partition values.
    options
        Options of Spark's Parquet source.
    root
        The directory to show as the place of the files.
    """

    list_files: Callable[[str | None, Callable[[], bool], QueryId], ListedFiles]
    identity: str
    size_bytes: Callable[[QueryId], int | None]
    schema: StructType
    partitions: StructType
    options: Mapping[str, str]
    root: str


def is_hidden(path: str) -> bool:
    """Return True if Spark's file sources ignore a file because of its name."""
    name = path.rpartition("/")[2]
    if name.startswith("_"):
        return "=" not in name
    return name.startswith(".") or name.endswith("._COPYING_")
