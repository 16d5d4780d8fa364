"""Staged actions of a transaction, and the checks of every commit.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file, PROTOCOL.md#append-only-tables,
PROTOCOL.md#writer-requirements-for-domain-metadata
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.file_actions import AddCDCFile, AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.table_features import TableFeature, check_writable, is_supported
from sparkdelta.base.protocol.table_properties import is_append_only
from sparkdelta.exceptions import DeltaError


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation that a commit performs, as history shows it.

    Attributes
    ----------
    name
        The name that delta-spark uses: ``WRITE``, ``DELETE``.
    parameters
        See `CommitInfo`.
    is_blind_append
        True if it only adds files and read none.
    changes_data
        True if it is of a kind that changes rows, even if its actions do not have `dataChange`.
    metrics
        `operationMetrics` of history, which has them as text; None without any.
    """

    name: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    is_blind_append: bool = False
    changes_data: bool = True
    metrics: Mapping[str, int] | None = None

    @property
    def metric_texts(self) -> dict[str, str] | None:
        """The metrics as history has them."""
        if self.metrics is None:
            return None
        return {name: str(number) for name, number in self.metrics.items()}

    def with_metrics_of(self, num_removed_files: int, num_removed_bytes: int) -> Operation:
        """Add the metrics of removed files, known only when committing; MERGE has its own."""
        if self.metrics is None or self.is_blind_append or self.name == "MERGE":
            return self
        removed = {"numRemovedFiles": num_removed_files, "numRemovedBytes": num_removed_bytes}
        return replace(self, metrics={**removed, **self.metrics})


@dataclass(frozen=True, slots=True)
class StagedActions:
    """The actions of a commit, without its commitInfo.

    Attributes
    ----------
    protocols, metadata
        A commit has at most one of each.
    change_files
        The `cdc` actions.
    """

    protocols: tuple[Protocol, ...] = ()
    metadata: tuple[Metadata, ...] = ()
    transactions: tuple[TransactionIdentifier, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    change_files: tuple[AddCDCFile, ...] = ()

    def with_files(
        self,
        adds: tuple[AddFile, ...],
        removes: tuple[RemoveFile, ...],
        change_files: tuple[AddCDCFile, ...],
    ) -> StagedActions:
        """Return these actions with additional file actions."""
        return replace(
            self,
            adds=(*self.adds, *adds),
            removes=(*self.removes, *removes),
            change_files=(*self.change_files, *change_files),
        )

    @property
    def has_only_files(self) -> bool:
        return not (self.protocols or self.metadata or self.transactions or self.domains)

    @property
    def domain_names(self) -> frozenset[str]:
        return frozenset(domain.domain for domain in self.domains)

    @property
    def files(self) -> tuple[AddFile | RemoveFile, ...]:
        return *self.adds, *self.removes

    @property
    def changes_data(self) -> bool:
        """True if an add or remove has `dataChange`."""
        return any(action.data_change for action in self.files)


def check_actions(staged: StagedActions, *, path: str) -> None:
    """Raise if action reconciliation of the actions would be ambiguous."""
    if any(change.data_change for change in staged.change_files):
        raise DeltaError.of(
            "DELTA_INVALID_COMMIT", path=path, problem="it contains a cdc action with dataChange"
        )
    _at_most_one((None for _ in staged.protocols), "protocol actions", path)
    _at_most_one((None for _ in staged.metadata), "metaData actions", path)
    _at_most_one((t.app_id for t in staged.transactions), "txn actions of application", path)
    _at_most_one((d.domain for d in staged.domains), "domainMetadata actions of domain", path)
    files = (file_key(action, path) for action in staged.files)
    _at_most_one(files, "actions of logical file", path)


def check_allowed(
    staged: StagedActions, *, protocol: Protocol, metadata: Metadata, path: str
) -> None:
    """Raise if the protocol and properties, as of after the commit, do not allow its actions."""
    check_writable(protocol, path=path)
    if any(remove.data_change for remove in staged.removes):
        check_removable(protocol, metadata, path=path)
    check_supported(
        protocol,
        path=path,
        domains=bool(staged.domains),
        vectors=any(add.deletion_vector is not None for add in staged.adds),
        change_files=bool(staged.change_files),
    )


def check_removable(protocol: Protocol, metadata: Metadata, *, path: str) -> None:
    """Raise if the table is append-only, so that no data may be removed."""
    if is_append_only(protocol, metadata.configuration):
        raise DeltaError.of("DELTA_CANNOT_MODIFY_APPEND_ONLY", path=path)


def check_supported(
    protocol: Protocol, *, path: str, domains: bool, vectors: bool, change_files: bool
) -> None:
    """Raise `DELTA_INVALID_COMMIT` for actions of features that the protocol does not support."""
    wanted = {
        TableFeature.DOMAIN_METADATA: domains,
        TableFeature.DELETION_VECTORS: vectors,
        TableFeature.CHANGE_DATA_FEED: change_files,
    }
    for feature, is_used in wanted.items():
        if is_used and not is_supported(protocol, feature):
            problem = (
                f"it contains actions that require {feature.value}, which the protocol does not "
                "support"
            )
            raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=problem)


def _at_most_one(keys: Iterable[Hashable], what: str, path: str) -> None:
    for key, count in Counter(keys).items():
        if count > 1:
            name = what if key is None else f"{what} {key}"
            raise DeltaError.of(
                "DELTA_INVALID_COMMIT", path=path, problem=f"it contains {count} {name}"
            )
