"""Conflict rules: the concurrent commits that make a transaction fail.

A winning commit (one that another writer committed first) is compared with what the transaction
read and writes. `RULES` has the error of each kind of conflict and the isolation levels at which it
is raised. `table.commit.conflict_frames` implements the same comparison for commits with many file
actions; `tests/table/commit/test_conflict_frames.py` compares the two.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#domain-metadata
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sparkdelta.base.predicates.partition_matching_rules import may_match
from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.commit_info import COMMIT_INFO
from sparkdelta.base.protocol.file_actions import AddFile, FileKey, RemoveFile, file_key
from sparkdelta.base.protocol.isolation_levels import IsolationLevel
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.row_ids import ROW_TRACKING_DOMAIN
from sparkdelta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


class Conflict(Enum):
    """A change by a winning commit that conflicts with what the transaction read or writes."""

    CHANGED_PROTOCOL = "changed the protocol"
    CHANGED_METADATA = "changed the schema, partitioning or properties"
    ADDED_WHERE_READ = "added a file that may contain rows matching what was read"
    APPENDED_WHERE_READ = "appended a file that may contain rows matching what was read"
    REMOVED_WHAT_WAS_READ = "removed a file that was read"
    REMOVED_WHAT_IS_REMOVED = "removed a file that this commit also removes"
    ADVANCED_APPLICATION = "advanced the txn version of an application that was read"
    CHANGED_DOMAIN = "changed a metadata domain that this commit also changes"


@dataclass(frozen=True, slots=True)
class ConflictRule:
    """The error of a conflict and the isolation levels at which it is raised."""

    conflict: Conflict
    error: type[DeltaConcurrentModificationException]
    levels: frozenset[IsolationLevel]


_ALWAYS = frozenset(IsolationLevel)
_WHEN_DATA_CHANGES = _ALWAYS - {IsolationLevel.SNAPSHOT}
_IN_LOG_ORDER = frozenset((IsolationLevel.SERIALIZABLE,))

RULES = (
    ConflictRule(Conflict.CHANGED_PROTOCOL, ProtocolChangedException, _ALWAYS),
    ConflictRule(Conflict.CHANGED_METADATA, MetadataChangedException, _ALWAYS),
    ConflictRule(Conflict.ADDED_WHERE_READ, ConcurrentAppendException, _WHEN_DATA_CHANGES),
    ConflictRule(Conflict.APPENDED_WHERE_READ, ConcurrentAppendException, _IN_LOG_ORDER),
    ConflictRule(Conflict.REMOVED_WHAT_WAS_READ, ConcurrentDeleteReadException, _ALWAYS),
    ConflictRule(Conflict.REMOVED_WHAT_IS_REMOVED, ConcurrentDeleteDeleteException, _ALWAYS),
    ConflictRule(Conflict.ADVANCED_APPLICATION, ConcurrentTransactionException, _ALWAYS),
    ConflictRule(Conflict.CHANGED_DOMAIN, ConcurrentTransactionException, _ALWAYS),
)
"""The conflict rules, in the order in which they are checked."""

_OF_FILES = frozenset(
    (
        Conflict.ADDED_WHERE_READ,
        Conflict.APPENDED_WHERE_READ,
        Conflict.REMOVED_WHAT_WAS_READ,
        Conflict.REMOVED_WHAT_IS_REMOVED,
    )
)

BACKFILL, UNBACKFILL = "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"
RECOMMITS = frozenset((BACKFILL, UNBACKFILL))
"""The operations that commit live files again, with other facts about them."""

_RECONCILED_DOMAINS = frozenset((ROW_TRACKING_DOMAIN,))


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The data that a transaction read, besides protocol and metadata.

    Attributes
    ----------
    predicates
        The filters of its reads; a concurrent commit must not add a file that may match one.
    files
        The logical files that it read.
    whole_table
        True if it read every file.
    leaves_rows
        True if it read rows that match a predicate and leaves them as they are: a concurrent commit
        must not remove a file, which may have had one.
    only_rows
        True if it depends on rows alone, and not on the files that hold them: a concurrent commit
        may move rows to other files, unless they are in `files`.
    row_ids
        True if it read the row ids of files: a concurrent commit must not give them others.
    app_ids
        The applications whose transaction identifiers it read.
    """

    predicates: tuple[Predicate, ...] = ()
    files: frozenset[FileKey] = frozenset()
    whole_table: bool = False
    leaves_rows: bool = False
    only_rows: bool = False
    row_ids: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def depends_on_files(self) -> bool:
        """True if file actions of a concurrent commit can conflict."""
        return bool(self.predicates or self.files or self.whole_table or self.leaves_rows)


@dataclass(frozen=True, slots=True)
class WinningCommit:
    """A commit that another writer made first.

    Attributes
    ----------
    commit_info
        Its commitInfo in wire form; empty if it has none.
    adds, removes
        Its file actions; empty if the conflict check does not need them.
    moves_rows
        True if it moved rows to other files and changed none: no file action has `dataChange`.
    """

    version: Version
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[TransactionIdentifier, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    commit_info: Mapping[str, object] = field(default_factory=dict)
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    moves_rows: bool = False

    @classmethod
    def of(
        cls, version: Version, found: Mapping[str, Sequence[Mapping[str, object]]], *, path: str
    ) -> WinningCommit:
        """Return the commit with actions in wire form, by their names in the log."""

        def all_of(name: str) -> Sequence[Mapping[str, object]]:
            return found.get(name, ())

        files = [*all_of("add"), *all_of("remove")]
        return cls(
            version=version,
            protocol=next((Protocol.from_dict(d, path=path) for d in all_of("protocol")), None),
            metadata=next(map(Metadata.from_dict, all_of("metaData")), None),
            transactions=tuple(map(TransactionIdentifier.from_dict, all_of("txn"))),
            domains=tuple(map(DomainMetadata.from_dict, all_of("domainMetadata"))),
            commit_info=next(iter(all_of(COMMIT_INFO)), {}),
            adds=tuple(map(AddFile.from_dict, all_of("add"))),
            removes=tuple(map(RemoveFile.from_dict, all_of("remove"))),
            moves_rows=bool(files) and not any(file.get("dataChange", True) for file in files),
        )

    @property
    def is_blind_append(self) -> bool:
        """True if commitInfo has `isBlindAppend`; otherwise the commit may have read any file."""
        return self.commit_info.get("isBlindAppend") is True

    def adds_for(self, read: ReadSet) -> bool:
        """Return True if the commit's added files can conflict with a read set; files that were
        only committed again conflict only with readers of row ids.
        """
        return read.row_ids or not (self.operation in RECOMMITS or self.only_moves_for(read))

    def only_moves_for(self, read: ReadSet) -> bool:
        """Return True if a read set does not depend on the files between which rows moved."""
        return self.moves_rows and read.only_rows

    @property
    def operation(self) -> str:
        return str(self.commit_info.get("operation") or "unknown operation")


def table_conflicts(
    winner: WinningCommit, *, app_ids: frozenset[str], domains: frozenset[str]
) -> dict[Conflict, str]:
    """Return the conflicts with protocol, metaData, txn and domainMetadata actions of a commit.

    Parameters
    ----------
    app_ids
        The applications whose transaction identifiers the transaction read.
    domains
        The metadata domains that it changes.

    Returns
    -------
    dict
        The conflicts, each with the action or name that causes it, for the error message.
    """
    conflicts = {}
    if winner.protocol is not None:
        conflicts[Conflict.CHANGED_PROTOCOL] = "protocol"
    if winner.metadata is not None:
        conflicts[Conflict.CHANGED_METADATA] = "metaData"
    for transaction in winner.transactions:
        if transaction.app_id in app_ids:
            conflicts[Conflict.ADVANCED_APPLICATION] = transaction.app_id
    for domain in winner.domains:
        if domain.domain in domains - _RECONCILED_DOMAINS:
            conflicts[Conflict.CHANGED_DOMAIN] = domain.domain
    return conflicts


def file_conflicts(
    winner: WinningCommit,
    *,
    read: ReadSet,
    removes: frozenset[FileKey],
    partition_types: Mapping[str, tuple[str, str]],
    table_root: str,
) -> dict[Conflict, str]:
    """Return the conflicts with file actions of a commit, each with the path of one file.

    Parameters
    ----------
    removes
        The logical files that the transaction removes.
    partition_types
        See `may_match`.
    """
    conflicts = {}
    for add in winner.adds if winner.adds_for(read) else ():
        matches = (may_match(p, add.partition_values, partition_types) for p in read.predicates)
        if read.whole_table or any(matches):
            conflicts[conflict_of_added_file(is_blind_append=winner.is_blind_append)] = add.path
    # Compare paths only: a new deletion vector for a file that was read is also a conflict.
    read_paths = {path for path, _ in read.files}
    removed_paths = {path for path, _ in removes}
    reads_all = (read.whole_table or read.leaves_rows) and not winner.only_moves_for(read)
    for remove in winner.removes:
        path, _ = file_key(remove, table_root)
        if reads_all or path in read_paths:
            conflicts.setdefault(Conflict.REMOVED_WHAT_WAS_READ, remove.path)
        if path in removed_paths:
            conflict = conflict_of_removed_file(reads_files=read.depends_on_files)
            conflicts.setdefault(conflict, remove.path)
    return conflicts


def conflict_of_added_file(*, is_blind_append: bool) -> Conflict:
    """Return the kind of conflict that an added file causes if it matches what was read."""
    return Conflict.APPENDED_WHERE_READ if is_blind_append else Conflict.ADDED_WHERE_READ


def conflict_of_removed_file(*, reads_files: bool) -> Conflict:
    """Return the kind of conflict that a file causes which both writers remove; an operation that
    reads files has read those that it removes.
    """
    return Conflict.REMOVED_WHAT_WAS_READ if reads_files else Conflict.REMOVED_WHAT_IS_REMOVED


def check_conflicts(
    conflicts: Mapping[Conflict, str],
    level: IsolationLevel,
    *,
    winner: WinningCommit,
    changes_metadata: bool,
    path: str,
) -> None:
    """Raise the error of the first rule that applies to these conflicts.

    Parameters
    ----------
    changes_metadata
        True if the transaction changes metaData. Concurrent blind appends then conflict at
        WriteSerializable as well, because their files may not fit the new schema.

    Raises
    ------
    DeltaConcurrentModificationException
        The subclass that the rule specifies.
    """
    if changes_metadata and level is IsolationLevel.WRITE_SERIALIZABLE:
        level = IsolationLevel.SERIALIZABLE
    for rule in RULES:
        if rule.conflict in conflicts and level in rule.levels:
            error = rule.error(
                path=path,
                version=winner.version,
                operation=winner.operation,
                conflict=rule.conflict.value,
                subject=conflicts[rule.conflict],
            )
            error.only_moved_rows = winner.moves_rows and rule.conflict in _OF_FILES
            raise error
