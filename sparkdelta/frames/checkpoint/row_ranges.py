"""Rows in partitions by ranges of their keys, whose bounds a sample of the keys has told.

`repartitionByRange` computes all rows twice, in full, to learn the bounds; here they are computed
once, and of the sample nothing but the keys.

References
----------
PROTOCOL.md#sidecar-files
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.schema.sql_text import text_literal

Bound: TypeAlias = "tuple[float | str, ...]"

SAMPLES_PER_RANGE = 64
"""So few that ranges differ by an eighth or so in how many rows they have."""

_KEY, _BOUNDS, _RANGE = "_key_", "_bounds_", "_range"
_CANDIDATES_PER_RANGE = 20
_MOMENTS = (DateType, TimestampType, TimestampNTZType)


def range_key(value: str, data_type: DataType) -> str:
    """A key of ranges in SQL, DOUBLE or STRING, in the order of a value, of which it may tell less;
    never null: null comes first.
    """
    if isinstance(data_type, (StringType, BinaryType)):
        return f"coalesce(CAST({value} AS STRING), '')"
    # Neither dates nor timestamps without a zone become numbers.
    number = f"CAST({value} AS TIMESTAMP_LTZ)" if isinstance(data_type, _MOMENTS) else value
    return f"coalesce(CAST({number} AS DOUBLE), double('-Infinity'))"


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Ranges of keys, and where Spark is to put each.

    Attributes
    ----------
    bounds
        The greatest keys of all ranges but the last, in order.
    places
        A number for each range; `repartition` by them gives each range a partition of its own.
    """

    bounds: tuple[Bound, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, told: Row) -> RowRanges:
        """The row of `told_ranges`."""
        hashed = {partition: number for number, partition in enumerate(told["partitions"])}
        count = len(told["bounds"]) + 1
        bounds = tuple(tuple(bound) for bound in told["bounds"] if bound is not None)
        return cls(bounds, tuple(hashed.get(number, 0) for number in range(count)))


def told_ranges(sample: DataFrame, count: int) -> DataFrame:
    """One row: bounds ARRAY<STRUCT>, and partitions ARRAY<INT>, those that Spark gives numbers from
    0 on when rows are repartitioned by them.

    Parameters
    ----------
    sample
        Columns of `range_key`s, in their order.
    count
        Of the ranges, at least two.
    """
    keys = sample.agg(F.sort_array(F.collect_list(F.struct("*"))).alias("keys"))
    numbers = f"sequence(0, {_CANDIDATES_PER_RANGE * count})"
    return keys.selectExpr(
        f"transform(sequence(1L, {count - 1}L), i -> "
        f"get(keys, CAST(i * size(keys) DIV {count} - 1 AS INT))) AS bounds",
        f"transform({numbers}, i -> pmod(hash(i), {count})) AS partitions",
    )


def in_ranges(rows: DataFrame, keys: Sequence[str], ranges: RowRanges) -> DataFrame:
    """The rows, each range in a partition of its own.

    Parameters
    ----------
    keys
        The `range_key`s of a row.
    """
    bounds = (
        f"array({', '.join(_literal(bound[number]) for bound in ranges.bounds)})"
        for number in range(len(keys))
    )
    known = {
        **{f"{_KEY}{number}": key for number, key in enumerate(keys)},
        **{f"{_BOUNDS}{number}": values for number, values in enumerate(bounds)},
        _RANGE: "0",
    }
    found = rows.selectExpr("*", *(f"{value} AS {name}" for name, value in known.items()))
    # A binary search, a step each: Spark joins by ranges only by trying all.
    step = 1 << max(0, len(ranges.bounds).bit_length() - 1)
    while step:
        is_above = _is_above(f"{_RANGE} + {step - 1}", len(keys))
        found = found.withColumn(_RANGE, F.expr(f"{_RANGE} + IF({is_above}, {step}, 0)"))
        step >>= 1
    places = f"array({', '.join(map(str, ranges.places))})"
    spread = found.repartition(len(ranges.places), F.expr(f"get({places}, {_RANGE})"))
    return spread.select(*rows.columns)


def _is_above(bound: str, keys: int, number: int = 0) -> str:
    """Whether a row's keys are greater than a bound; null where there is no such bound."""
    key, value = f"{_KEY}{number}", f"get({_BOUNDS}{number}, {bound})"
    if number + 1 == keys:
        return f"{key} > {value}"
    return f"({key} > {value} OR {key} = {value} AND {_is_above(bound, keys, number + 1)})"


def _literal(value: float | str) -> str:
    if isinstance(value, str):
        return text_literal(value)
    return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
