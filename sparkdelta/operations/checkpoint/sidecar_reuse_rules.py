"""Reuse of sidecars of the last checkpoint in the next one.

A sidecar is reused if it was written with the current types and layout (including the columns of
the layout) and no later commit has an action for a file in it. Sidecars of other writers are always
rewritten. Tombstones are in separate sidecars: one with only expired tombstones is dropped, and one
with some expired tombstones may be reused until it is merged.

Small sidecars, with less than half the usual number of actions, are merged if there are more than
`MAX_SMALL` of a kind. For `n` actions of a kind there are thus at most `2 n / usual + MAX_SMALL`
sidecars, plus those that the last checkpoint wrote.

References
----------
PROTOCOL.md#v2-spec, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags, parse_sidecar_tags

MAX_SMALL = 8
"""Highest number of small sidecars that are not merged, for adds and for tombstones each."""

MOST_REWRITTEN = 0.5
"""Highest share of adds to rewrite; beyond it, a full checkpoint also renews the layout."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """The sidecars of the last checkpoint to reuse or rewrite; all others are dropped.

    Attributes
    ----------
    reused
        The sidecars that are reused unchanged.
    rewritten
        The sidecars whose actions are replayed together with the commits.
    num_live
        The number of live files of the version, from the tags of all sidecars and the commits; None
        if a sidecar has no tags.
    """

    reused: tuple[Sidecar, ...]
    rewritten: tuple[Sidecar, ...]
    num_live: int | None = None

    @property
    def num_adds(self) -> int:
        """The number of adds in the reused sidecars."""
        return sum(_tags(one).num_adds for one in self.reused)

    @property
    def num_removes(self) -> int:
        """The number of tombstones in the reused sidecars."""
        return sum(_tags(one).num_removes for one in self.reused)


@dataclass(frozen=True, slots=True)
class KnownSidecars:
    """The sidecars of a checkpoint, classified by their tags.

    Attributes
    ----------
    adds, removes
        The sidecars of adds that can be reused, and those with at least one tombstone that is not
        expired.
    others
        The sidecars that must be rewritten.
    """

    adds: tuple[Sidecar, ...]
    removes: tuple[Sidecar, ...]
    others: tuple[Sidecar, ...]

    @property
    def num_adds(self) -> int:
        """The number of adds in the sidecars that can be reused."""
        return sum(_tags(one).num_adds for one in self.adds)

    @classmethod
    def of(
        cls, sidecars: Sequence[Sidecar], *, fingerprint: str, expired_at_ms: int
    ) -> KnownSidecars:
        """Classify sidecars by their tags.

        Parameters
        ----------
        fingerprint
            The fingerprint that a full checkpoint would write.
        expired_at_ms
            Tombstones up to this deletionTimestamp, in milliseconds since the epoch, are expired.
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
        """Choose the sidecars to reuse; None if a full checkpoint is better.

        Parameters
        ----------
        touched
            The names of the sidecars with actions that later commits supersede.
        adds_per_sidecar, removes_per_sidecar
            The usual numbers of actions in a sidecar.
        more_live
            The change in the number of live files since the last checkpoint.
        """
        kept = [
            *_without_many_small([o for o in self.adds if o.path not in touched], adds_per_sidecar),
            *_without_many_small(
                [o for o in self.removes if o.path not in touched], removes_per_sidecar
            ),
        ]
        names = {one.path for one in kept}
        rewritten = [one for one in (*self.adds, *self.removes) if one.path not in names]
        reuse = Reuse(
            tuple(kept),
            (*self.others, *rewritten),
            None if self.others else self.num_adds + more_live,
        )
        rewritten_adds = sum(_tags(one).num_adds for one in rewritten)
        if not kept or rewritten_adds > MOST_REWRITTEN * (rewritten_adds + reuse.num_adds):
            return None
        return reuse


def _without_many_small(sidecars: Sequence[Sidecar], usual: int) -> Sequence[Sidecar]:
    """Return all sidecars, or only the large ones if too many are small."""
    large = [one for one in sidecars if 2 * _num_actions(one) >= usual]
    return large if len(sidecars) - len(large) > MAX_SMALL else sidecars


def _num_actions(sidecar: Sidecar) -> int:
    tags = _tags(sidecar)
    return tags.num_adds + tags.num_removes


def _tags(sidecar: Sidecar) -> SidecarTags:
    tags = parse_sidecar_tags(sidecar.tags)
    assert tags is not None, "the sidecar has tags of sparkdelta"
    return tags
