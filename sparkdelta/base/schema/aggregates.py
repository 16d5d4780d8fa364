"""Aggregates over all rows of a table, which statistics of its files may give.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``count(*)``, or ``min`` or ``max`` of a column.

    Attributes
    ----------
    column
        Its name, in any case; None for ``count``.
    """

    function: Literal["count", "min", "max"]
    column: str | None = None
