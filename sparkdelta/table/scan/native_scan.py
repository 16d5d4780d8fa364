"""Reads of a bounded list of data files by Spark's own Parquet source.

References
----------
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.parquet.parquet_options import (
    PARQUET_OPTIONS,
    ParquetScan,
    PartitionDirectories,
    is_hidden,
)
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import named_by_file
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.parquet_scan import DataFiles, scan_data_files
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.scan.deletion_vector_files import (
    decoded_bytes,
    known_bitmaps,
    read_bitmaps,
)
from sparkdelta.table.scan.field_name_workers import field_names
from sparkdelta.table.scan.file_row_frames import (
    CHUNKS,
    FILE_KEY,
    FILE_URI,
    IS_DELETED,
    ONLY_CHUNKS,
    ROW_INDEX,
    except_on_deleted_rows,
    join_files,
    path_of_uri,
    stamp_key,
    uri_key,
    with_file,
    without_deleted_rows,
)
from sparkdelta.table.scan.scan_request import (
    CHANGE_KIND,
    ROW_ID_FIELDS,
    MetadataColumn,
    ScanRequest,
    default_value,
)
from sparkdelta.table.scan.split_workers import ONLY

DELETION_VECTOR_BROADCAST_BYTES = 64 * 1024 * 1024
"""Decoded bitmaps up to this size, estimated before decoding, are sent to every executor; larger
ones are joined by shuffle."""

MAX_PARTITION_DIRECTORIES = 10_000
"""Up to this many directories, partition values are handed to the scan with its directories; with
more, they are joined by file."""

MAX_PARTITION_LAYERS = 32
"""Up to this many tuples of partition values in one directory, each is its own scan; with more,
they are joined by file."""

_DIRECTORY = "directory"
_ENTRY = "__sparkdelta_entry"


@dataclass(frozen=True, slots=True)
class NativeScan:
    """A read of data files that the driver knows, by Spark's own Parquet source."""

    spark: SparkSession
    request: ScanRequest

    def rows(self, files: pa.Table) -> DataFrame:
        """Return the rows that the request asks for, in the columns of its `output`.

        Files without a deletion vector are a plain Parquet scan with at most a projection above it;
        files with one go through their bitmaps.

        Parameters
        ----------
        files
            file STRING (absolute, decoded), size LONG, a text column for each partition column;
            deletionVector STRUCT and numRecords LONG where the table may have deletion vectors;
            of changes, CHANGE_KIND STRING and ONLY STRUCT;
            BASE_ROW_ID LONG and DEFAULT_ROW_COMMIT_VERSION LONG with row tracking.
        """
        is_hidden_file = pa.array(
            [is_hidden(file) for file in files["file"].to_pylist()], pa.bool_()
        )
        groups = _split(files, is_hidden_file)
        if "deletionVector" in files.column_names:
            groups = [part for group in groups for part in _split(group, _with_vectors(group))]
        frames = [
            self._group(part, names)
            for group in groups
            if group.num_rows
            for layer in self._layers(group)
            for part, names in self._by_field_names(layer)
        ]
        if not frames:
            return self.spark.createDataFrame([], self.request.output)
        return reduce(DataFrame.unionByName, frames)

    @property
    def _joins_files(self) -> bool:
        """True if rows are joined with their files, whether or not these have deletion vectors."""
        return self.request.wants_row_tracking or self.request.of_changes

    @property
    def _attaches_values(self) -> bool:
        return engine_of(self.spark).can("attach partition values")

    def _layers(self, files: pa.Table) -> list[pa.Table]:
        """Return files grouped so that in each group a directory has one tuple of partition values.

        Then Spark attaches the values by directory, at no cost per row. Where rows are joined with
        their files anyway, and where it would take too many groups, all stay in one.
        """
        names, joins_files = self._partition_names, self._joins_files
        if not names or not self._attaches_values or joins_files or _has_vectors(files):
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
        """Return files grouped by the names of their field ids, where Spark cannot match columns by
        id.
        """
        by_id = self.request.configuration.column_mapping is ColumnMappingMode.ID
        if not by_id or engine_of(self.spark).can("match field ids"):
            return [(files, {})]
        with worker_python(self.spark):
            names = field_names(
                arrow_frame(self.spark, files.select(["file"])),
                worker_files(self.spark, self.request.table_root, self.request.options),
            )
        rows = read_rows(
            names,
            what="columns of files",
            bound=files.num_rows,
            version=self.request.version,
        )
        without_ids = [row["file"] for row in rows if not row["names"]]
        if without_ids:
            raise DeltaError.of(
                "DELTA_INVALID_COLUMN_MAPPING",
                problem=f"{without_ids[0]} has no field ids, which column mapping mode id requires",
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
        scan = ParquetScan(
            files=files["file"].unique().to_pylist(),
            schema=StructType(list(stored.values())),
            options={**self.request.options, **PARQUET_OPTIONS},
            partitions=directories,
            size_bytes=pc.sum(files["size"]).as_py() or 0,
            is_streaming=self.request.is_streaming,
        )
        scanned = scan_data_files(self.spark, scan, self.request.version)
        joins_partitions = bool(self._partition_names) and directories is None
        of_scan = []
        if MetadataColumn.FILE in self.request.metadata_columns:
            of_scan.append(scanned.metadata["file_path"].alias(MetadataColumn.FILE.value))
        if MetadataColumn.ROW_POSITION in self.request.metadata_columns:
            position = scanned.metadata["row_index"]
            of_scan.append(position.alias(MetadataColumn.ROW_POSITION.value))
        rows, columns = scanned.rows, self._logical_columns(stored)
        if has_vectors or self._joins_files or joins_partitions:
            known = _with_keys(files, scanned)
            if has_vectors and not self.request.of_changes and not has_large_bitmaps(known):
                known = self._with_bitmaps(known)
            of_files = self._of_files(known, joins_partitions=joins_partitions)
            by_stamp = FILE_KEY in known.column_names
            rows = with_file(rows, scanned.metadata, *of_scan, by_stamp=by_stamp)
            if has_vectors:
                rows = self._without_deleted(rows, known, of_files)
            else:
                rows = join_files(rows, of_files.drop(_ENTRY), has_bitmaps=False)
        elif of_scan:
            rows = rows.select("*", *of_scan)
        elif _are_names_of(columns, stored.values()):
            if self.request.condition is None:
                return rows
            columns = ["*"]  # each name takes a few calls of the JVM
        return self._matching(rows, columns, has_vectors=has_vectors)

    def _matching(
        self, rows: DataFrame, columns: list[Column | str], *, has_vectors: bool
    ) -> DataFrame:
        """Return the columns of the rows that match the condition of the request."""
        wanted = self.request.condition
        if wanted is None:
            return rows.select(*columns)
        if wanted.is_infallible or not has_vectors:
            return wanted.names.given_to(rows.select(*columns)).filter(wanted.condition)
        rows = wanted.names.given_to(rows.select(*columns, IS_DELETED))
        if wanted.infallible_part is not None:
            rows = rows.filter(wanted.infallible_part)
        return rows.filter(except_on_deleted_rows(wanted.condition)).drop(IS_DELETED)

    def _of_files(self, known: pa.Table, *, joins_partitions: bool) -> DataFrame:
        """Return the columns of the log that rows need of their file, a row per file.

        Parameters
        ----------
        known
            As `_with_keys` gives them.
        """
        has_keys = FILE_KEY in known.column_names
        key = FILE_KEY if has_keys else uri_key(F.col(FILE_URI)).alias(FILE_KEY)
        columns: list[Column | str] = [_ENTRY, key]
        if joins_partitions:
            columns += self.request.typed_partition_values()
        if self.request.wants_row_tracking:
            columns += ROW_ID_FIELDS
        if self.request.of_changes:
            columns += [CHANGE_KIND]
        if CHUNKS in known.column_names:
            columns += [CHUNKS]
        local = known.drop_columns(
            [c for c in ("deletionVector", "numRecords", ONLY) if c in known.column_names]
        )
        of_files = arrow_frame(self.spark, local).select(*columns)
        if has_keys and not joins_partitions:
            return of_files
        # Local data: this costs no job, and a malformed partition value is an error at once.
        keys = read_rows(
            of_files.select(FILE_KEY),
            what="keys of files",
            bound=known.num_rows,
            version=self.request.version,
        )
        if len(set(keys)) != len(known[FILE_URI].unique()):
            raise DeltaError.of(
                "DELTA_DATA_FILE_NOT_READ",
                files=known[FILE_URI].to_pylist(),
                version=self.request.version,
            )
        return of_files

    def _with_bitmaps(self, known: pa.Table) -> pa.Table:
        """Return the files with CHUNKS, a column of their bitmaps, if these are few."""
        bitmaps = known_bitmaps(self.spark, known, self.request)
        return known if bitmaps is None else known.append_column(CHUNKS, bitmaps)

    def _without_deleted(self, rows: DataFrame, known: pa.Table, of_files: DataFrame) -> DataFrame:
        if CHUNKS in known.column_names:
            return join_files(rows, of_files.drop(_ENTRY), has_bitmaps=True)
        bitmaps = self._bitmaps(known, "deletionVector", CHUNKS)
        if self.request.of_changes:
            with_bitmaps = of_files.join(bitmaps, _ENTRY, "left")
            only = self._bitmaps(known, ONLY, ONLY_CHUNKS)
            with_bitmaps = with_bitmaps.join(only, _ENTRY, "left").drop(_ENTRY)
            return join_files(rows, with_bitmaps, has_bitmaps=True)
        with_bitmaps = bitmaps.join(F.broadcast(of_files), _ENTRY).drop(_ENTRY)
        if has_large_bitmaps(known):
            joined = join_files(rows, of_files.drop(_ENTRY), has_bitmaps=False)
            return without_deleted_rows(joined, with_bitmaps)
        return join_files(rows, with_bitmaps, has_bitmaps=True)

    def _bitmaps(self, known: pa.Table, vector: str, chunks: str) -> DataFrame:
        """Return _ENTRY and the bitmap of each entry that has a vector."""
        described = known.filter(known[vector].is_valid())
        names = {_ENTRY: "file", vector: "deletionVector"}
        described = described.select(list(names)).rename_columns(list(names.values()))
        bitmaps = read_bitmaps(self.spark, described, self.request)
        return bitmaps.selectExpr(f"file AS {quoted(_ENTRY)}", f"chunks AS {quoted(chunks)}")

    def _partition_directories(self, files: pa.Table) -> PartitionDirectories | None:
        """Return the partition values by directory, where every directory has one tuple of them."""
        names = self._partition_names
        if not names or self._joins_files or is_hidden(files["file"][0].as_py()):
            return None
        if not self._attaches_values:
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
                    for name, field in self.request.partition_columns.items()
                ]
            ),
            directories=directories,
            values=arrow_frame(self.spark, distinct).select(*self.request.typed_partition_values()),
        )

    @property
    def _partition_names(self) -> list[str]:
        return list(self.request.partition_columns)

    def _stored_fields(self, names: Mapping[int, str]) -> dict[str, StructField]:
        """Return the columns to read from data files, by the name in the result."""
        return {
            column.field.name: named_by_file(column.stored, names) if names else column.stored
            for column in self.request.row_columns
            if column.stored is not None
        }

    def _logical_columns(self, stored: Mapping[str, StructField]) -> list[Column | str]:
        """Return the columns of the result, of rows with the columns of the scan and of their
        files.
        """
        sources: dict[str, tuple[Column | str, DataType]] = {}
        for column in self.request.row_columns:
            name, data_type, values = column.field.name, column.field.dataType, []
            if name in stored:
                data_type = stored[name].dataType
                is_plain = stored[name].name == name and not stored[name].metadata
                if is_plain and column.default is None:
                    sources[name] = (quoted(name), data_type)
                    continue
                values.append(F.col(quoted(stored[name].name)))
            if name == MetadataColumn.FILE.value:
                values.append(F.expr(path_of_uri(quoted(name))))
            elif name == MetadataColumn.ROW_POSITION.value:
                sources[name] = (quoted(name), data_type)
                continue
            elif column.default is not None:
                values.append(default_value(column, F.col(ROW_INDEX)))
            sources[name] = (F.coalesce(*values) if len(values) > 1 else values[0], data_type)
        return self.request.logical_columns(sources)


def _are_names_of(columns: Sequence[Column | str], fields: Iterable[StructField]) -> bool:
    """Return True if the columns are exactly the fields, in order, given by quoted names."""
    names = [column for column in columns if isinstance(column, str)]
    return len(names) == len(columns) and names == [quoted(field.name) for field in fields]


def has_large_bitmaps(files: pa.Table) -> bool:
    """Return True if the bitmaps of files, as `NativeScan.rows` takes them, are too large for every
    executor.
    """
    size, of_vector = 0, ["deletionVector", "numRecords"]
    for vector in {"deletionVector", ONLY} & {*files.column_names}:
        described = files.filter(files[vector].is_valid()).select([vector, "numRecords"])
        size += decoded_bytes(described.rename_columns(of_vector))
    return size > DELETION_VECTOR_BROADCAST_BYTES


def _split(files: pa.Table, condition: pa.Array) -> list[pa.Table]:
    return [files.filter(pc.invert(condition)), files.filter(condition)]


def _with_keys(files: pa.Table, scanned: DataFiles) -> pa.Table:
    """Return the files with FILE_URI and _ENTRY, and with FILE_KEY where each has a size and
    modification time of its own.
    """
    names = files["file"].to_pylist()
    uris = pa.array([scanned.uris[name] for name in names])
    entries = pa.array(map(str, range(len(names))))
    known = files.drop_columns(["file", "size"]).append_column(FILE_URI, uris)
    known = known.append_column(_ENTRY, entries)
    if scanned.stamps is None:
        return known
    keys = [stamp_key(*scanned.stamps[name]) for name in names]
    if len(set(keys)) < len(set(names)):
        return known
    return known.append_column(FILE_KEY, pa.array(keys, pa.int64()))


def _directories(files: pa.Table) -> pa.ChunkedArray:
    """Return the directory of each file, with single slashes as Hadoop has them."""
    folded = pc.replace_substring_regex(files["file"], "([^:])/+", r"\1/")
    return pc.replace_substring_regex(folded, "/[^/]*$", "")


def _has_vectors(files: pa.Table) -> bool:
    """Return True if the files of a group have deletion vectors: all have, or none."""
    return "deletionVector" in files.column_names and _with_vectors(files)[0].as_py()


def _with_vectors(files: pa.Table) -> pa.Array:
    """Return a mask of the entries of files that have a deletion vector in at least one entry."""
    has_vector = files["deletionVector"].is_valid()
    if ONLY in files.column_names:
        has_vector = pc.or_(has_vector, files[ONLY].is_valid())
    return pc.is_in(files["file"], pc.unique(files["file"].filter(has_vector)))
