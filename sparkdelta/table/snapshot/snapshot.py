"""A table at one version."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.arguments import checked_count, checked_names
from sparkdelta.base.protocol.log_files import LogFile, LogFileKind, Version, listing_prefix
from sparkdelta.base.protocol.results import html_table
from sparkdelta.base.protocol.table_features import supported_features
from sparkdelta.base.protocol.table_properties import has_in_commit_timestamp
from sparkdelta.base.schema.partition_value_frames import is_time_zone
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.progress import progress
from sparkdelta.base.spark.session_settings import followed_char_types, followed_time_zone
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import InvalidArgumentError, TableNotFoundError
from sparkdelta.table.checksum.version_checksum_frames import file_bins
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.listing.listing import list_log_files, open_log
from sparkdelta.table.listing.log_segment_rules import LogSegment, extend_log_segment
from sparkdelta.table.log.commit_times import commit_timestamp
from sparkdelta.table.log.commit_timestamp_rules import utc_datetime
from sparkdelta.table.log.loading import LoadedLog, extend_log, load_log
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.state import CachedAdds, TableState
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.query_versions import find_version, version_of_query
from sparkdelta.table.scan.read_provenance import read_mark
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES, Scan


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a table at one version. The DataFrames from it keep to that version.

    Load one with `sparkdelta.load_snapshot`.

    References
    ----------
    PROTOCOL.md#delta-table-specification
    """

    _state: TableState = field(repr=False)
    _checksum: VersionChecksum | None = field(repr=False)

    @property
    def version(self) -> Version:
        return self.segment.version

    @property
    def path(self) -> str:
        """The table's root as Spark names it, decoded."""
        return self.log.table_root

    @property
    def protocol(self) -> Protocol:
        return self.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        return self.configuration.metadata

    def __repr__(self) -> str:
        shown = [repr(self.path), f"version={self.version}"]
        if self._knows_timestamp and self.timestamp is not None:
            moment = self.timestamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            shown.append(f"timestamp={moment}")
        if self._state.num_files is not None:
            shown.append(f"files={self._state.num_files}")
        return f"Snapshot({', '.join(shown)})"

    def _repr_html_(self) -> str:
        protocol = self.protocol
        features = sorted(feature.value for feature in supported_features(protocol))
        facts = {
            "path": self.path,
            "version": self.version,
            "timestamp": self.timestamp if self._knows_timestamp else None,
            "files": self._state.num_files,
            "columns": self.schema.simpleString(),
            "partition columns": ", ".join(self.metadata.partition_columns),
            "protocol": f"{protocol.min_reader_version}, {protocol.min_writer_version}",
            "features": ", ".join(features),
            "properties": ", ".join(f"{key}={value}" for key, value in self.properties.items()),
        }
        return html_table({name: value for name, value in facts.items() if value not in (None, "")})

    @property
    def _knows_timestamp(self) -> bool:
        """True if `timestamp` needs no read of a commit."""
        in_commit, checksum = self.configuration.in_commit_timestamps, self._checksum
        return (
            not has_in_commit_timestamp(in_commit, self.version)
            or (checksum is not None and checksum.in_commit_timestamp is not None)
            or "timestamp_ms" in vars(self)
        )

    @property
    def schema(self) -> StructType:
        """The logical schema, with nullability and metadata as declared at every level."""
        return self.configuration.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """`metaData.configuration`."""
        return self.metadata.configuration

    @property
    def segment(self) -> LogSegment:
        """The files of the log that make up this version."""
        return self.log.segment

    @property
    def configuration(self) -> TableConfiguration:
        return self._state.configuration

    @property
    def version_checksum(self) -> VersionChecksum | None:
        """The `.crc` of exactly this version, if there is one."""
        return self._checksum

    @property
    def log(self) -> LogReader:
        """The reader of this version's log segment."""
        return self._state.log

    @property
    def state(self) -> TableState:
        """The result of replaying the segment."""
        return self._state

    @property
    def timestamp(self) -> datetime | None:
        """The time of this version's commit, in UTC.

        The in-commit timestamp if they are enabled, else the commit file's modification time; None
        if only a checkpoint is left of the version.
        """
        return None if self.timestamp_ms is None else utc_datetime(self.timestamp_ms)

    @cached_property
    def timestamp_ms(self) -> int | None:
        """`timestamp` in milliseconds since the epoch."""
        in_commit = self.configuration.in_commit_timestamps
        return commit_timestamp(self.log, in_commit, self._checksum)

    def add_files(self) -> DataFrame:
        """Return the live data files: the reconciled add actions, one row per logical file.

        Returns
        -------
        DataFrame
            path STRING, partitionValues MAP<STRING, STRING>, size LONG (bytes), modificationTime
            LONG (ms), dataChange BOOLEAN, stats STRING (JSON), tags MAP<STRING, STRING>,
            deletionVector STRUCT, baseRowId LONG, defaultRowCommitVersion LONG, clusteringProvider
            STRING, partitionValues_parsed STRUCT (logical names, typed), stats_parsed STRUCT
            (physical names, typed). Lazy.

        References
        ----------
        PROTOCOL.md#add-file-and-remove-file
        """
        return self._state.adds()

    def remove_files(self) -> DataFrame:
        """Return the tombstones in the log, expired or not, one row per logical file.

        Returns
        -------
        DataFrame
            path STRING, deletionTimestamp LONG (ms), dataChange BOOLEAN, extendedFileMetadata
            BOOLEAN, partitionValues MAP<STRING, STRING>, size LONG (bytes), deletionVector STRUCT,
            baseRowId LONG, defaultRowCommitVersion LONG. Lazy.

        References
        ----------
        PROTOCOL.md#add-file-and-remove-file
        """
        return self._state.removes()

    def transactions(self) -> DataFrame:
        """Return the latest transaction of each application. Lazy.

        appId STRING, version LONG, lastUpdated LONG (ms).

        References
        ----------
        PROTOCOL.md#transaction-identifiers
        """
        return self._state.transactions()

    def domain_metadata(self) -> DataFrame:
        """Return the domains that are not removed. Lazy.

        domain STRING, configuration STRING, removed BOOLEAN (false).

        References
        ----------
        PROTOCOL.md#domain-metadata
        """
        return self._state.domain_metadata()

    def live_file_totals(self) -> DataFrame:
        """Return one row: num_files LONG, size_in_bytes LONG. Lazy."""
        sizes = self._state.scan_files("size")
        return sizes.agg(
            F.count("*").alias("num_files"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("size_in_bytes"),
        )

    def file_bins(self, size_boundaries: Sequence[int]) -> DataFrame:
        """Count the live files by size and deleted rows, see `base.protocol.file_totals`.

        Lazy.

        References
        ----------
        PROTOCOL.md#file-size-histogram-schema
        """
        files = self._state.scan_files("size", "deletionVector")
        return file_bins(files, size_boundaries=size_boundaries)

    def scan(
        self,
        where: str | Column | None = None,
        columns: list[str] | None = None,
        *,
        max_driver_files: int = MAX_DRIVER_FILES,
    ) -> Scan:
        """Return a read of this version.

        Parameters
        ----------
        where
            Rows to keep, as SQL text or a Column.
        columns
            Columns to return, in this order; all by default. ``_metadata.row_id`` and
            ``_metadata.row_commit_version`` are the columns of row tracking.
        max_driver_files
            The longest list of files that the driver may hold; executors read a longer list.
        """
        names = checked_names(columns, "columns")
        bound = checked_count(max_driver_files, "max_driver_files", least=0)
        bound = MAX_DRIVER_FILES if bound is None else bound
        return Scan(self._state, where, names, bound, self._checksum)

    def following(self) -> Scan:
        """Return a read of the latest version whenever a query runs, where the files of a scan can
        be chosen then (`Scan.listing`); otherwise of this version.
        """
        return replace(self.scan(), followed=lambda listing: _Followed(self.in_session(listing)))

    def latest_rows(self) -> DataFrame:
        """Return the rows; in an enabled session, as in delta-spark, a query on them reads the
        latest version when it runs.
        """
        if not is_enabled(self.log.spark):
            return self.scan().to_df()
        rows = self.following().to_df()
        engine_of(self.log.spark).mark_rows_of_table(rows, self.path)
        return rows

    def candidates(self, predicate: Predicate | None, columns: Sequence[str] | None = None) -> Scan:
        """Return a read of all rows that may match a predicate, or of all rows without one.

        Rows that do not match may be left out, as far as statistics and conditions that cannot fail
        allow.
        """
        names = None if columns is None else tuple(columns)
        return Scan(self._state, None, names, MAX_DRIVER_FILES, self._checksum, predicate)

    def is_altered_since(self, other: Snapshot) -> bool:
        """Return True if another version has other metadata or another protocol."""
        return self.metadata != other.metadata or self.protocol != other.protocol

    def refresh(self) -> Snapshot:
        """Return the latest version: this snapshot if it is the latest. Only new commits are read.

        A cached state stays in use: later commits are reconciled with it.
        """
        log = self.log
        listed = list_log_files(log.store, listing_prefix(self.version))
        new = [file for file in listed if file.version > self.version]
        last = self.segment.deltas[-1] if self.segment.deltas else None
        is_replaced = last is not None and last.kind is LogFileKind.COMMIT and last not in listed
        if is_replaced or any(file.kind.is_checkpoint for file in new):
            return self._with(load_log(log.spark, log.store, None, log.options))
        if not any(file.kind is LogFileKind.COMMIT for file in new):
            return self
        return self._extended(new)

    def advanced_to(self, version: Version) -> Snapshot:
        """Return a later version, reading only the new commits up to it."""
        new = list_log_files(self.log.store, listing_prefix(self.version + 1))
        return self._extended([f for f in new if f.version <= version and not f.kind.is_checkpoint])

    def at_version(self, version: Version) -> Snapshot:
        """Return any version of the table."""
        if version == self.version:
            return self
        log = self.log
        return self._with(load_log(log.spark, log.store, version, log.options))

    def in_session(self, spark: SparkSession) -> Snapshot:
        """Return this snapshot with its DataFrames in a session; without its cache in another."""
        if spark is self.log.spark:
            return self
        state = replace(self._state, log=self.log.in_session(spark), cached=None)
        return Snapshot(state, self._checksum)

    def _extended(self, new: Sequence[LogFile]) -> Snapshot:
        segment = extend_log_segment(self.segment, new, path=self.path)
        return self._with(extend_log(self.log, segment, self.protocol, self.metadata))

    def _with(self, loaded: LoadedLog) -> Snapshot:
        """Return the snapshot of a later log, with the cached files if they are still usable."""
        log, configuration, cached = _marked(loaded.log), loaded.configuration, self._state.cached
        if cached is not None and not _keeps_cache(configuration, self.configuration, log, cached):
            cached = None
        state = replace(
            self._state,
            log=log,
            configuration=configuration,
            num_files=loaded.num_files,
            cached=cached,
        )
        return Snapshot(state, loaded.checksum)

    def cache(self) -> Snapshot:
        """Return this snapshot with its live files kept in Spark (memory, then disk).

        Repeated planning is faster with it. The frames are those that `Scan.files` returns, without
        the JSON statistics. `uncache` releases them.
        """
        if self._state.cached is not None and self._state.cached.version == self.version:
            return self
        adds = self._state.adds(with_json=False).persist(StorageLevel.MEMORY_AND_DISK)
        cached = CachedAdds(self.version, adds)
        return Snapshot(replace(self._state, cached=cached), self._checksum)

    def uncache(self) -> Snapshot:
        """Return this snapshot without the files that `cache` kept, which Spark releases."""
        if self._state.cached is None:
            return self
        self._state.cached.adds.unpersist()
        return Snapshot(replace(self._state, cached=None), self._checksum)


@dataclass(slots=True)
class _Followed:
    """A table that queries read at its latest version, see `FollowedTable`.

    Attributes
    ----------
    snapshot
        The version that was read last.
    query
        The query that read it.
    """

    snapshot: Snapshot
    query: str | None = None

    def at(self, query: str | None) -> tuple[TableState, VersionChecksum | None]:
        snapshot, path = self.snapshot, self.snapshot.path
        is_same = query is not None and query == self.query
        if not is_same or find_version(str(query), path) != snapshot.version:
            snapshot = snapshot.refresh()
            if query is not None:
                snapshot = snapshot.at_version(version_of_query(query, path, snapshot.version))
            self.snapshot, self.query = snapshot, query
        return snapshot.state, snapshot.version_checksum


def _keeps_cache(
    new: TableConfiguration, old: TableConfiguration, log: LogReader, cached: CachedAdds
) -> bool:
    """Return True if cached files have the new columns and the segment has all later commits."""
    checkpoint = log.segment.checkpoint
    covered = checkpoint is None or checkpoint.version <= cached.version
    return covered and new.statistics == old.statistics and new.partition_keys == old.partition_keys


def open_snapshot(
    spark: SparkSession,
    path: str,
    *,
    version: Version | None = None,
    options: Mapping[str, str] | None = None,
    partition_time_zone: str = UTC,
    shows_progress: bool = False,
    without: Collection[str] = (),
    store: LogStore | None = None,
) -> Snapshot:
    """Load the snapshot of a version, the latest by default.

    Parameters
    ----------
    partition_time_zone
        The time zone of timestamp partition values that have none; for UTC that of the session,
        if delta-spark's interfaces follow one.
    without
        Names of checkpoints, compactions and version checksums to ignore.
    store
        The log's store, if it is open already.
    """
    store = store or open_log(spark, path, options)
    with (
        jobs_of(store.table_root, version),
        progress(spark, f"Loading {store.table_root}", is_on=shows_progress),
    ):
        loaded = load_log(spark, store, version, options or {}, without)
    state = TableState(
        _marked(loaded.log) if version is None else loaded.log,
        loaded.configuration,
        _time_zone(partition_time_zone, loaded.configuration),
        followed_char_types(loaded.configuration.schema),
        loaded.num_files,
        shows_progress=shows_progress,
    )
    return Snapshot(state, loaded.checksum)


def _time_zone(zone: str, configuration: TableConfiguration) -> str:
    """Return the time zone of partition values; the session is asked only if some need one."""
    types = [field.dataType for field in configuration.partition_fields]
    return followed_time_zone() if zone == UTC and TimestampType() in types else zone


def find_snapshot(spark: SparkSession, store: LogStore) -> Snapshot | None:
    """Load the latest snapshot of a table; None if there is no table."""
    try:
        return open_snapshot(spark, store.table_root, store=store)
    except TableNotFoundError:
        return None


def _marked(log: LogReader) -> LogReader:
    """Mark the log's read options with the table and the version."""
    mark = read_mark(log.table_root, log.segment.version)
    return log.with_options({**log.options, **mark})


def check_time_zone(spark: SparkSession, zone: str) -> None:
    """Refuse an invalid time zone, with which every timestamp would seem invalid."""
    if zone == UTC:
        return
    is_known = isinstance(zone, str) and zone.strip() != ""  # which would be the session's
    if is_known:
        answer = spark.sql("VALUES (0)").selectExpr(f"{is_time_zone(zone)} AS is_known")
        is_known = read_row(answer, what="time zone")["is_known"]
    if not is_known:
        problem = f"{zone!r} is not a time zone such as 'Europe/Paris' or '+02:00'"
        raise InvalidArgumentError(argument="partition_time_zone", problem=problem)
