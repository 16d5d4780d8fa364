"""Parquet scans that read every given data file or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.parquet.parquet_options import ParquetScan
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.driver import delta_errors
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, StorageError


@dataclass(frozen=True, slots=True)
class DataFiles:
    """A scan of data files.

    Attributes
    ----------
    rows
        The stored columns, then the partition columns.
    metadata
        STRUCT<file_path STRING, row_index LONG, ...> for each row.
    uris
        The URI of each file as in `_metadata.file_path`.
    stamps
        The size in bytes and modification time in milliseconds of each file, as in `metadata`; None
        if they are not known.
    """

    rows: DataFrame
    metadata: Column
    uris: Mapping[str, str]
    stamps: Mapping[str, tuple[int, int]] | None


def scan_data_files(spark: SparkSession, scan: ParquetScan, version: Version) -> DataFiles:
    """Return a scan of exactly the given files.

    Parameters
    ----------
    version
        The table's version, for error messages.

    Raises
    ------
    DELTA_FILE_NOT_FOUND
        A file does not exist.
    StorageError
        A file is empty.
    DELTA_DATA_FILE_NOT_READ
        File names begin with ``_`` or ``.``, which Spark Connect cannot read.
    """
    files, engine = scan.files, engine_of(spark)
    try:
        with delta_errors(version):
            relation = engine.parquet_relation(scan)
    except FileNotFoundError as error:
        raise DeltaError.of(
            "DELTA_FILE_NOT_FOUND", file=str(error.filename), version=version
        ) from error
    if relation is None:
        raise DeltaError.of("DELTA_DATA_FILE_NOT_READ", files=files, version=version)
    found_uris = uris_of(files, relation.input_files, relation.empty, version)
    stamps = None
    if relation.stamps is not None:
        by_uri = dict(zip(map(plain_path, relation.input_files), relation.stamps, strict=True))
        stamps = {file: by_uri[uri] for file, uri in found_uris.items()}
    return DataFiles(relation.rows, relation.metadata, found_uris, stamps)


def uris_of(
    files: Sequence[str], found: Sequence[str], empty: Sequence[str], version: Version
) -> dict[str, str]:
    """Return the URI of each file, where the storage has all of them.

    Parameters
    ----------
    found
        The URIs of the files that the storage has.
    empty
        The URIs of files of 0 bytes.

    Raises
    ------
    DELTA_FILE_NOT_FOUND, StorageError
    """
    if empty:
        raise StorageError(path=empty[0], problem="the data file is empty (0 bytes)")
    uri_by_path = {plain_path(unquote(uri)): plain_path(uri) for uri in found}
    uris = {file: uri_by_path.get(plain_path(file)) for file in files}
    missing = [file for file, uri in uris.items() if uri is None]
    if missing:
        raise DeltaError.of("DELTA_FILE_NOT_FOUND", file=missing[0], version=version)
    return {file: uri for file, uri in uris.items() if uri is not None}
