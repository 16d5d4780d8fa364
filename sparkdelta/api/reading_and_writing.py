"""Public functions to read and write tables and to load snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.arguments import (
    checked_count,
    checked_flag,
    checked_names,
    checked_version,
    named_arguments,
)
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.changes.read_changes import ChangeOptions
from sparkdelta.operations.changes.read_changes import read_changes as read_changes_of
from sparkdelta.operations.write.write import WriteResult, write
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.log.change_range import ChangeBounds
from sparkdelta.table.log.time_travel import version_at_timestamp
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from sparkdelta.table.snapshot.snapshot import Snapshot, check_time_zone, open_snapshot


@named_arguments
def read_delta(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    where: str | Column | None = None,
    columns: list[str] | None = None,
    partition_time_zone: str = "UTC",
    max_driver_files: int = MAX_DRIVER_FILES,
    progress: bool = True,
) -> DataFrame:
    """Return the rows of one version of a Delta table.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    path
        The table's root, as any path that Spark can read.
    version
        The version to read; the latest by default.
    timestamp
        Read the latest version at this time, instead of `version`. A time without a time zone is in
        UTC.
    where
        Condition on the rows to return, as SQL text or a Column; files that cannot contain such
        rows are not read. They are listed at once, so that Spark plans with their size. Unlike a
        later `filter`, it is never evaluated on rows that a deletion vector marks as deleted.
    columns
        Columns to return, in this order; all by default. ``_metadata.row_id`` and
        ``_metadata.row_commit_version`` (LONG, returned as ``row_id`` and ``row_commit_version``)
        return the row tracking columns.
    partition_time_zone
        Time zone of timestamp partition values that were written without one.
    max_driver_files
        Maximum length of a file list on the driver; executors read the files of a longer list, see
        `Scan.to_df`.
    progress
        True to show a progress bar if reading the log takes longer than a second, in a terminal or
        notebook with rich installed (``sparkdelta[progress]``).

    Returns
    -------
    DataFrame
        The table's columns in schema order, all nullable unless the session is enabled. Lazy: all
        filters of a query choose its files when it runs, or one Spark job lists them before; see
        `Scan.report`.

    Raises
    ------
    DeltaError
        The table does not exist, cannot be read by this engine, or has a corrupt log; see
        `sparkdelta.exceptions`.

    Examples
    --------
    >>> read_delta(spark, "/data/people", version=3, where="age > 40").show()  # doctest: +SKIP
    """
    snapshot = load_snapshot(
        spark,
        path,
        version=version,
        timestamp=timestamp,
        partition_time_zone=partition_time_zone,
        progress=progress,
    )
    rows = snapshot.scan(where, columns, max_driver_files=max_driver_files).to_df()
    if is_enabled(spark):
        engine_of(spark).mark_rows_of_table(rows, snapshot.path, snapshot.version)
    return rows


@named_arguments
def read_changes(
    spark: SparkSession,
    path: str,
    *,
    start_version: int | None = None,
    end_version: int | None = None,
    start_timestamp: str | datetime | date | None = None,
    end_timestamp: str | datetime | date | None = None,
    where: str | Column | None = None,
    columns: list[str] | None = None,
    net: bool = False,
    partition_time_zone: str = "UTC",
    max_driver_files: int = MAX_DRIVER_FILES,
    progress: bool = True,
) -> DataFrame:
    """Return the rows that a range of commits inserted, updated or deleted (change data feed).

    ``delta.enableChangeDataFeed`` must have been true in all of the range, but for `net`.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    path
        The table's root, as any path that Spark can read.
    start_version, start_timestamp
        The first version, or a time: the first version at or after it. One of the two is required.
    end_version, end_timestamp
        The last version, or a time: the last version at or before it. By default, and after the
        latest version, the latest. Times between two commits select no changes.
    where
        Condition on the changes, which may name the columns below: SQL text or a Column. Files that
        cannot contain such rows are not read.
    columns
        Columns to return, in this order; all by default.
    net
        True for the rows that differ between the version before the first and the last one, with
        no regard to those between. Only files and deletion vectors that differ are read. Rows are
        compared by their row ids if both versions track rows, else by all of their values and as
        often as they occur, so that a changed row is a delete and an insert. `where` and `columns`
        choose rows and columns before they are compared, and name columns of the table.
    partition_time_zone, max_driver_files, progress
        As of `read_delta`.

    Returns
    -------
    DataFrame
        The table's columns in schema order, then _change_type STRING (``insert``,
        ``update_preimage``, ``update_postimage``, ``delete``), _commit_version LONG and
        _commit_timestamp TIMESTAMP. Lazy, except for one Spark job that lists the files.
        With `net`, _change_type alone, whose metadata have ``sparkdelta.comparedBy``: ``row_id`` or
        ``values``.

    Raises
    ------
    DELTA_MISSING_CHANGE_DATA
        Changes were not recorded at some version of the range.
    DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE
        Columns were renamed, dropped or changed within the range, or since.
    DeltaError
        Bounds are missing, contradictory or not in the log, or the table cannot be read; see
        `sparkdelta.exceptions`.

    Examples
    --------
    >>> read_changes(spark, "/data/people", start_version=3).show()  # doctest: +SKIP

    References
    ----------
    PROTOCOL.md#change-data-files
    """
    bounds = ChangeBounds(start_version, end_version, start_timestamp, end_timestamp)
    bound = checked_count(max_driver_files, "max_driver_files", least=0)
    options = ChangeOptions(
        where=where,
        columns=checked_names(columns, "columns"),
        partition_time_zone=partition_time_zone,
        max_driver_files=MAX_DRIVER_FILES if bound is None else bound,
        shows_progress=progress,
        net=checked_flag(net, "net"),
    )
    check_time_zone(spark, partition_time_zone)
    with with_not_found_hint(spark, path):
        return read_changes_of(spark, path, bounds, options)


@named_arguments
def write_delta(
    df: DataFrame,
    path: str,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | None = None,
    cluster_by: Sequence[str] | None = None,
    replace_where: str | Column | None = None,
    partition_overwrite_mode: str = "static",
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    user_metadata: str | None = None,
    properties: Mapping[str, str] | None = None,
    data_change: bool = True,
    max_records_per_file: int | None = None,
    target_file_size: int | None = None,
    compression: str | None = None,
) -> WriteResult:
    """Write rows to a Delta table and commit them as one version.

    If the table requires a writer feature that is not implemented (see COMPATIBILITY.md), an error
    names it before anything is written.

    Parameters
    ----------
    df
        The rows. Columns and struct fields are matched by name, ignoring case, and cast by Spark's
        ANSI store assignment policy. A missing column is generated, set to its default value, or
        null, but a missing partition column that would be null is an error. Each row must satisfy
        the table's constraints. If the rows are computed from the table itself, any commit since
        that version was read is a conflict.
    path
        The table's root, as any path that Spark can write to.
    mode
        ``append``, ``overwrite``, ``error`` (or ``errorifexists``) or ``ignore``, in any case; all
        of them create a table that does not exist.
    partition_by
        Partition columns of a new table.
    cluster_by
        Clustering columns of a new table, at most four; nested ones with dots.
    replace_where
        With `overwrite`: replaces only the rows that match this condition. Every new row must match
        it, also if the table is new. With a condition on partition columns only, whole files are
        removed; otherwise files with matching rows are rewritten.
    partition_overwrite_mode
        With `overwrite`: ``dynamic`` replaces only the partitions of the new rows, ``static`` the
        whole table.
    merge_schema
        True to append columns and nested fields that only the rows have to the table's schema, and
        to widen its types to the rows' types if ``delta.enableTypeWidening`` is set.
    overwrite_schema
        With `overwrite`: replaces the table's schema by the rows' schema, and its partitioning by
        `partition_by`.
    txn_app_id, txn_version
        Make the write idempotent: it is skipped if the table contains this transaction or a later
        one of the same application.
    user_metadata
        A string for the table's history.
    properties
        Properties of a new table.
    data_change
        False if the write only rearranges existing rows, so that readers of changes can ignore it.
    max_records_per_file
        Maximum number of rows of a data file.
    target_file_size
        Approximate size of data files in bytes; rows are shuffled by partition to reach it. If the
        table sets `delta.autoOptimize.optimizeWrite`, the default is `delta.targetFileSize` or 128
        MB. Not supported for rows with new identity values.
    compression
        Compression codec of the data files; by default `delta.parquet.compression.codec` or zstd.

    Returns
    -------
    WriteResult
        version (None if nothing was committed), num_files, num_rows, num_bytes, retries,
        milliseconds.

    Raises
    ------
    DeltaError
        Nothing was committed, unless it is a `CommitOutcomeUnknownError`; see
        `sparkdelta.exceptions`.

    Examples
    --------
    >>> write_delta(people, "/data/people", mode="append").version  # doctest: +SKIP
    4

    References
    ----------
    PROTOCOL.md#delta-table-specification
    """
    if not isinstance(df, DataFrame):
        problem = (
            f"{type(df).__name__} is not a Spark DataFrame; convert it with spark.createDataFrame"
        )
        raise InvalidArgumentError(argument="df", problem=problem)
    options = WriteOptions.spelled(
        mode=mode,
        partition_by=partition_by,
        cluster_by=cluster_by,
        replace_where=replace_where,
        partition_overwrite_mode=partition_overwrite_mode,
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        txn_app_id=txn_app_id,
        txn_version=txn_version,
        user_metadata=user_metadata,
        properties=properties or {},
        data_change=data_change,
        max_records_per_file=max_records_per_file,
        target_file_size=target_file_size,
        compression=compression,
    )
    return write(df, path, options)


def latest_version(spark: SparkSession, path: str) -> DataFrame:
    """Return the rows of the latest version of a table: in an enabled session, as in delta-spark,
    of the latest version whenever a query runs.
    """
    return load_snapshot(spark, path).latest_rows()


@named_arguments
def load_snapshot(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    partition_time_zone: str = "UTC",
    progress: bool = True,
) -> Snapshot:
    """Return a table at one version: its protocol, metadata, and state as DataFrames.

    Parameters and errors are the same as for `read_delta`.

    References
    ----------
    PROTOCOL.md#action-reconciliation
    """
    if version is not None and timestamp is not None:
        raise DeltaError.of("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS")
    checked_version(version)
    check_time_zone(spark, partition_time_zone)
    with with_not_found_hint(spark, path):
        if timestamp is not None:
            version = version_at_timestamp(spark, path, timestamp)
        return open_snapshot(
            spark,
            path,
            version=version,
            partition_time_zone=partition_time_zone,
            shows_progress=progress,
        )
