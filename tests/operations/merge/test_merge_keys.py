"""Ranges of the keys of a MERGE's source; no Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
)

from sparkdelta.operations.merge.merge_keys import joined_ranges, key_ranges, without_narrow_gaps

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


@pytest.mark.parametrize(
    ("data_type", "arrow", "value"),
    [
        (LongType(), pa.int64(), lambda n: n * 2**40 - 2**62),
        (IntegerType(), pa.int32(), lambda n: n - 2**20),
        (DateType(), pa.date32(), lambda n: date(1, 1, 1) + timedelta(n // 4)),
        (
            TimestampNTZType(),
            pa.timestamp("us"),
            lambda n: datetime(1, 1, 1) + timedelta(seconds=n),
        ),
        (DecimalType(38, 2), pa.decimal128(38, 2), lambda n: Decimal(n) * 10**20),
        (StringType(), pa.string(), lambda n: f"{chr(n % 20 * 2_700 + 65)}\U0001f600{n}"),
    ],
    ids=lambda each: each.simpleString() if isinstance(each, DataType) else "",
)
def test_ranges_of_many_keys_are_those_of_each(
    data_type: DataType, arrow: pa.DataType, value: Callable[[int], Any]
) -> None:
    rng = random.Random(47)
    for count, most in ((0, 4), (3, 4), (200, 4), (5_000, 64), (5_000, 5_000)):
        numbers = [rng.randrange(2**22) for _ in range(count)]
        keys = pa.chunked_array([[*map(value, numbers), None], []], arrow)
        ranges = key_ranges(keys, data_type, most)
        each = sorted(set(map(value, numbers)))
        assert ranges == joined_ranges([(key, key) for key in each], most)


def test_ranges_of_the_least_and_the_greatest_long() -> None:
    keys = pa.chunked_array([[-(2**63), -(2**63) + 1, 0, 2**63 - 1]], pa.int64())
    each = [(key, key) for key in keys.to_pylist()]
    for most in (2, 3):
        assert key_ranges(keys, LongType(), most) == joined_ranges(each, most)
