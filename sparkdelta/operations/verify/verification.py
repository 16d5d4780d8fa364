"""Verification of a table against its log: checks, findings and the report.

References
----------
PROTOCOL.md#state-validation
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.arguments import checked_flag, checked_version
from sparkdelta.base.protocol.log_files import (
    LAST_CHECKPOINT,
    LogFile,
    LogFileKind,
    Version,
    commit_name,
)
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import count_rows, read_row, read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.upkeep.checksum_writing import checksum_differences
from sparkdelta.operations.verify.file_check_workers import (
    FINDINGS,
    FileChecker,
    Finding,
    bounded_columns,
    logged_bounds,
)
from sparkdelta.operations.verify.file_checks import check_files, file_checker
from sparkdelta.operations.verify.log_checks import (
    CHECKPOINT,
    COMPACTION,
    LOG,
    STATE,
    LogChecks,
)
from sparkdelta.table.listing.listing import list_log_files, open_log, read_checksum, read_hint
from sparkdelta.table.listing.log_segment_rules import missing_commits
from sparkdelta.table.snapshot.snapshot import Snapshot

_LOGGER = logging.getLogger(__name__)

MAX_FINDINGS = 1000
"""Maximum number of findings per check that are collected on the driver; of further ones, only the
number is.
"""

CHECKSUM, FILES = "version checksum", "files"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of a verification.

    Attributes
    ----------
    num_checked
        The number of checked items: commits, fields, checkpoints or files.
    num_findings
        The number of findings.
    shown
        The findings as (check, path, problem), at most `MAX_FINDINGS`.
    """

    name: str
    num_checked: int
    num_findings: int = 0
    shown: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """The result of `sparkdelta.verify`; its string form is a report.

    Attributes
    ----------
    version
        The verified version; None if it cannot be reconstructed.
    findings
        check STRING, path STRING, problem STRING: a DataFrame of all findings, from local data
        unless a check has more than `MAX_FINDINGS`.
    broken_checkpoints
        The names of all files of checkpoints with findings.
    """

    path: str
    version: Version | None
    checks: tuple[Check, ...]
    findings: DataFrame = field(repr=False)
    broken_checkpoints: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_clean(self) -> bool:
        """True if there are no findings."""
        return not any(check.num_findings for check in self.checks)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values for JSON."""
        return {
            "path": self.path,
            "version": self.version,
            "clean": self.is_clean,
            "checks": {
                c.name: {"checked": c.num_checked, "findings": c.num_findings} for c in self.checks
            },
            "findings": [
                dict(zip(FINDINGS.names, finding, strict=True))
                for check in self.checks
                for finding in check.shown
            ],
        }

    def __str__(self) -> str:
        version = "no version" if self.version is None else f"version {self.version}"
        lines = [f"{self.path}, {version}: {'clean' if self.is_clean else 'not clean'}"]
        for check in self.checks:
            lines.append(
                f"  {check.name}: {check.num_checked} checked, {check.num_findings} findings"
            )
            lines += [f"    {what} {path}: {problem}" for what, path, problem in check.shown]
            if check.num_findings > len(check.shown):
                lines.append(f"    and {check.num_findings - len(check.shown)} more")
        return "\n".join(lines)


def verify(
    spark: SparkSession, path: str, *, version: int | None = None, footers: bool = False
) -> Verification:
    """Check a table against its log without changing anything.

    The log must contain every commit and no file of a later version. Every complete checkpoint must
    have its sidecars with the recorded sizes and agree with replay of the log before it, as far as
    that still exists: no file or unexpired tombstone is missing, and no min/max value or typed
    partition value would skip a file that the log's would not. Every log compaction must
    agree with its commits. Where a version checksum agrees with a checkpoint or compaction and not
    with the commits, the commits are reported. The version must be replayable, and its
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
    version = checked_version(version)
    checked_flag(footers, "footers")
    return verified(spark, open_log(spark, path), version=version, footers=footers)


def verified(
    spark: SparkSession, store: LogStore, *, version: Version | None = None, footers: bool = False
) -> Verification:
    """Verify the table of a log, see `verify`."""
    path = store.table_root
    hint = read_hint(store)
    listing = list_log_files(store)
    files = [f for f in listing if version is None or f.version <= version]
    now_ms = time.time_ns() // 1_000_000
    checks = LogChecks(spark, store, files, now_ms=now_ms, max_problems=MAX_FINDINGS)
    run = _Run(spark, checks)
    findings = _log_findings(files)
    if version is None:
        findings += _lost_tail(files, hint)
    run.local(LOG, sum(f.kind is LogFileKind.COMMIT for f in files), findings)
    with jobs_of(store.table_root, version):
        run.check_checkpoints()
        run.check_compactions()
    try:
        snapshot = checks.state(version)
    except DeltaError as error:
        if not files:
            raise
        run.local(STATE, 1, [(STATE, path, error.message)])
        return run.result(path, None)
    with jobs_of(snapshot.path, snapshot.version):
        run.check_checksum(snapshot)
        run.check_files(snapshot, footers=footers)
    return run.result(snapshot.path, snapshot.version)


@dataclass(slots=True)
class _Run:
    """The state of a verification: the results of the checks so far."""

    spark: SparkSession
    log: LogChecks
    checks: list[Check] = field(default_factory=list)
    unbounded: list[DataFrame] = field(default_factory=list)

    def local(self, name: str, num_checked: int, findings: Sequence[Finding]) -> None:
        self._add(Check(name, num_checked, len(findings), tuple(findings)))

    def _add(self, check: Check) -> None:
        _LOGGER.info(
            "%s: %d checked, %d findings", check.name, check.num_checked, check.num_findings
        )
        self.checks.append(check)

    def check_checksum(self, snapshot: Snapshot) -> None:
        """Check the version checksum, see PROTOCOL.md#state-validation."""
        checksum_files = [
            f
            for f in self.log.files
            if f.kind is LogFileKind.VERSION_CHECKSUM and f.version == snapshot.version
        ]
        if not checksum_files:
            return self.local(CHECKSUM, 0, [])
        name = checksum_files[0].name
        recorded = read_checksum(snapshot.log.store, snapshot.version)
        if recorded is None:
            return self.local(CHECKSUM, 1, [(CHECKSUM, name, "is not one JSON object")])
        required = {
            "protocol": recorded.protocol,
            "metadata": recorded.metadata,
            "numFiles": recorded.num_files,
            "tableSizeBytes": recorded.table_size_bytes,
        }
        incomplete = [
            (CHECKSUM, name, f"{field} is missing or violates the protocol")
            for field, value in required.items()
            if value is None
        ]
        try:
            wrong = checksum_differences(recorded, snapshot)
        except DeltaError as error:
            return self.local(CHECKSUM, 1, [(STATE, snapshot.path, error.message)])
        return self.local(
            CHECKSUM,
            1,
            incomplete
            + [
                (CHECKSUM, name, f"{field} is {_short(value)}, but the log gives {_short(actual)}")
                for field, (value, actual) in wrong.items()
            ],
        )

    def check_checkpoints(self) -> None:
        """Check the checkpoints against replay, see PROTOCOL.md#checkpoints."""
        found = [self.log.of_checkpoint(checkpoint) for checkpoint in self.log.checkpoints()]
        replayed = [findings for findings in found if findings is not None]
        self._of_log(CHECKPOINT, replayed)

    def check_compactions(self) -> None:
        """Check the log compactions, see PROTOCOL.md#log-compaction-files."""
        self._of_log(COMPACTION, [self.log.of_compaction(file) for file in self.log.compactions()])

    def _of_log(self, name: str, found: Sequence[Sequence[Finding]]) -> None:
        """Report the findings of each file, without commits that earlier findings are about."""
        known = {path for check in self.checks for what, path, _ in check.shown if what == LOG}
        findings = dict.fromkeys(finding for findings in found for finding in findings)
        new = [finding for finding in findings if finding[0] != LOG or finding[1] not in known]
        self.local(name, len(found), new)

    def check_files(self, snapshot: Snapshot, *, footers: bool) -> None:
        """Check data files and deletion vectors, see PROTOCOL.md#data-files."""
        columns = bounded_columns(snapshot.configuration.statistics) if footers else ()
        checker = file_checker(self.spark, snapshot.path, with_footers=footers, columns=columns)
        try:
            totals = snapshot.live_file_totals()
            row = read_row(totals, what="totals of the live files")
            count = row["num_files"]
            files = _files_to_check(snapshot, checker)
            findings = check_files(self.spark, files, count, checker)
            if isinstance(findings, list):
                self.local(FILES, count, findings)
            else:
                self._distributed(FILES, count, findings)
        except DeltaError as error:
            self.local(FILES, 0, [(STATE, snapshot.path, error.message)])

    def _distributed(self, name: str, num_checked: int, findings: DataFrame) -> None:
        rows = read_rows(
            findings.limit(MAX_FINDINGS + 1),
            what="verification findings",
            bound=MAX_FINDINGS + 1,
        )
        shown = tuple(sorted((r["check"], r["path"], r["problem"]) for r in rows[:MAX_FINDINGS]))
        count = len(rows)
        if count > MAX_FINDINGS:
            self.unbounded.append(findings)
            count = count_rows(findings, what="number of verification findings")
        self._add(Check(name, num_checked, count, shown))

    def result(self, path: str, version: Version | None) -> Verification:
        complete = [f for c in self.checks if c.num_findings == len(c.shown) for f in c.shown]
        collected = self.spark.createDataFrame(complete, FINDINGS)
        frames = [collected, *self.unbounded]
        return Verification(
            path,
            version,
            tuple(self.checks),
            reduce(DataFrame.unionByName, frames),
            tuple(self.log.broken),
        )


def _log_findings(files: Sequence[LogFile]) -> list[Finding]:
    """Return the findings about names of log files, see PROTOCOL.md#delta-log-entries-1."""
    empty = [
        (LOG, file.name, "has no bytes")
        for file in files
        # The compaction of commits that only contain commitInfo is empty.
        if file.is_empty and file.kind is not LogFileKind.COMPACTION
    ]
    return empty + [
        (
            LOG,
            commit_name(first),
            "is missing" if first == last else f"and all versions up to {last} are missing",
        )
        for first, last in missing_commits(files)
    ]


def _lost_tail(files: Sequence[LogFile], hint: Version | None) -> list[Finding]:
    """Return findings for files of versions after the end of the log, as when its newest commits
    are lost.
    """
    latest = max(
        (f.version for f in files if f.kind is LogFileKind.COMMIT or f.kind.is_checkpoint),
        default=-1,
    )
    newer = [
        (LOG, f.name, f"has a version after {latest}, the latest in the log")
        for f in files
        if f.last_version > latest
    ]
    if hint is not None and hint > latest:
        problem = f"points to version {hint}, but the log ends with version {latest}"
        newer.append((LOG, LAST_CHECKPOINT, problem))
    return newer


def _files_to_check(snapshot: Snapshot, checker: FileChecker) -> DataFrame:
    file = F.expr(absolute_path("path", table_root=snapshot.path))
    bounds = logged_bounds("stats_parsed", snapshot.configuration.statistics)
    return snapshot.add_files().select(
        file.alias("file"),
        "size",
        "stats_parsed.numRecords",
        "deletionVector",
        *([F.expr(bounds).alias("bounds")] if checker.columns else []),
    )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
