"""Serialization of actions to the JSON lines of a commit.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#actions
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.file_actions import AddCDCFile, AddFile, RemoveFile
from sparkdelta.base.protocol.wire_values import wire_form

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
