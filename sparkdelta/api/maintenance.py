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
)
from sparkdelta.base.protocol.z_cubes import MAX_ZCUBE_BYTES, MIN_ZCUBE_BYTES
from sparkdelta.operations.compaction.compaction import MAX_COMMIT_BYTES
from sparkdelta.operations.compaction.optimization import OptimizeRequest, OptimizeResult
from sparkdelta.operations.optimize.optimize import optimize as optimize_table
from sparkdelta.operations.optimize.reorg import reorg as reorg_table
from sparkdelta.operations.vacuum.vacuum import FULL, LITE, VacuumOptions, VacuumResult
from sparkdelta.operations.vacuum.vacuum import vacuum as vacuum_table
from sparkdelta.table.rows.expression_arguments import checked_condition


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
