"""Committing by put-if-absent: read the winning commits, check for conflicts, and retry.

A `ConflictDetector` compares winning commits with the transaction, whose deletion vectors it may
unite with theirs. It is built when another commit was first.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#writer-requirements-for-in-commit-timestamps,
PROTOCOL.md#writer-requirements-for-row-tracking,
PROTOCOL.md#writer-requirements-for-catalog-managed-tables
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import uuid4

from sparkdelta.base.protocol import actions
from sparkdelta.base.protocol.action_lines import Action, action_line
from sparkdelta.base.protocol.commit_info import TRANSACTION_ID, CommitInfo, commit_info_line
from sparkdelta.base.protocol.isolation_levels import (
    IsolationLevel,
    commit_isolation_level,
    table_isolation_level,
)
from sparkdelta.base.protocol.log_files import (
    MAX_VERSION,
    LogFile,
    LogFileKind,
    Version,
    commit_name,
    listing_prefix,
)
from sparkdelta.base.protocol.protocol_upgrades import check_upgrade
from sparkdelta.base.protocol.row_ids import (
    MAX_ROW_ID,
    NO_ROW_IDS,
    ROW_TRACKING_DOMAIN,
    high_water_mark,
    high_water_mark_domain,
    with_row_ids,
)
from sparkdelta.base.protocol.table_features import TableFeature, check_managed, is_supported
from sparkdelta.base.protocol.table_properties import (
    assigns_row_ids,
    in_commit_timestamps,
    with_enablement,
)
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DeltaError,
    MaxCommitRetriesExceededError,
    StoreNotWritableError,
)
from sparkdelta.table.commit.conflict_rules import Conflict, WinningCommit, check_conflicts
from sparkdelta.table.commit.staged_commit_rules import (
    Operation,
    StagedActions,
    check_actions,
    check_allowed,
    check_removable,
    check_supported,
)
from sparkdelta.table.commit.staged_lines import StagedLines
from sparkdelta.table.listing.catalog_log import has_catalog
from sparkdelta.table.listing.line_reader import first_line, fits_on_driver
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import refuse_empty
from sparkdelta.table.log.commit_timestamp_rules import next_in_commit_timestamp

_LOGGER = logging.getLogger(__name__)

NO_VERSION = -1
MAX_ATTEMPTS = 1_000
_NO_VERSION_LEFT = f"version {MAX_VERSION} is the last that a table can have"
_NO_ROW_ID_LEFT = f"its rows would get row ids above {MAX_ROW_ID}, the largest LONG"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 2.0
_STORE_ERRORS: tuple[type[Exception], ...] = (OSError, DeltaError, *SPARK_ERRORS)


@dataclass(frozen=True, slots=True)
class ReadState:
    """The state of the version that a commit follows.

    Attributes
    ----------
    version
        `NO_VERSION` where there is no table yet.
    timestamp
        Its commit time in milliseconds; needed where in-commit timestamps are enabled.
    row_id_high_watermark
        The row id high-water mark; needed where row tracking is supported.
    """

    version: Version = NO_VERSION
    protocol: actions.Protocol | None = None
    metadata: actions.Metadata | None = None
    timestamp: int | None = None
    row_id_high_watermark: int = NO_ROW_IDS


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit before it has a version.

    Attributes
    ----------
    staged
        Actions as values.
    files
        Lines of the file actions that are not staged as values.
    dropped_features
        Names of table features that the protocol may lose.
    """

    operation: Operation
    staged: StagedActions = field(default_factory=StagedActions)
    files: StagedLines | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None
    dropped_features: frozenset[str] = frozenset()

    @property
    def changes_data(self) -> bool:
        lines = self.files
        return self.staged.changes_data or (
            lines is not None and (lines.adds_data or lines.removes_data)
        )

    def table_after(self, read_state: ReadState) -> tuple[actions.Protocol, actions.Metadata]:
        """Return the protocol and metaData of the table after the commit."""
        protocol = self.staged.protocols[0] if self.staged.protocols else read_state.protocol
        metadata = self.staged.metadata[0] if self.staged.metadata else read_state.metadata
        assert protocol is not None
        assert metadata is not None
        return protocol, metadata


@dataclass(frozen=True, slots=True)
class Committed:
    """A successful commit.

    Attributes
    ----------
    attempts
        Number of attempts, the successful one included.
    lines
        The whole commit file; None where its file actions were too many to be values.
    """

    version: Version
    attempts: int
    txn_id: str
    lines: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A winning commit, compared with a transaction.

    Attributes
    ----------
    conflicts
        The conflicts, each with a subject for the error message.
    staged
        The transaction's actions if it follows the commit.
    """

    winner: WinningCommit
    conflicts: Mapping[Conflict, str]
    staged: StagedActions


ConflictDetector: TypeAlias = Callable[[LogFile, StagedActions, bytes | None], Comparison]
"""Compares a winning commit with a transaction's actions. It reads the commit unless it is given
its contents; raises `FileNotFoundError` if the commit file is gone."""


@dataclass(frozen=True, slots=True)
class Committer:
    """A writer of commits to the log of one table.

    Attributes
    ----------
    clock
        Returns milliseconds since the epoch.
    """

    store: LogStore
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    pause: Callable[[float], None] = time.sleep
    max_attempts: int = MAX_ATTEMPTS

    def commit(
        self,
        prepared: PreparedCommit,
        read_state: ReadState,
        conflict_detector: Callable[[], ConflictDetector],
        before_put: Callable[[Version, bytes], None] = lambda *_: None,
        known_version: Version = NO_VERSION,
    ) -> Committed:
        """Write the commit as the next version; retry after winning commits without conflicts.

        Parameters
        ----------
        conflict_detector
            Called once another commit was first.
        before_put
            Called with the whole commit file before the first attempt, where it is not large.
        known_version
            A version that the table has: if it is later than the one that was read, the first
            attempt follows the commits up to the latest.

        Raises
        ------
        DELTA_INVALID_COMMIT, DELTA_CANNOT_MODIFY_APPEND_ONLY
            The actions are not valid, or the table does not allow them.
        DeltaConcurrentModificationException
            A concurrent commit conflicts with this one.
        MaxCommitRetriesExceededError
            Other writers came first at every attempt.
        CommitOutcomeUnknownError
            The store failed, and it is unknown whether the commit was written.
        """
        self.store.check_writable()
        path = self.store.table_root
        _check(prepared, read_state, path)
        protocol, metadata = prepared.table_after(read_state)
        _check_catalog(self.store, protocol, metadata)
        level = commit_isolation_level(
            table_isolation_level(metadata.configuration),
            only_files=prepared.staged.has_only_files,
            data_changes=prepared.changes_data,
            operation_changes_data=prepared.operation.changes_data,
        )
        read, txn_id, start = read_state, str(uuid4()), self.clock()
        detector = functools.cache(conflict_detector)
        if known_version > read_state.version:
            prepared, read_state = self._after_winners(prepared, read_state, level, detector)
        for attempt in range(1, self.max_attempts + 1):
            version = read_state.version + 1
            if version > MAX_VERSION:
                raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=_NO_VERSION_LEFT)
            info = CommitInfo(
                timestamp=self.clock(),
                operation=prepared.operation.name,
                operation_parameters=prepared.operation.parameters,
                read_version=None if read.version == NO_VERSION else read.version,
                isolation_level=level.value,
                is_blind_append=prepared.operation.is_blind_append,
                operation_metrics=prepared.operation.metric_texts,
                user_metadata=prepared.user_metadata,
                tags=prepared.tags,
                txn_id=txn_id,
            )
            lines, files = _lines(prepared, read_state, info, path)
            if attempt == 1 and files is None:
                before_put(version, lines)
            if self._put(version, lines, files, txn_id):
                _LOGGER.info(
                    "Committed version %s of %s (%s) at attempt %s after %s ms",
                    version, path, info.operation, attempt, self.clock() - start,
                )  # fmt: skip
                whole = lines if files is None else None
                return Committed(version, attempt, txn_id, whole)
            prepared, read_state = self._after_winners(prepared, read_state, level, detector)
            if attempt < self.max_attempts:
                longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempt, 20))
                self.pause(random.uniform(0, longest))  # noqa: S311 - spreads writers, no secret
        raise MaxCommitRetriesExceededError(
            path=path, attempts=self.max_attempts, version=read_state.version + 1
        )

    def _after_winners(
        self,
        prepared: PreparedCommit,
        read_state: ReadState,
        level: IsolationLevel,
        detector: Callable[[], ConflictDetector],
    ) -> tuple[PreparedCommit, ReadState]:
        """Return the commit as it follows the commits that came first, and the state after them.

        Raises
        ------
        DeltaConcurrentModificationException
            One of them conflicts with it.
        """
        path, version = self.store.table_root, read_state.version + 1
        for file, data in self._commits_from(version, path):
            try:
                compared = detector()(file, prepared.staged, data)
            except FileNotFoundError:
                raise _commit_is_gone(path, version) from None
            check_conflicts(
                compared.conflicts,
                level,
                winner=compared.winner,
                changes_metadata=bool(prepared.staged.metadata),
                path=path,
            )
            read_state = _read_state_after(read_state, compared.winner, file, path)
            prepared = replace(prepared, staged=compared.staged)
        return prepared, read_state

    def _put(self, version: Version, lines: bytes, files: StagedLines | None, txn_id: str) -> bool:
        """Write the version's file; return False if another writer's commit is there."""

        def chunks() -> Iterable[bytes]:
            yield lines
            if files is not None:
                yield from files.chunks()

        name = commit_name(version)
        try:
            self.store.put_if_absent(name, lines if files is None else chunks())
        except StoreNotWritableError:
            raise
        except _STORE_ERRORS as error:
            # The file may have been written although the response was lost; a client that sends it
            # again is told that it exists.
            try:
                is_ours = self._is_ours(name, txn_id)
            except _STORE_ERRORS:
                raise CommitOutcomeUnknownError(
                    path=self.store.table_root, version=version, txn_id=txn_id, problem=str(error)
                ) from error
            if is_ours is None and not isinstance(error, FileExistsError):
                raise
            return is_ours is True
        return True

    def _is_ours(self, name: str, txn_id: str) -> bool | None:
        """Return True if a commit is of this transaction, None if there is no such commit."""
        try:
            line = first_line(self.store, name)
        except FileNotFoundError:
            return None
        return f'"{TRANSACTION_ID}":"{txn_id}"' in line.decode("utf-8", errors="replace")

    def _commits_from(self, version: Version, path: str) -> Iterable[tuple[LogFile, bytes | None]]:
        """Return the winning commits in order, with their contents if these are small: a remote
        store reads several at once. They end with the first that the listing lacks: while others
        write, a listing of a large local directory may show a version and not the one before.
        """
        files = list_log_files(self.store, listing_prefix(version))
        listed = [file for file in files if file.kind is LogFileKind.COMMIT]
        commits = [file for number, file in enumerate(listed, version) if file.version == number]
        if len(commits) < len(listed):
            missing = version + len(commits)
            try:
                self.store.read_start(commit_name(missing), 1)
            except FileNotFoundError:
                raise _commit_is_gone(path, missing) from None
        refuse_empty(commits, path=path)
        if not fits_on_driver(commits):
            return ((file, None) for file in commits)
        try:
            contents = self.store.read([file.name for file in commits])
        except FileNotFoundError:
            raise _commit_is_gone(path, version) from None
        return zip(commits, contents, strict=True)


def _check(prepared: PreparedCommit, read_state: ReadState, path: str) -> None:
    if read_state.version == NO_VERSION and not (
        prepared.staged.protocols and prepared.staged.metadata
    ):
        raise DeltaError.of(
            "DELTA_INVALID_COMMIT",
            path=path,
            problem="the first commit needs protocol and metaData",
        )
    check_actions(prepared.staged, path=path)
    protocol, metadata = prepared.table_after(read_state)
    if read_state.protocol is not None and prepared.staged.protocols:
        dropped = prepared.dropped_features
        check_upgrade(read_state.protocol, protocol, path=path, dropped=dropped)
    check_allowed(prepared.staged, protocol=protocol, metadata=metadata, path=path)
    lines = prepared.files
    if lines is not None:
        if lines.removes_data:
            check_removable(protocol, metadata, path=path)
        check_supported(
            protocol,
            path=path,
            domains=False,
            vectors=lines.has_vectors,
            change_files=lines.has_change_files,
        )


def _check_catalog(store: LogStore, protocol: actions.Protocol, metadata: actions.Metadata) -> None:
    """Raise if a catalog manages the table and the store has none, or if the store has one and the
    table lacks the features of a catalog-managed table.
    """
    path = store.table_root
    check_managed(protocol, path=path, has_catalog=has_catalog(store))
    if not has_catalog(store):
        return
    problem = None
    if not is_supported(protocol, TableFeature.CATALOG_MANAGED):
        problem = "the table does not support catalogManaged, but is accessed through a catalog"
    elif not in_commit_timestamps(protocol, metadata.configuration).enabled:
        problem = "a table that a catalog manages must have in-commit timestamps"
    if problem is not None:
        raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=problem)


def _lines(
    prepared: PreparedCommit, read_state: ReadState, info: CommitInfo, path: str
) -> tuple[bytes, StagedLines | None]:
    """Return the lines of all actions that are values, and the lines of the other file actions."""
    staged, files, version = prepared.staged, prepared.files, read_state.version + 1
    protocol, metadata = prepared.table_after(read_state)
    if in_commit_timestamps(protocol, metadata.configuration).enabled:
        timestamp = next_in_commit_timestamp(info.timestamp, read_state.timestamp)
        info = replace(info, in_commit_timestamp=timestamp, timestamp=timestamp)
        if version > 0 and not _had_timestamps(read_state):
            metadata = with_enablement(metadata, version=version, timestamp=timestamp)
            staged = replace(staged, metadata=(metadata,))
    if assigns_row_ids(protocol, metadata.configuration):
        # A restored table may bring the mark of then, if row tracking was dropped since.
        marks = _row_id_marks(staged.domains, path=path, version=version)
        mark = max([read_state.row_id_high_watermark, *marks])
        adds, mark = with_row_ids(staged.adds, mark=mark, version=version, path=path)
        if mark + (0 if files is None else files.num_new_rows) > MAX_ROW_ID:
            raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=_NO_ROW_ID_LEFT)
        if files is not None:
            files = files.with_row_ids(mark=mark, version=version)
            mark += files.num_new_rows
        domains = [d for d in staged.domains if d.domain != ROW_TRACKING_DOMAIN]
        if mark > read_state.row_id_high_watermark:
            domains.append(high_water_mark_domain(mark))
        staged = replace(staged, adds=adds, domains=tuple(domains))
    values: tuple[Action, ...] = (
        *staged.protocols, *staged.metadata, *staged.transactions, *staged.domains,
        *staged.removes, *staged.adds, *staged.change_files,
    )  # fmt: skip
    lines = [commit_info_line(info), *map(action_line, values)]
    return "".join(f"{line}\n" for line in lines).encode(), files


def _row_id_marks(
    domains: Iterable[actions.DomainMetadata], *, path: str, version: Version
) -> list[int]:
    """Return the row id high-water mark of the domains of a commit; empty if it has none."""
    return [
        high_water_mark(domain, path=path, version=version)
        for domain in domains
        if domain.domain == ROW_TRACKING_DOMAIN
    ]


def _had_timestamps(read_state: ReadState) -> bool:
    if read_state.protocol is None or read_state.metadata is None:
        return False
    return in_commit_timestamps(read_state.protocol, read_state.metadata.configuration).enabled


def _read_state_after(
    read_state: ReadState, winner: WinningCommit, file: LogFile, path: str
) -> ReadState:
    """Return the state to commit against after a winning commit without conflicts."""
    timestamp = winner.commit_info.get("inCommitTimestamp")
    marks = _row_id_marks(winner.domains, path=path, version=winner.version)
    return replace(
        read_state,
        version=winner.version,
        timestamp=timestamp if isinstance(timestamp, int) else file.modification_time_ms,
        row_id_high_watermark=max([read_state.row_id_high_watermark, *marks]),
    )


def _commit_is_gone(path: str, version: Version) -> ConcurrentWriteException:
    return ConcurrentWriteException(
        path=path,
        version=version,
        operation="unknown operation",
        conflict="cannot be checked for conflicts, as it has already been deleted",
        subject="log cleanup",
    )
