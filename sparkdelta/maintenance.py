"""Public functions to maintain a table: its data files, and the checkpoints, version checksums,
compactions and cleanup of its log.
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from sparkdelta.commands.checkpoint import checkpoint
from sparkdelta.commands.clean_log import clean_expired
from sparkdelta.commands.compact_log import compact_commits
from sparkdelta.commands.optimize import optimize as optimize_table
from sparkdelta.commands.reorg import reorg as reorg_table
from sparkdelta.commands.verify import Verification, verify_table
from sparkdelta.commands.version_checksum import version_checksum
from sparkdelta.protocol.arguments import checked_count, checked_flag, checked_version
from sparkdelta.table.checkpoint.options import ADDS_PER_SIDECAR, CheckpointOptions, Layout
from sparkdelta.table.checkpoint.writing import WrittenCheckpoint
from sparkdelta.table.maintenance.log_compaction import CompactionResult
from sparkdelta.table.maintenance.metadata_cleanup import CleanupResult
from sparkdelta.table.maintenance.optimization import OptimizeResult
from sparkdelta.table.maintenance.version_checksum import ChecksumResult
from sparkdelta.table.write.expression_arguments import checked_condition


def write_version_checksum(
    spark: SparkSession, path: str, *, version: int | None = None
) -> ChecksumResult:
    """Write the version checksum file (`.crc`) of a version, the latest by default.

    It is derived from the previous version's checksum and the commit if these are sufficient,
    otherwise from the table's state. An existing file is not replaced. Lists of at most 100
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
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> OptimizeResult:
    """Rewrite small files, and files of which more than 5% of the rows are deleted, as fewer
    larger ones. The rows stay as they are, with their row ids; none is shuffled.

    Each commit is of use by itself: a run that fails or is stopped keeps what it committed. Appends
    and changes of other files do not conflict.

    Parameters
    ----------
    where
        Only the partitions that a condition on partition columns is true of.
    target_file_size
        In bytes: smaller files are put together up to it. By default `delta.targetFileSize`, or
        1 GiB.
    max_bytes
        A commit replaces files of about so many bytes, 100 GiB by default; at most 10,000 files.
    dry_run
        True to only report what would be done.

    Returns
    -------
    OptimizeResult
        Versions, files and bytes; its string form is a sentence. Without anything to do there is
        no new version.

    Raises
    ------
    NonPartitionColumnReferenceError
        `where` uses another column.
    ConcurrentDeleteReadException
        Another commit changed or removed one of the files meanwhile.
    WriteNotImplementedError
        The table is clustered, or no rows can be written into it.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    checked_flag(dry_run, "dry_run")
    return optimize_table(
        spark,
        path,
        checked_condition(where, "where"),
        target_file_size=checked_count(target_file_size, "target_file_size"),
        max_bytes=checked_count(max_bytes, "max_bytes"),
        dry_run=dry_run,
    )


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


def verify(
    spark: SparkSession, path: str, *, version: int | None = None, footers: bool = False
) -> Verification:
    """Check a table against its log without changing anything.

    The log must contain every commit and no file of a later version. Every complete checkpoint must
    have its sidecars with the recorded sizes and agree with replay of the log before it, as far as
    that still exists: no file or unexpired tombstone is missing, and no min/max value or typed
    partition value would skip a file that those of the log would not. Every log compaction must
    agree with its commits. The version must be replayable, and its version checksum complete and
    equal to the replayed state. Every live data file must exist with the logged size, and every
    deletion vector must match its descriptor. Replay does not use files with findings.

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
