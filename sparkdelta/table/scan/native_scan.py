"""A bounded list of data files to a DataFrame of the table's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.engine.driver import read_rows
from sparkdelta.engine.parquet_scan import DataFiles, scan_data_files
from sparkdelta.engine.sessions import is_connect
from sparkdelta.engine.worker_python import worker_python
from sparkdelta.engine.worker_storage import worker_files
from sparkdelta.exceptions import ColumnMappingError, DataFileNotReadError
from sparkdelta.frames.log.partition_values import typed_partition_value
from sparkdelta.frames.rows.file_rows import (
    CHUNKS,
    FILE,
    FILE_KEY,
    IS_DELETED,
    ROW_INDEX,
    URI,
    meet_files,
    on_rows_that_stay,
    stamp_key,
    uri_key,
    with_file,
    without_deleted_rows,
)
from sparkdelta.frames.rows.logical_rows import logical_column
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_mapping import named_by_file, physical_field
from sparkdelta.schema.table_schema import as_nullable, quoted, without_void
from sparkdelta.storage.parquet import PartitionDirectories, is_hidden
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.scan.deletion_vector_files import decoded_bytes, read_bitmaps
from sparkdelta.workers.field_names import field_names

DELETION_VECTOR_BROADCAST_BYTES = 64 * 1024 * 1024
"""Decoded bitmaps up to this size, estimated before decoding, are sent to every executor; larger
ones are joined by shuffle."""

MAX_PARTITION_DIRECTORIES = 10_000
"""Up to this many directories, partition values are handed to the scan with its directories; beyond
it they are joined by file."""

MAX_PARTITION_LAYERS = 32
"""Up to this many tuples of partition values in one directory, each is scanned by itself; files of
a directory with more get theirs by a join."""

ROW_ID, ROW_COMMIT_VERSION = "sparkdelta:row_id", "sparkdelta:row_commit_version"
_DIRECTORY, _DV_FILE = "directory", "file"
_INTERNAL_METADATA = ("delta.", "parquet.", "__")


def partition_column(index: int) -> str:
    """The name under which the text of a partition column travels with its file."""
    return f"sparkdelta:partition_{index}"


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on the logical rows.

    Attributes
    ----------
    infallible_part
        What of it fails for no row, as SQL text, and may be evaluated before deleted rows are left
        out.
    is_infallible
        Whether that is all of it.
    """

    condition: str | Column
    infallible_part: str | None = None
    is_infallible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScan:
    """How to read data files of one version of a table.

    Attributes
    ----------
    where
        The rows to keep; it is evaluated on no deleted row unless it fails for none.
    """

    spark: SparkSession
    configuration: TableConfiguration
    table_root: str
    partition_time_zone: str
    version: Version
    options: Mapping[str, str]
    with_row_tracking: bool
    with_uri: bool = False
    where: RowCondition | None = None

    def rows(self, files: pa.Table) -> DataFrame:
        """The logical rows, and ROW_ID, ROW_COMMIT_VERSION and URI where they are asked for.

        Files without a deletion vector are a plain Parquet scan with at most a projection above it;
        files with one go through their bitmaps.

        Parameters
        ----------
        files
            file STRING (absolute, decoded), size LONG, a text column for each partition column;
            deletionVector STRUCT and numRecords LONG where the table may have deletion vectors;
            baseRowId LONG and defaultRowCommitVersion LONG with row tracking.
        """
        is_hidden_file = pa.array(
            [is_hidden(file) for file in files["file"].to_pylist()], pa.bool_()
        )
        groups = _split(files, is_hidden_file)
        if "deletionVector" in files.column_names:
            groups = [
                part
                for group in groups
                for part in _split(group, group["deletionVector"].is_valid())
            ]
        frames = [
            self._group(part, names)
            for group in groups
            if group.num_rows
            for layer in self._layers(group)
            for part, names in self._by_field_names(layer)
        ]
        return reduce(DataFrame.unionByName, frames) if frames else self._no_rows()

    def _layers(self, files: pa.Table) -> list[pa.Table]:
        """Files grouped so that in each group a directory has one tuple of partition values.

        Then the values go with the directories, at no cost per row. Where rows meet their files
        anyway, and where it would take too many groups, all stay in one.
        """
        names = self._partition_names
        if not names or is_connect(self.spark) or self.with_row_tracking or _has_vectors(files):
            return [files]
        tuples = list(zip(*(files[name].to_pylist() for name in names), strict=True))
        layer_of: dict[tuple[str, tuple[str | None, ...]], int] = {}
        depth: Counter[str] = Counter()
        layers = []
        for directory, values in zip(_directories(files).to_pylist(), tuples, strict=True):
            if (directory, values) not in layer_of:
                layer_of[directory, values] = depth[directory]
                depth[directory] += 1
            layers.append(layer_of[directory, values])
        if max(layers) >= MAX_PARTITION_LAYERS:
            return [files]
        numbers = pa.array(layers)
        return [files.filter(pc.equal(numbers, layer)) for layer in range(max(layers) + 1)]

    def _by_field_names(self, files: pa.Table) -> list[tuple[pa.Table, dict[int, str]]]:
        """Files grouped by what they call their field ids, where Spark cannot be told to match ids.

        References
        ----------
        PROTOCOL.md#reader-requirements-for-column-mapping
        """
        by_id = self.configuration.column_mapping is ColumnMappingMode.ID
        if not by_id or not is_connect(self.spark):
            return [(files, {})]
        with worker_python(self.spark):
            names = field_names(
                self.spark.createDataFrame(files.select(["file"])),
                worker_files(self.spark, self.table_root, self.options),
            )
        rows = read_rows(
            names,
            what="columns of files",
            bound=files.num_rows,
            version=self.version,
        )
        without_ids = [row["file"] for row in rows if not row["names"]]
        if without_ids:
            raise ColumnMappingError(
                problem=f"{without_ids[0]} has no field ids, which column mapping mode id requires"
            )
        spellings: dict[frozenset[tuple[int, str]], list[str]] = {}
        for row in rows:
            spellings.setdefault(frozenset(row["names"].items()), []).append(row["file"])
        return [
            (files.filter(pc.is_in(files["file"], pa.array(members))), dict(names))
            for names, members in spellings.items()
        ]

    def _group(self, files: pa.Table, names: Mapping[int, str]) -> DataFrame:
        has_vectors = _has_vectors(files)
        directories = self._partition_directories(files)
        stored = self._stored_fields(names)
        scanned = scan_data_files(
            self.spark,
            files["file"].to_pylist(),
            StructType(list(stored.values())),
            directories,
            size_bytes=pc.sum(files["size"]).as_py() or 0,
            options=self.options,
            version=self.version,
        )
        joins_partitions = bool(self._partition_names) and directories is None
        rows = scanned.rows
        uri = [scanned.metadata["file_path"].alias(URI)] if self.with_uri else []
        if has_vectors or self.with_row_tracking or joins_partitions:
            known = _with_keys(files, scanned)
            of_files = self._of_files(known, joins_partitions=joins_partitions)
            rows = with_file(rows, scanned.metadata, *uri, by_stamp=FILE_KEY in known.column_names)
            if has_vectors:
                rows = self._without_deleted(rows, known, of_files)
            else:
                rows = meet_files(rows, of_files.drop(FILE), has_bitmaps=False)
        elif uri:
            rows = rows.select("*", *uri)
        columns = [*self._logical_columns(stored), *([F.col(URI)] if uri else [])]
        return self._matching(rows, columns, has_vectors=has_vectors)

    def _matching(self, rows: DataFrame, columns: list[Column], *, has_vectors: bool) -> DataFrame:
        """The columns of the rows that `where` is true of."""
        if self.where is None:
            return rows.select(*columns)
        if self.where.is_infallible or not has_vectors:
            return rows.select(*columns).filter(self.where.condition)
        rows = rows.select(*columns, IS_DELETED)
        if self.where.infallible_part is not None:
            rows = rows.filter(self.where.infallible_part)
        return rows.filter(on_rows_that_stay(self.where.condition)).drop(IS_DELETED)

    def _of_files(self, known: pa.Table, *, joins_partitions: bool) -> DataFrame:
        """What rows must learn from the log about their file, a row per file.

        Parameters
        ----------
        known
            As `_with_keys` gives them.
        """
        has_keys = FILE_KEY in known.column_names
        columns = [
            F.col(FILE),
            F.col(FILE_KEY) if has_keys else uri_key(F.col(FILE)).alias(FILE_KEY),
        ]
        if joins_partitions:
            columns += self._typed_partition_columns()
        if self.with_row_tracking:
            columns += [F.col("baseRowId"), F.col("defaultRowCommitVersion")]
        local = known.drop_columns(
            [c for c in ("deletionVector", "numRecords") if c in known.column_names]
        )
        of_files = self.spark.createDataFrame(local).select(*columns)
        if has_keys and not joins_partitions:
            return of_files
        # Local data: costs no job, and a value that is none of its type is an error here and now.
        keys = read_rows(
            of_files.select(FILE_KEY),
            what="keys of files",
            bound=known.num_rows,
            version=self.version,
        )
        if len(set(keys)) != known.num_rows:
            raise DataFileNotReadError(files=known[FILE].to_pylist(), version=self.version)
        return of_files

    def _without_deleted(self, rows: DataFrame, known: pa.Table, of_files: DataFrame) -> DataFrame:
        bitmaps = read_bitmaps(
            self.spark,
            known.rename_columns([_DV_FILE if c == FILE else c for c in known.column_names]),
            table_root=self.table_root,
            version=self.version,
            options=self.options,
        ).select(F.col("file").alias(FILE), F.col("chunks").alias(CHUNKS))
        with_bitmaps = bitmaps.join(F.broadcast(of_files), FILE).drop(FILE)
        if decoded_bytes(known) > DELETION_VECTOR_BROADCAST_BYTES:
            met = meet_files(rows, of_files.drop(FILE), has_bitmaps=False)
            return without_deleted_rows(met, with_bitmaps)
        return meet_files(rows, with_bitmaps, has_bitmaps=True)

    def _partition_directories(self, files: pa.Table) -> PartitionDirectories | None:
        """The partition values by directory, where every directory has one tuple of them."""
        names = self._partition_names
        if not names or is_connect(self.spark) or is_hidden(files["file"][0].as_py()):
            return None
        values = files.select(names).append_column(_DIRECTORY, _directories(files))
        distinct = values.group_by([*names, _DIRECTORY]).aggregate([])
        directories = distinct[_DIRECTORY].to_pylist()
        if len(set(directories)) < len(directories) or len(directories) > MAX_PARTITION_DIRECTORIES:
            return None
        return PartitionDirectories(
            schema=StructType(
                [
                    StructField(name, as_nullable(field.dataType))
                    for name, field in zip(names, self.configuration.partition_fields, strict=True)
                ]
            ),
            directories=directories,
            values=self.spark.createDataFrame(distinct).select(*self._typed_partition_columns()),
        )

    @property
    def _partition_names(self) -> list[str]:
        return [
            partition_column(index) for index in range(len(self.configuration.partition_fields))
        ]

    def _typed_partition_columns(self) -> list[Column]:
        return [
            F.expr(
                typed_partition_value(quoted(name), field, time_zone=self.partition_time_zone)
            ).alias(name)
            for name, field in zip(
                self._partition_names, self.configuration.partition_fields, strict=True
            )
        ]

    def _stored_fields(self, names: Mapping[int, str]) -> dict[str, StructField]:
        """What to read from data files, by logical name."""
        stored = {}
        for field in self.configuration.data_fields:
            data_type = without_void(field.dataType)
            if data_type is not None:
                visible = StructField(field.name, data_type, True, field.metadata)
                physical = physical_field(visible, self.configuration.column_mapping)
                stored[field.name] = named_by_file(physical, names) if names else physical
        if self.with_row_tracking:
            tracking = self.configuration.row_tracking
            for name, column in (
                (ROW_ID, tracking.row_id_column),
                (ROW_COMMIT_VERSION, tracking.row_commit_version_column),
            ):
                if column is not None:
                    stored[name] = StructField(column, LongType())
        return stored

    def _logical_columns(self, stored: Mapping[str, StructField]) -> list[Column]:
        partitions = {
            field.name: partition_column(index)
            for index, field in enumerate(self.configuration.partition_fields)
        }
        columns = []
        for field in self.configuration.schema.fields:
            if field.name in partitions:
                column = F.col(partitions[field.name])
            else:
                source = stored.get(field.name)
                column = logical_column(
                    F.col(quoted(source.name)) if source else F.lit(None),
                    stored=source.dataType if source else None,
                    logical=field.dataType,
                )
            columns.append(column.alias(field.name, metadata=visible_metadata(field)))
        if self.with_row_tracking:
            columns += self._row_tracking_columns(stored)
        return columns

    def _row_tracking_columns(self, stored: Mapping[str, StructField]) -> list[Column]:
        """Materialized values where a file holds them, else the default generated ones.

        References
        ----------
        PROTOCOL.md#reader-requirements-for-row-tracking
        """
        generated = {
            ROW_ID: F.col("baseRowId") + F.col(ROW_INDEX),
            ROW_COMMIT_VERSION: F.col("defaultRowCommitVersion"),
        }
        return [
            F.coalesce(F.col(quoted(stored[name].name)), value).alias(name)
            if name in stored
            else value.alias(name)
            for name, value in generated.items()
        ]

    def _no_rows(self) -> DataFrame:
        fields = [
            StructField(field.name, as_nullable(field.dataType), True, visible_metadata(field))
            for field in self.configuration.schema.fields
        ]
        if self.with_row_tracking:
            fields += [StructField(name, LongType()) for name in (ROW_ID, ROW_COMMIT_VERSION)]
        if self.with_uri:
            fields += [StructField(URI, StringType())]
        return self.spark.createDataFrame([], StructType(fields))


def _split(files: pa.Table, condition: pa.Array) -> list[pa.Table]:
    return [files.filter(pc.invert(condition)), files.filter(condition)]


def _with_keys(files: pa.Table, scanned: DataFiles) -> pa.Table:
    """The files with FILE, and with FILE_KEY where their stamps tell them apart."""
    names = files["file"].to_pylist()
    uris = pa.array([scanned.uris[name] for name in names])
    known = files.drop_columns(["file", "size"]).append_column(FILE, uris)
    if scanned.stamps is None:
        return known
    keys = [stamp_key(*scanned.stamps[name]) for name in names]
    if len(set(keys)) < len(keys):
        return known
    return known.append_column(FILE_KEY, pa.array(keys, pa.int64()))


def _directories(files: pa.Table) -> pa.ChunkedArray:
    """Of each file, in one spelling: Hadoop folds slashes."""
    folded = pc.replace_substring_regex(files["file"], "([^:])/+", r"\1/")
    return pc.replace_substring_regex(folded, "/[^/]*$", "")


def _has_vectors(files: pa.Table) -> bool:
    """Whether the files of a group have deletion vectors: all have, or none."""
    return "deletionVector" in files.column_names and files["deletionVector"][0].is_valid


def visible_metadata(field: StructField) -> dict[str, object]:
    """A field's metadata without what only the log needs, as delta-spark shows it."""
    return {
        key: value
        for key, value in (field.metadata or {}).items()
        if not key.startswith(_INTERNAL_METADATA)
    }
