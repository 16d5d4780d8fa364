"""Checks that checkpoints and log compactions agree with the commits.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#log-compaction-files
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.engine.driver import read_rows
from sparkdelta.exceptions import (
    DeltaError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from sparkdelta.frames.log.partition_values import typed_partition_values
from sparkdelta.frames.log.state_differences import (
    add_facts,
    disagreements,
    domain_facts,
    line_facts,
    mismatched_partition_values,
    narrower_statistics,
    remove_facts,
    transaction_facts,
)
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.checkpoint_kinds import WRITE_STATS_AS_JSON, WRITE_STATS_AS_STRUCT
from sparkdelta.protocol.log_files import LogFile, LogFileKind, Version
from sparkdelta.protocol.log_segment import Checkpoint, commits_between, complete_checkpoints
from sparkdelta.protocol.retention import deleted_file_retention_ms, transaction_retention_ms
from sparkdelta.protocol.table_properties import is_off
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.checkpoint.sidecar_files import damaged_sidecars
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.file_reader import LogFileReader
from sparkdelta.table.log.listing import read_options
from sparkdelta.table.maintenance.log_compaction import compacted_commits
from sparkdelta.table.snapshot import Snapshot, open_snapshot

_NOT_REBUILT = (VersionNotFoundError, TruncatedTransactionLogError, VersionsNotContiguousError)
_STATISTICS = (WRITE_STATS_AS_JSON, WRITE_STATS_AS_STRUCT)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file of the log."""

    file: str
    problem: str


@dataclass(slots=True)
class LogChecks:
    """Checks of the checkpoints and log compactions, which are read instead of commits.

    Attributes
    ----------
    files
        Of the log, up to the version that is verified.
    now_ms
        The time by which tombstones are expired.
    max_problems
        The most problems that are reported for one file.
    broken
        The names of checkpoints with problems: nothing is replayed from them.
    """

    spark: SparkSession
    store: LogStore
    files: Sequence[LogFile]
    now_ms: int
    max_problems: int
    broken: list[str] = field(default_factory=list)

    def state(self, version: Version | None) -> Snapshot:
        """A version, read without checksums and, if possible, without compactions and damaged
        checkpoints.

        Raises
        ------
        DeltaError
            It cannot be reconstructed.
        """
        checksums = [f.name for f in self.files if f.kind is LogFileKind.VERSION_CHECKSUM]
        try:
            return self._open(version, [*checksums, *self._replaceable, *self.broken])
        except _NOT_REBUILT:
            return self._open(version, checksums)

    def checkpoints(self) -> Iterator[Checkpoint]:
        """All complete checkpoints, the oldest first: of one version there may be several."""
        left = [file for file in self.files if file.kind.is_checkpoint]
        found: list[Checkpoint] = []
        while complete := complete_checkpoints(left):
            found += complete.values()
            names = {file.name for checkpoint in complete.values() for file in checkpoint.files}
            left = [file for file in left if file.name not in names]
        yield from sorted(found, key=lambda checkpoint: checkpoint.version)

    def compactions(self) -> list[LogFile]:
        """The log compactions whose commits are all in the log."""
        commits = {file.version for file in self.files if file.kind is LogFileKind.COMMIT}
        return [
            file
            for file in self.files
            if file.end_version is not None
            and commits.issuperset(range(file.version, file.end_version + 1))
        ]

    def of_checkpoint(self, checkpoint: Checkpoint) -> list[Problem] | None:
        """The problems of a checkpoint; None where the log before it cannot be replayed.

        References
        ----------
        PROTOCOL.md#checkpoints, PROTOCOL.md#sidecar-file-information
        """
        names = [file.name for file in checkpoint.files]
        try:
            found = self._problems(checkpoint, names)
        except DeltaError as error:
            found = [Problem(names[0], error.message)]
        self.broken += names if found else []
        return found

    def _problems(self, checkpoint: Checkpoint, names: Sequence[str]) -> list[Problem] | None:
        shown = names[0]
        beside = [
            f.name for f in self.files if f.version == checkpoint.version and not _is_delta(f)
        ]
        others = [name for name in beside if name not in names]
        stored = self._open(checkpoint.version, [*others, *self._replaceable])
        if shown in stored.log.broken:
            return [Problem(shown, stored.log.broken[shown])]
        if damage := damaged_sidecars(self.store, stored.log.sidecars):
            some = list(damage.items())[: self.max_problems]
            found = [Problem(name, f"{what} (of {shown})") for name, what in some]
            more = len(damage) - len(some)
            return found + (
                [Problem(shown, f"{more} more sidecars are missing or damaged")] if more else []
            )
        try:
            replay = self._open(checkpoint.version, [*beside, *self._replaceable, *self.broken])
        except _NOT_REBUILT:
            return None
        found = [
            Problem(shown, f"{what} differs from the log")
            for what, is_same in (
                ("protocol", _features(stored.protocol) == _features(replay.protocol)),
                ("metaData", stored.metadata == replay.metadata),
            )
            if not is_same
        ]
        return found + self._listed(shown, _differing(stored, replay, self.now_ms))

    def of_compaction(self, file: LogFile) -> list[Problem]:
        """The problems of one of `compactions`.

        References
        ----------
        PROTOCOL.md#log-compaction-files
        """
        assert file.end_version is not None
        root = self.store.table_root
        commits = commits_between(self.files, file.version, file.end_version, path=root)
        try:
            wanted = compacted_commits(CommitRange.read(self._reader, commits)).selectExpr(
                f"{file.end_version}L AS version", "line"
            )
            differing = disagreements(
                line_facts(self._reader.lines([file]), table_root=root),
                line_facts(wanted, table_root=root),
                of="compaction",
            )
            return self._listed(file.name, differing)
        except DeltaError as error:
            return [Problem(file.name, error.message)]

    @property
    def _reader(self) -> LogFileReader:
        return LogFileReader(self.spark, self.store, read_options(self.store, {}))

    def _listed(self, file: str, problems: DataFrame) -> list[Problem]:
        bound = self.max_problems + 1
        rows = read_rows(problems.limit(bound), what="verification findings", bound=bound)
        found = [Problem(file, f"{row['path']}: {row['problem']}") for row in rows]
        if len(found) == bound:
            found[-1] = Problem(file, f"more than {self.max_problems} actions differ")
        return found

    @property
    def _replaceable(self) -> list[str]:
        return [file.name for file in self.compactions()]

    def _open(self, version: Version | None, without: Collection[str]) -> Snapshot:
        root = self.store.table_root
        return open_snapshot(self.spark, root, version=version, without=without, store=self.store)


def _features(protocol: Protocol) -> tuple[object, ...]:
    """The versions and features of a protocol, independent of the order of its lists."""
    lists = protocol.reader_features, protocol.writer_features
    sets = (None if one is None else frozenset(one) for one in lists)
    return protocol.min_reader_version, protocol.min_writer_version, *sets


def _is_delta(file: LogFile) -> bool:
    return file.kind in (LogFileKind.COMMIT, LogFileKind.COMPACTION)


def _differing(stored: Snapshot, replay: Snapshot, now_ms: int) -> DataFrame:
    """path STRING, problem STRING."""
    root, properties = stored.path, replay.properties
    expired_at_ms = now_ms - deleted_file_retention_ms(properties)
    with_records = not all(is_off(properties, name) for name in _STATISTICS)
    may_expire = transaction_retention_ms(properties) is not None

    def facts(snapshot: Snapshot) -> DataFrame:
        frames = [
            add_facts(snapshot.add_files(), table_root=root, with_records=with_records),
            remove_facts(snapshot.remove_files(), table_root=root, expired_at_ms=expired_at_ms),
            transaction_facts(snapshot.transactions(), may_expire=may_expire),
            domain_facts(snapshot.domain_metadata()),
        ]
        return reduce(DataFrame.unionByName, frames)

    frames = [
        disagreements(facts(stored), facts(replay), of="checkpoint"),
        narrower_statistics(
            stored.add_files(),
            replay.add_files(),
            statistics=replay.configuration.statistics,
            table_root=root,
        ),
        _other_partition_values(stored),
    ]
    return reduce(DataFrame.unionByName, frames)


def _other_partition_values(stored: Snapshot) -> DataFrame:
    adds, facts = stored.state.adds_as_stored()
    typed = typed_partition_values(
        "partitionValues",
        stored.configuration.partition_keys,
        time_zone=stored.state.partition_time_zone,
    )
    return mismatched_partition_values(adds, typed, facts.partition_values)
