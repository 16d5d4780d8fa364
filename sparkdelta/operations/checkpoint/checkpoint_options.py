"""Options of a checkpoint.

References
----------
PROTOCOL.md#checkpoint-specs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from sparkdelta.base.protocol.arguments import checked_choice, checked_count, checked_flag
from sparkdelta.table.definition.write_options import COMPRESSIONS

Layout: TypeAlias = Literal["clustered", "hash"]

ADDS_PER_SIDECAR = 100_000
"""The approximate number of live files in a sidecar, so that ten million have a hundred sidecars.
Few enough for one task, and for a rewritten sidecar to be a small part; enough for the number of
sidecars to be small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOptions:
    """Options of a checkpoint, see `sparkdelta.write_checkpoint`.

    Attributes
    ----------
    kind
        None for what the table's policy says.
    """

    kind: str | None = None
    layout: Layout = "clustered"
    incremental: bool = True
    adds_per_sidecar: int = ADDS_PER_SIDECAR
    compression: str = "snappy"

    def __post_init__(self) -> None:
        checked_choice(self.layout, "layout", get_args(Layout))
        checked_flag(self.incremental, "incremental")
        checked_count(self.adds_per_sidecar, "adds_per_sidecar")
        checked_choice(self.compression, "compression", COMPRESSIONS)
