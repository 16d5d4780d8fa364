"""Files of a Parquet directory: their listing, and their add actions from their footers.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.parquet.legacy_calendar_workers import NotConvertibleError, calendars
from sparkdelta.base.parquet.parquet_schema_workers import file_schema
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.file_paths import is_absolute
from sparkdelta.base.protocol.partition_values import NO_VALUE
from sparkdelta.base.schema.statistics_columns import statistics_columns, string_prefix_length
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.storage.worker_files import WorkerFiles
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.copy.parquet_type_workers import UnsupportedColumnError, spark_schema
from sparkdelta.table.rows.footer_statistics_workers import URI_CHARACTERS, file_statistics
from sparkdelta.table.snapshot.file_listing_workers import FileLister

CONVERTED = StructType(
    [
        StructField("path", StringType()),
        StructField("names", ArrayType(StringType())),
        StructField("values", ArrayType(StringType())),
        StructField("size", LongType()),
        StructField("modificationTime", LongType()),
        StructField("stats", StringType()),
        StructField("schema", StringType()),
    ]
)
"""A file: its path as in the log; the names and values of its partition; its size in bytes and
modification time in milliseconds; its statistics, null if they are not collected; its schema as
JSON."""

_CONVERTED_ARROW = to_arrow_schema(CONVERTED)
_OF_ICEBERG = re.compile(r"metadata/[^/]*\.metadata\.json").fullmatch
_BATCH = 1_000

IS_HIDDEN = "[_.][^=]*"
"""Regular expression of hidden names, which are left out; names with ``=`` are of partitions."""

_OF_OTHERS = {"_spark_metadata": "Spark's file stream sink", ".hoodie": "Hudi"}
"""Hidden directories of other systems, which determine the files to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLister(FileLister):
    """A lister of all files and directories except hidden ones.

    Directories of other table formats are a DELTA_CONVERT_NON_PARQUET_TABLE.
    """

    visible: str = ""

    def _is_hidden(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if name in _OF_OTHERS:
            raise DeltaError.of(
                "DELTA_CONVERT_NON_PARQUET_TABLE", source=_OF_OTHERS[name], table=self.root
            )
        return name.startswith(("_", ".")) and "=" not in name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedFileReader:
    """A reader of the footers of files in a Parquet directory.

    Attributes
    ----------
    files
        Access to files on workers.
    root
        The absolute, decoded path of the directory.
    partition_columns
        The partition columns that every file must have; None for the columns in its path.
    properties
        The properties of the table, which select the columns with statistics.
    """

    files: WorkerFiles
    root: str
    partition_columns: tuple[str, ...] | None
    collects_statistics: bool
    properties: Mapping[str, str]

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert batches of `footer_statistics.LISTED` to `CONVERTED`."""
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH):
                rows = [self._row(**row) for row in batch.slice(start, _BATCH).to_pylist()]
                yield pa.RecordBatch.from_pylist(rows, schema=_CONVERTED_ARROW)

    def _row(self, path: str, length: int, modificationTime: int) -> dict[str, Any]:  # noqa: N803
        relative = path.removeprefix(f"{self.root}/")
        if _OF_ICEBERG(relative):
            raise DeltaError.of(
                "DELTA_CONVERT_NON_PARQUET_TABLE", source="Iceberg", table=self.root
            )
        partition = self._partition(path, relative)
        names = [name for name, _ in partition]
        try:
            with self.files.open(path) as source:
                file = pq.ParquetFile(source)
                schema = spark_schema(file)
                stats = self._statistics(file, schema, names) if self.collects_statistics else None
        except (pa.ArrowException, OSError, NotConvertibleError, UnsupportedColumnError) as error:
            problem = str(error).partition("\n")[0].rstrip(".")
            raise DeltaError.of(
                "DELTA_FAILED_READ_FILE_FOOTER", path=path, problem=problem
            ) from None
        uri = quote(relative, safe=URI_CHARACTERS)
        return {
            # A colon in the name of the first directory would end a scheme.
            "path": uri.replace(":", "%3A", 1) if is_absolute(uri) else uri,
            "names": names,
            "values": [value for _, value in partition],
            "size": length,
            "modificationTime": modificationTime,
            "stats": stats,
            "schema": schema.json(),
        }

    def _partition(self, path: str, relative: str) -> list[tuple[str, str | None]]:
        """Return the partition columns and values of a file from its directories.

        Directories without ``=`` directly above the file are skipped; the search ends at the next
        one without ``=``.
        """
        directories = relative.split("/")[:-1]
        while directories and "=" not in directories[-1]:
            directories.pop()
        levels: list[tuple[str, str | None]] = []
        while directories and "=" in directories[-1]:
            name, _, text = directories.pop().partition("=")
            levels.insert(0, (unquote(name), None if text == NO_VALUE else unquote(text)))
        expected = self.partition_columns
        if expected is None:
            return levels
        if len(expected) != len(levels):
            names = ", ".join(name for name, _ in levels)
            raise DeltaError.of(
                "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
                path=path,
                expected=", ".join(expected),
                found=names,
            )
        for column, (name, _) in zip(expected, levels, strict=True):
            if name_key(column) != name_key(name):
                raise DeltaError.of(
                    "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                    path=path,
                    expected=column,
                    found=name,
                )
        return [(column, value) for column, (_, value) in zip(expected, levels, strict=True)]

    def _statistics(self, file: pq.ParquetFile, schema: StructType, partition: list[str]) -> str:
        columns = statistics_columns(schema, partition, self.properties)
        calendar = calendars(file.metadata.metadata)
        if calendar.dates:
            temporal = (DateType, TimestampType, TimestampNTZType)
            rebased = {path for path, kind in leaves(schema) if isinstance(kind, temporal)}
            columns = tuple(path for path in columns if path not in rebased)
        length = string_prefix_length(self.properties)
        return file_statistics(file.metadata, file_schema(file), columns, length)


def converted_files(files: DataFrame, reader: ConvertedFileReader) -> DataFrame:
    """Read the footers of files to `CONVERTED` rows, whenever the DataFrame is computed.

    `files` has path STRING (absolute, decoded), length LONG (bytes), modificationTime LONG
    (milliseconds since the epoch).
    """
    return files.mapInArrow(reader.read, CONVERTED)
