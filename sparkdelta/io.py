"""Our own verbs: reading and writing a table, loading its snapshots, the upkeep of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.commands.checkpoint import checkpoint
from sparkdelta.commands.compact_log import compact_commits
from sparkdelta.commands.verify import Verification, verify_table
from sparkdelta.commands.write import WriteResult, write
from sparkdelta.exceptions import InvalidArgumentError, TimeTravelMultipleFormatsError
from sparkdelta.protocol.table_features import Writing
from sparkdelta.table.checkpoint_contents import ADDS_PER_SIDECAR, Layout
from sparkdelta.table.checkpointer import WrittenCheckpoint
from sparkdelta.table.job_names import jobs_of
from sparkdelta.table.log_compaction import CompactionResult
from sparkdelta.table.metadata_cleanup import CleanupResult, clean_metadata
from sparkdelta.table.scan import MAX_DRIVER_FILES
from sparkdelta.table.snapshot import Snapshot, open_snapshot
from sparkdelta.table.time_travel import version_at_timestamp
from sparkdelta.table.version_checksum import ChecksumResult, add_version_checksum
from sparkdelta.table.writable import open_writable
from sparkdelta.table.write_options import WriteOptions


def read_delta(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
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
        Rows to keep, as SQL text or a Column; files without such rows are not read.
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


def write_delta(
    df: DataFrame,
    path: str,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | None = None,
    replace_where: str | Column | None = None,
    partition_overwrite_mode: str = "static",
    merge_schema: bool = False,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    user_metadata: str | None = None,
    properties: Mapping[str, str] | None = None,
    data_change: bool = True,
    max_records_per_file: int | None = None,
    target_file_size: int | None = None,
    compression: str = "snappy",
) -> WriteResult:
    """Write rows to a Delta table and commit them as one version.

    What a table asks of its writers and is not implemented here (see COMPATIBILITY.md) is refused
    by name before anything is written.

    Parameters
    ----------
    df
        The rows, of a classic session. Columns and fields of structs are matched by name in any
        case, and cast as Spark's store assignment policy ANSI says. A column that they lack is
        generated, has its default, or is null. Each row must keep the table's constraints.
    path
        The table's root, as any path that Spark writes to.
    mode
        ``append``, ``overwrite``, ``error`` or ``ignore``; all of them make a table where there is
        none.
    partition_by
        The partition columns of a new table.
    replace_where
        With `overwrite`: replaces the rows that fulfil this condition, and every new row must
        fulfil it. Files are removed by a condition on partition columns alone, and written again
        without such rows by any other.
    partition_overwrite_mode
        With `overwrite`: ``dynamic`` replaces the partitions that the rows are in, ``static`` all.
    merge_schema
        Whether columns that only the rows have become the table's last ones.
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
        The codec of the data files.

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
    options = WriteOptions(
        mode=mode,
        partition_by=partition_by,
        replace_where=replace_where,
        partition_overwrite_mode=partition_overwrite_mode,
        merge_schema=merge_schema,
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


def load_snapshot(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
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
    _checked(version)
    if timestamp is not None:
        version = version_at_timestamp(spark, path, timestamp)
    return open_snapshot(
        spark,
        path,
        version=version,
        partition_time_zone=partition_time_zone,
        shows_progress=progress,
    )


def write_version_checksum(
    spark: SparkSession, path: str, *, version: int | None = None
) -> ChecksumResult:
    """Write the version checksum (`.crc`) of a version, the latest by default.

    It is computed from the checksum of the version before and the one commit where these tell it
    exactly, else from the state. One that is there already is left alone. Up to 100 transactions,
    10 domains and 50 files are listed in it; a longer list is left out.

    Raises
    ------
    DeltaError
        The log cannot be read, or may not be written by this engine; nothing was written.

    References
    ----------
    PROTOCOL.md#version-checksum-file
    """
    snapshot = open_writable(spark, path, version=_checked(version))
    with jobs_of(snapshot.path, snapshot.version):
        return add_version_checksum(snapshot)


def write_checkpoint(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    kind: str | None = None,
    layout: Layout = "clustered",
    incremental: bool = True,
    adds_per_sidecar: int = ADDS_PER_SIDECAR,
    compression: str = "snappy",
    progress: bool = True,
) -> WrittenCheckpoint:
    """Write the checkpoint of a version: executors do it, nothing of the log passes the driver.

    Parameters
    ----------
    spark
        A classic session.
    path
        The table's root.
    version
        The latest by default.
    kind
        ``classic``; ``v2-json`` or ``v2-parquet``, named by a UUID; or ``v2-classic``. By default
        what the table's ``delta.checkpointPolicy`` says; V2 then means JSON, of which one in a
        hundred versions has the classic name instead, for old clients to see.
    layout
        ``clustered``: files are ordered by partition values, then by their statistics, and a
        condition on them reads a few of the sidecars; ``hash``: files are spread by their paths.
    incremental
        Whether a V2 checkpoint takes over the sidecars of the last one that are still right.
    adds_per_sidecar
        How many files a sidecar of a V2 checkpoint describes, about.
    compression
        A codec of Spark's Parquet writer.
    progress
        Whether a bar is shown where it takes long, see `read_delta`.

    Returns
    -------
    WrittenCheckpoint
        What was written. `is_written` is False where a checkpoint was there that is never
        replaced, or is as good.

    Raises
    ------
    DeltaError
        The table, or its storage, cannot be written by this engine; or what was written does not
        agree with the version (`CheckpointMismatchError`), then nothing is published.

    Examples
    --------
    >>> write_checkpoint(spark, "/data/people").num_adds  # doctest: +SKIP
    3

    References
    ----------
    PROTOCOL.md#checkpoints
    """
    return checkpoint(
        spark,
        path,
        version=_checked(version),
        kind=kind,
        layout=layout,
        incremental=incremental,
        adds_per_sidecar=adds_per_sidecar,
        compression=compression,
        shows_progress=progress,
    )


def compact_log(
    spark: SparkSession, path: str, *, start: int | None = None, end: int | None = None
) -> CompactionResult:
    """Write a log compaction file for the commits from `start` to `end`, both included.

    One Spark job; no action passes the driver beyond what loading a version needs. One that is
    there already is left alone.

    Parameters
    ----------
    start
        By default the version after the newest checkpoint not newer than `end`; with less than two
        commits after it there is nothing to do.
    end
        By default the latest version.

    Raises
    ------
    DeltaError
        The range is none, a commit of it is missing, or the log may not be written by this engine;
        nothing was written.

    References
    ----------
    PROTOCOL.md#log-compaction-files
    """
    return compact_commits(spark, path, start=_checked(start, "start"), end=_checked(end, "end"))


def clean_log(
    spark: SparkSession, path: str, *, dry_run: bool = False, now_ms: int | None = None
) -> CleanupResult:
    """Delete what of the log is older than `delta.logRetentionDuration` and no version within it
    needs: commits, checkpoints, version checksums, compactions and sidecars.

    Nothing goes without a complete checkpoint at or below the newest commit that has expired, or
    where `delta.enableExpiredLogCleanup` is false; the result says why.

    Parameters
    ----------
    dry_run
        Whether only to say what would be deleted.
    now_ms
        The time to count from in milliseconds since the epoch, this moment by default.

    Raises
    ------
    DeltaError
        The log cannot be read, or may not be cleaned by this engine; nothing was deleted.

    References
    ----------
    PROTOCOL.md#metadata-cleanup
    """
    snapshot = open_writable(spark, path, writing=Writing.CLEANUP)
    with jobs_of(snapshot.path, snapshot.version):
        return clean_metadata(snapshot, dry_run=dry_run, now_ms=now_ms)


def verify(
    spark: SparkSession, path: str, *, version: int | None = None, footers: bool = False
) -> Verification:
    """Look for everything in a table that is not as its log says. Nothing is changed.

    The log has every commit; the version can be replayed; its version checksum says what replay
    does; every complete checkpoint agrees with replay of the log before it, as far as that is still
    there; every live data file and deletion vector exists, with the logged size.

    Parameters
    ----------
    version
        The version whose files are looked for, the latest by default; of the log, what is newer is
        left alone.
    footers
        Whether to open every data file and compare its number of rows with `numRecords`.

    Returns
    -------
    Verification
        `is_clean`, the findings as a DataFrame, `as_dict()`; printed, it is a report.

    Raises
    ------
    DeltaError
        There is no table. What is wrong with one is a finding, not an error.

    References
    ----------
    PROTOCOL.md#state-validation
    """
    return verify_table(spark, path, version=_checked(version), footers=footers)


def _checked(version: int | None, argument: str = "version") -> int | None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidArgumentError(argument=argument, problem=f"{version!r} is not a whole number")
    return version
