"""Updates `_last_checkpoint`, but never to an older checkpoint.

References
----------
PROTOCOL.md#last-checkpoint-file, PROTOCOL.md#last-checkpoint-file-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sparkdelta.base.protocol.log_files import LAST_CHECKPOINT, Version, listing_prefix
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.listing.last_checkpoint_rules import last_checkpoint_bytes
from sparkdelta.table.listing.listing import list_log_files, read_hint
from sparkdelta.table.listing.log_segment_rules import complete_checkpoints

MAX_EMBEDDED = 30
"""The hint repeats the actions of a V2 checkpoint that has at most so many sidecars, and at most so
many other actions."""

MAX_EMBEDDED_BYTES = 64 * 1024
"""The hint repeats no actions of a checkpoint whose top-level file has more than so many bytes."""

MAX_SCHEMA_CHARACTERS = 20_000
"""The hint leaves out a schema with more than so many characters."""

_OPTIONAL = ("v2Checkpoint", "checkpointSchema")


def update_hint(store: LogStore, document: Mapping[str, object]) -> None:
    """Point `_last_checkpoint` to a checkpoint, unless it points to a newer one that exists.

    Two writers that do this at once may leave the older of their hints: readers then list more.
    """
    version = document["version"]
    assert isinstance(version, int)
    known = read_hint(store)
    if known is not None and known > version and _is_there(store, known):
        return
    present = {name: value for name, value in document.items() if value is not None}
    store.overwrite(LAST_CHECKPOINT, last_checkpoint_bytes(present, optional=_OPTIONAL))


def _is_there(store: LogStore, version: Version) -> bool:
    files = list_log_files(store, listing_prefix(version))
    return version in complete_checkpoints(file for file in files if file.kind.is_checkpoint)


def embedded(lines: Sequence[str]) -> dict[str, object]:
    """The actions of a V2 checkpoint's top-level file as the hint repeats them; nothing if they are
    many.
    """
    actions = [json.loads(line) for line in lines]
    sidecars = [action["sidecar"] for action in actions if "sidecar" in action]
    others = [action for action in actions if "sidecar" not in action]
    if max(len(sidecars), len(others)) > MAX_EMBEDDED:
        return {}
    return {"nonFileActions": others, "sidecarFiles": sidecars}
