"""Repairs of a table that lose no rows.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#version-checksum-file, PROTOCOL.md#last-checkpoint-file
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.arguments import checked_flag
from sparkdelta.base.protocol.log_files import LAST_CHECKPOINT, LogFileKind, Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import Writing
from sparkdelta.base.protocol.table_properties import is_append_only
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import count_rows, read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.checkpoint.checkpoint_writing import checkpoint_table
from sparkdelta.operations.upkeep.checksum_writing import add_version_checksum, checksum_of_state
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.verify.file_check_workers import (
    DATA_FILE,
    DELETION_VECTOR,
    IS_MISSING,
    Finding,
)
from sparkdelta.operations.verify.log_checks import CHECKPOINT, COMPACTION, LOG
from sparkdelta.operations.verify.verification import (
    CHECKSUM,
    FILES,
    MAX_FINDINGS,
    Verification,
    verified,
)
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.last_checkpoint_rules import parse_last_checkpoint
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import complete_checkpoints
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import staging

DAMAGED_SUFFIX = ".damaged"
"""Suffix of the names of log files that were put aside; readers do not know such files."""

OPERATION = "FSCK"

_MISSING_FILES = "none is dropped where all are missing, or where the table is append-only"
_UNTOUCHED = {
    DATA_FILE: "the file is there, and may have rows",
    DELETION_VECTOR: "without it, deleted rows would come back",
    CHECKPOINT: "its version could not be read without it",
    COMPACTION: "its last version could not be read without it",
}


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair: a file, and the change that was made to it.

    Attributes
    ----------
    file
        A file of the log, by its name; or a data file, by its absolute path.
    """

    file: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult(Result):
    """The outcome of `sparkdelta.repair`; its string form is a report.

    Attributes
    ----------
    version
        The version that it committed; None if there was none to commit.
    repairs
        The problems that were mended or, in a dry run, would be; at most 1,000 missing data files.
    num_missing_files
        The data files that do not exist, which the committed version no longer has.
    untouched
        The problems that are left, as (check, path, problem).
    """

    path: str
    is_dry_run: bool
    version: Version | None = None
    repairs: tuple[Repair, ...] = ()
    num_missing_files: int = 0
    untouched: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        verb = "Would mend" if self.is_dry_run else "Mended"
        lines = [f"{verb} {len(self.repairs)} problems of {self.path}"]
        lines += [f"  {repair.file}: {repair.change}" for repair in self.repairs]
        for check, path, problem in self.untouched:
            is_missing = (check, problem) == (DATA_FILE, IS_MISSING)
            why = _MISSING_FILES if is_missing else _UNTOUCHED.get(check)
            lines.append(f"  left: {check} {path}: {problem}{f' ({why})' if why else ''}")
        return "\n".join(lines)


def repair(spark: SparkSession, path: str, *, dry_run: bool = True) -> RepairResult:
    """Repair what `verify` finds in a table, where no row can be lost.

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
    checked_flag(dry_run, "dry_run")
    snapshot = open_writable(spark, path, writing=Writing.MAINTENANCE)
    store = snapshot.log.store
    found = verified(spark, store)
    result = RepairResult(path=snapshot.path, is_dry_run=dry_run, untouched=tuple(_shown(found)))
    if found.version is None:
        return result
    with jobs_of(snapshot.path, snapshot.version):
        aside = [*_replaceable(spark, store, found)]
        result = _mended(result, aside, "put aside", COMPACTION, CHECKPOINT)
        hint = _wrong_hint(store, aside)
        if hint is not None:
            result = _mended(result, [LAST_CHECKPOINT], f"deleted, as it {hint}", LOG)
        checksums = [path for check, path, _ in _shown(found) if check == CHECKSUM][:1]
        result = _mended(result, checksums, "written again", CHECKSUM)
        if not dry_run:
            with _put_aside(store, aside):
                store.delete([*([] if hint is None else [LAST_CHECKPOINT]), *checksums])
                snapshot = open_snapshot(spark, snapshot.path, store=store)
                if checksums:
                    add_version_checksum(snapshot, from_previous=False)
                if hint is not None or aside:
                    with engine_of(spark).log_session() as session:
                        checkpoint_table(session, snapshot.path)
        return _drop_missing(spark, snapshot, found, result)


@contextmanager
def _put_aside(store: LogStore, names: Sequence[str]) -> Iterator[None]:
    """Put files aside; they get their names back if what takes their place cannot be written."""
    moved: list[str] = []
    try:
        for name in names:
            store.publish(name, f"{name}{DAMAGED_SUFFIX}")
            moved.append(name)
        yield
    except Exception:
        for name in moved:
            # The new checkpoint may have the name already, or the storage the same problem.
            with suppress(OSError, DeltaError):
                store.publish(f"{name}{DAMAGED_SUFFIX}", name)
        raise


def _shown(found: Verification) -> Iterator[Finding]:
    for check in found.checks:
        yield from check.shown


def _mended(result: RepairResult, files: Sequence[str], change: str, *checks: str) -> RepairResult:
    """Add the repairs of files to a result, and remove the findings of these checks about the
    files.
    """
    left = [
        (check, path, problem)
        for check, path, problem in result.untouched
        if check not in checks
        or not (path in files or problem.endswith(tuple(f"(of {file})" for file in files)))
    ]
    repairs = (*result.repairs, *(Repair(file, change) for file in files))
    return replace(result, repairs=repairs, untouched=tuple(left))


def _replaceable(spark: SparkSession, store: LogStore, found: Verification) -> Iterator[str]:
    """Yield the damaged compactions and checkpoints whose versions can be read without them."""
    damaged = {path for check, path, _ in _shown(found) if check == COMPACTION}
    damaged.update(found.broken_checkpoints)
    files = list_log_files(store)
    checksums = [file.name for file in files if file.kind is LogFileKind.VERSION_CHECKSUM]
    is_readable: dict[Version, bool] = {}
    for file in files:
        if file.name not in damaged:
            continue
        version = file.last_version
        if version not in is_readable:
            is_readable[version] = _is_readable(spark, store, version, [*damaged, *checksums])
        if is_readable[version]:
            yield file.name


def _is_readable(
    spark: SparkSession, store: LogStore, version: Version, without: Sequence[str]
) -> bool:
    """Return True if the whole state of a version can be read without some files of the log."""
    try:
        checksum_of_state(
            open_snapshot(spark, store.table_root, version=version, store=store, without=without)
        )
    except DeltaError:
        return False
    return True


def _wrong_hint(store: LogStore, aside: Sequence[str]) -> str | None:
    """Return the problem of `_last_checkpoint`; None if it has none, or does not exist."""
    try:
        hint = parse_last_checkpoint(store.read([LAST_CHECKPOINT])[0])
    except FileNotFoundError:
        return None
    if hint is None:
        return "is not valid"
    files = [f for f in list_log_files(store) if f.kind.is_checkpoint and f.name not in aside]
    if hint not in complete_checkpoints(files):
        return f"names version {hint}, which has no usable checkpoint"
    return None


def _drop_missing(
    spark: SparkSession, snapshot: Snapshot, found: Verification, result: RepairResult
) -> RepairResult:
    """Commit that the data files that do not exist are no longer part of the table.

    None is dropped if all are missing: then the storage is not what it was.
    """
    checks = {check.name: check for check in found.checks}
    checked = checks.get(FILES)
    if checked is None or not checked.num_findings or _is_append_only(snapshot):
        return result
    missing = found.findings.filter(f"check = '{DATA_FILE}' AND problem = '{IS_MISSING}'")
    with engine_of(spark).log_session() as session, staging(session, snapshot.log.store) as stage:
        names = stage.compute_once(missing.select("path"), "missing")
        count = count_rows(names, what="number of missing data files")
        if count in (0, checked.num_checked):
            return result
        some = read_rows(
            names.orderBy("path").limit(MAX_FINDINGS), what="missing data files", bound=MAX_FINDINGS
        )
        files = [row["path"] for row in some]
        result = _mended(result, files, "does not exist, so it is dropped", DATA_FILE)
        result = replace(result, num_missing_files=count)
        if result.is_dry_run:
            return result
        file = absolute_path("path", table_root=snapshot.path)
        adds = snapshot.in_session(session).add_files().withColumn("file", F.expr(file))
        dropped = adds.join(names.withColumnRenamed("path", "file"), "file", "left_semi")
        removes = stage.compute_once(remove_actions(dropped), "removes")
        done = Transaction.of(
            snapshot,
            Operation(
                OPERATION,
                {"dryRun": False},
                metrics={"numMissingFiles": count, "numFilesScanned": checked.num_checked},
            ),
            file_actions=removes,
        ).commit()
    run_commit_hooks(done)
    return replace(result, version=done.version)


def _is_append_only(snapshot: Snapshot) -> bool:
    return is_append_only(snapshot.protocol, snapshot.properties)
