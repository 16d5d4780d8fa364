"""Our own verbs for the upkeep of a table's log: checkpoints, checksums, compaction, cleanup."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.commands.checkpoint import checkpoint
from sparkdelta.commands.clean_log import clean_expired
from sparkdelta.commands.compact_log import compact_commits
from sparkdelta.commands.verify import Verification, verify_table
from sparkdelta.commands.version_checksum import version_checksum
from sparkdelta.protocol.arguments import checked_flag, checked_version
from sparkdelta.table.checkpoint.options import ADDS_PER_SIDECAR, CheckpointOptions, Layout
from sparkdelta.table.checkpoint.writing import WrittenCheckpoint
from sparkdelta.table.maintenance.log_compaction import CompactionResult
from sparkdelta.table.maintenance.metadata_cleanup import CleanupResult
from sparkdelta.table.maintenance.version_checksum import ChecksumResult


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
    """Write the checkpoint of a version: executors do it, nothing of the log passes the driver.

    Parameters
    ----------
    spark
        A classic or Connect session.
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
    return compact_commits(
        spark, path, start=checked_version(start, "start"), end=checked_version(end, "end")
    )


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
    checked_flag(dry_run, "dry_run")
    return clean_expired(spark, path, dry_run=dry_run, now_ms=now_ms)


def verify(
    spark: SparkSession, path: str, *, version: int | None = None, footers: bool = False
) -> Verification:
    """Look for everything in a table that is not as its log says. Nothing is changed.

    The log has every commit, and nothing of it is of a version after the last. Every complete
    checkpoint has its sidecars, in the size that it says, and agrees with replay of the log before
    it, as far as that is still there: no file or unexpired tombstone is lost, and no bound or typed
    partition value would leave out a file that the log's keep. Every log compaction agrees with its
    commits. The version can be replayed, and its version checksum is complete and says what replay
    does. Every live data file exists with the logged size, every deletion vector is what its
    descriptor says. No replay is from what was found wrong.

    Parameters
    ----------
    version
        The version whose files are looked for, the latest by default; of the log, what is newer is
        left alone.
    footers
        Whether to open every data file, and compare its number of rows with `numRecords` and the
        bounds and null counts of its columns with those of the log.

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
    checked_flag(footers, "footers")
    return verify_table(spark, path, version=checked_version(version), footers=footers)
