"""What a transaction is about to commit, and the checks that no commit may fail.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from sparkdelta.exceptions import AppendOnlyTableError, InvalidCommitError
from sparkdelta.protocol.actions import DomainMetadata, Metadata, Protocol, TransactionIdentifier
from sparkdelta.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.protocol.table_features import TableFeature, check_writable, is_supported
from sparkdelta.protocol.table_properties import is_append_only


@dataclass(frozen=True, slots=True)
class Operation:
    """What a commit is for, as history shows it.

    Attributes
    ----------
    name
        As delta-spark names it: ``WRITE``, ``DELETE``.
    parameters
        Texts; whatever is no text is JSON.
    is_blind_append
        Whether it only adds files and read none.
    changes_data
        Whether it is of a kind that changes rows, whatever its actions say.
    """

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    is_blind_append: bool = False
    changes_data: bool = True


@dataclass(frozen=True, slots=True)
class StagedActions:
    """The actions of a commit but for its commitInfo.

    Attributes
    ----------
    protocols, metadata
        At most one of each may be committed.
    """

    protocols: tuple[Protocol, ...] = ()
    metadata: tuple[Metadata, ...] = ()
    transactions: tuple[TransactionIdentifier, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()

    @property
    def has_only_files(self) -> bool:
        return not (self.protocols or self.metadata or self.transactions or self.domains)

    @property
    def files(self) -> tuple[AddFile | RemoveFile, ...]:
        return *self.adds, *self.removes

    @property
    def changes_data(self) -> bool:
        """Whether a file action says so."""
        return any(action.data_change for action in self.files)


def check_actions(staged: StagedActions, *, path: str) -> None:
    """Refuse actions that no reader could reconcile to one state.

    Raises
    ------
    InvalidCommitError
        There are several protocol or metaData actions, transaction identifiers of one application,
        actions of one domain or references to one logical file.

    References
    ----------
    PROTOCOL.md#action-reconciliation, PROTOCOL.md#add-file-and-remove-file
    """
    _at_most_one((None for _ in staged.protocols), "protocol actions", path)
    _at_most_one((None for _ in staged.metadata), "metaData actions", path)
    _at_most_one((t.app_id for t in staged.transactions), "txn actions of application", path)
    _at_most_one((d.domain for d in staged.domains), "domainMetadata actions of domain", path)
    files = (file_key(action, path) for action in staged.files)
    _at_most_one(files, "actions of logical file", path)


def check_allowed(
    staged: StagedActions, *, protocol: Protocol, metadata: Metadata, path: str
) -> None:
    """Refuse a commit that the table, as it is after it, does not allow.

    Raises
    ------
    InvalidCommitError
        It removes data from an append-only table, or has domains or deletion vectors where the
        protocol does not support them.
    DeltaError
        What `check_writable` raises.

    References
    ----------
    PROTOCOL.md#append-only-tables, PROTOCOL.md#writer-requirements-for-domain-metadata
    """
    check_writable(protocol, path=path)
    if any(remove.data_change for remove in staged.removes):
        check_removable(protocol, metadata, path=path)
    check_supported(
        protocol,
        path=path,
        domains=bool(staged.domains),
        vectors=any(add.deletion_vector is not None for add in staged.adds),
    )


def check_removable(protocol: Protocol, metadata: Metadata, *, path: str) -> None:
    """Refuse to take data out of an append-only table.

    References
    ----------
    PROTOCOL.md#append-only-tables
    """
    if is_append_only(protocol, metadata.configuration):
        raise AppendOnlyTableError(path=path)


def check_supported(protocol: Protocol, *, path: str, domains: bool, vectors: bool) -> None:
    """Refuse actions of features that the table does not support."""
    wanted = {TableFeature.DOMAIN_METADATA: domains, TableFeature.DELETION_VECTORS: vectors}
    for feature, is_used in wanted.items():
        if is_used and not is_supported(protocol, feature):
            problem = (
                f"it contains actions that require {feature.value}, which the protocol does not "
                "support"
            )
            raise InvalidCommitError(path=path, problem=problem)


def _at_most_one(keys: Iterable[Hashable], what: str, path: str) -> None:
    for key, count in Counter(keys).items():
        if count > 1:
            name = what if key is None else f"{what} {key}"
            raise InvalidCommitError(path=path, problem=f"it contains {count} {name}")
