"""Our own verbs: reading and writing a table, loading its snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.commands.write import WriteResult, write
from sparkdelta.exceptions import InvalidArgumentError, TimeTravelMultipleFormatsError
from sparkdelta.protocol.arguments import checked_version, named_arguments
from sparkdelta.table.log.missing_tables import advised
from sparkdelta.table.log.time_travel import version_at_timestamp
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from sparkdelta.table.snapshot import Snapshot, check_time_zone, open_snapshot
from sparkdelta.table.write.options import WriteOptions


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
    """The rows of a Delta table, pinned to one version.

    Parameters
    ----------
    spark
        A classic or Connect session.
    path
        The table's root, as any path that Spark reads.
    version
        The version to read, the latest by default.
    timestamp
        A moment to read the table as of, instead of `version`; without a zone it is UTC.
    where
        Rows to keep, as SQL text or a Column; files without such rows are not read. It is never
        evaluated on deleted rows, as a later `filter` of files with deletion vectors may be.
    columns
        Columns to return, in this order; all by default. ``_metadata.row_id`` and
        ``_metadata.row_commit_version`` (LONG, returned as ``row_id`` and ``row_commit_version``)
        ask for row tracking.
    partition_time_zone
        The zone of timestamp partition values that were written without one.
    max_driver_files
        The longest list of files that the driver may hold; executors read the files of a longer one
        by themselves, see `Scan.to_df`.
    progress
        Whether a bar is shown once reading the log takes longer than a second; only ever in a
        terminal or notebook, and with rich (``sparkdelta[progress]``).

    Returns
    -------
    DataFrame
        The table's columns in its schema's order and types, all nullable. Lazy, but for one Spark
        job that lists the files.

    Raises
    ------
    DeltaError
        The table is not there, cannot be read by this engine, or its log is broken; see
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
    return snapshot.scan(where, columns, max_driver_files=max_driver_files).to_df()


@named_arguments
def write_delta(
    df: DataFrame,
    path: str,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | None = None,
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

    What a table asks of its writers and is not implemented here (see COMPATIBILITY.md) is refused
    by name before anything is written.

    Parameters
    ----------
    df
        The rows. Columns and fields of structs are matched by name in any case, and cast as Spark's
        store assignment policy ANSI says. A column that they lack is generated, has its default, or
        is null, which a partition column is only where the rows say so. Each row must keep the
        table's constraints. Where they are made from rows of the table itself, what was committed
        since these were read is a conflict.
    path
        The table's root, as any path that Spark writes to.
    mode
        ``append``, ``overwrite``, ``error`` (or ``errorifexists``) or ``ignore``, in any case; all
        of them make a table where there is none.
    partition_by
        The partition columns of a new table.
    replace_where
        With `overwrite`: replaces the rows that fulfil this condition, and every new row must
        fulfil it. Files are removed by a condition on partition columns alone, and written again
        without such rows by any other.
    partition_overwrite_mode
        With `overwrite`: ``dynamic`` replaces the partitions that the rows are in, ``static`` all.
    merge_schema
        Whether columns and nested fields that only the rows have become the table's last ones, and
        wider types of theirs the table's, where it has ``delta.enableTypeWidening``.
    overwrite_schema
        With `overwrite`: the table gets the schema of the rows, and is partitioned by
        `partition_by` or not at all.
    txn_app_id, txn_version
        Name the write, so that it is done once: it is left out if the table has the transaction, or
        a later one of the same application.
    user_metadata
        A text that history keeps.
    properties
        Of a new table.
    data_change
        False says that the write only rearranges rows: readers of changes pass over it.
    max_records_per_file
        The most rows of a data file.
    target_file_size
        In bytes, about: rows are shuffled so that each partition gets a file for so many. Where the
        table's `delta.autoOptimize.optimizeWrite` is true, it is `delta.targetFileSize` or 128 MB.
        Not for rows with new identity values.
    compression
        The codec of the data files; by default the one of `delta.parquet.compression.codec`, else
        snappy.

    Returns
    -------
    WriteResult
        version (None where there was nothing to do), num_files, num_rows, num_bytes, retries,
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
    """A table at one version: its protocol, metadata, and state as DataFrames.

    Parameters and errors are those of `read_delta`.

    References
    ----------
    PROTOCOL.md#action-reconciliation
    """
    if version is not None and timestamp is not None:
        raise TimeTravelMultipleFormatsError()
    checked_version(version)
    check_time_zone(spark, partition_time_zone)
    with advised(spark, path):
        if timestamp is not None:
            version = version_at_timestamp(spark, path, timestamp)
        return open_snapshot(
            spark,
            path,
            version=version,
            partition_time_zone=partition_time_zone,
            shows_progress=progress,
        )
