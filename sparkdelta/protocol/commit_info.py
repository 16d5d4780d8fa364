"""The commitInfo action: where a commit came from, as history shows it.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkdelta.protocol.action_lines import json_line, wire_form
from sparkdelta.protocol.log_files import Version

COMMIT_INFO = "commitInfo"
TRANSACTION_ID = "txnId"
ENGINE_INFO = "sparkdelta/0.1.0"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What delta-spark's history shows of a commit.

    Attributes
    ----------
    in_commit_timestamp
        First among the fields, as readers look for it without reading the rest.
    read_version
        The version that the transaction read; None for the first commit of a table.
    operation_parameters, operation_metrics
        Texts; whatever is no text is JSON.
    txn_id
        Of this attempt to commit and no other, so that a writer knows its own commit again.
    """

    in_commit_timestamp: int | None = None
    timestamp: int = 0
    operation: str = ""
    operation_parameters: Mapping[str, str] = field(default_factory=dict)
    read_version: Version | None = None
    isolation_level: str | None = None
    is_blind_append: bool = False
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None
    engine_info: str = ENGINE_INFO
    txn_id: str = ""


def commit_info_line(info: CommitInfo) -> str:
    """The line that begins a commit.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-in-commit-timestamps
    """
    return json_line(COMMIT_INFO, wire_form(info))
