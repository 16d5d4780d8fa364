"""Checks that checkpoints and log compactions agree with the commits.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#log-compaction-files, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.log_files import LogFile, LogFileKind, Version, commit_name
from sparkdelta.base.protocol.retention import deleted_file_retention_ms, transaction_retention_ms
from sparkdelta.base.protocol.table_properties import is_off
from sparkdelta.base.schema.action_schemas import ACTIONS
from sparkdelta.base.schema.partition_value_frames import typed_partition_values
from sparkdelta.base.spark.driver import count_rows, read_rows
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import (
    DeltaError,
    MalformedLogFileError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from sparkdelta.operations.checkpoint.sidecar_files import damaged_sidecars
from sparkdelta.operations.upkeep.checksum_writing import checksum_differences
from sparkdelta.operations.upkeep.log_compaction import compacted_commits
from sparkdelta.operations.verify.file_check_workers import Finding
from sparkdelta.operations.verify.state_difference_frames import (
    add_facts,
    disagreements,
    domain_facts,
    line_facts,
    mismatched_partition_values,
    narrower_statistics,
    remove_facts,
    transaction_facts,
)
from sparkdelta.table.checkpoint.checkpoint_kind_rules import (
    WRITE_STATS_AS_JSON,
    WRITE_STATS_AS_STRUCT,
)
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.listing import read_checksum, read_options
from sparkdelta.table.listing.log_line_frames import damaged_lines
from sparkdelta.table.listing.log_segment_rules import (
    Checkpoint,
    commits_between,
    complete_checkpoints,
)
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

LOG, STATE, CHECKPOINT, COMPACTION = "log", "state", "checkpoint", "log compaction"

_NOT_REBUILT = (VersionNotFoundError, TruncatedTransactionLogError, VersionsNotContiguousError)
_STATISTICS = (WRITE_STATS_AS_JSON, WRITE_STATS_AS_STRUCT)


@dataclass(slots=True)
class LogChecks:
    """A check of the checkpoints and log compactions, which are read instead of commits.

    Attributes
    ----------
    files
        Of the log, up to the version that is verified.
    now_ms
        The time by which tombstones are expired.
    max_problems
        The most findings that are reported for one file.
    broken
        The names of checkpoints with findings: nothing is replayed from them.
    """

    spark: SparkSession
    store: LogStore
    files: Sequence[LogFile]
    now_ms: int
    max_problems: int
    broken: list[str] = field(default_factory=list)

    def state(self, version: Version | None) -> Snapshot:
        """Return a version, read without checksums and, if possible, without compactions and
        damaged checkpoints.
        """
        checksums = [f.name for f in self.files if f.kind is LogFileKind.VERSION_CHECKSUM]
        try:
            return self._open(version, [*checksums, *self._replaceable, *self.broken])
        except _NOT_REBUILT:
            return self._open(version, checksums)

    def checkpoints(self) -> Iterator[Checkpoint]:
        """Yield all complete checkpoints, the oldest first: of one version there may be several."""
        left = [file for file in self.files if file.kind.is_checkpoint]
        found: list[Checkpoint] = []
        while complete := complete_checkpoints(left):
            found += complete.values()
            names = {file.name for checkpoint in complete.values() for file in checkpoint.files}
            left = [file for file in left if file.name not in names]
        yield from sorted(found, key=lambda checkpoint: checkpoint.version)

    def compactions(self) -> list[LogFile]:
        """Return the log compactions whose commits are all in the log."""
        commits = {file.version for file in self.files if file.kind is LogFileKind.COMMIT}
        return [
            file
            for file in self.files
            if file.end_version is not None
            and commits.issuperset(range(file.version, file.end_version + 1))
        ]

    def of_checkpoint(self, checkpoint: Checkpoint) -> list[Finding] | None:
        """Return the findings about a checkpoint, or about the commits before it if they are at
        fault; None where the log before it is not there any more.
        """
        names = [file.name for file in checkpoint.files]
        try:
            found = self._compared(checkpoint, names)
        except DeltaError as error:
            found = [(CHECKPOINT, names[0], error.message)]
        is_broken = any(check == CHECKPOINT for check, *_ in found or [])
        self.broken += names if is_broken else []
        return found

    def _compared(self, checkpoint: Checkpoint, names: Sequence[str]) -> list[Finding] | None:
        shown = names[0]
        beside = [
            f.name for f in self.files if f.version == checkpoint.version and not _is_delta(f)
        ]
        others = [name for name in beside if name not in names]
        stored = self._open(checkpoint.version, [*others, *self._replaceable])
        if shown in stored.log.broken:
            return [(CHECKPOINT, shown, stored.log.broken[shown])]
        if damage := damaged_sidecars(self.store, stored.log.sidecars):
            some = list(damage.items())[: self.max_problems]
            found = [(CHECKPOINT, name, f"{what} (of {shown})") for name, what in some]
            more = len(damage) - len(some)
            why = f"{more} more sidecars are missing or damaged"
            return found + ([(CHECKPOINT, shown, why)] if more else [])
        try:
            replay = self._open(checkpoint.version, [*beside, *self._replaceable, *self.broken])
        except _NOT_REBUILT:
            return None
        except DeltaError as error:
            return self._of_commits(error, 0, checkpoint.version)
        found = [
            (CHECKPOINT, shown, f"{what} differs from the log")
            for what, is_same in (
                ("protocol", _features(stored.protocol) == _features(replay.protocol)),
                ("metaData", stored.metadata == replay.metadata),
            )
            if not is_same
        ]
        try:
            found += self._listed(CHECKPOINT, shown, _differing(stored, replay, self.now_ms))
        except DeltaError:
            failure = _failure(_facts(replay, replay, self.now_ms))
            if failure is None:
                raise
            return self._of_commits(failure, 0, checkpoint.version)
        first = replay.segment.deltas[0].version
        return self._of_witness(names, first, checkpoint.version, found) or found

    def of_compaction(self, file: LogFile) -> list[Finding]:
        """Return the findings about one of `compactions`, or about its commits if they are at
        fault.
        """
        assert file.end_version is not None
        root = self.store.table_root
        commits = commits_between(self.files, file.version, file.end_version, path=root)
        try:
            lines = compacted_commits(CommitRange.read(self._reader, commits))
            lines = lines.selectExpr(f"{file.end_version}L AS version", "line")
            wanted = line_facts(lines, table_root=root)
        except DeltaError as error:
            return self._of_commits(error, file.version, file.end_version)
        try:
            compacted = line_facts(self._reader.lines([file]), table_root=root)
            differing = disagreements(compacted, wanted, of="compaction")
            found = self._listed(COMPACTION, file.name, differing)
        except DeltaError as error:
            failure = _failure(wanted)
            if failure is None:
                return [(COMPACTION, file.name, error.message)]
            return self._of_commits(failure, file.version, file.end_version)
        return self._of_witness([file.name], file.version, file.end_version, found) or found

    def _of_commits(self, error: DeltaError, first: Version, last: Version) -> list[Finding]:
        """Return the findings about commits that cannot be replayed, with the error of replay."""
        wanted = [f for f in self.files if f.kind is LogFileKind.COMMIT]
        wanted = [f for f in wanted if first <= f.version <= last]
        try:
            damaged = damaged_lines(self._reader.lines(wanted), actions=ACTIONS)
            some = grouped(damaged, ["version"], F.min("line").alias("line")).orderBy("version")
            bound = self.max_problems
            rows = read_rows(some.limit(bound), what="verification findings", bound=bound)
        except DeltaError as unreadable:
            rows, error = [], unreadable
        if rows:
            problem = "contains a line that is not one complete JSON action; it begins with:"
            return [
                (LOG, commit_name(row["version"]), f"{problem} {row['line'][:200]}") for row in rows
            ]
        if isinstance(error, MalformedLogFileError) and error.version is not None:
            return [(LOG, commit_name(error.version), error.message)]
        return [(STATE, self.store.table_root, error.message)]

    def _of_witness(
        self, names: Sequence[str], first: Version, last: Version, found: Sequence[Finding]
    ) -> list[Finding]:
        """Return the finding that commits are damaged, where a version checksum agrees with a
        checkpoint or compaction that differs from them; else none.
        """
        checksums = [f for f in self.files if f.kind is LogFileKind.VERSION_CHECKSUM]
        aside = {
            *(f.name for f in self.files if f.kind.is_checkpoint and f.version >= first),
            *(f.name for f in checksums),
            *self._replaceable,
            *self.broken,
        }
        later = [file.version for file in checksums if file.version >= last]
        for version in sorted({*later[:1], *later[-1:]}) if found else []:
            recorded = read_checksum(self.store, version)
            if recorded is None:
                continue
            with suppress(DeltaError):
                if checksum_differences(recorded, self._open(version, aside.difference(names))):
                    continue
                if checksum_differences(recorded, self._open(version, aside)):
                    problem = (
                        f"this commit, or a later one up to version {last}, is damaged: {names[0]} "
                        f"and the version checksum of version {version} agree, and commits do not: "
                        f"{found[0][2]}"
                    )
                    return [(LOG, commit_name(first), problem)]
        return []

    @property
    def _reader(self) -> LogFileReader:
        return LogFileReader(self.spark, self.store, read_options(self.store, {}))

    def _listed(self, check: str, file: str, problems: DataFrame) -> list[Finding]:
        bound = self.max_problems + 1
        rows = read_rows(problems.limit(bound), what="verification findings", bound=bound)
        found = [(check, file, f"{row['path']}: {row['problem']}") for row in rows]
        if len(found) == bound:
            found[-1] = (check, file, f"more than {self.max_problems} actions differ")
        return found

    @property
    def _replaceable(self) -> list[str]:
        return [file.name for file in self.compactions()]

    def _open(self, version: Version | None, without: Collection[str]) -> Snapshot:
        root = self.store.table_root
        return open_snapshot(self.spark, root, version=version, without=without, store=self.store)


def _features(protocol: Protocol) -> tuple[object, ...]:
    """Return the versions and features of a protocol, independent of the order of its lists."""
    lists = protocol.reader_features, protocol.writer_features
    sets = (None if one is None else frozenset(one) for one in lists)
    return protocol.min_reader_version, protocol.min_writer_version, *sets


def _is_delta(file: LogFile) -> bool:
    return file.kind in (LogFileKind.COMMIT, LogFileKind.COMPACTION)


def _differing(stored: Snapshot, replay: Snapshot, now_ms: int) -> DataFrame:
    """Return findings, path STRING and problem STRING."""
    facts = (_facts(snapshot, replay, now_ms) for snapshot in (stored, replay))
    frames = [
        disagreements(*facts, of="checkpoint"),
        narrower_statistics(
            stored.add_files(),
            replay.add_files(),
            statistics=replay.configuration.statistics,
            table_root=stored.path,
        ),
        _other_partition_values(stored),
    ]
    return reduce(DataFrame.unionByName, frames)


def _facts(snapshot: Snapshot, replay: Snapshot, now_ms: int) -> DataFrame:
    """Return the facts of a version that a checkpoint must have, for `disagreements`."""
    root, properties = replay.path, replay.properties
    expired_at_ms = now_ms - deleted_file_retention_ms(properties)
    with_records = not all(is_off(properties, name) for name in _STATISTICS)
    may_expire = transaction_retention_ms(properties) is not None
    frames = [
        add_facts(snapshot.add_files(), table_root=root, with_records=with_records),
        remove_facts(snapshot.remove_files(), table_root=root, expired_at_ms=expired_at_ms),
        transaction_facts(snapshot.transactions(), may_expire=may_expire),
        domain_facts(snapshot.domain_metadata()),
    ]
    return reduce(DataFrame.unionByName, frames)


def _failure(facts: DataFrame) -> DeltaError | None:
    """Return the error of reading all facts; None if there is none."""
    try:
        count_rows(facts, what="number of verification findings")
    except DeltaError as error:
        return error
    return None


def _other_partition_values(stored: Snapshot) -> DataFrame:
    adds, facts = stored.state.adds_as_stored()
    typed = typed_partition_values(
        "partitionValues",
        stored.configuration.partition_keys,
        time_zone=stored.state.partition_time_zone,
    )
    return mismatched_partition_values(adds, typed, facts.partition_values)
