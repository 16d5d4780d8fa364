"""The rows that a range of commits changed: commit by commit, or as net changes.

References
----------
PROTOCOL.md#change-data-files, PROTOCOL.md#row-tracking
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.actions import Metadata
from sparkdelta.base.protocol.change_types import CHANGE_COLUMNS, CHANGE_TYPE
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.table_properties import ENABLE_CHANGE_DATA_FEED, is_on
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, VersionNotFoundError
from sparkdelta.operations.changes.net_row_frames import (
    KIND,
    ROW_ID,
    changed_by_row_id,
    changed_by_values,
    incomparable_columns,
)
from sparkdelta.operations.changes.net_scan import (
    NetFileChanges,
    has_files_without_row_ids,
    with_kind,
)
from sparkdelta.table.listing.listing import list_log_files, open_log
from sparkdelta.table.listing.log_segment_rules import commits_between, readable_commits
from sparkdelta.table.log.change_range import ChangeBounds
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.commit_times import CommitHistory, commit_times
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.file_changes import CommitFileChanges, with_change_columns
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """The arguments of `sparkdelta.read_changes` besides the bounds."""

    where: str | Column | None
    columns: tuple[str, ...] | None
    partition_time_zone: str
    max_driver_files: int
    shows_progress: bool
    net: bool = False


def read_changes(
    spark: SparkSession, path: str, bounds: ChangeBounds, options: ChangeOptions
) -> DataFrame:
    """Return the changed rows of a range of commits; see `sparkdelta.read_changes`.

    The rows have `CHANGE_COLUMNS`; net changes have only CHANGE_TYPE.
    """
    store = open_log(spark, path)
    latest = open_snapshot(
        spark,
        path,
        partition_time_zone=options.partition_time_zone,
        shows_progress=options.shows_progress,
        store=store,
    )
    listing = [file for file in list_log_files(store) if file.version <= latest.version]
    commits = readable_commits(listing, path=latest.path)
    in_commit = latest.configuration.in_commit_timestamps
    versions = bounds.versions(CommitHistory(spark, store, commits, in_commit))
    if options.net:
        return _net_changes(latest, versions, options)
    if versions is None:
        schema = with_change_columns(latest.configuration).schema
        return empty_frame(spark, schema)
    start, end = versions
    before = latest if start == latest.version else open_snapshot(spark, path, version=start)
    if start < commits[0].version:
        earliest = commits[0].version
        raise VersionNotFoundError(
            version=start, earliest=earliest, latest=latest.version, path=latest.path
        )
    in_range = CommitRange.read(
        latest.log.reader, commits_between(listing, start, end, path=latest.path)
    )
    configuration = _checked_configuration(latest, before, in_range, end)
    state = replace(latest.state, configuration=with_change_columns(configuration), cached=None)
    times = commit_times(commits, in_commit).slice(start - commits[0].version, end - start + 1)
    return Scan(
        state,
        options.where,
        options.columns,
        options.max_driver_files,
        changes=CommitFileChanges(commits=in_range, times=times),
    ).to_df()


def _net_changes(
    latest: Snapshot, versions: tuple[Version, Version] | None, options: ChangeOptions
) -> DataFrame:
    """Return the rows that differ before and after a range of versions, which may be empty."""
    start, end = versions or (latest.version + 1, latest.version)
    if start < 0:
        raise VersionNotFoundError(
            version=start, earliest=0, latest=latest.version, path=latest.path
        )
    before, after = (_as_of(latest, version, options) for version in (start - 1, end))
    assert after is not None
    configuration = after.configuration
    if CHANGE_TYPE in {name_key(name) for name in after.schema.names}:
        raise DeltaError.of("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", columns=(CHANGE_TYPE,))
    if before is not None and not configuration.reads_rows_of(before.metadata, path=after.path):
        raise DeltaError.of(
            "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
            path=after.path,
            start=start,
            end=end,
            version=start - 1,
            schema_version=end,
            read_schema=configuration.schema.json(),
        )
    scan = Scan(
        replace(after.state, configuration=with_kind(configuration), cached=None),
        options.where,
        None,
        options.max_driver_files,
        changes=NetFileChanges(
            before=None if before is None else before.state,
            after=after.state,
            max_driver_files=options.max_driver_files,
        ),
    )
    names = options.columns or tuple(map(quoted, after.schema.names))
    if any(name_key(name).startswith("_metadata.") for name in names):
        problem = "net changes have no metadata columns"
        raise InvalidArgumentError(argument="columns", problem=problem)
    is_tracked = configuration.row_tracking.enabled and (
        before is None or before.configuration.row_tracking.enabled
    )
    scan = scan.with_given_files(tracks_rows=True) if is_tracked else scan
    by_row_id = is_tracked and not has_files_without_row_ids(scan.given_files)
    tracking = ("_metadata.row_id",) if by_row_id else ()
    rows = replace(scan, columns=(*names, KIND, *tracking)).to_df()
    fields = rows.schema.fields[: len(names)]
    incomparable = incomparable_columns(fields)
    if incomparable:
        problem = f"values of {', '.join(incomparable)} cannot be compared; name the other columns "
        problem += "in columns"
        raise InvalidArgumentError(argument="net", problem=problem)
    if by_row_id:
        return changed_by_row_id(rows.withColumnRenamed("row_id", ROW_ID), fields)
    return changed_by_values(rows, fields)


def _as_of(latest: Snapshot, version: Version, options: ChangeOptions) -> Snapshot | None:
    """Load the snapshot of a version; return None before the first version."""
    if version < 0:
        return None
    if version == latest.version:
        return latest
    return open_snapshot(
        latest.log.spark,
        latest.path,
        version=version,
        store=latest.log.store,
        partition_time_zone=options.partition_time_zone,
    )


def _checked_configuration(
    latest: Snapshot, opening: Snapshot, commits: CommitRange, end: Version
) -> TableConfiguration:
    """Return the configuration whose schema the changes of commits are read with.

    It is the latest version's, or the last of the range if columns are mapped, as names may have
    changed since. `opening` is the snapshot of the first version.
    """
    path, start = latest.path, opening.version
    metadata = _metadata_of_range(opening, commits)
    for version, each in metadata:
        if not is_on(each.configuration, ENABLE_CHANGE_DATA_FEED):
            raise DeltaError.of(
                "DELTA_MISSING_CHANGE_DATA", path=path, start=start, end=end, version=version
            )
    read = latest
    if end < read.version and (read.configuration.is_mapped or opening.configuration.is_mapped):
        zone = read.state.partition_time_zone
        read = open_snapshot(latest.log.spark, path, version=end, partition_time_zone=zone)
    configuration = read.configuration
    taken = {name_key(name) for name in configuration.schema.names}
    doubled = tuple(name for name in CHANGE_COLUMNS if name in taken)
    if doubled:
        raise DeltaError.of("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", columns=doubled)
    for version, each in metadata:
        if not configuration.reads_rows_of(each, path=path):
            raise DeltaError.of(
                "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
                if version == start
                else "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                path=path,
                start=start,
                end=end,
                version=version,
                schema_version=read.version,
                read_schema=configuration.schema.json(),
            )
    return configuration


def _metadata_of_range(opening: Snapshot, commits: CommitRange) -> list[tuple[Version, Metadata]]:
    """Read version and metaData of the first version and of the versions that changed it."""
    changed = {
        each["version"]: Metadata.from_dict(each["metaData"])
        for each in commits.read_table_actions(bound=2 * len(commits.files))
        if each["metaData"] is not None
    }
    return sorted({**changed, opening.version: opening.metadata}.items())
