"""Serialization of actions to the JSON lines of a commit.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#actions
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.file_actions import AddCDCFile, AddFile, RemoveFile

Action: TypeAlias = (
    Protocol | Metadata | TransactionIdentifier | DomainMetadata | AddFile | RemoveFile | AddCDCFile
)

_NAMES: dict[type, str] = {
    Protocol: "protocol",
    Metadata: "metaData",
    TransactionIdentifier: "txn",
    DomainMetadata: "domainMetadata",
    AddFile: "add",
    RemoveFile: "remove",
    AddCDCFile: "cdc",
}


def action_line(action: Action) -> str:
    """Return an action as one line of a commit, without the line break."""
    return json_line(_NAMES[type(action)], wire_form(action))


def json_line(name: str, document: Mapping[str, object]) -> str:
    """Return an action in wire form, named such as ``commitInfo``, as one line of a commit."""
    return json.dumps({name: document}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def wire_form(value: Any) -> dict[str, Any]:
    """Return an action as a dict of the protocol's field names, without fields that are None."""
    members = ((_camel_case(f.name), getattr(value, f.name)) for f in fields(value))
    return {name: _member(member) for name, member in members if member is not None}


def _member(member: Any) -> Any:
    if is_dataclass(member):
        return wire_form(member)
    if isinstance(member, Mapping):
        return dict(member)
    return list(member) if isinstance(member, tuple) else member


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
