"""Aggregates over the rows of a table, which the log may give.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AggregateFunction: TypeAlias = Literal["count", "count distinct", "min", "max", "group"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a column, or the value of a column by which the rows are grouped.

    Attributes
    ----------
    column
        Its name, in any case; None for ``count(*)``.
    """

    function: AggregateFunction
    column: str | None = None


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """The aggregates of all rows of a table, or of groups of them.

    Attributes
    ----------
    groups
        The names of the columns by which the rows are grouped; empty for one group of all.
    """

    aggregates: tuple[Aggregate, ...]
    groups: tuple[str, ...] = ()
