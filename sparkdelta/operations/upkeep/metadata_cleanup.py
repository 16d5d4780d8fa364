"""Metadata cleanup: deletes the files of the log that no version within retention needs.

References
----------
PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.arguments import checked_flag
from sparkdelta.base.protocol.log_files import (
    SIDECAR_DIRECTORY,
    STAGED_COMMIT_DIRECTORY,
    LogFile,
    LogFileKind,
    Version,
    is_staging_directory,
    is_temporary_file,
    sidecar_name,
)
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.retention import log_retention_ms
from sparkdelta.base.protocol.table_features import Writing
from sparkdelta.base.protocol.table_properties import is_off, protected_version
from sparkdelta.base.schema.action_schemas import SIDECAR
from sparkdelta.base.schema.file_key_frames import decoded_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.storage.log_store import FileEntry
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.checkpoint.sidecar_files import damaged_sidecars
from sparkdelta.operations.upkeep.metadata_cleanup_rules import (
    cutoff_checkpoints,
    cutoff_time,
    expired_files,
    expired_staged_commits,
    is_abandoned,
    short_cutoff_time,
)
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.listing.log_segment_rules import Checkpoint, readable_commits
from sparkdelta.table.log.checksums import stored_checksum
from sparkdelta.table.log.commit_times import CommitHistory
from sparkdelta.table.log.loading import check_num_files, load_log
from sparkdelta.table.snapshot.snapshot import Snapshot

_LOGGER = logging.getLogger(__name__)

ENABLED = "delta.enableExpiredLogCleanup"


@dataclass(frozen=True, slots=True)
class CleanupResult(Result):
    """The result of `sparkdelta.clean_log`.

    Attributes
    ----------
    cutoff_time_ms, cutoff_version
        The cutOffTimestamp and the cutoffCommit.
    checkpoint_version
        The cutOffCheckpoint, from which on the log is kept; None where nothing may be deleted.
    reason
        Why nothing is deleted.
    files
        The names, within the log directory, of what was deleted or, in a dry run, would be: files,
        and staging directories that a process left which died.
    """

    dry_run: bool
    cutoff_time_ms: int
    cutoff_version: Version | None = None
    checkpoint_version: Version | None = None
    reason: str | None = None
    files: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the attributes by name, as plain values for JSON."""
        return {**asdict(self), "files": list(self.files)}


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
    snapshot = open_writable(spark, path, writing=Writing.CLEANUP)
    with jobs_of(snapshot.path, snapshot.version):
        return clean_metadata(snapshot, dry_run=dry_run, now_ms=now_ms)


def clean_metadata(
    snapshot: Snapshot,
    *,
    dry_run: bool = False,
    now_ms: int | None = None,
    retention_ms: int | None = None,
) -> CleanupResult:
    """Carry out the five steps of metadata cleanup on a table whose log may be cleaned up, see
    `sparkdelta.clean_log`.

    Protected checkpoints are only deleted with all of the history that they protect.

    Parameters
    ----------
    retention_ms
        In place of the table's, for a history to be truncated on purpose.
    """
    clock = time.time_ns() // 1_000_000
    now = clock if now_ms is None else now_ms
    cutoff = (
        cutoff_time(now, log_retention_ms(snapshot.properties))
        if retention_ms is None
        else short_cutoff_time(now, retention_ms)
    )
    if retention_ms is None and is_off(snapshot.properties, ENABLED):
        return CleanupResult(dry_run, cutoff, reason=f"{ENABLED} is false")
    files = list_log_files(snapshot.log.store)
    history = CommitHistory(
        snapshot.log.spark,
        snapshot.log.store,
        readable_commits(files, path=snapshot.path),
        snapshot.configuration.in_commit_timestamps,
    )
    version = history.newest_at(cutoff)
    if version is None:
        return CleanupResult(dry_run, cutoff, reason="no commit is older than the retention period")
    stored = snapshot.log.store.list_directory(SIDECAR_DIRECTORY)
    checkpoint = _first_usable(snapshot, cutoff_checkpoints(files, version), files)
    if checkpoint is None:
        reason = f"there is no complete checkpoint of version {version} or older"
        return CleanupResult(dry_run, cutoff, version, reason=reason)
    protected = protected_version(snapshot.protocol, snapshot.properties)
    if checkpoint.version < protected:
        reason = f"checkpoints before version {protected} are protected until all have expired"
        return CleanupResult(dry_run, cutoff, version, reason=reason)
    # A later time than the clock's would make the files of operations in progress old.
    names = _clean(
        snapshot, files, checkpoint.version, stored, now=min(now, clock), dry_run=dry_run
    )
    return CleanupResult(dry_run, cutoff, version, checkpoint.version, files=tuple(names))


def _clean(
    snapshot: Snapshot,
    files: list[LogFile],
    checkpoint: Version,
    stored: list[FileEntry],
    *,
    now: int,
    dry_run: bool,
) -> list[str]:
    """Carry out steps 3 to 5 of metadata cleanup, in this order."""
    store = snapshot.log.store
    expired = [file.name for file in expired_files(files, checkpoint)]
    staged = [entry.name for entry in store.list_directory(STAGED_COMMIT_DIRECTORY)]
    expired += [
        f"{STAGED_COMMIT_DIRECTORY}/{name}" for name in expired_staged_commits(staged, checkpoint)
    ]
    if not dry_run:
        store.delete(expired)
    old = [entry.name for entry in stored if is_abandoned(entry.modification_time_ms, now)]
    # Listed again, after the sidecars were: a checkpoint that came meanwhile may name old ones.
    unused = _unused(snapshot, old, set(expired)) if old else []
    sidecars = [sidecar_name(path) for path in unused]
    temporary = _abandoned(store.list_from("."), is_temporary_file, now)
    directories = _abandoned(store.staging_directories(), is_staging_directory, now)
    if not dry_run:
        store.delete(sidecars + temporary)
        for directory in directories:
            store.delete_directory(directory)
        _LOGGER.info(
            "%s: deleted %d files before version %d", snapshot.path, len(expired), checkpoint
        )
    return expired + sidecars + temporary + directories


def _abandoned(entries: list[FileEntry], is_ours: Callable[[str], bool], now_ms: int) -> list[str]:
    """Return the names of files left by a process that died before it gave them their names in the
    log.
    """
    return [
        entry.name
        for entry in entries
        if is_ours(entry.name) and is_abandoned(entry.modification_time_ms, now_ms)
    ]


def _first_usable(
    snapshot: Snapshot, checkpoints: Sequence[Checkpoint], files: Sequence[LogFile]
) -> Checkpoint | None:
    """Return the first checkpoint that can be read, whose sidecars are all there in their full
    size.
    """
    log = snapshot.log
    checksums = [file.name for file in files if file.kind is LogFileKind.VERSION_CHECKSUM]
    for checkpoint in checkpoints:
        name = checkpoint.files[0].name
        try:
            # Without a version checksum, which would spare the reader to open the checkpoint.
            loaded = load_log(log.spark, log.store, checkpoint.version, log.options, checksums)
            damage = loaded.log.broken or damaged_sidecars(log.store, loaded.log.sidecars)
            check_num_files(loaded.log, stored_checksum(log.store, loaded.log.segment))
        except DeltaError as error:
            damage = {name: error.message}
        if not damage:
            return checkpoint
        _LOGGER.warning("%s is not a usable checkpoint: %s", name, damage)
    return None


def _named_sidecars(snapshot: Snapshot, checkpoints: Sequence[LogFile]) -> DataFrame:
    """Return path STRING of the sidecars that checkpoint files name; V1 checkpoints name none."""
    fields = StructType([StructField("sidecar", SIDECAR)])
    texts = [file for file in checkpoints if file.extension == "json"]
    names = [
        file.name
        for file in checkpoints
        if file.extension != "json" and file.kind is not LogFileKind.MULTI_PART_CHECKPOINT
    ]
    reader = snapshot.log.reader
    rows = parse_log_lines(reader.lines(texts), actions=fields).select("sidecar")
    if names:
        rows = rows.unionByName(reader.parquet(names, fields, version=snapshot.version))
    return rows.filter(F.col("sidecar.path").isNotNull()).select("sidecar.path")


def unreferenced(stored: DataFrame, sidecars: DataFrame) -> DataFrame:
    """Return the stored sidecar files that no checkpoint references.

    Parameters
    ----------
    stored
        name STRING: files in the `_sidecars` directory.
    sidecars
        path STRING: the paths of `sidecar` actions. All are in this directory, so that the name
        identifies the file.
    """
    name = f"substring_index({decoded_path('path')}, '/', -1) AS name"
    return stored.select("name").join(sidecars.selectExpr(name), "name", "left_anti")


def _unused(snapshot: Snapshot, old: list[str], expired: set[str]) -> list[str]:
    """Return the old sidecars that none of the remaining checkpoints names; none of them where one
    of these checkpoints cannot be read.
    """
    left = [
        file
        for file in list_log_files(snapshot.log.store)
        if file.kind.is_checkpoint and file.name not in expired
    ]
    stored = arrow_frame(snapshot.log.spark, pa.table({"name": pa.array(old, pa.string())}))
    try:
        rows = read_rows(
            unreferenced(stored, _named_sidecars(snapshot, left)),
            what="sidecars to delete",
            bound=len(old),
        )
    except DeltaError as error:
        _LOGGER.warning("%s: no sidecars were deleted: %s", snapshot.path, error.message)
        return []
    return sorted(row["name"] for row in rows)
