"""Reading the rows of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.predicates.predicate_rules import And, Predicate, is_usable
from sparkdelta.base.predicates.predicate_rules import columns as columns_of
from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.schema.table_schema import (
    known_path,
    nullable_as,
    quoted,
    quoted_path,
    type_of_path,
)
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.skipping.failing_values import infallible_terms, is_infallible
from sparkdelta.base.skipping.predicate_value_frames import to_sql
from sparkdelta.base.skipping.row_group_bounds import row_group_bounds
from sparkdelta.base.spark.connect_filters import SentCondition
from sparkdelta.base.spark.connect_late_rows import parse_sent, rows_when_sent
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.progress import progress
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DriverReadTooLargeError,
    InvalidArgumentError,
)
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.log.local_add_files import LocalAddFiles, keyed_adds
from sparkdelta.table.log.state import TableState
from sparkdelta.table.scan.conditions import parse_where, usable_part
from sparkdelta.table.scan.deferred_scan import (
    DeferredScan,
    SentFiles,
    columns_with_bitmaps,
)
from sparkdelta.table.scan.distributed_scan import DistributedScan
from sparkdelta.table.scan.file_changes import FileChanges
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from sparkdelta.table.scan.followed_table import FollowedTable
from sparkdelta.table.scan.hidden_columns import hidden_columns
from sparkdelta.table.scan.live_files import LiveFiles, has_vectors, skipping_of
from sparkdelta.table.scan.native_scan import NativeScan, has_large_bitmaps
from sparkdelta.table.scan.not_null_columns import are_without_nulls, has_not_null_columns
from sparkdelta.table.scan.packed_bitmaps import MAX_PACKED_VECTORS
from sparkdelta.table.scan.read_provenance import following_mark
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.scan.scan_report import ScanReport, counted_report, full_report
from sparkdelta.table.scan.scan_request import (
    FileList,
    MetadataColumn,
    RowCondition,
    ScanRequest,
)

MAX_DRIVER_FILES = 100_000
"""The most files of a scan whose list comes to the driver, unless a scan says otherwise; executors
read the files of a larger scan without a list on the driver."""

MAX_KNOWN_FILES = 1_000
"""Up to this many files with rows to change are read from the log once, as a whole: a large log is
not searched again for each step of an operation."""

MAX_FILES_WITH_ROW_IDS = 300
"""Up to this many files, a file's first row id is a value of the file, as its partition values are;
with more files, rows are joined with these values."""

_ROW_TRACKING = {
    "_metadata.row_id": (MetadataColumn.ROW_ID, "row_id"),
    "_metadata.row_commit_version": (MetadataColumn.ROW_COMMIT_VERSION, "row_commit_version"),
}
_ROW_IDS = {column for column, _ in _ROW_TRACKING.values()}


@dataclass(frozen=True, eq=False)
class Scan:
    """A read of a snapshot, made by `Snapshot.scan` and `Snapshot.candidates`.

    Attributes
    ----------
    changes
        The changes of files to read; by default, the live files are read.
    given_files
        The list of files, once it is read.
    followed
        Returns the table in a listing session, whose latest version each query reads if files are
        chosen late; None for this version.
    mark
        The read option that names the table and the version, see `read_provenance`.
    """

    _state: TableState = field(repr=False)
    where: str | Column | None
    columns: tuple[str, ...] | None
    max_driver_files: int = MAX_DRIVER_FILES
    _checksum: VersionChecksum | None = field(default=None, repr=False)
    _predicate: Predicate | None = field(default=None, repr=False)
    _names: RowNames = field(default=NO_NAMES, repr=False)
    is_streaming: bool = field(default=False, kw_only=True, repr=False)
    changes: FileChanges | None = field(default=None, kw_only=True, repr=False)
    given_files: FileList | None = field(default=None, kw_only=True, repr=False)
    followed: Callable[[SparkSession], FollowedTable] | None = field(
        default=None, kw_only=True, repr=False
    )
    mark: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)

    def with_aliases(self, names: RowNames) -> Scan:
        """Return the same scan with other names for the rows in `where`."""
        return replace(self, _names=names)

    @property
    def row_schema(self) -> StructType:
        """The schema of the rows, with all the table's columns."""
        return self._request(frozenset(), None).output

    def with_known_files(self, row_predicate: Predicate | None = None) -> Scan:
        """Return the same scan with its files read from the log once for all later uses, if they
        are no more than `MAX_KNOWN_FILES`.

        Parameters
        ----------
        row_predicate
            Chooses the rows of these files; by default, what chose the files. It is to be true of
            all wanted rows, and may be cheaper to evaluate.
        """
        state, bound = self._state, MAX_KNOWN_FILES
        adds = keyed_adds(
            self.files(with_json=True),
            table_root=state.log.store.table_root,
            statistics=state.configuration.statistics,
        )
        with self._named_jobs():
            try:
                known = read_table(
                    adds if self._has_few_files(bound) else adds.limit(bound + 1),
                    what="files that may have rows to change",
                    bound=bound,
                    version=state.log.segment.version,
                )
            except DriverReadTooLargeError:
                return self
        predicate = self._predicate if row_predicate is None else row_predicate
        state = state.with_known(LocalAddFiles(state.log.spark, known))
        return replace(self, _state=state, _predicate=predicate)

    def select(self, columns: Sequence[str] | None) -> Scan:
        """Return the same scan with only these columns; None for all."""
        return replace(self, columns=None if columns is None else tuple(columns))

    def with_changes(self) -> Scan:
        """Return the same scan for files given to `rows_of`, of which each may have several
        changes.
        """
        return replace(self, changes=FileChanges())

    def with_given_files(self, *, tracks_rows: bool) -> Scan:
        """Return the same scan, whose list of files is read once.

        Parameters
        ----------
        tracks_rows
            True for the columns that row ids need.
        """
        with self._named_jobs():
            return replace(self, given_files=self._files_to_read(tracks_rows=tracks_rows))

    @property
    def known(self) -> LocalAddFiles | None:
        """The files, where they were read from the log once, see `with_known_files`."""
        return self._state.known

    def files(self, *, with_json: bool = False) -> DataFrame:
        """Return the data files that the scan reads: the columns of `Snapshot.add_files`.

        Files without a row that matches `where` are left out, as far as partition values and
        statistics show. The DataFrame is lazy.

        Parameters
        ----------
        with_json
            True for the column `stats`, too.

        References
        ----------
        PROTOCOL.md#per-file-statistics
        """
        return self._state.adds(with_json=with_json, skipping=self._skipping)

    def to_df(self) -> DataFrame:
        """Return the rows, in the columns and types of the table's schema.

        Without `where`, on classic Spark, files are chosen when a query runs, by all its filters
        (see `listing`). Otherwise the list of up to `max_driver_files` files is read by the driver
        at once (one Spark job) and given to Spark's own Parquet source. With more files, executors
        read the list and the files, and the driver reads only their total size. The rows are lazy,
        and pinned to the version.

        Raises
        ------
        DELTA_FILE_NOT_FOUND
            A file of this version is gone, as after a vacuum; raised when the query runs where
            files are chosen then, or executors read the list.
        DELTA_NULLS_IN_NOT_NULL_COLUMN
            The session is enabled, and a row has a null in a column that is NOT NULL.
        ColumnNotFoundError
            `columns` names a column that the table does not have.
        """
        output = self._output()
        with (
            self._named_jobs(),
            progress(
                self._state.log.spark, "Finding files to read", is_on=self._state.shows_progress
            ),
        ):
            if self.listing is FileListingMode.LATE:
                return self._late_rows().select(*output)
            if self.listing is FileListingMode.SENT:
                return self._rows_when_sent(output)
            return self._rows(self._files_to_read(), self._condition).select(*output)

    @cached_property
    def listing(self) -> FileListingMode:
        """The time at which `to_df` chooses files, and why."""
        if self.changes is not None:
            return FileListingMode.CHANGES
        if self.where is not None or self._predicate is not None:
            return FileListingMode.CONDITION
        if self.is_streaming:
            return FileListingMode.STREAM
        if self._wants_row_tracking and not self._has_few_files(MAX_FILES_WITH_ROW_IDS):
            return FileListingMode.ROW_TRACKING
        if self._state.cached is not None or self._state.known is not None:
            return FileListingMode.CACHED
        if not self._has_few_files(self.max_driver_files):
            return FileListingMode.MANY_FILES
        if self._vectors_at_most is None or self._vectors_at_most > MAX_PACKED_VECTORS:
            return FileListingMode.DELETION_VECTORS
        lateness = engine_of(self._state.log.spark).lateness
        if lateness == "never" or (lateness == "sent" and self.columns is not None):
            return FileListingMode.NO_CALLS
        if lateness == "sent":
            return FileListingMode.SENT
        if self._vectors_at_most and not self._reads_batches:
            return FileListingMode.ROW_READER  # each row would have a copy of its file's bitmap
        return FileListingMode.LATE

    @cached_property
    def _reads_batches(self) -> bool:
        late_scans = engine_of(self._state.log.spark).late_scans
        request = self._request(self._tracking_columns, None)
        return late_scans is not None and late_scans.reads_batches(columns_with_bitmaps(request))

    def rows_with(
        self, *metadata_columns: MetadataColumn, among: Collection[str] | None = None
    ) -> DataFrame:
        """Return the rows that match `where`: the table's columns, then metadata columns.

        The table's columns include at least `columns` and the columns of `where`. Lazy, and not
        shuffled, see `not_shuffled`.

        Parameters
        ----------
        among
            The paths of the only files to read, as `MetadataColumn.FILE` spells them; None for all
            that may have such rows.
        """
        tracks_rows = not _ROW_IDS.isdisjoint(metadata_columns)
        with self._named_jobs():
            files = self._files_to_read(tracks_rows=tracks_rows)
            if among is not None and isinstance(files, pa.Table):
                files = _files_at(files, {plain_path(path) for path in among})
            files = self.not_shuffled(files)
            return self._rows(files, self._condition, *metadata_columns)

    def not_shuffled(self, files: FileList) -> FileList:
        """Return the files as a DataFrame if their bitmaps are too large for every executor:
        workers read these, and rows are not shuffled. Of use where workers can reach the files,
        which they may not on HDFS.
        """
        log = self._state.log
        spark, root = log.spark, log.store.table_root
        if isinstance(files, DataFrame) or not has_large_bitmaps(files):
            return files
        is_reached = worker_files(spark, root, log.options).is_near(root)
        moves = engine_of(spark).can("move frames")  # the list is of this session
        return arrow_frame(spark, files) if moves and is_reached else files

    def rows_of(self, files: FileList, *metadata_columns: MetadataColumn) -> DataFrame:
        """Return the rows of the given files that match `where`; otherwise like `rows_with`."""
        with self._named_jobs():
            return self._rows(files, self._condition, *metadata_columns)

    def distributed(self) -> DistributedScan:
        """Return the scan of all rows of files by executors, for files given to it."""
        return DistributedScan(
            self._state.log.spark, self._request(self._tracking_columns, condition=None)
        )

    def report(self, *, full: bool = False) -> ScanReport:
        """Return the files and bytes left after each step, and the use of each condition.

        Without `full`, only the files left in the end are counted, as `files` finds them; the
        number of all files comes from the version checksum, or from the tags of the sidecars of a
        checkpoint of this version.

        Parameters
        ----------
        full
            True counts every step, which reads the whole log.
        """
        log = self._state.log
        with (
            self._named_jobs(),
            progress(log.spark, "Counting the files of a scan", is_on=self._state.shows_progress),
        ):
            if full:
                return full_report(self._state, self._skipping, self.listing)
            return counted_report(log, self.files(), self._skipping, self._checksum, self.listing)

    def _named_jobs(self) -> AbstractContextManager[None]:
        log = self._state.log
        return jobs_of(log.store.table_root, log.segment.version)

    @cached_property
    def _skipping(self) -> DataSkipping | None:
        """Data skipping by `where`."""
        state, predicate = self._state, self._predicate
        if self.where is not None:
            predicate = parse_where(
                state.log.spark, self.where, state.configuration, names=self._names
            )
        return skipping_of(state, predicate)

    def _rows(
        self,
        files: FileList,
        condition: RowCondition | None,
        *metadata_columns: MetadataColumn,
    ) -> DataFrame:
        """Return the rows of files that match a condition."""
        request = self._request(frozenset(metadata_columns) | self._tracking_columns, condition)
        is_read_by_workers = self.changes is not None and not self.is_streaming
        if is_read_by_workers and isinstance(files, pa.Table) and has_large_bitmaps(files):
            files = arrow_frame(self._state.log.spark, files)
        if isinstance(files, pa.Table):
            # All columns: Spark reads those that are needed, also by a filter after `select`.
            hidden = hidden_columns(
                self._state.configuration,
                None if self.changes or self.is_streaming else self._state.log,
                None if self._skipping is None else self._skipping.predicate,
            )
            request = replace(request, hidden=hidden)
            return NativeScan(self._state.log.spark, request).rows(files)
        if self.is_streaming:
            raise DriverReadTooLargeError(
                what="files of a batch", rows=None, bound=self.max_driver_files
            )
        request = replace(request, columns=self._columns_read())
        return DistributedScan(self._state.log.spark, request).rows(files)

    @cached_property
    def _vectors_at_most(self) -> int | None:
        """An upper bound of the deletion vectors; None if it takes more than the driver has."""
        if not has_vectors(self._state.configuration):
            return 0
        in_checksum = None if self._checksum is None else self._checksum.num_deletion_vectors
        return self._state.log.vectors_at_most() if in_checksum is None else in_checksum

    def _late_rows(self) -> DataFrame:
        state, log, checksum = self._state, self._state.log, self._checksum
        in_checksum = None if checksum is None else checksum.table_size_bytes
        # The JVM keeps the files, so they must not hold a DataFrame of the user's session.
        listing = engine_of(log.spark).listing_session(compiles=not log.is_small)
        listed = replace(state, log=log.in_session(listing))
        hidden = hidden_columns(state.configuration, log, None, is_deferred=True)
        request = replace(self._request(self._tracking_columns, None), hidden=hidden)
        live = LiveFiles(listed, checksum, None, self._wants_row_tracking)
        if is_enabled(log.spark) and has_not_null_columns(state.configuration.schema):
            request = replace(request, keeps_not_null=are_without_nulls(live, request))
        contents = (state.partition_time_zone, state.configuration.metadata.id, log.contents)
        followed, max_vectors = None, self._vectors_at_most or 0
        if self.followed is not None:
            followed = self.followed(listing)
            mark = following_mark(log.table_root, log.segment.version)
            request = replace(request, options={**request.options, **mark})
            if has_vectors(state.configuration) and self._reads_batches:
                max_vectors = MAX_PACKED_VECTORS
        return DeferredScan(
            log.spark,
            request,
            live,
            self.max_driver_files,
            max_vectors,
            "\n".join(("" if followed is None else "followed", *contents)),
            log.size_at_most() if in_checksum is None else in_checksum,
            followed,
        ).rows()

    def _rows_when_sent(self, output: list[Column]) -> DataFrame:
        """Return rows whose files are chosen when a plan that reads them is sent."""
        state, spark, configuration = self._state, self._state.log.spark, self._state.configuration
        request, schema = self._request(frozenset(), None), self.row_schema
        live = LiveFiles(state, self._checksum, None, tracks_rows=False)
        if is_enabled(spark) and has_not_null_columns(configuration.schema):
            request = replace(request, keeps_not_null=are_without_nulls(live, request))
            if request.keeps_not_null:
                schema = cast(StructType, nullable_as(schema, configuration.schema))
        followed = None if self.followed is None else self.followed(spark)
        files = SentFiles(request, live, followed)

        def rows_for(query: str, conditions: Sequence[SentCondition]) -> DataFrame:
            scan = self
            if followed is not None:
                latest = files.live_at(lambda: query)
                log = latest.state.log
                mark = following_mark(log.table_root, log.segment.version)
                scan = replace(self, _state=latest.state, _checksum=latest.checksum, mark=mark)
            parsed = parse_sent(spark, conditions, configuration.schema)
            chosen = replace(scan, _predicate=usable_part(spark, parsed, configuration))
            with scan._named_jobs():
                return scan._rows(chosen._files_to_read(), None).select(*output)

        return rows_when_sent(spark, schema, rows_for, files if is_enabled(spark) else None)

    def _request(
        self, metadata_columns: frozenset[MetadataColumn], condition: RowCondition | None
    ) -> ScanRequest:
        state = self._state
        return ScanRequest(
            configuration=state.configuration,
            table_root=state.log.store.table_root,
            version=state.log.segment.version,
            options={**state.log.options, **self.mark},
            partition_time_zone=state.partition_time_zone,
            metadata_columns=metadata_columns,
            condition=condition,
            of_changes=self.changes is not None,
            is_streaming=self.is_streaming,
            char_types=state.char_types,
        )

    @property
    def _condition(self) -> RowCondition | None:
        """`where`, with its infallible part and its bounds; of candidates, the infallible part."""
        skipping = self._skipping
        if skipping is None:
            return None
        predicate, schema = skipping.predicate, skipping.schema
        terms = infallible_terms(predicate, schema)
        infallible_part = to_sql(And(terms), quoted_path) if terms else None
        bounds = row_group_bounds(predicate, schema, skipping.partition_columns)
        if self.where is None:
            return RowCondition(infallible_part or "TRUE", None, is_infallible=True, bounds=bounds)
        return RowCondition(
            self.where, infallible_part, is_infallible(predicate, schema), bounds, self._names
        )

    def _columns_read(self) -> frozenset[str] | None:
        """Return the columns that the result and the condition need; None for all of them."""
        if self.columns is None:
            return None
        predicate = None if self._skipping is None else self._skipping.predicate
        if predicate is not None and not is_usable(predicate):
            return None  # the columns of unusable parts are unknown
        by_name = {name_key(name): name for name in self._state.configuration.schema.names}
        asked = {
            by_name.get(name_key(name)) or by_name.get(_first_part(name))
            for name in self.columns
            if name not in _ROW_TRACKING
        }
        needed = set() if predicate is None else {path[0] for path in columns_of(predicate)}
        return frozenset(name for name in asked | needed if name is not None)

    def _files_to_read(self, *, tracks_rows: bool = False) -> FileList:
        """Return the list of files, on the driver if there are at most `max_driver_files`.

        Parameters
        ----------
        tracks_rows
            True for the columns that row ids need; `columns` may ask for them, too.
        """
        if self.given_files is not None:
            return self.given_files
        tracks_rows = tracks_rows or self._wants_row_tracking
        if self.changes is not None:
            return self.changes.listed(
                self._state, self._skipping, self.max_driver_files, tracks_rows=tracks_rows
            )
        files = LiveFiles(self._state, self._checksum, self._skipping, tracks_rows)
        return files.listed(self.max_driver_files)

    def _has_few_files(self, bound: int) -> bool:
        return self._state.has_few_files(bound)

    @property
    def _tracking_columns(self) -> frozenset[MetadataColumn]:
        """The metadata columns that `columns` asks for."""
        names = self.columns or ()
        return frozenset(_ROW_TRACKING[name][0] for name in names if name in _ROW_TRACKING)

    @property
    def _wants_row_tracking(self) -> bool:
        return bool(self._tracking_columns)

    def _output(self) -> list[Column]:
        """Return the columns asked for, in order; names match in any case and may be quoted or
        nested.
        """
        names = self._state.configuration.schema.names
        if self.columns is None:
            return [F.col(quoted(name)) for name in names]
        if self._wants_row_tracking and not self._state.configuration.row_tracking.enabled:
            raise InvalidArgumentError(
                argument="columns",
                problem="row ids and row commit versions require delta.enableRowTracking=true",
            )
        by_name = {name_key(name): name for name in names}
        output = []
        for name in self.columns:
            if name in _ROW_TRACKING:
                column, alias = _ROW_TRACKING[name]
                output.append(F.col(column.value).alias(alias))
            elif name_key(name) in by_name:
                output.append(F.col(quoted(by_name[name_key(name)])))
            elif _first_part(name) in by_name:
                _check_fields(self._state.configuration.schema, name)
                output.append(F.col(name))
            else:
                raise ColumnNotFoundError(column=name, available=names)
        return output


def _files_at(files: pa.Table, paths: Collection[str]) -> pa.Table:
    """Return the files at some paths, which are spelled as `plain_path` spells them."""
    is_there = [plain_path(file) in paths for file in files["file"].to_pylist()]
    return files.filter(pa.array(is_there, pa.bool_()))


def _check_fields(schema: StructType, name: str) -> None:
    """Refuse a name that leads to no field of a struct; Spark looks into arrays and maps."""
    names = name_parts(name)
    path = known_path(schema, names)
    data_type = type_of_path(schema, path)
    if len(path) < len(names) and isinstance(data_type, StructType):
        available = [".".join((*path, field)) for field in data_type.names]
        raise ColumnNotFoundError(column=name, available=available)


def _first_part(name: str) -> str:
    """Return the first part of a name with dots, in lower case; empty if the name is not valid."""
    try:
        return name_key(name_parts(name)[0])
    except UnusableError:
        return ""
