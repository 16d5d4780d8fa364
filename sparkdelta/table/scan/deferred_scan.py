"""Reads of data files that are chosen when a query runs, by all its filters."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from sparkdelta.base.parquet.parquet_options import (
    PARQUET_OPTIONS,
    LateRelation,
    ListedFiles,
    UnpushedType,
)
from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.calendar_gap_rules import may_name_day_of_gap, within_gap
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Or,
    Predicate,
    Unusable,
    conjuncts,
    without_not,
)
from sparkdelta.base.predicates.pushed_filters import parse_pushed
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.parquet_scan import uris_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DataFileNotReadError, InvalidArgumentError
from sparkdelta.table.scan.conditions import with_partition_terms
from sparkdelta.table.scan.file_row_frames import ROW_INDEX
from sparkdelta.table.scan.packed_bitmaps import packed_bitmaps
from sparkdelta.table.scan.scan_request import ROW_ID_FIELDS, ScanRequest, default_value
from sparkdelta.table.scan.unpushed_types import columns_of_days
from sparkdelta.table.vectors.deletion_vector_workers import is_deleted_in_packed

_NUMBER, _BITMAP, _BITS = "sparkdelta:number", "sparkdelta:bitmap", "sparkdelta:bits"
_BITMAP_FIELDS = [StructField(_BITMAP, BinaryType()), StructField(_BITS, IntegerType())]

_SECRET = token_bytes(16)
_KEPT_LISTINGS = 4

ListFiles = Callable[[Predicate | None], pa.Table]
"""A function that returns the files that may have rows of which a predicate is true, as
`NativeScan.rows` takes them."""


def columns_with_bitmaps(request: ScanRequest) -> StructType:
    """The columns that Spark reads, at most, of files with deletion vectors."""
    stored = [column.stored for column in request.row_columns if column.stored is not None]
    row_index = StructField(ROW_INDEX, LongType())
    of_files = request.partition_columns.values()
    return StructType([*stored, *of_files, *_BITMAP_FIELDS, row_index])


@dataclass(frozen=True, slots=True)
class DeferredScan:
    """A read by Spark's own Parquet source whose files are chosen from the log once Spark has
    planned a query: then all its filters are known.

    Attributes
    ----------
    listing
        A listing session of the engine.
    request
        Without a condition; of metadata columns, those of row tracking alone.
    list_files
        Runs in that session.
    has_vectors
        True if files may have deletion vectors, at most `MAX_PACKED_VECTORS`. Their bitmaps are
        values of these files, as partition values are: no row is joined with anything.
    contents
        A text that only scans of the same files have.
    size_bytes
        As of `storage.parquet.FileLister`.
    """

    spark: SparkSession
    listing: SparkSession
    request: ScanRequest
    list_files: ListFiles
    has_vectors: bool
    contents: str
    size_bytes: int | None

    def rows(self) -> DataFrame:
        """The rows of the table, in the columns of the request's `output`. Starts no job."""
        files = _ChosenFiles(self.request, self.listing, self.list_files)
        rows = self._rows(files, self.size_bytes, with_vectors=False)
        if not self.has_vectors:
            return rows
        return rows.union(self._rows(files, 1, with_vectors=True))  # the size is all files' above

    def _rows(
        self, files: _ChosenFiles, size_bytes: int | None, *, with_vectors: bool
    ) -> DataFrame:
        """The rows of the files with deletion vectors, or of those without."""
        request = self.request
        fields = [  # in the order of `_LateFiles._grouped`
            StructField(name, as_nullable(field.dataType))
            for name, field in request.partition_columns.items()
        ]
        if request.wants_row_tracking:
            fields += [StructField(name, LongType()) for name in ROW_ID_FIELDS]
        if with_vectors:
            fields += _BITMAP_FIELDS
        of_files = StructType(fields)
        data = StructType([c.stored for c in request.row_columns if c.stored is not None])
        sources = {
            column.field.name: column.stored or of_files[str(column.default)]
            for column in request.table_columns
        }
        contents = f"{with_vectors}\n{self.contents}".encode()
        lister = _LateFiles(
            files=files,
            stored=StructType(list(sources.values())),
            with_vectors=with_vectors,
            identity=hmac.new(_SECRET, contents, "sha256").hexdigest(),
            size_bytes=size_bytes,
        )
        options = {**request.options, **PARQUET_OPTIONS}
        scanned = engine_of(self.spark).late_rows(
            LateRelation(lister, data, of_files, options, request.table_root, request.unpushed),
            self.listing,
        )
        # In the text of filters, only its columns are qualified by this name.
        scanned = scanned.alias(qualifier_of(lister.stored))
        if with_vectors:
            bitmap, bits = F.col(quoted(_BITMAP)), F.col(quoted(_BITS))
            deleted = is_deleted_in_packed(bitmap, bits, _row_index(scanned))
            scanned = scanned.filter(~deleted)
        values: dict[str, tuple[Column | str, DataType]] = {
            name: (F.col(quoted(source.name)), source.dataType) for name, source in sources.items()
        }
        for column in request.other_columns:
            value = default_value(column, _row_index(scanned))
            if column.stored is not None:
                value = F.coalesce(F.col(quoted(column.stored.name)), value)
            values[column.field.name] = (value, LongType())
        return scanned.select(*request.logical_columns(values))


@dataclass(slots=True, eq=False)
class _ChosenFiles:
    """Cache of the files that the log lists for the filters of a query."""

    request: ScanRequest
    listing: SparkSession
    list_files: ListFiles
    _chosen: OrderedDict[Predicate | None, pa.Table] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def chosen(self, predicate: Predicate | None) -> pa.Table:
        """Return the files for a predicate, as `ListFiles` does; they are kept, as files with and
        files without deletion vectors are asked for separately.
        """
        with self._lock:
            found = self._chosen.get(predicate)
            if found is None:
                found = self._chosen[predicate] = self.list_files(predicate)
                while len(self._chosen) > _KEPT_LISTINGS:
                    self._chosen.popitem(last=False)
            return found


@dataclass(slots=True, eq=False, kw_only=True)
class _LateFiles:
    """The `FileLister` of a `DeferredScan`, which the JVM keeps."""

    files: _ChosenFiles
    stored: StructType
    with_vectors: bool
    identity: str
    size_bytes: int | None
    _listed: OrderedDict[Predicate | None, ListedFiles] = field(default_factory=OrderedDict)

    def listed(self, filters: str | None, has_user_functions: Callable[[], bool]) -> ListedFiles:
        predicate, request = None, self.files.request
        if filters is not None:
            logical = StructType([column.field for column in request.table_columns])
            parsed = parse_pushed(
                filters, self.stored, logical, has_user_functions=has_user_functions
            )
            # Without the condition on bitmaps, the predicate is that of files without vectors.
            terms = [t for t in conjuncts(without_not(parsed)) if not isinstance(t, Unusable)]
            if terms:
                predicate = with_partition_terms(
                    self.files.listing, And(tuple(terms)), request.configuration
                )
            if UnpushedType.DATE not in request.unpushed and may_name_day_of_gap(filters):
                self._check_days(predicate)
        found = self._listed.get(predicate)
        if found is None:
            found = self._listed[predicate] = self._grouped(self.files.chosen(predicate))
            while len(self._listed) > _KEPT_LISTINGS:
                self._listed.popitem(last=False)
        return found

    def _check_days(self, predicate: Predicate | None) -> None:
        """Refuse filters that Spark gets wrong in the row groups of files with old dates."""
        in_gap = tuple(
            within_gap(path, is_date=isinstance(field.dataType, DateType))
            for path, field in columns_of_days(self.files.request.configuration).items()
        )
        terms = (Or(in_gap),) if predicate is None else (predicate, Or(in_gap))
        if in_gap and self.files.chosen(And(terms)).num_rows:
            raise InvalidArgumentError(
                argument="condition",
                problem=(
                    "Spark takes 5 to 14 October 1582 for 15 October when it filters the rows of "
                    "this table; give the condition as where= of read_delta"
                ),
            )

    def check(self, files: Sequence[str], uris: Sequence[str], empty: Sequence[str]) -> None:
        version = self.files.request.version
        found = uris_of(files, uris, empty, version)
        if [plain_path(uri) for uri in uris] != list(found.values()):
            raise DataFileNotReadError(files=files, version=version)

    def _grouped(self, files: pa.Table) -> ListedFiles:
        """The files by their partition values, row ids and bitmaps."""
        request, listing = self.files.request, self.files.listing
        if "deletionVector" in files.column_names:
            has_vector = files["deletionVector"].is_valid()
            files = files.filter(has_vector if self.with_vectors else pc.invert(has_vector))
        paths = files["file"].to_pylist()
        values = {name: files[name] for name in request.partition_columns}
        columns = request.typed_partition_values()
        if request.wants_row_tracking:
            values |= {name: files[name] for name in ROW_ID_FIELDS}
            columns += map(F.col, ROW_ID_FIELDS)
        if self.with_vectors:
            values[_BITMAP], bits = packed_bitmaps(
                listing,
                files["deletionVector"],
                table_root=request.table_root,
                version=request.version,
                options=request.options,
            )
            values[_BITS] = pa.repeat(pa.scalar(bits, pa.int32()), len(paths))
            columns += [F.col(quoted(_BITMAP)), F.col(quoted(_BITS))]
        if not values:
            return ListedFiles(paths, [len(paths)], None)
        members: dict[tuple[object, ...], list[str]] = {}
        of_files = zip(*(column.to_pylist() for column in values.values()), strict=True)
        for path, of_file in zip(paths, of_files, strict=True):
            members.setdefault(of_file, []).append(path)
        distinct = [
            pa.array([of_file[index] for of_file in members], column.type)
            for index, column in enumerate(values.values())
        ]
        numbers = pa.array(range(len(members)), pa.int32())
        table = pa.table([*distinct, numbers], [*values, _NUMBER])
        return ListedFiles(
            [path for paths in members.values() for path in paths],
            [len(paths) for paths in members.values()],
            arrow_frame(listing, table).select(*columns, _NUMBER),
        )


def _row_index(scanned: DataFrame) -> Column:
    return scanned.metadataColumn("_metadata")["row_index"]
