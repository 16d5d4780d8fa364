"""From staged actions to one new version: put if absent, or look who was first and try again.

Needs a store and no Spark; what winning commits did is for `table.winning_commits` to find out.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#writer-requirements-for-in-commit-timestamps,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import uuid4

from sparkdelta.exceptions import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DeltaError,
    InvalidCommitError,
    MaxCommitRetriesExceededError,
    StoreNotWritableError,
)
from sparkdelta.protocol import actions
from sparkdelta.protocol.action_lines import Action, action_line
from sparkdelta.protocol.commit_info import TRANSACTION_ID, CommitInfo, commit_info_line
from sparkdelta.protocol.commit_timestamps import next_in_commit_timestamp
from sparkdelta.protocol.conflicts import Finding, WinningCommit, check_findings
from sparkdelta.protocol.isolation_levels import commit_isolation_level, table_isolation_level
from sparkdelta.protocol.log_files import LogFile, LogFileKind, Version, commit_name, listing_prefix
from sparkdelta.protocol.log_segment import refuse_empty
from sparkdelta.protocol.protocol_upgrades import check_upgrade
from sparkdelta.protocol.row_ids import (
    NO_ROW_IDS,
    ROW_TRACKING_DOMAIN,
    high_water_mark,
    high_water_mark_domain,
    with_row_ids,
)
from sparkdelta.protocol.staged_commit import (
    Operation,
    StagedActions,
    check_actions,
    check_allowed,
    check_removable,
    check_supported,
)
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import in_commit_timestamps, with_enablement
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.log_listing import list_log_files
from sparkdelta.table.log_text import first_line
from sparkdelta.table.sessions import SPARK_ERRORS

log = logging.getLogger(__name__)

NO_VERSION = -1
MAX_ATTEMPTS = 1_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 2.0
_STORE_ERRORS: tuple[type[Exception], ...] = (OSError, DeltaError, *SPARK_ERRORS)


@dataclass(frozen=True, slots=True)
class Ground:
    """The version that a transaction read, as far as a commit depends on it.

    Attributes
    ----------
    version
        `NO_VERSION` where there is no table yet.
    timestamp
        When it was committed, in milliseconds; needed where in-commit timestamps are enabled.
    row_id_mark
        The highest row id assigned; needed where row tracking is supported.
    """

    version: Version = NO_VERSION
    protocol: actions.Protocol | None = None
    metadata: actions.Metadata | None = None
    timestamp: int | None = None
    row_id_mark: int = NO_ROW_IDS


class FileLines(Protocol):
    """File actions that are too many to be values: the lines of a commit after its first ones."""

    @property
    def adds_data(self) -> bool: ...
    @property
    def removes_data(self) -> bool: ...
    @property
    def has_vectors(self) -> bool: ...
    @property
    def num_new_rows(self) -> int:
        """How many rows of theirs need ids, where the table tracks rows."""

    def with_row_ids(self, *, mark: int, version: Version) -> FileLines:
        """The lines with fresh row ids above the mark."""

    def chunks(self) -> Iterable[bytes]:
        """The lines in pieces, from the beginning at each call."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is to be committed.

    Attributes
    ----------
    files
        File actions beside those that are staged as values.
    metrics
        `operationMetrics` of history.
    """

    operation: Operation
    staged: StagedActions = field(default_factory=StagedActions)
    files: FileLines | None = None
    metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None

    @property
    def changes_data(self) -> bool:
        lines = self.files
        return self.staged.changes_data or (
            lines is not None and (lines.adds_data or lines.removes_data)
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that stands.

    Attributes
    ----------
    attempts
        How often it was tried, this one included.
    lines
        All of it; None where its file actions were too many to be values.
    """

    version: Version
    attempts: int
    txn_id: str
    in_commit_timestamp: int | None = None
    lines: bytes | None = field(default=None, repr=False)


class Judge(Protocol):
    """Finds out what a winning commit did to the transaction's ground."""

    def __call__(self, file: LogFile) -> tuple[WinningCommit, Mapping[Finding, str]]:
        """Look into a commit.

        Raises
        ------
        FileNotFoundError
            It is gone.
        """


@dataclass(frozen=True, slots=True)
class Committer:
    """Commits to one table's log.

    Attributes
    ----------
    clock
        Milliseconds since the epoch.
    """

    store: LogStore
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    pause: Callable[[float], None] = time.sleep
    max_attempts: int = MAX_ATTEMPTS

    def commit(self, proposal: Proposal, ground: Ground, judge: Judge) -> Committed:
        """Write the next version that the proposal may be.

        Raises
        ------
        InvalidCommitError, AppendOnlyTableError
            The actions are wrong for any table, or for this one.
        DeltaConcurrentModificationException
            Another commit came first that this one may not follow.
        MaxCommitRetriesExceededError
            Others were always first.
        CommitOutcomeUnknownError
            The store failed, and does not tell what became of it.
        """
        self.store.check_writable()
        path = self.store.table_root
        _check(proposal, ground, path)
        level = commit_isolation_level(
            table_isolation_level(_after(proposal, ground)[1].configuration),
            only_files=proposal.staged.has_only_files,
            data_changes=proposal.changes_data,
            operation_changes_data=proposal.operation.changes_data,
        )
        read, txn_id, start = ground, str(uuid4()), self.clock()
        for attempt in range(1, self.max_attempts + 1):
            version = ground.version + 1
            info = CommitInfo(
                timestamp=self.clock(),
                operation=proposal.operation.name,
                operation_parameters=proposal.operation.parameters,
                read_version=None if read.version == NO_VERSION else read.version,
                isolation_level=level.value,
                is_blind_append=proposal.operation.is_blind_append,
                operation_metrics=proposal.metrics,
                user_metadata=proposal.user_metadata,
                tags=proposal.tags,
                txn_id=txn_id,
            )
            lines, timestamp, files = _lines(proposal, ground, info, path)
            if self._put(version, lines, files, txn_id):
                log.info(
                    "Committed version %s of %s (%s) at attempt %s after %s ms",
                    version, path, info.operation, attempt, self.clock() - start,
                )  # fmt: skip
                whole = lines if files is None else None
                return Committed(version, attempt, txn_id, timestamp, whole)
            for file in self._commits_from(version, path):
                try:
                    winner, findings = judge(file)
                except FileNotFoundError:
                    raise _lost(path, version) from None
                check_findings(
                    findings,
                    level,
                    winner=winner,
                    changes_metadata=bool(proposal.staged.metadata),
                    path=path,
                )
                ground = _moved(ground, winner, file, path)
            if attempt < self.max_attempts:
                longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempt, 20))
                self.pause(random.uniform(0, longest))  # noqa: S311 - spreads writers, no secret
        raise MaxCommitRetriesExceededError(
            path=path, attempts=self.max_attempts, version=ground.version + 1
        )

    def _put(self, version: Version, lines: bytes, files: FileLines | None, txn_id: str) -> bool:
        """Whether the version is ours now; False if it is another's."""

        def chunks() -> Iterable[bytes]:
            yield lines
            if files is not None:
                yield from files.chunks()

        name = commit_name(version)
        try:
            self.store.put_if_absent(name, lines if files is None else chunks())
        except StoreNotWritableError:
            raise
        except FileExistsError:
            return self._is_ours(name, txn_id) is True
        except _STORE_ERRORS as error:
            # The bytes may be there although the answer was lost.
            try:
                is_ours = self._is_ours(name, txn_id)
            except _STORE_ERRORS:
                raise CommitOutcomeUnknownError(
                    path=self.store.table_root, version=version, txn_id=txn_id, problem=str(error)
                ) from error
            if is_ours is None:
                raise
            return is_ours
        return True

    def _is_ours(self, name: str, txn_id: str) -> bool | None:
        """Whether a commit is of this transaction; None if there is no such commit."""
        try:
            line = first_line(self.store, name)
        except FileNotFoundError:
            return None
        return f'"{TRANSACTION_ID}":"{txn_id}"' in line.decode("utf-8", errors="replace")

    def _commits_from(self, version: Version, path: str) -> list[LogFile]:
        """The commits that were first, in order, none missing."""
        files = list_log_files(self.store, listing_prefix(version))
        commits = [file for file in files if file.kind is LogFileKind.COMMIT]
        if [file.version for file in commits] != list(range(version, version + len(commits))):
            raise _lost(path, version)
        refuse_empty(commits, path=path)
        return commits


def _check(proposal: Proposal, ground: Ground, path: str) -> None:
    if ground.version == NO_VERSION and not (
        proposal.staged.protocols and proposal.staged.metadata
    ):
        raise InvalidCommitError(path=path, problem="the first commit needs protocol and metaData")
    check_actions(proposal.staged, path=path)
    protocol, metadata = _after(proposal, ground)
    if ground.protocol is not None and proposal.staged.protocols:
        check_upgrade(ground.protocol, protocol, path=path)
    check_allowed(proposal.staged, protocol=protocol, metadata=metadata, path=path)
    lines = proposal.files
    if lines is not None:
        if lines.removes_data:
            check_removable(protocol, metadata, path=path)
        check_supported(protocol, path=path, domains=False, vectors=lines.has_vectors)


def _after(proposal: Proposal, ground: Ground) -> tuple[actions.Protocol, actions.Metadata]:
    """Protocol and metadata as they are once the proposal is committed."""
    protocol = proposal.staged.protocols[0] if proposal.staged.protocols else ground.protocol
    metadata = proposal.staged.metadata[0] if proposal.staged.metadata else ground.metadata
    assert protocol is not None
    assert metadata is not None
    return protocol, metadata


def _lines(
    proposal: Proposal, ground: Ground, info: CommitInfo, path: str
) -> tuple[bytes, int | None, FileLines | None]:
    """The lines of all values, the in-commit timestamp if the table has them, and the lines beside
    those of values.
    """
    staged, files, version = proposal.staged, proposal.files, ground.version + 1
    protocol, metadata = _after(proposal, ground)
    timestamp = None
    if in_commit_timestamps(protocol, metadata.configuration).enabled:
        timestamp = next_in_commit_timestamp(info.timestamp, ground.timestamp)
        info = replace(info, in_commit_timestamp=timestamp, timestamp=timestamp)
        if version > 0 and not _had_timestamps(ground):
            metadata = with_enablement(metadata, version=version, timestamp=timestamp)
            staged = replace(staged, metadata=(metadata,))
    if is_supported(protocol, TableFeature.ROW_TRACKING):
        adds, mark = with_row_ids(staged.adds, mark=ground.row_id_mark, version=version, path=path)
        if files is not None:
            files = files.with_row_ids(mark=mark, version=version)
            mark += files.num_new_rows
        domains = [d for d in staged.domains if d.domain != ROW_TRACKING_DOMAIN]
        if mark > ground.row_id_mark:
            domains.append(high_water_mark_domain(mark))
        staged = replace(staged, adds=adds, domains=tuple(domains))
    values: tuple[Action, ...] = (
        *staged.protocols, *staged.metadata, *staged.transactions, *staged.domains,
        *staged.removes, *staged.adds,
    )  # fmt: skip
    lines = [commit_info_line(info), *map(action_line, values)]
    return "".join(f"{line}\n" for line in lines).encode(), timestamp, files


def _had_timestamps(ground: Ground) -> bool:
    if ground.protocol is None or ground.metadata is None:
        return False
    return in_commit_timestamps(ground.protocol, ground.metadata.configuration).enabled


def _moved(ground: Ground, winner: WinningCommit, file: LogFile, path: str) -> Ground:
    """The ground after a winning commit that is no conflict."""
    timestamp = winner.commit_info.get("inCommitTimestamp")
    marks = [
        high_water_mark(domain, path=path, version=winner.version)
        for domain in winner.domains
        if domain.domain == ROW_TRACKING_DOMAIN
    ]
    return replace(
        ground,
        version=winner.version,
        timestamp=timestamp if isinstance(timestamp, int) else file.modification_time_ms,
        row_id_mark=max([ground.row_id_mark, *marks]),
    )


def _lost(path: str, version: Version) -> ConcurrentWriteException:
    return ConcurrentWriteException(
        path=path,
        version=version,
        operation="unknown operation",
        finding="cannot be checked for conflicts, as it has already been deleted",
        subject="log cleanup",
    )
