"""Action Reconciliation over dictionaries: a transcription of the protocol's text.

Slow, obvious, and independent of the package under test.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.support.log_writer import Action

FileKey = tuple[str, str]


@dataclass
class State:
    """A table at one version.

    Attributes
    ----------
    adds
        The one live add of each path.
    removes
        Tombstones by path and deletion vector.
    """

    protocol: Action | None = None
    metadata: Action | None = None
    transactions: dict[str, Any] = field(default_factory=dict)
    domains: dict[str, Any] = field(default_factory=dict)
    adds: dict[str, Any] = field(default_factory=dict)
    removes: dict[FileKey, Any] = field(default_factory=dict)

    def apply(self, commit: Sequence[Action]) -> None:
        """Replay one commit. In it, an add wins over the remove of the same logical file."""
        for kind in ("protocol", "metaData", "txn", "domainMetadata", "remove", "add"):
            for action in commit:
                if kind in action:
                    self._apply(kind, action)

    def _apply(self, kind: str, action: Action) -> None:
        fields = action[kind]
        if kind == "protocol":
            self.protocol = action
        elif kind == "metaData":
            self.metadata = action
        elif kind == "txn":
            self.transactions[fields["appId"]] = fields
        elif kind == "domainMetadata":
            self.domains[fields["domain"]] = fields
        elif kind == "add":
            path, vector = file_key(fields)
            self.adds[path] = fields
            self.removes.pop((path, vector), None)
        else:
            path, vector = file_key(fields)
            if path in self.adds and file_key(self.adds[path])[1] == vector:
                del self.adds[path]
            self.removes[path, vector] = fields

    @property
    def live_domains(self) -> dict[str, Any]:
        return {name: d for name, d in self.domains.items() if not d.get("removed")}

    def table_actions(self) -> list[Action]:
        """All of a checkpoint but the file actions."""
        first = [action for action in (self.protocol, self.metadata) if action is not None]
        transactions = [{"txn": fields} for fields in self.transactions.values()]
        return [
            *first,
            *transactions,
            *({"domainMetadata": fields} for fields in self.live_domains.values()),
        ]

    def file_actions(self) -> list[Action]:
        """The file actions of a checkpoint."""
        adds = [{"add": fields} for fields in self.adds.values()]
        return [*adds, *({"remove": fields} for fields in self.removes.values())]

    def checkpoint(self) -> list[Action]:
        """All of a V1 checkpoint. PROTOCOL.md#checkpoints"""
        return [*self.table_actions(), *self.file_actions()]


def replay(commits: Mapping[int, Sequence[Action]], *, until: int | None = None) -> State:
    """The state after the commits up to a version, all of them by default."""
    state = State()
    for version in sorted(commits):
        if until is None or version <= until:
            state.apply(commits[version])
    return state


def compaction(commits: Sequence[Sequence[Action]]) -> list[Action]:
    """The actions of a log compaction file: its commits reconciled.

    Domain tombstones are kept. PROTOCOL.md#log-compaction-files
    """
    state = State()
    for commit in commits:
        state.apply(commit)
    tombstones = [{"domainMetadata": d} for d in state.domains.values() if d.get("removed")]
    return [*state.checkpoint(), *tombstones]


def file_key(fields: Mapping[str, Any]) -> FileKey:
    """The primary key of a logical file, for tables below `file:`."""
    path = unquote(fields["path"])
    if path.startswith(("/", "file:/")):
        path = "file:/" + path.removeprefix("file:").lstrip("/")
    vector = fields.get("deletionVector")
    if vector is None:
        return path, ""
    offset = vector.get("offset")
    name = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return path, name if offset is None else f"{name}@{offset}"
