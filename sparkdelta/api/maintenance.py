"""Public functions to maintain a table: its data files, and the checkpoints, version checksums,
compactions and cleanup of its log.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.arguments import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_names,
    checked_number,
    checked_version,
)
from sparkdelta.base.protocol.z_cubes import MAX_ZCUBE_BYTES, MIN_ZCUBE_BYTES
from sparkdelta.operations.checkpoint.checkpoint_command import checkpoint
from sparkdelta.operations.checkpoint.checkpoint_options import (
    ADDS_PER_SIDECAR,
    CheckpointOptions,
    Layout,
)
from sparkdelta.operations.checkpoint.checkpoint_writing import WrittenCheckpoint
from sparkdelta.operations.compaction.compaction import MAX_COMMIT_BYTES
from sparkdelta.operations.compaction.optimization import OptimizeRequest, OptimizeResult
from sparkdelta.operations.optimize.optimize import optimize as optimize_table
from sparkdelta.operations.optimize.reorg import reorg as reorg_table
from sparkdelta.operations.upkeep.checksum_command import version_checksum
from sparkdelta.operations.upkeep.checksum_writing import ChecksumResult
from sparkdelta.operations.upkeep.clean_log import clean_expired
from sparkdelta.operations.upkeep.compact_log import compact_commits
from sparkdelta.operations.upkeep.log_compaction import CompactionResult
from sparkdelta.operations.upkeep.metadata_cleanup import CleanupResult
from sparkdelta.operations.vacuum.vacuum import FULL, LITE, VacuumOptions, VacuumResult
from sparkdelta.operations.vacuum.vacuum import vacuum as vacuum_table
from sparkdelta.operations.verify.recompute_statistics import StatisticsResult
from sparkdelta.operations.verify.recompute_statistics import recompute_statistics as recompute
from sparkdelta.operations.verify.repair import RepairResult
from sparkdelta.operations.verify.repair import repair as repair_table
from sparkdelta.operations.verify.verification import Verification
from sparkdelta.operations.verify.verify import verify_table
from sparkdelta.table.rows.expression_arguments import checked_condition


def write_version_checksum(
    spark: SparkSession, path: str, *, version: int | None = None
) -> ChecksumResult:
    """Write the version checksum file (`.crc`) of a version, the latest by default.

    It is derived from the previous version's checksum and the commit if these are sufficient,
    otherwise from the table's state. An existing file is not replaced, unless its `txnId` or
    in-commit timestamp is that of another commit, which was taken back. Lists of at most 100
    transactions, 10 domains and 50 files are included; longer lists are omitted.

    Raises
    ------
    DeltaError
        The log cannot be read, or this engine cannot write it; nothing was written.

    References
    ----------
    PROTOCOL.md#version-checksum-file
    """
    return version_checksum(spark, path, version=checked_version(version))


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
    """Write the checkpoint of a version. Executors write it; the actions do not pass through the
    driver.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    path
        The table's root.
    version
        The latest by default.
    kind
        ``classic``, or ``v2-json`` or ``v2-parquet`` with a UUID in the name, or ``v2-classic``.
        The default follows the table's ``delta.checkpointPolicy``; for V2 it is JSON, and one in a
        hundred versions has the classic name, so that old clients find it.
    layout
        ``clustered`` orders files by partition values and then by statistics, so that a condition
        on these reads only a few sidecars; ``hash`` distributes files by path.
    incremental
        True if a V2 checkpoint reuses the unchanged sidecars of the previous one.
    adds_per_sidecar
        Approximate number of files in a sidecar of a V2 checkpoint.
    compression
        A compression codec of Spark's Parquet writer.
    progress
        True to show a progress bar, see `read_delta`.

    Returns
    -------
    WrittenCheckpoint
        The written checkpoint. `is_written` is False if an equivalent checkpoint, or one that is
        never replaced, already exists.

    Raises
    ------
    DeltaError
        This engine cannot write the table or its storage, or the written files do not match the
        version (`CheckpointMismatchError`); nothing is published.

    Examples
    --------
    >>> write_checkpoint(spark, "/data/people").num_adds  # doctest: +SKIP
    3

    References
    ----------
    PROTOCOL.md#checkpoints
    """
    options = CheckpointOptions(
        kind=kind,
        layout=layout,
        incremental=incremental,
        adds_per_sidecar=adds_per_sidecar,
        compression=compression,
    )
    version = checked_version(version)
    return checkpoint(spark, path, options, version=version, shows_progress=progress)


def compact_log(
    spark: SparkSession, path: str, *, start: int | None = None, end: int | None = None
) -> CompactionResult:
    """Write a log compaction file for the commits from `start` to `end`, both inclusive.

    Takes one Spark job; on the driver, only the actions needed to load a version are collected. An
    existing file is not replaced.

    Parameters
    ----------
    start
        The first version; by default the one after the newest checkpoint at or before `end`. With
        the default, nothing is written for fewer than two commits.
    end
        The last version; by default the latest.

    Raises
    ------
    DeltaError
        The range is empty, a commit is missing, or this engine cannot write the log; nothing was
        written.

    References
    ----------
    PROTOCOL.md#log-compaction-files
    """
    return compact_commits(
        spark, path, start=checked_version(start, "start"), end=checked_version(end, "end")
    )


def clean_log(
    spark: SparkSession, path: str, *, dry_run: bool = False, now_ms: int | None = None
) -> CleanupResult:
    """Delete log files that are older than `delta.logRetentionDuration` and not needed by a version
    within that time: commits, checkpoints, version checksums, log compactions and sidecars.

    Nothing is deleted without a complete checkpoint at or below the newest expired commit, or if
    `delta.enableExpiredLogCleanup` is false; the result contains the reason.

    Parameters
    ----------
    dry_run
        True to only report the files that would be deleted.
    now_ms
        The time in milliseconds since the epoch from which retention is counted; the current time
        by default.

    Raises
    ------
    DeltaError
        The log cannot be read, or this engine cannot clean it; nothing was deleted.

    References
    ----------
    PROTOCOL.md#metadata-cleanup
    """
    checked_flag(dry_run, "dry_run")
    return clean_expired(spark, path, dry_run=dry_run, now_ms=now_ms)


def optimize(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    zorder_by: Sequence[str] | None = None,
    full: bool = False,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    min_cube_size: int | None = None,
    max_cube_size: int | None = None,
    dry_run: bool = False,
) -> OptimizeResult:
    """Rewrite files as fewer larger ones. The rows stay as they are, with their row ids.

    Small files, and files of which more than 5% of the rows are deleted, are put together; no row
    is shuffled. With `zorder_by`, all files are rewritten, with the rows of each partition in
    Z-order, so that queries on these columns read few files. A clustered table is clustered by its
    own columns: new files and small Z-cubes become larger Z-cubes in Hilbert order, and large
    Z-cubes stay as they are.

    Each commit is of use by itself: a run that fails or is stopped keeps what it committed. Appends
    and changes of other files do not conflict.

    Parameters
    ----------
    where
        Only the partitions that a condition on partition columns is true of.
    zorder_by
        Names of data columns with statistics.
    full
        True to cluster those files of a clustered table again that are clustered by other columns.
    target_file_size
        Of new files in bytes. By default `delta.targetFileSize`, or 1 GiB.
    max_bytes
        A commit replaces files of about so many bytes, 100 GiB by default; at most 10,000 files. It
        replaces a whole partition in Z-order, or a whole Z-cube, up to 100,000 files.
    min_cube_size, max_cube_size
        A Z-cube of `min_cube_size` bytes is left alone, 100 GiB by default; new ones have up to
        `max_cube_size`, 150 GiB.
    dry_run
        True to only report what would be done.

    Returns
    -------
    OptimizeResult
        Versions, files and bytes; its string form is a sentence. Without anything to do there is
        no new version.

    Raises
    ------
    NonPartitionColumnReferenceError, ClusteredTablePredicateError
        `where` uses another column, or the table is clustered.
    ZOrderingOnPartitionColumnError, ZOrderingColumnNotFoundError, ZOrderingWithoutStatisticsError
        Rows cannot be put in the order of one of the columns.
    ClusteredTableZOrderError, OptimizeFullError
        `zorder_by` is for tables that are not clustered, `full` for those that are.
    ConcurrentDeleteReadException
        Another commit changed or removed one of the files meanwhile.
    WriteNotImplementedError
        No rows can be written into the table.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
    PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#clustered-table
    """
    checked_flag(full, "full")
    checked_flag(dry_run, "dry_run")
    request = OptimizeRequest(
        target_file_size=checked_count(target_file_size, "target_file_size"),
        max_bytes=checked_count(max_bytes, "max_bytes") or MAX_COMMIT_BYTES,
        zorder_by=checked_names(zorder_by, "zorder_by") or (),
        is_full=full,
        min_cube_size=checked_count(min_cube_size, "min_cube_size") or MIN_ZCUBE_BYTES,
        max_cube_size=checked_count(max_cube_size, "max_cube_size") or MAX_ZCUBE_BYTES,
        dry_run=dry_run,
    )
    return optimize_table(spark, path, checked_condition(where, "where"), request)


def reorg(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> OptimizeResult:
    """Purge a table (``REORG TABLE ... APPLY (PURGE)``): rewrite all files with deleted rows, and
    all that hold a column or nested field that was dropped from the table.

    The rows stay as they are, with their row ids. The old files can be read by time travel until
    they are vacuumed. Reads the footer of each file, on the executors.

    Parameters
    ----------
    where, target_file_size, max_bytes, dry_run
        See `optimize`.

    Returns
    -------
    OptimizeResult
        Versions, files and bytes. Without anything to do there is no new version.

    Raises
    ------
    NonPartitionColumnReferenceError
        `where` uses another column than those of partitions.
    ConcurrentDeleteReadException
        Another commit changed or removed one of the files meanwhile.

    References
    ----------
    PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping
    """
    checked_flag(dry_run, "dry_run")
    return reorg_table(
        spark,
        path,
        checked_condition(where, "where"),
        target_file_size=checked_count(target_file_size, "target_file_size"),
        max_bytes=checked_count(max_bytes, "max_bytes"),
        dry_run=dry_run,
    )


def vacuum(
    spark: SparkSession,
    path: str,
    *,
    retention_hours: float | None = None,
    mode: str = FULL,
    dry_run: bool = False,
    inventory: DataFrame | None = None,
    check_retention: bool = True,
    deletes_per_second: float | None = None,
    log_runs: bool | None = None,
    progress: bool = True,
) -> VacuumResult:
    """Delete the files below a table's root that no version within the retention period needs, and
    directories that are empty.

    Kept are the files of the latest version, those that were removed within the retention period,
    the deletion vectors of both, everything younger than the retention period, and files and
    directories whose names begin with ``_`` or ``.``, except for partition directories, change
    data, indexes and what a write of this package left when its process was killed. Symbolic links
    are not followed, and nothing outside the root is deleted. Earlier versions can no longer be
    read afterwards.

    Parameters
    ----------
    retention_hours
        The retention period; by default `delta.deletedFileRetentionDuration`, or a week.
    mode
        ``full`` lists all files below the root. ``lite`` deletes only what commits since the last
        run removed, by the log: it takes as long as there are such files, and leaves those of
        failed writes.
    dry_run
        True to only tell what would be deleted.
    inventory
        The files below the root, such as an inventory of an object store, instead of a listing:
        path STRING (absolute), length LONG, isDir BOOLEAN, modificationTime LONG (milliseconds
        since the epoch).
    check_retention
        False to allow a retention period that is shorter than the table's, for a table that nobody
        reads or writes meanwhile.
    deletes_per_second
        The most deletions per second.
    log_runs
        True to commit the versions `VACUUM START` and `VACUUM END`; by default where delta-spark
        does: not on S3.
    progress
        True to show a progress bar, see `read_delta`.

    Returns
    -------
    VacuumResult
        The deleted files, and the kept ones by reason; its string form is a report.

    Raises
    ------
    VacuumRetentionTooShortError, VacuumRetentionNegativeError
        The retention period is shorter than the table's, or negative.
    InvalidInventoryError
        A column of the inventory is missing or of another type.
    UnsupportedWriterFeaturesError
        The table has a feature that is not implemented.
    StorageError
        Files could not be listed, and nothing was deleted; or some could not be deleted.

    Examples
    --------
    >>> print(vacuum(spark, "/data/people", dry_run=True))  # doctest: +SKIP

    References
    ----------
    PROTOCOL.md#data-files, PROTOCOL.md#vacuum-protocol-check
    """
    options = VacuumOptions(
        retention_hours=checked_number(retention_hours, "retention_hours"),
        mode=checked_choice(mode, "mode", (FULL, LITE)),
        dry_run=checked_flag(dry_run, "dry_run"),
        inventory=inventory,
        check_retention=checked_flag(check_retention, "check_retention"),
        deletes_per_second=checked_number(deletes_per_second, "deletes_per_second", above=0),
        log_runs=None if log_runs is None else checked_flag(log_runs, "log_runs"),
        shows_progress=progress,
    )
    return vacuum_table(spark, path, options)


def verify(
    spark: SparkSession, path: str, *, version: int | None = None, footers: bool = False
) -> Verification:
    """Check a table against its log without changing anything.

    The log must contain every commit and no file of a later version. Every complete checkpoint must
    have its sidecars with the recorded sizes and agree with replay of the log before it, as far as
    that still exists: no file or unexpired tombstone is missing, and no min/max value or typed
    partition value would skip a file that those of the log would not. Every log compaction must
    agree with its commits. Where a version checksum agrees with a checkpoint or compaction and not
    with the commits, the commits are what is reported. The version must be replayable, and its
    version checksum complete and equal to the replayed state. Every live data file must exist with
    the logged size, and every deletion vector must match its descriptor. Replay does not use
    checkpoints and compactions with findings.

    Parameters
    ----------
    version
        The version whose data files are checked; the latest by default. Log files of later versions
        are ignored.
    footers
        True to open every data file and compare its number of rows with `numRecords`, and the
        bounds and null counts of its columns with the log.

    Returns
    -------
    Verification
        `is_clean`, the findings as a DataFrame, and `as_dict()`; its string form is a report.

    Raises
    ------
    DeltaError
        The table does not exist. Problems of an existing table are findings, not errors.

    References
    ----------
    PROTOCOL.md#state-validation
    """
    checked_flag(footers, "footers")
    return verify_table(spark, path, version=checked_version(version), footers=footers)


def repair(spark: SparkSession, path: str, *, dry_run: bool = True) -> RepairResult:
    """Mend what `verify` finds wrong with a table, as far as no row can be lost by it.

    Checkpoints and log compactions that differ from the commits, or cannot be read, are put aside
    under other names, if their versions can be read without them. They stay where a version
    checksum agrees with them and not with the commits. A wrong `_last_checkpoint` is deleted; after
    either, a new checkpoint is written. If that fails, the files get their names back. A wrong
    version checksum of the latest version is computed again from all of the state. Data files that
    do not exist are removed from the table by a commit with the operation `FSCK`, unless none
    exists, or the table is append-only.

    Other problems are left as they are: data files of another size, missing or damaged deletion
    vectors, without which deleted rows would come back, and commits.

    Parameters
    ----------
    dry_run
        False to carry it out; by default it is only reported.

    Returns
    -------
    RepairResult
        The mended problems and those that are left; its string form is a report.

    Raises
    ------
    DeltaError
        The latest version cannot be read, or the table cannot be written.

    References
    ----------
    PROTOCOL.md#checkpoints, PROTOCOL.md#version-checksum-file, PROTOCOL.md#last-checkpoint-file
    """
    return repair_table(spark, path, dry_run=checked_flag(dry_run, "dry_run"))


def recompute_statistics(
    spark: SparkSession,
    path: str,
    *,
    where: str | Column | None = None,
    columns: Sequence[str] | None = None,
) -> StatisticsResult:
    """Commit the statistics of files as their footers tell them, for files that have none or wrong
    ones. No row is read.

    Files with deletion vectors get wide bounds. Bounds that a footer does not tell are left out.

    Parameters
    ----------
    where
        Only the partitions that a condition on partition columns is true of.
    columns
        Columns, or fields such as ``s.x``, whose statistics are computed while those of others stay
        as they are. By default the columns with statistics of the table's properties; other columns
        then have none.

    Returns
    -------
    StatisticsResult
        The version, and the number of files.

    Raises
    ------
    NonPartitionColumnReferenceError
        `where` uses another column.
    ColumnNotFoundError
        A column does not exist.
    ConcurrentDeleteReadException
        Another commit changed or removed one of the files meanwhile.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    return recompute(
        spark, path, checked_condition(where, "where"), checked_names(columns, "columns")
    )
