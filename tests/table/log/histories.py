"""One history that has some of everything, for the layouts of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.log_writer import Action, write_commit
from tests.support.table_builder import add, metadata, protocol, removal_of, remove


def _vector(name: str) -> dict[str, Any]:
    return {
        "storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 1, "cardinality": 1,
    }  # fmt: skip


def _txn(app: str, version: int) -> Action:
    return {"txn": {"appId": app, "version": version, "lastUpdated": version}}


def _domain(name: str, configuration: str, *, removed: bool = False) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


FEATURES = ["deletionVectors", "v2Checkpoint", "domainMetadata"]
_B = add("b", deletionVector=_vector("v"))
_C = add("p=c%20d/c")

COMMITS: dict[int, list[Action]] = {
    0: [protocol(features=FEATURES), metadata(table_id="first"), add("a"), _domain("d", "1")],
    1: [add("b"), _C, _txn("app", 1)],
    2: [remove("b"), _B, _domain("e", "1")],
    3: [removal_of(_C), add("e"), _txn("app", 2), _txn("other", 7)],
    4: [metadata(table_id="second"), _domain("d", "", removed=True), add("f")],
    5: [removal_of(_B), add("b", deletionVector=_vector("w")), remove("a")],
    6: [add("a"), add("g"), _txn("app", 3), remove("file:/nowhere/x")],
}


def write_history(table: Path, *, first: int = 0, last: int = 6) -> None:
    """The commits of a range of versions."""
    for version, actions in COMMITS.items():
        if first <= version <= last:
            write_commit(table, version, actions)
