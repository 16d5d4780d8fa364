"""The commitInfo action: the provenance of a commit, as `history` shows it.

References
----------
PROTOCOL.md#commit-provenance-information, PROTOCOL.md#writer-requirements-for-in-commit-timestamps
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sparkdelta.base.protocol.action_lines import json_line
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.wire_values import wire_form

COMMIT_INFO = "commitInfo"
TRANSACTION_ID = "txnId"
ENGINE_INFO = "sparkdelta/0.1.0"

Parameter: TypeAlias = str | int | bool | None
"""A value of `operationParameters`."""


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The provenance of a commit, with the fields of delta-spark.

    Attributes
    ----------
    in_commit_timestamp
        In milliseconds since the epoch; the first field, so that readers find it without parsing
        the rest.
    read_version
        None for the first commit of a table.
    operation_parameters
        Texts, numbers and booleans as such, other values as JSON texts.
    txn_id
        Unique to each commit attempt, so that a writer can recognize its own commit.
    """

    in_commit_timestamp: int | None = None
    timestamp: int = 0
    operation: str = ""
    operation_parameters: Mapping[str, Parameter] = field(default_factory=dict)
    read_version: Version | None = None
    isolation_level: str | None = None
    is_blind_append: bool = False
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None
    engine_info: str = ENGINE_INFO
    txn_id: str = ""


def commit_info_line(info: CommitInfo) -> str:
    """Return the first line of a commit."""
    return json_line(COMMIT_INFO, wire_form(info))


def parse_commit_info(lines: Iterable[str]) -> Mapping[str, object]:
    """Return the fields of the commitInfo among lines of a commit; empty if there is none."""
    for line in lines:
        if f'"{COMMIT_INFO}"' not in line:
            continue
        try:
            action = json.loads(line)
        except (ValueError, RecursionError):
            continue
        info = action.get(COMMIT_INFO) if isinstance(action, dict) else None
        if isinstance(info, dict):
            return info
    return {}
