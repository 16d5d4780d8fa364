"""Range partitioning of rows, with bounds computed from a sample of the keys.

`repartitionByRange` computes all rows twice, once to sample the bounds. Here the rows are computed
once, and only the keys of the sample.

References
----------
PROTOCOL.md#sidecar-files
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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

from sparkdelta.base.schema.sql_text import text_literal

Bound: TypeAlias = "tuple[float | str, ...]"

SAMPLES_PER_RANGE = 64
"""The sampled keys per range, with which the sizes of ranges differ by about an eighth."""

_KEY, _BOUNDS, _RANGE = "__sparkdelta_key_", "__sparkdelta_bounds_", "__sparkdelta_range"
_CANDIDATES_PER_RANGE = 20
_MOMENTS = (DateType, TimestampType, TimestampNTZType)


def range_key(value: str, data_type: DataType) -> str:
    """Return SQL for a range key: a DOUBLE or STRING that is never null and orders like the value.

    Different values may have the same key. Null is ordered first.
    """
    if isinstance(data_type, (StringType, BinaryType)):
        return f"coalesce(CAST({value} AS STRING), '')"
    # Spark does not cast DATE or TIMESTAMP_NTZ to a number.
    number = f"CAST({value} AS TIMESTAMP_LTZ)" if isinstance(data_type, _MOMENTS) else value
    return f"coalesce(CAST({number} AS DOUBLE), double('-Infinity'))"


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Ranges of keys and the partition of each.

    Attributes
    ----------
    bounds
        The upper bounds (inclusive) of all ranges but the last, in order.
    places
        One number per range. `repartition` by these numbers puts each range in a separate
        partition.
    """

    bounds: tuple[Bound, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, row: Row) -> RowRanges:
        """Create the ranges from the row of `range_bounds`."""
        bounds = tuple(tuple(bound) for bound in row["bounds"] if bound is not None)
        return cls(bounds, separate_places(row["partitions"], len(row["bounds"]) + 1))


def range_bounds(sample: DataFrame, count: int) -> DataFrame:
    """Compute the bounds of ranges of about equal size.

    Parameters
    ----------
    sample
        One column per `range_key`, in their order.
    count
        The number of ranges, at least two.

    Returns
    -------
    DataFrame
        One row: bounds ARRAY<STRUCT>, partitions ARRAY<INT> (the partition to which Spark
        repartitions each of the numbers 0, 1, ...).
    """
    keys = sample.agg(F.sort_array(F.collect_list(F.struct("*"))).alias("keys"))
    return keys.selectExpr(
        f"transform(sequence(1L, {count - 1}L), i -> "
        f"get(keys, CAST(i * size(keys) DIV {count} - 1 AS INT))) AS bounds",
        f"{hashed_numbers(count)} AS partitions",
    )


def hashed_numbers(count: int) -> str:
    """Return SQL for the partitions to which Spark repartitions the numbers 0, 1 and so on."""
    numbers = f"sequence(0, {_CANDIDATES_PER_RANGE * count})"
    return f"transform({numbers}, i -> pmod(hash(i), {count}))"


def separate_places(hashed: Sequence[int], count: int) -> tuple[int, ...]:
    """Return numbers that `repartition` puts in separate partitions, one for each.

    Parameters
    ----------
    hashed
        The value of `hashed_numbers`.
    """
    numbers = {partition: number for number, partition in enumerate(hashed)}
    return tuple(numbers.get(partition, 0) for partition in range(count))


def in_ranges(rows: DataFrame, keys: Sequence[str], ranges: RowRanges) -> DataFrame:
    """Repartition rows so that each range is in a separate partition.

    Parameters
    ----------
    keys
        The `range_key`s of a row, in SQL.
    """
    bounds = (
        f"array({', '.join(bound_literal(bound[number]) for bound in ranges.bounds)})"
        for number in range(len(keys))
    )
    added = {
        **{f"{_KEY}{number}": key for number, key in enumerate(keys)},
        **{f"{_BOUNDS}{number}": values for number, values in enumerate(bounds)},
        _RANGE: "0",
    }
    searched = rows.selectExpr("*", *(f"{value} AS {name}" for name, value in added.items()))
    found = _searched(searched, len(ranges.bounds), lambda bound: _is_above(bound, len(keys)))
    return in_partitions(found, _RANGE, ranges.places).select(*rows.columns)


def with_range(rows: DataFrame, name: str, key: str, bounds: str, most: int) -> DataFrame:
    """Add the number of the range that a row is in, an INT.

    Parameters
    ----------
    key, bounds
        SQL for the key of a row, and for the array of the upper bounds (inclusive) of all ranges
        but the last.
    most
        The length of the longest array of bounds.
    """
    added = {f"{_KEY}0": key, f"{_BOUNDS}0": bounds, _RANGE: "0"}
    searched = rows.selectExpr("*", *(f"{value} AS {column}" for column, value in added.items()))
    found = _searched(searched, most, lambda bound: _is_above(bound, 1))
    return found.withColumnRenamed(_RANGE, name).drop(f"{_KEY}0", f"{_BOUNDS}0")


def in_partitions(rows: DataFrame, number: str, places: Sequence[int]) -> DataFrame:
    """Repartition rows so that each number, given in SQL, is in a separate partition.

    Parameters
    ----------
    places
        Of each number, see `RowRanges`.
    """
    values = f"array({', '.join(map(str, places))})"
    return rows.repartition(len(places), F.expr(f"get({values}, {number})"))


def _searched(rows: DataFrame, count: int, is_above: Callable[[str], str]) -> DataFrame:
    """Find the range of each row by binary search, one column per step: a range join in Spark would
    compare all pairs.
    """
    step = 1 << max(0, count.bit_length() - 1)
    while step:
        is_beyond = is_above(f"{_RANGE} + {step - 1}")
        rows = rows.withColumn(_RANGE, F.expr(f"{_RANGE} + IF({is_beyond}, {step}, 0)"))
        step >>= 1
    return rows


def _is_above(bound: str, keys: int, number: int = 0) -> str:
    """Return SQL that is true if a row's keys are greater than a bound; null without a bound."""
    key, value = f"{_KEY}{number}", f"get({_BOUNDS}{number}, {bound})"
    if number + 1 == keys:
        return f"{key} > {value}"
    return f"({key} > {value} OR {key} = {value} AND {_is_above(bound, keys, number + 1)})"


def bound_literal(value: float | str) -> str:
    """Return SQL for a bound."""
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, int):
        return f"{value}L"
    return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
