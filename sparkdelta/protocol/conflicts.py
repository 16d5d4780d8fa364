"""Which commits of others a transaction may not follow, as data.

What a winning commit did to the transaction's ground is a set of findings; `RULES` says which of
them count at which isolation level, and how the error is called.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#domain-metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from sparkdelta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from sparkdelta.protocol.actions import DomainMetadata, Metadata, Protocol, TransactionIdentifier
from sparkdelta.protocol.file_actions import AddFile, FileKey, RemoveFile, file_key
from sparkdelta.protocol.isolation_levels import IsolationLevel
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.partition_matching import may_match
from sparkdelta.protocol.predicates import Predicate
from sparkdelta.protocol.row_ids import ROW_TRACKING_DOMAIN


class Finding(Enum):
    """What a winning commit did to the ground that a transaction stands on."""

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
    """At these isolation levels, a commit after such a finding is refused with this error."""

    finding: Finding
    error: type[DeltaConcurrentModificationException]
    levels: frozenset[IsolationLevel]


_ALWAYS = frozenset(IsolationLevel)
_WHEN_DATA_CHANGES = _ALWAYS - {IsolationLevel.SNAPSHOT}
_IN_LOG_ORDER = frozenset((IsolationLevel.SERIALIZABLE,))

RULES = (
    ConflictRule(Finding.CHANGED_PROTOCOL, ProtocolChangedException, _ALWAYS),
    ConflictRule(Finding.CHANGED_METADATA, MetadataChangedException, _ALWAYS),
    ConflictRule(Finding.ADDED_WHERE_READ, ConcurrentAppendException, _WHEN_DATA_CHANGES),
    ConflictRule(Finding.APPENDED_WHERE_READ, ConcurrentAppendException, _IN_LOG_ORDER),
    ConflictRule(Finding.REMOVED_WHAT_WAS_READ, ConcurrentDeleteReadException, _ALWAYS),
    ConflictRule(Finding.REMOVED_WHAT_IS_REMOVED, ConcurrentDeleteDeleteException, _ALWAYS),
    ConflictRule(Finding.ADVANCED_APPLICATION, ConcurrentTransactionException, _ALWAYS),
    ConflictRule(Finding.CHANGED_DOMAIN, ConcurrentTransactionException, _ALWAYS),
)
"""In the order in which they are looked at."""

_RECONCILED_DOMAINS = frozenset((ROW_TRACKING_DOMAIN,))


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a transaction's outcome depends on, besides protocol and metadata.

    Attributes
    ----------
    predicates
        Of the rows that it read; files that match may not be added behind its back.
    files
        The logical files that it read.
    whole_table
        Whether it read all of them.
    app_ids
        The applications whose transaction identifiers it looked up.
    """

    predicates: tuple[Predicate, ...] = ()
    files: frozenset[FileKey] = frozenset()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def looks_at_files(self) -> bool:
        """Whether file actions of others can matter to it."""
        return bool(self.predicates or self.files or self.whole_table)


@dataclass(frozen=True, slots=True)
class WinningCommit:
    """A commit that another writer made first.

    Attributes
    ----------
    commit_info
        As it stands in the log, if there is one.
    adds, removes
        Its file actions as far as they were asked for.
    """

    version: Version
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[TransactionIdentifier, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    commit_info: Mapping[str, object] = field(default_factory=dict)
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()

    @property
    def is_blind_append(self) -> bool:
        """Whether it says so: what says nothing may have read anything."""
        return self.commit_info.get("isBlindAppend") is True

    @property
    def operation(self) -> str:
        return str(self.commit_info.get("operation") or "unknown operation")


def table_findings(
    winner: WinningCommit, *, app_ids: frozenset[str], domains: frozenset[str]
) -> dict[Finding, str]:
    """What its actions other than those of files did, each with what it did it to.

    Parameters
    ----------
    app_ids
        Those that the transaction read.
    domains
        Those that it changes.
    """
    findings = {}
    if winner.protocol is not None:
        findings[Finding.CHANGED_PROTOCOL] = "protocol"
    if winner.metadata is not None:
        findings[Finding.CHANGED_METADATA] = "metaData"
    for transaction in winner.transactions:
        if transaction.app_id in app_ids:
            findings[Finding.ADVANCED_APPLICATION] = transaction.app_id
    for domain in winner.domains:
        if domain.domain in domains - _RECONCILED_DOMAINS:
            findings[Finding.CHANGED_DOMAIN] = domain.domain
    return findings


def file_findings(
    winner: WinningCommit,
    *,
    read: ReadSet,
    removes: frozenset[FileKey],
    partition_types: Mapping[str, tuple[str, str]],
    table_root: str,
) -> dict[Finding, str]:
    """What its file actions did, each with a file that shows it; see `frames.conflicts` for many.

    Parameters
    ----------
    removes
        The logical files that the transaction removes.
    partition_types
        See `may_match`.
    """
    findings = {}
    for add in winner.adds:
        matches = (may_match(p, add.partition_values, partition_types) for p in read.predicates)
        if read.whole_table or any(matches):
            findings[added_finding(is_blind_append=winner.is_blind_append)] = add.path
    # A file counts whole: whoever reads one reads it with the deletion vector that it had.
    read_paths = {path for path, _ in read.files}
    removed_paths = {path for path, _ in removes}
    for remove in winner.removes:
        path, _ = file_key(remove, table_root)
        if read.whole_table or path in read_paths:
            findings.setdefault(Finding.REMOVED_WHAT_WAS_READ, remove.path)
        if path in removed_paths:
            findings.setdefault(Finding.REMOVED_WHAT_IS_REMOVED, remove.path)
    return findings


def added_finding(*, is_blind_append: bool) -> Finding:
    """What an added file that matches what was read comes under."""
    return Finding.APPENDED_WHERE_READ if is_blind_append else Finding.ADDED_WHERE_READ


def check_findings(
    findings: Mapping[Finding, str],
    level: IsolationLevel,
    *,
    winner: WinningCommit,
    changes_metadata: bool,
    path: str,
) -> None:
    """Refuse to commit after a commit of these findings.

    Parameters
    ----------
    changes_metadata
        Whether the transaction does: what was appended may then not fit, at any level.

    Raises
    ------
    DeltaConcurrentModificationException
        The leaf that the first rule that applies names.
    """
    if changes_metadata and level is IsolationLevel.WRITE_SERIALIZABLE:
        level = IsolationLevel.SERIALIZABLE
    for rule in RULES:
        if rule.finding in findings and level in rule.levels:
            raise rule.error(
                path=path,
                version=winner.version,
                operation=winner.operation,
                finding=rule.finding.value,
                subject=findings[rule.finding],
            )
