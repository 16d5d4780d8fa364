"""Z-cubes: sets of files that one run of OPTIMIZE clustered together, as delta-spark tags them.

References
----------
PROTOCOL.md#clustered-table
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

CLUSTERING_PROVIDER = "liquid"
"""The `clusteringProvider` of the files of Z-cubes."""

ZCUBE_ID, ZCUBE_COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"
"""The tags of files of a Z-cube: its id, and the names of its columns as a JSON list."""

MIN_ZCUBE_BYTES = 100 << 30
"""The size from which a Z-cube is left alone by default."""

MAX_ZCUBE_BYTES = 150 << 30
"""The approximate size of new Z-cubes by default."""


@dataclass(frozen=True, slots=True)
class ZCube:
    """A Z-cube that is about to be written; `columns` are spelled as in SQL."""

    id: str
    columns: tuple[str, ...]

    @classmethod
    def new(cls, columns: Sequence[str]) -> ZCube:
        """Return a Z-cube with a fresh id."""
        return cls(str(uuid4()), tuple(columns))

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of its files."""
        columns = json.dumps(list(self.columns), separators=(",", ":"), ensure_ascii=False)
        return {ZCUBE_ID: self.id, ZCUBE_COLUMNS: columns}
