"""What a scan of data files is made from, and what it tells of itself."""

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
"""What no scan, of the log or of data, may leave to the session's settings, as read options."""

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
"""What data files depend on and no write option can say."""

WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
"""Of Hadoop's committer. With its second algorithm a task's files have their place before the job
commits, also those of a task that fails then and runs again.
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
"""Spark's own, and those that lead to the committers of object stores; all give files their place
when the job commits."""


def committer_settings(setting: Callable[[str, str], str]) -> dict[str, str]:
    """The committers of a write: the user's where files have their place only once the job commits,
    else Spark's own.

    Parameters
    ----------
    setting
        Gives a setting of the session, or the second argument where it has none.
    """
    found = {key: setting(key, known[0]) for key, known in _COMMITTERS.items()}
    return {k: v if v in _COMMITTERS[k] else _COMMITTERS[k][0] for k, v in found.items()}


@dataclass(frozen=True, slots=True)
class PartitionDirectories:
    """The partition values of every directory that a scan reads from.

    Attributes
    ----------
    schema
        The partition columns.
    directories
        Qualified, decoded paths, one per row of `values`.
    values
        The typed partition values in the order of `directories`, made from local data so that they
        evaluate without a Spark job.
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
        The stored columns, then the partition columns that were handed in.
    metadata
        STRUCT<file_path STRING, row_index LONG, ...> of each row, whatever the table's columns are.
    taken_up
        URIs of the files that the scan reads: Spark leaves out files that are gone and hidden
        names.
    stamps
        Of each of these, its size in bytes and modification time in milliseconds as `metadata` will
        say them; None where that is not known.
    """

    rows: DataFrame
    metadata: Column
    taken_up: Sequence[str]
    empty: Sequence[str] = ()
    stamps: Sequence[tuple[int, int]] | None = None


def is_hidden(path: str) -> bool:
    """Whether Spark's file sources leave out a file for its name."""
    name = path.rpartition("/")[2]
    if name.startswith("_"):
        return "=" not in name
    return name.startswith(".") or name.endswith("._COPYING_")
