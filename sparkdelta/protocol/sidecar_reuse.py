"""Which sidecars of the last checkpoint the next one takes over as they are.

A sidecar is taken over if it was written with the types and the layout of today (by which columns,
too) and no commit since speaks of a file in it. Sidecars of other writers are rewritten, never
guessed at. Tombstones are in sidecars of their own: one whose tombstones are all expired is
dropped, and one of which some are may be taken over until it is merged.

Small sidecars, of less than half the usual number of actions, are merged once there are more than
`MAX_SMALL` of a kind. So there are never more than `2 n / usual + MAX_SMALL` sidecars for `n`
actions of a kind, and what the last checkpoint has just written.

References
----------
PROTOCOL.md#v2-spec, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sparkdelta.protocol.actions import Sidecar
from sparkdelta.protocol.sidecar_tags import SidecarTags, parse_sidecar_tags

MAX_SMALL = 8
"""So many small sidecars are left as they are, of adds and of tombstones each."""

MOST_REWRITTEN = 0.5
"""Where more than this share of all adds were to be rewritten, all are: in a layout as new."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What becomes of the sidecars of the last checkpoint; one that is in neither is dropped.

    Attributes
    ----------
    kept
        Taken over as they are.
    rewritten
        Replayed together with the commits.
    num_live
        The live files of the version, by all sidecars' tags and the commits; None where one has no
        tags.
    """

    kept: tuple[Sidecar, ...]
    rewritten: tuple[Sidecar, ...]
    num_live: int | None = None

    @property
    def num_adds(self) -> int:
        """The live files that the kept ones describe."""
        return sum(_tags(one).num_adds for one in self.kept)

    @property
    def num_removes(self) -> int:
        """The tombstones in the kept ones."""
        return sum(_tags(one).num_removes for one in self.kept)


@dataclass(frozen=True, slots=True)
class KnownSidecars:
    """The sidecars of a checkpoint, by what their tags tell.

    Attributes
    ----------
    adds, removes
        Those that could be taken over; tombstones of which at least one is not expired.
    others
        Those that must be rewritten.
    """

    adds: tuple[Sidecar, ...]
    removes: tuple[Sidecar, ...]
    others: tuple[Sidecar, ...]

    @property
    def num_adds(self) -> int:
        """The live files that those that could be taken over describe."""
        return sum(_tags(one).num_adds for one in self.adds)

    @classmethod
    def of(
        cls, sidecars: Sequence[Sidecar], *, fingerprint: str, expired_at_ms: int
    ) -> KnownSidecars:
        """Sort the sidecars.

        Parameters
        ----------
        fingerprint
            That a full checkpoint would give them today.
        """
        adds, removes, others = [], [], []
        for one in sidecars:
            tags = parse_sidecar_tags(one.tags)
            if (
                tags is None
                or tags.fingerprint != fingerprint
                or (tags.num_adds and tags.num_removes)
            ):
                others.append(one)
            elif tags.num_adds:
                adds.append(one)
            elif tags.last_deletion is not None and tags.last_deletion > expired_at_ms:
                removes.append(one)
        return cls(tuple(adds), tuple(removes), tuple(others))

    def reuse(
        self,
        touched: Collection[str],
        *,
        adds_per_sidecar: int,
        removes_per_sidecar: int,
        more_live: int = 0,
    ) -> Reuse | None:
        """What can be taken over; None where a full checkpoint is better.

        Parameters
        ----------
        touched
            The names of those that hold what a commit since supersedes.
        more_live
            How many more live files there are since.
        """
        kept = [
            *_unless_small([o for o in self.adds if o.path not in touched], adds_per_sidecar),
            *_unless_small([o for o in self.removes if o.path not in touched], removes_per_sidecar),
        ]
        names = {one.path for one in kept}
        rewritten = [one for one in (*self.adds, *self.removes) if one.path not in names]
        reuse = Reuse(
            tuple(kept),
            (*self.others, *rewritten),
            None if self.others else self.num_adds + more_live,
        )
        again = sum(_tags(one).num_adds for one in rewritten)
        if not kept or again > MOST_REWRITTEN * (again + reuse.num_adds):
            return None
        return reuse


def _unless_small(sidecars: Sequence[Sidecar], usual: int) -> Sequence[Sidecar]:
    """All, or where too many are small, those that are not."""
    large = [one for one in sidecars if 2 * _num_actions(one) >= usual]
    return large if len(sidecars) - len(large) > MAX_SMALL else sidecars


def _num_actions(sidecar: Sidecar) -> int:
    tags = _tags(sidecar)
    return tags.num_adds + tags.num_removes


def _tags(sidecar: Sidecar) -> SidecarTags:
    tags = parse_sidecar_tags(sidecar.tags)
    assert tags is not None, "only sidecars of our own are asked"
    return tags
