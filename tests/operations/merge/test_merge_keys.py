"""Ranges of the keys of a MERGE's source; no Spark."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sparkdelta.operations.merge.merge_keys import joined_ranges, without_narrow_gaps

STEPS: dict[str, tuple[Any, Any]] = {
    "LONG": (-(2**63), 1),
    "DECIMAL": (Decimal("-1.5"), Decimal("0.001")),
    "DATE": (date(1, 1, 1), timedelta(days=1)),
    "TIMESTAMP": (datetime(2024, 1, 1), timedelta(microseconds=1)),
}


@pytest.mark.parametrize("kind", STEPS)
def test_gaps(kind: str) -> None:
    """The widest gaps separate ranges; those that are tiny beside all keys' range do not."""
    first, step = STEPS[kind]
    keys = [first + step * n for n in (0, 1, 2, 50_000, 50_001, 99_000, 100_000)]
    points = [(key, key) for key in keys]
    wide = [(keys[0], keys[2]), (keys[3], keys[4]), (keys[5], keys[5]), (keys[6], keys[6])]
    assert without_narrow_gaps(points) == wide
    assert joined_ranges(points, 7) == points
    assert joined_ranges(points, 6) == wide
    assert joined_ranges(points, 3) == [wide[0], wide[1], (keys[5], keys[6])]


def test_texts_are_joined_evenly() -> None:
    points = [(key, key) for key in "abcdef"]
    assert joined_ranges(points, 3) == [("a", "b"), ("c", "d"), ("e", "f")]
    assert without_narrow_gaps(points) == points
    assert without_narrow_gaps([]) == []
