"""Reading of a table as a stream.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.change_types import CHANGE_COLUMNS
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.log_files import LogFileKind, Version
from sparkdelta.base.protocol.table_properties import ENABLE_CHANGE_DATA_FEED, is_on
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.base.storage.stream_source import ReadLimit
from sparkdelta.exceptions import DeltaError, VersionNotFoundError
from sparkdelta.operations.stream.stream_batches import BatchPlan, BatchPlanner, QueryState
from sparkdelta.operations.stream.stream_changes import ChangePlanner
from sparkdelta.operations.stream.stream_offset_rules import BEFORE_FILES, StreamOffset
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.change_range import first_version_at
from sparkdelta.table.log.commit_times import CommitHistory
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True, eq=False)
class TableStream:
    """A `StreamSource` of the rows that are added to a table, or of its change data feed.

    Its schema is the table's when it was made; a query that reaches another schema must be
    restarted.

    Attributes
    ----------
    opened
        The latest version when it was made, with which a new query begins.
    """

    opened: Snapshot
    options: StreamOptions
    _queries: dict[str, QueryState] = field(default_factory=dict, repr=False)

    @property
    def description(self) -> str:
        return f"sparkdelta[{self.opened.path}]"

    @property
    def schema(self) -> StructType:
        return self._planner.scan.row_schema

    @property
    def limit(self) -> ReadLimit:
        return self.options.limit

    @property
    def is_limited(self) -> bool:
        return self.options.is_limited

    def read_available(self, query: str) -> None:
        self._state(query).ends_soon = True

    def latest_offset(self, query: str, start: str | None, limit: ReadLimit) -> str | None:
        state, planner = self._state(query), self._planner
        with self._jobs():
            if start is not None:
                begin = self._parsed(start)
            elif state.begin is None:
                begin = state.begin = self._first_offset()
                if self.options.starts_at_latest:
                    # An empty batch, so that a checkpoint has the version that was the latest.
                    return begin.json
            else:
                begin = state.begin
            if state.ends_soon and state.last is None:
                state.last = planner.newest_version(begin)
            state.release(before=begin.version)
            plan = planner.plan(state, begin, limit)
        if plan.end == begin:
            return start
        state.planned = (None if start is None else begin, plan)
        return plan.end.json

    def batch(self, query: str, start: str | None, end: str) -> DataFrame | None:
        with self._jobs():
            plan = self._plan(query, start, end)
            return None if plan is None else self._planner.rows(plan)

    def tasks(
        self, query: str, start: str | None, end: str
    ) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        with self._jobs():
            plan = self._plan(query, start, end)
            scans = () if plan is None else self._planner.scans(plan)
            return [task for scan, files in scans for task in scan.distributed().tasks(files)]

    def check_transferable(self) -> None:
        """Raise if a column's type cannot pass through Python workers."""
        self._planner.scan.distributed().check_transferable()

    def _plan(self, query: str, start: str | None, end: str) -> BatchPlan | None:
        state, finish = self._state(query), self._parsed(end)
        begin = None if start is None else self._parsed(start)
        if state.planned is not None:
            planned_begin, plan = state.planned
            if (planned_begin, plan.end) == (begin, finish):
                return plan
        begin = begin or self._begin_of(finish)
        return None if begin == finish else self._planner.plan(state, begin, ReadLimit(), finish)

    def stop(self, query: str) -> None:
        state = self._queries.pop(query, None)
        if state is not None:
            state.release()

    @property
    def _planner(self) -> BatchPlanner:
        kind = ChangePlanner if self.options.read_change_feed else BatchPlanner
        return kind(self.opened, self.options)

    def _state(self, query: str) -> QueryState:
        return self._queries.setdefault(query, QueryState())

    def _parsed(self, offset: str) -> StreamOffset:
        table_id = self.opened.metadata.id
        return StreamOffset.parse(offset, table_id=table_id, path=self.opened.path)

    def _jobs(self) -> AbstractContextManager[None]:
        return jobs_of(self.opened.path)

    def _first_offset(self) -> StreamOffset:
        """Return the place where a new query begins."""
        version = self._starting_version()
        table_id = self.opened.metadata.id
        if version is None:
            return StreamOffset(table_id, self.opened.version, is_initial=True)
        return StreamOffset(table_id, version)

    def _begin_of(self, finish: StreamOffset) -> StreamOffset:
        """Return the place where a query began, if another process planned its first batch."""
        if self.options.starts_at_latest:
            return finish
        version = self._starting_version()
        if version is not None:
            return replace(finish, version=version, index=BEFORE_FILES, is_initial=False)
        # The whole table at the version before, if the batch went on to commits.
        initial = finish.version if finish.is_initial else finish.version - 1
        return StreamOffset(finish.table_id, initial, is_initial=True)

    def _starting_version(self) -> Version | None:
        """Return the version that the user wants to start at; None for all rows."""
        options, log = self.options, self.opened.log
        if options.starting_version is None and options.starting_timestamp is None:
            return None
        path, files = self.opened.path, list_log_files(log.store)
        if options.starting_timestamp is not None:
            commits = readable_commits(files, path=path)
            in_commit = self.opened.configuration.in_commit_timestamps
            history = CommitHistory(log.spark, log.store, commits, in_commit)
            return first_version_at(history, options.starting_timestamp)
        # Their adds are enough: the version need not be one that the log can reconstruct.
        versions = {file.version for file in files if file.kind is LogFileKind.COMMIT}
        latest = max(versions, default=self.opened.version)
        if options.starts_at_latest:
            return latest + 1
        version = int(options.starting_version or 0)
        if version not in versions:
            raise VersionNotFoundError(
                version=version, earliest=min(versions, default=latest), latest=latest, path=path
            )
        return version


def read_stream(
    spark: SparkSession, path: str, options: StreamOptions, *, partition_time_zone: str
) -> DataFrame:
    """Return the streaming DataFrame of a table; see `sparkdelta.read_stream`."""
    opened = open_snapshot(spark, path, partition_time_zone=partition_time_zone)
    if options.read_change_feed:
        _check_change_feed(opened)
    if options.exclude_regex is not None:
        _check_regex(spark, options.exclude_regex)
    reopen = partial(_reopened, path, options, opened.version, partition_time_zone)
    return engine_of(spark).stream(TableStream(opened, options), reopen)


def _reopened(
    path: str, options: StreamOptions, version: Version, time_zone: str, spark: SparkSession
) -> TableStream:
    """Open the stream of a table in another process, with the schema of a version."""
    opened = open_snapshot(spark, path, version=version, partition_time_zone=time_zone)
    return TableStream(opened, options)


def _check_change_feed(opened: Snapshot) -> None:
    if not is_on(opened.properties, ENABLE_CHANGE_DATA_FEED):
        version = opened.version
        raise DeltaError.of(
            "DELTA_MISSING_CHANGE_DATA",
            path=opened.path,
            start=version,
            end=version,
            version=version,
        )
    taken = {name_key(name) for name in opened.schema.names}
    doubled = tuple(name for name in CHANGE_COLUMNS if name in taken)
    if doubled:
        raise DeltaError.of("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", columns=doubled)


def _check_regex(spark: SparkSession, regex: str) -> None:
    try:
        answer = spark.sql("VALUES (0)").selectExpr(f"'' RLIKE {text_literal(regex)} AS found")
        read_rows(answer, what="regular expression", bound=1)
    except DeltaError:
        raise
    except SPARK_ERRORS as error:
        raise DeltaError.of("DELTA_REGEX_OPT_SYNTAX_ERROR", regex=regex) from error
