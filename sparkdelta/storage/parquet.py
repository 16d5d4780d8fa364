"""What a scan of data files is made from, and what it tells of itself."""

from __future__ import annotations

from collections.abc import Sequence
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
