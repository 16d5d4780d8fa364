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
"""A Z-cube of so many bytes is left alone, unless the caller says otherwise."""

MAX_ZCUBE_BYTES = 150 << 30
"""Files are put together into Z-cubes of about so many bytes, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class ZCube:
    """A Z-cube that is about to be written.

    Attributes
    ----------
    columns
        The names of the columns by which it is clustered, as SQL writes them.
    """

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
