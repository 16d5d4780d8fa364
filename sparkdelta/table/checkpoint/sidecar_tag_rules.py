"""Tags of sidecar files that sparkdelta writes; other engines ignore them.

References
----------
PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_PREFIX = "sparkdelta."
_NUM_ADDS, _NUM_REMOVES = f"{_PREFIX}numAdds", f"{_PREFIX}numRemoves"
_ADD_BYTES = f"{_PREFIX}addBytes"
_FINGERPRINT = f"{_PREFIX}schema"
_PARTITION_VALUES, _STATISTICS = f"{_PREFIX}partitionValues", f"{_PREFIX}stats"
_FIRST_DELETION = f"{_PREFIX}minDeletionTimestamp"
_LAST_DELETION = f"{_PREFIX}maxDeletionTimestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarTags:
    """The description of a sidecar file in its tags.

    Attributes
    ----------
    num_adds, num_removes
        The numbers of its add and remove actions.
    fingerprint
        The fingerprint of the types and the layout that the file was written with.
    partition_values, statistics
        The ranges of all its adds, as JSON in the form of `add.stats`; missing bounds are unknown.
        For partition values, `nullCount` counts files.
    first_deletion, last_deletion
        The range of deletionTimestamp of its tombstones, in milliseconds since the epoch; None
        without tombstones.
    add_bytes
        The total size in bytes of the data files of its adds; None if an older version of
        sparkdelta wrote it.
    """

    num_adds: int
    num_removes: int
    fingerprint: str
    partition_values: str = "{}"
    statistics: str = "{}"
    first_deletion: int | None = None
    last_deletion: int | None = None
    add_bytes: int | None = None

    def as_tags(self) -> dict[str, str]:
        """Return the tags as stored in the log."""
        tags = {
            _NUM_ADDS: str(self.num_adds),
            _NUM_REMOVES: str(self.num_removes),
            _FINGERPRINT: self.fingerprint,
        }
        if self.num_adds:
            tags |= {_PARTITION_VALUES: self.partition_values, _STATISTICS: self.statistics}
        if self.add_bytes is not None:
            tags[_ADD_BYTES] = str(self.add_bytes)
        if self.first_deletion is not None and self.last_deletion is not None:
            tags[_FIRST_DELETION] = str(self.first_deletion)
            tags[_LAST_DELETION] = str(self.last_deletion)
        return tags


def parse_sidecar_tags(tags: Mapping[str, str]) -> SidecarTags | None:
    """Parse the tags; return None if they are incomplete, as other writers' are."""
    num_adds, num_removes = _count(tags, _NUM_ADDS), _count(tags, _NUM_REMOVES)
    fingerprint = tags.get(_FINGERPRINT)
    if num_adds is None or num_removes is None or fingerprint is None:
        return None
    first, last = _count(tags, _FIRST_DELETION), _count(tags, _LAST_DELETION)
    if num_removes and (first is None or last is None):
        return None
    return SidecarTags(
        num_adds=num_adds,
        num_removes=num_removes,
        fingerprint=fingerprint,
        partition_values=tags.get(_PARTITION_VALUES, "{}"),
        statistics=tags.get(_STATISTICS, "{}"),
        first_deletion=first,
        last_deletion=last,
        add_bytes=_count(tags, _ADD_BYTES),
    )


def may_hold(tags: Mapping[str, str], action: str) -> bool:
    """Return True if a sidecar may contain a kind of file action, ``add`` or ``remove``."""
    return _count(tags, _NUM_ADDS if action == "add" else _NUM_REMOVES) != 0


def _count(tags: Mapping[str, str], name: str) -> int | None:
    text = tags.get(name, "")
    return int(text) if text.isdecimal() and text.isascii() else None
