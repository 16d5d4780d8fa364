"""Which sidecars of the newest checkpoint the next one takes over as they are.

A sidecar is taken over if a full checkpoint would write it with the same types and layout, and no
commit since speaks of a file in it. Sidecars of other writers are rewritten, never guessed at.

Small sidecars, of less than half the usual number of actions, are merged once there are more than
`MAX_SMALL` of a kind. So there are never more than 2n / adds_per_sidecar + MAX_SMALL sidecars of n
adds, and what the last checkpoint has just written; of tombstones likewise.

References
----------
PROTOCOL.md#v2-spec, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from sparkdelta.frames.reconciliation import superseded_actions, superseding_keys
from sparkdelta.frames.sidecar_touches import sidecars_in_range
from sparkdelta.protocol.actions import Sidecar
from sparkdelta.protocol.log_files import listing_prefix
from sparkdelta.protocol.sidecar_tags import SidecarTags, parse_sidecar_tags
from sparkdelta.table.checkpoint_contents import CheckpointContents
from sparkdelta.table.driver import read_rows
from sparkdelta.table.log_listing import list_log_files

MAX_SMALL = 8
"""So many small sidecars are left as they are, of adds and of tombstones each."""

MOST_REWRITTEN = 0.5
"""Where more than this share of all adds were to be rewritten, all are: in a layout as new."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What becomes of the sidecars of the last checkpoint; those that are in neither are dropped.

    Attributes
    ----------
    kept
        Taken over as they are.
    rewritten
        Replayed together with the commits.
    """

    kept: tuple[Sidecar, ...]
    rewritten: tuple[Sidecar, ...]

    @property
    def num_adds(self) -> int:
        """The live files that the kept ones describe."""
        return sum(_tags(one).num_adds for one in self.kept)

    @property
    def num_removes(self) -> int:
        """The tombstones in the kept ones."""
        return sum(_tags(one).num_removes for one in self.kept)


def plan_reuse(contents: CheckpointContents) -> Reuse | None:
    """What can be taken over; None where a full checkpoint is to be written."""
    log = contents.snapshot.log
    if not log.sidecars or not _is_newest(contents):
        return None
    ours: list[Sidecar] = []
    rewritten: list[Sidecar] = []
    for sidecar in log.sidecars:
        tags = parse_sidecar_tags(sidecar.tags)
        is_ours = tags is not None and tags.fingerprint == contents.fingerprint
        is_pure = tags is not None and not (tags.num_adds and tags.num_removes)
        (ours if is_ours and is_pure else rewritten).append(sidecar)
    adds = [one for one in ours if _tags(one).num_adds]
    removes = [
        one
        for one in ours
        if (last := _tags(one).last_deletion) is not None and last > contents.expired_at_ms
    ]
    touched = _touched(contents, adds, removes) if log.has_commits else set()
    kept_adds = _unless_small(
        [one for one in adds if one.path not in touched],
        contents.adds_per_sidecar,
    )
    kept_removes = _unless_small(
        [one for one in removes if one.path not in touched],
        contents.removes_per_sidecar,
    )
    kept = {one.path for one in (*kept_adds, *kept_removes)}
    rewritten += [one for one in (*adds, *removes) if one.path not in kept]
    plan = Reuse((*kept_adds, *kept_removes), tuple(rewritten))
    again = sum(tags.num_adds for tags in _known(rewritten))
    if not plan.kept or again > MOST_REWRITTEN * (again + plan.num_adds):
        return None
    return plan


def _is_newest(contents: CheckpointContents) -> bool:
    """Whether no checkpoint is newer: what an older one names may be about to be deleted."""
    version = contents.snapshot.version
    later = list_log_files(contents.snapshot.log.store, listing_prefix(version + 1))
    return not any(file.kind.is_checkpoint for file in later)


def _touched(
    contents: CheckpointContents, adds: Sequence[Sidecar], removes: Sequence[Sidecar]
) -> set[str]:
    """The names of the sidecars that hold what a commit since supersedes."""
    state, log = contents.snapshot.state, contents.snapshot.log
    keyed = state.keyed_commits()
    table = pa.table(
        {
            "name": pa.array([one.path for one in adds], pa.string()),
            "partition_values": pa.array([_tags(one).partition_values for one in adds]),
        }
    )
    near: set[str] = set()
    if adds:
        ranged = sidecars_in_range(log.spark.createDataFrame(table), keyed, contents.order)
        near = _names(contents, ranged.toDF("file"))
    keys = superseding_keys(keyed)
    frames = []
    for action, sidecars in (("add", [o for o in adds if o.path in near]), ("remove", removes)):
        if sidecars:
            held = superseded_actions(
                log.sidecar_keys(action, sidecars),
                keys,
                are_adds=action == "add",
                table_root=log.store.table_root,
                broadcast_keys=log.broadcasts_keys,
            )
            frames.append(held.select("file"))
    if not frames:
        return set()
    held = frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
    return _names(contents, held.distinct())


def _names(contents: CheckpointContents, files: DataFrame) -> set[str]:
    rows = read_rows(
        files,
        what="sidecars that commits may touch",
        bound=len(contents.snapshot.log.sidecars),
        version=contents.snapshot.version,
    )
    return {row["file"] for row in rows}


def _unless_small(sidecars: Sequence[Sidecar], usual: int) -> list[Sidecar]:
    """All, or where too many are small, those that are not."""
    large = [one for one in sidecars if 2 * _rows(one) >= usual]
    return large if len(sidecars) - len(large) > MAX_SMALL else list(sidecars)


def _rows(sidecar: Sidecar) -> int:
    tags = _tags(sidecar)
    return tags.num_adds + tags.num_removes


def _tags(sidecar: Sidecar) -> SidecarTags:
    tags = parse_sidecar_tags(sidecar.tags)
    assert tags is not None, "only sidecars of our own are asked"
    return tags


def _known(sidecars: Iterable[Sidecar]) -> list[SidecarTags]:
    return [tags for one in sidecars if (tags := parse_sidecar_tags(one.tags)) is not None]
