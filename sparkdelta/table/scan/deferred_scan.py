"""Reads of data files that are chosen when a query runs, by all its filters."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_bytes

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
    QueryId,
)
from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.calendar_gap_rules import may_name_day_of_gap, within_gap
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Or,
    Predicate,
)
from sparkdelta.base.predicates.pushed_filters import parse_pushed
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.parquet_scan import uris_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.exceptions import DeltaError, DriverReadTooLargeError, InvalidArgumentError
from sparkdelta.table.scan.conditions import usable_part
from sparkdelta.table.scan.file_row_frames import ROW_INDEX
from sparkdelta.table.scan.followed_table import FollowedTable, schema_problem
from sparkdelta.table.scan.hidden_columns import columns_of_days
from sparkdelta.table.scan.live_files import LiveFiles, skipping_of
from sparkdelta.table.scan.not_null_columns import are_without_nulls
from sparkdelta.table.scan.packed_bitmaps import packed_bitmaps
from sparkdelta.table.scan.scan_request import ROW_ID_FIELDS, ScanRequest, default_value
from sparkdelta.table.vectors.deletion_vector_workers import is_deleted_in_packed

_NUMBER, _BITMAP, _BITS = "__sparkdelta_number", "__sparkdelta_bitmap", "__sparkdelta_bits"
_BITMAP_FIELDS = [StructField(_BITMAP, BinaryType()), StructField(_BITS, IntegerType())]

_SECRET = token_bytes(16)
_KEPT_LISTINGS = 4
_KEPT_VERSIONS = 2


def columns_with_bitmaps(request: ScanRequest) -> StructType:
    """Return the columns that Spark reads, at most, of files with deletion vectors."""
    stored = [column.stored for column in request.row_columns if column.stored is not None]
    row_index = StructField(ROW_INDEX, LongType())
    of_files = request.partition_columns.values()
    return StructType([*stored, *of_files, *_BITMAP_FIELDS, row_index])


@dataclass(frozen=True, slots=True)
class DeferredScan:
    """A read by Spark's own Parquet source that chooses its files when a query runs.

    By then Spark has planned the query, and all its filters are known.

    Attributes
    ----------
    request
        Without a condition; its only metadata columns are the row tracking columns.
    live
        The files, in a listing session of the engine.
    max_files
        The longest list of files.
    max_vectors
        The most deletion vectors, at most `MAX_PACKED_VECTORS`. Their bitmaps are values of their
        files, as partition values are: no row is joined with anything.
    contents
        A text that only scans of the same files have.
    size_bytes
        The size of all files, see `LateRelation`.
    followed
        The table whose latest version each query reads; None for the version of the request.
    """

    spark: SparkSession
    request: ScanRequest
    live: LiveFiles
    max_files: int
    max_vectors: int
    contents: str
    size_bytes: int | None
    followed: FollowedTable | None = None

    def rows(self) -> DataFrame:
        """Return the rows of the table, in the columns of the request's `output`. Starts no job."""
        stored = StructType(list(self._sources.values()))
        files: LateFiles | FollowingFiles
        files = LateFiles(
            self.request, stored, self.live, self.max_files, self.max_vectors, self.size_bytes
        )
        if self.followed is not None:
            files = FollowingFiles(replace(files, is_latest=True), self.followed)
        rows = self._rows(files, with_vectors=False)
        if self.max_vectors:
            rows = rows.union(self._rows(files, with_vectors=True))
        late_scans = engine_of(self.spark).late_scans
        if late_scans is not None and is_enabled(self.spark):
            late_scans.mark_rows_of_scan(rows, files)
        return rows

    @property
    def _sources(self) -> dict[str, StructField]:
        """The column that Spark reads for each of the table's columns."""
        return {
            column.field.name: column.stored
            or StructField(str(column.default), column.field.dataType)
            for column in self.request.table_columns
        }

    def _rows(self, files: LateFiles | FollowingFiles, *, with_vectors: bool) -> DataFrame:
        """Return the rows of the files with deletion vectors, or of those without."""
        request = self.request
        fields = [  # in the order of `LateFiles._grouped`
            StructField(name, as_nullable(field.dataType), request.may_be_null(field))
            for name, field in request.partition_columns.items()
        ]
        if request.wants_row_tracking:
            fields += [StructField(name, LongType()) for name in ROW_ID_FIELDS]
        if with_vectors:
            fields += _BITMAP_FIELDS
        of_files = StructType(fields)
        contents = f"{with_vectors}\n{self.contents}".encode()
        relation = LateRelation(
            list_files=partial(files.listed, with_vectors=with_vectors),
            identity=hmac.new(_SECRET, contents, "sha256").hexdigest(),
            # The size is all files' in the first scan.
            size_bytes=(lambda _: 1) if with_vectors else files.size,
            schema=StructType([c.stored for c in request.row_columns if c.stored is not None]),
            partitions=of_files,
            options={**request.options, **PARQUET_OPTIONS},
            root=request.table_root,
        )
        late_scans = engine_of(self.spark).late_scans
        assert late_scans is not None
        scanned = late_scans.late_rows(relation, files.listing)
        # In the text of filters, only its columns are qualified by this name.
        scanned = scanned.alias(qualifier_of(files.stored))
        if with_vectors:
            bitmap, bits = F.col(quoted(_BITMAP)), F.col(quoted(_BITS))
            deleted = is_deleted_in_packed(bitmap, bits, _row_index(scanned))
            scanned = scanned.filter(~deleted)
        values: dict[str, tuple[Column | str, DataType]] = {
            name: (F.col(quoted(source.name)), source.dataType)
            for name, source in self._sources.items()
        }
        for column in request.other_columns:
            value = default_value(column, _row_index(scanned))
            if column.stored is not None:
                value = F.coalesce(F.col(quoted(column.stored.name)), value)
            values[column.field.name] = (value, LongType())
        return scanned.select(*request.logical_columns(values))


@dataclass(eq=False)
class LateFiles:
    """The files of a version, listed from the log for the filters of a query.

    The JVM keeps this object. It keeps the files for the last predicates: a query may scan a table
    several times, and asks for files with and without deletion vectors separately.

    Attributes
    ----------
    stored
        The table's columns under the names in the text of filters.
    size_bytes
        The size of all files, see `LateRelation`.
    is_latest
        True if the plan is of an earlier version.
    """

    request: ScanRequest
    stored: StructType
    live: LiveFiles
    max_files: int
    max_vectors: int
    size_bytes: int | None = None
    is_latest: bool = False
    _kept: RecentValues[Predicate | None, _Listing] = field(
        default_factory=lambda: RecentValues(_KEPT_LISTINGS)
    )

    @property
    def listing(self) -> SparkSession:
        """The session in which files are listed."""
        return self.live.state.log.spark

    def live_at(self, query: QueryId) -> LiveFiles:  # noqa: ARG002 - all queries read one version
        """Return the files of the version that a query reads."""
        return self.live

    def listed(
        self,
        filters: str | None,
        has_user_functions: Callable[[], bool],
        query: QueryId,  # noqa: ARG002 - as above
        *,
        with_vectors: bool,
    ) -> ListedFiles:
        """Return the files with or without deletion vectors, see `LateRelation.list_files`."""
        listing = self._listing(self._predicate(filters, has_user_functions))
        return listing.groups.find_or_make(
            with_vectors, lambda: self._grouped(listing.files, with_vectors=with_vectors)
        )

    def size(self, query: QueryId) -> int | None:  # noqa: ARG002 - as above
        """Return the size of all files, see `LateRelation.size_bytes`."""
        return self.size_bytes

    def check(self, files: Sequence[str], uris: Sequence[str], empty: Sequence[str]) -> None:
        """Refuse other files than the listed ones, see `ListedFiles.check`."""
        version = self.request.version
        found = uris_of(files, uris, empty, version)
        if [plain_path(uri) for uri in uris] != list(found.values()):
            raise DeltaError.of("DELTA_DATA_FILE_NOT_READ", files=files, version=version)

    def _predicate(
        self, filters: str | None, has_user_functions: Callable[[], bool]
    ) -> Predicate | None:
        if filters is None:
            return None
        request = self.request
        logical = StructType([column.field for column in request.table_columns])
        parsed = parse_pushed(filters, self.stored, logical, has_user_functions=has_user_functions)
        # Without the condition on bitmaps, the predicate is that of files without vectors.
        predicate = usable_part(self.listing, parsed, request.configuration)
        if may_name_day_of_gap(filters):
            self._check_days(predicate)
        return predicate

    def chosen(self, predicate: Predicate | None) -> pa.Table:
        """List the files that may have rows of which a predicate is true."""
        state = self.live.state
        root, version = state.log.store.table_root, state.log.segment.version
        with jobs_of(root, version):
            live = replace(self.live, skipping=skipping_of(state, predicate))
            files = live.listed(self.max_files)
        if isinstance(files, DataFrame):
            bound = self.max_files
            raise DriverReadTooLargeError(what="files of a scan", rows=None, bound=bound)
        if "deletionVector" in files.column_names:
            with_vectors = files.filter(files["deletionVector"].is_valid())
            if with_vectors.num_rows > self.max_vectors:
                if self.is_latest:
                    problem = (
                        f"{with_vectors.num_rows} of its files have deletion vectors, and the "
                        f"DataFrame can read {self.max_vectors}"
                    )
                    raise DeltaError.of(
                        "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", path=root, problem=problem
                    )
                # The checksum is wrong.
                raise DeltaError.of(
                    "DELTA_DATA_FILE_NOT_READ",
                    files=with_vectors["file"].to_pylist(),
                    version=version,
                )
        return files

    def _listing(self, predicate: Predicate | None) -> _Listing:
        return self._kept.find_or_make(predicate, lambda: _Listing(self.chosen(predicate)))

    def _check_days(self, predicate: Predicate | None) -> None:
        """Refuse filters that Spark gets wrong in the row groups of files with old dates."""
        in_gap = tuple(
            within_gap(path, is_date=isinstance(field.dataType, DateType))
            for path, field in columns_of_days(self.request.configuration).items()
            if path not in self.request.hidden
        )
        terms = (Or(in_gap),) if predicate is None else (predicate, Or(in_gap))
        if in_gap and self._listing(And(terms)).files.num_rows:
            raise InvalidArgumentError(
                argument="condition",
                problem=(
                    "Spark takes 5 to 14 October 1582 for 15 October when it filters the rows of "
                    "this table; give the condition as where= of read_delta"
                ),
            )

    def _grouped(self, files: pa.Table, *, with_vectors: bool) -> ListedFiles:
        """Return the files by their partition values, row ids and bitmaps."""
        request, listing = self.request, self.listing
        if "deletionVector" in files.column_names:
            has_vector = files["deletionVector"].is_valid()
            files = files.filter(has_vector if with_vectors else pc.invert(has_vector))
        elif with_vectors:  # the feature was dropped
            return ListedFiles([], [], None, self.check)
        paths = files["file"].to_pylist()
        values = {name: files[name] for name in request.partition_columns}
        columns = request.typed_partition_values()
        if request.wants_row_tracking:
            values |= {name: files[name] for name in ROW_ID_FIELDS}
            columns += map(F.col, ROW_ID_FIELDS)
        if with_vectors:
            vectors = files["deletionVector"]
            values[_BITMAP], bits = packed_bitmaps(listing, vectors, request)
            values[_BITS] = pa.repeat(pa.scalar(bits, pa.int32()), len(paths))
            columns += [F.col(quoted(_BITMAP)), F.col(quoted(_BITS))]
        if not values:
            return ListedFiles(paths, [len(paths)], None, self.check)
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
            self.check,
        )


@dataclass(eq=False)
class FollowingFiles:
    """The files of the version that each query reads; otherwise like `LateFiles`.

    Attributes
    ----------
    analyzed
        The files of the version that the plan was analyzed for.
    """

    analyzed: LateFiles
    table: FollowedTable
    _kept: RecentValues[str, LateFiles] = field(
        default_factory=lambda: RecentValues(_KEPT_VERSIONS)
    )

    @property
    def stored(self) -> StructType:
        return self.analyzed.stored

    @property
    def listing(self) -> SparkSession:
        return self.analyzed.listing

    def listed(
        self,
        filters: str | None,
        has_user_functions: Callable[[], bool],
        query: QueryId,
        *,
        with_vectors: bool,
    ) -> ListedFiles:
        """Return the files with or without deletion vectors, see `LateRelation.list_files`."""
        files = self.at(query)
        return files.listed(filters, has_user_functions, query, with_vectors=with_vectors)

    def live_at(self, query: QueryId) -> LiveFiles:
        """Return the files of the version that a query reads."""
        return self.at(query).live

    def size(self, query: QueryId) -> int | None:
        """Return the size of all files, see `LateRelation.size_bytes`."""
        return self.at(query).size_bytes

    def at(self, query: QueryId) -> LateFiles:
        """Return the files of the version that a query reads."""
        state, checksum = self.table.at(query())
        log, before = state.log, self.analyzed

        def made() -> LateFiles:
            size = None if checksum is None else checksum.table_size_bytes
            files = replace(
                before,
                request=replace(before.request, version=log.segment.version),
                live=replace(before.live, state=state, checksum=checksum),
                size_bytes=log.size_at_most() if size is None else size,
                _kept=RecentValues(_KEPT_LISTINGS),
            )
            check_followed(before.request, files.live)
            return files

        return self._kept.find_or_make(log.contents, made)


@dataclass(frozen=True, slots=True)
class SentFiles:
    """The files of a scan whose rows are found when a plan is sent.

    Attributes
    ----------
    request
        As the plan was made.
    followed
        The table whose latest version each query reads; None for the version of `live`.
    """

    request: ScanRequest
    live: LiveFiles
    followed: FollowedTable | None

    def live_at(self, query: QueryId) -> LiveFiles:
        """Return the files of the version that a query reads."""
        if self.followed is None:
            return self.live
        state, checksum = self.followed.at(query())
        live = replace(self.live, state=state, checksum=checksum)
        check_followed(self.request, live)
        return live


def check_followed(request: ScanRequest, live: LiveFiles) -> None:
    """Refuse the files of a later version that a plan cannot read.

    Parameters
    ----------
    request
        As the plan was analyzed.

    Raises
    ------
    DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS
        The schema cannot be read as that of the plan, or files may have nulls that it excludes.
    """
    problem = schema_problem(request.configuration, live.state.configuration)
    if problem is None and request.keeps_not_null and not are_without_nulls(live, request):
        problem = "too many of its files may have nulls in columns that are NOT NULL"
    if problem is not None:
        path = live.state.log.table_root
        raise DeltaError.of("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", path=path, problem=problem)


@dataclass(slots=True, eq=False)
class _Listing:
    """The files for a predicate, and those with and without deletion vectors in groups."""

    files: pa.Table
    groups: RecentValues[bool, ListedFiles] = field(default_factory=lambda: RecentValues(2))


def _row_index(scanned: DataFrame) -> Column:
    return scanned.metadataColumn("_metadata")["row_index"]
