"""Delete the files of a table that no version within the retention period needs.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#vacuum-protocol-check
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.arguments import checked_choice, checked_flag, checked_number
from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import NO_FILES, FileCount, Result
from sparkdelta.base.protocol.retention import deleted_file_retention_ms
from sparkdelta.base.protocol.table_features import Writing
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.progress import progress as shown_progress
from sparkdelta.base.spark.session_settings import follows_settings
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError, StorageError
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.vacuum.file_deletion import delete_files
from sparkdelta.operations.vacuum.unneeded_files import (
    Decisions,
    decide,
    from_inventory,
    from_listing,
    from_log,
    removed_since,
)
from sparkdelta.operations.vacuum.vacuum_outcome_frames import (
    LIVE,
    REMOVED,
    UNNEEDED,
    VECTOR,
    YOUNG,
)
from sparkdelta.operations.vacuum.vacuum_rules import (
    HOUR_MS,
    LAST_VACUUM_INFO,
    is_logged,
    last_vacuum_bytes,
    parse_last_vacuum,
    vacuum_retention_ms,
)
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_times import CommitHistory
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

FULL, LITE = "full", "lite"
RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
"""The setting of delta-spark by which a session allows a retention period of any length."""

MAX_SHOWN_FILES = 1000
"""The most paths that the result of a dry run lists."""

_KINDS = {
    LIVE: "of the latest version",
    REMOVED: "removed within the retention period",
    VECTOR: "with deletion vectors of these",
    YOUNG: "younger than the retention period",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumResult(Result):
    """The outcome of VACUUM; its string form is a report.

    Attributes
    ----------
    mode
        ``full`` if the files were listed, ``lite`` if the log told which were removed.
    retention_hours
        The retention period.
    versions
        Of the commits `VACUUM START` and `VACUUM END`; empty if none were made.
    unneeded
        The files to delete; those that were gone already are not part of `deleted`.
    kept
        The files that are needed, by the reason: ``live``, ``removed`` (within the retention
        period), ``deletion vector``, ``young``. Of ``lite`` only those that were once removed.
    num_directories, num_deleted_directories
        The directories that were listed, and the empty ones that were deleted.
    files
        Up to 1,000 paths, relative to the table, that a dry run would delete.
    covered_version
        The newest version up to which no removed file is left; the next run in mode ``lite`` goes
        on from there.
    missing_versions
        The first and last commit since the last run that the log no longer has; files that they
        removed may be left, and are found in mode ``full``.
    """

    path: str
    mode: str
    is_dry_run: bool
    retention_hours: float
    versions: tuple[Version, ...] = ()
    unneeded: FileCount = NO_FILES
    deleted: FileCount = NO_FILES
    num_empty_directories: int = 0
    num_deleted_directories: int = 0
    num_directories: int = 0
    kept: Mapping[str, FileCount] = field(default_factory=dict)
    files: tuple[str, ...] = field(default=(), repr=False)
    covered_version: Version | None = None
    missing_versions: tuple[Version, Version] | None = None
    milliseconds: int = 0

    def __str__(self) -> str:
        if self.is_dry_run:
            first = f"Would delete {self.unneeded} and {self.num_empty_directories:,} directories"
        else:
            first = f"Deleted {self.deleted} and {self.num_deleted_directories:,} empty directories"
        lines = [f"{first} of {self.path}", f"  retention period: {self.retention_hours:g} hours"]
        lines += [f"  kept: {n} {_KINDS[why]}" for why, n in self.kept.items()]
        if self.missing_versions is not None:
            first_version, last = self.missing_versions
            lines.append(
                f"  The log no longer has versions {first_version} to {last}: mode full finds all "
                "files that they removed"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumOptions:
    """Arguments of `sparkdelta.vacuum`."""

    retention_hours: float | None = None
    mode: str = FULL
    dry_run: bool = False
    inventory: DataFrame | None = None
    check_retention: bool = True
    deletes_per_second: float | None = None
    log_runs: bool | None = None
    shows_progress: bool = False


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
        run removed, by the log: it takes as long as there are such files, and leaves the
        files of failed writes.
    dry_run
        True to only report the files to delete.
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
    DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT, DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE
        The retention period is shorter than the table's, or negative.
    DELTA_INVALID_INVENTORY_SCHEMA
        A column of the inventory is missing or of another type.
    DELTA_UNSUPPORTED_FEATURES_FOR_WRITE
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
    if inventory is not None and mode == LITE:
        problem = "mode lite takes the files from the log; use mode full"
        raise InvalidArgumentError(argument="inventory", problem=problem)
    return vacuum_table(open_writable(spark, path, writing=Writing.MAINTENANCE), options)


def vacuum_table(found: Snapshot, wanted: VacuumOptions) -> VacuumResult:
    """Delete the files that the versions of a table within the retention period do not need."""
    spark, start = found.log.spark, time.monotonic_ns()
    now_ms = time.time_ns() // 1_000_000
    retention_ms = vacuum_retention_ms(
        wanted.retention_hours,
        found.properties,
        path=found.path,
        is_checked=wanted.check_retention,
        raises_short=follows_settings(),
    )
    before_ms = now_ms - retention_ms
    with (
        engine_of(spark).log_session() as session,
        jobs_of(found.path, found.version),
        shown_progress(spark, f"Vacuuming {found.path}", is_on=wanted.shows_progress),
        staging(session, found.log.store) as stage,
    ):
        covered, last = _latest_before(found, before_ms), _last_covered(found)
        result = VacuumResult(
            path=found.path,
            mode=wanted.mode,
            is_dry_run=wanted.dry_run,
            retention_hours=retention_ms / HOUR_MS,
            covered_version=max((v for v in (covered, last) if v is not None), default=None),
        )
        snapshot = found.in_session(session)
        if wanted.mode == LITE:
            candidates = from_log(snapshot, last=last, end=covered, before_ms=before_ms)
            result = replace(result, missing_versions=candidates.missing_versions)
        elif wanted.inventory is not None:
            candidates = from_inventory(wanted.inventory, snapshot, stage)
        else:
            candidates = from_listing(snapshot, stage)
        latest = found.refresh()
        snapshot = latest.in_session(session)
        actions = snapshot.state.file_references()
        if retention_ms > deleted_file_retention_ms(latest.properties):
            removes = removed_since(snapshot, covered)
            actions = actions.unionByName(removes, allowMissingColumns=True)
        decisions = decide(candidates, actions, stage, root=found.path, before_ms=before_ms)
        result = _with_totals(result, decisions)
        unneeded = decisions.frame.filter(F.col("outcome") == UNNEEDED).drop("outcome")
        if wanted.dry_run:
            result = replace(result, files=_some_files(unneeded))
        else:
            started = _start(latest, wanted, result, retention_ms)
            result = _delete(latest, unneeded, wanted, result, started)
    return replace(result, milliseconds=(time.monotonic_ns() - start) // 1_000_000)


def _latest_before(snapshot: Snapshot, before_ms: int) -> Version | None:
    """Return the version that was the latest when the retention period began; None if none is
    readable.
    """
    store = snapshot.log.store
    commits = readable_commits(list_log_files(store), path=snapshot.path)
    in_commit = snapshot.configuration.in_commit_timestamps
    return CommitHistory(snapshot.log.spark, store, commits, in_commit).newest_at(before_ms)


def _last_covered(snapshot: Snapshot) -> Version | None:
    """Return the newest version that the last run covered; None if unknown, or of another table."""
    try:
        version = parse_last_vacuum(snapshot.log.store.read([LAST_VACUUM_INFO])[0])
    except FileNotFoundError:
        return None
    return None if version is None or version > snapshot.version else version


def _with_totals(result: VacuumResult, decisions: Decisions) -> VacuumResult:
    totals = decisions.totals
    directories = {outcome: found.count for (outcome, is_dir), found in totals.items() if is_dir}
    return replace(
        result,
        unneeded=totals.get((UNNEEDED, False), NO_FILES),
        kept={kind: totals[kind, False] for kind in _KINDS if (kind, False) in totals},
        num_empty_directories=directories.get(UNNEEDED, 0),
        num_directories=sum(directories.values()),
    )


def _some_files(unneeded: DataFrame) -> tuple[str, ...]:
    rows = read_rows(
        unneeded.select("path").orderBy("path").limit(MAX_SHOWN_FILES),
        what="files that VACUUM would delete",
        bound=MAX_SHOWN_FILES,
    )
    return tuple(row["path"] for row in rows)


def _delete(
    snapshot: Snapshot,
    unneeded: DataFrame,
    wanted: VacuumOptions,
    result: VacuumResult,
    start: Operation,
) -> VacuumResult:
    """Delete the unneeded files, between two commits if these are wanted."""
    count = result.unneeded.count + result.num_empty_directories
    logs = is_logged(snapshot.path) if wanted.log_runs is None else wanted.log_runs
    started = _commit(snapshot, start) if logs else None
    try:
        deleted = delete_files(unneeded, count, snapshot, per_second=wanted.deletes_per_second)
    except Exception:
        if started is not None:
            _commit(started.snapshot, _end("FAILED"))
        raise
    result = replace(
        result,
        deleted=FileCount(deleted.num_files, deleted.num_bytes),
        num_deleted_directories=deleted.num_directories,
    )
    if started is not None:
        end = _end(
            "FAILED" if deleted.num_problems else "COMPLETED",
            numDeletedFiles=deleted.num_files + deleted.num_directories,
            numVacuumedDirectories=result.num_directories + 1,
        )
        ended = _commit(started.snapshot, end)
        result = replace(result, versions=(started.version, ended.version))
    if deleted.num_problems:
        raise StorageError(
            path=snapshot.path,
            problem=f"{deleted.num_problems} of {count} unneeded files cannot be deleted, such as "
            f"{deleted.problem}; the others are deleted",
        )
    if wanted.inventory is None and result.missing_versions is None:
        info = last_vacuum_bytes(result.covered_version)
        snapshot.log.store.overwrite(LAST_VACUUM_INFO, info)
    return result


def _commit(snapshot: Snapshot, operation: Operation) -> CommittedTransaction:
    """Commit a version without actions."""
    done = Transaction.of(snapshot, operation).commit()
    run_commit_hooks(done)
    return done


def _start(
    snapshot: Snapshot, wanted: VacuumOptions, result: VacuumResult, retention_ms: int
) -> Operation:
    parameters: dict[str, Parameter] = {
        "retentionCheckEnabled": wanted.check_retention,
        "defaultRetentionMillis": deleted_file_retention_ms(snapshot.properties),
    }
    if wanted.retention_hours is not None:
        parameters["specifiedRetentionMillis"] = retention_ms
    return _operation(
        "VACUUM START",
        parameters,
        numFilesToDelete=result.unneeded.count + result.num_empty_directories,
        sizeOfDataToDelete=result.unneeded.bytes,
    )


def _end(status: str, **metrics: int) -> Operation:
    return _operation("VACUUM END", {"status": status}, **metrics)


def _operation(name: str, parameters: Mapping[str, Parameter], **metrics: int) -> Operation:
    return Operation(
        name,
        parameters,
        is_blind_append=True,
        changes_data=False,
        metrics=metrics or None,
    )


def checks_retention(spark: SparkSession) -> bool:
    """Return True unless the session's settings disable the check of the retention period."""
    return str(spark.conf.get(RETENTION_CHECK, "true")).lower() != "false"
