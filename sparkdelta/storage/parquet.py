"""Options, settings and results of Parquet scans and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
"""Options of Hadoop's output committer. Version 2 of its algorithm moves the files of a task before
the job commits, including those of a failed attempt.
"""

_COMMIT_PROTOCOL = "spark.sql.sources.commitProtocolClass"
_COMMITTER = "spark.sql.parquet.output.committer.class"
_COMMITTERS = {
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
    """Return the committer settings of a write: the user's if they are supported, otherwise Spark's
    defaults.

    Parameters
    ----------
    setting
        A function that returns a setting of the session, or its second argument if it is not set.
    """
    configured = {key: setting(key, classes[0]) for key, classes in _COMMITTERS.items()}
    return {k: v if v in _COMMITTERS[k] else _COMMITTERS[k][0] for k, v in configured.items()}


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


def is_hidden(path: str) -> bool:
    """True if Spark's file sources ignore a file because of its name."""
    name = path.rpartition("/")[2]
    if name.startswith("_"):
        return "=" not in name
    return name.startswith(".") or name.endswith("._COPYING_")
