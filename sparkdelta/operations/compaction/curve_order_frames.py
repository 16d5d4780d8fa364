"""Rows in partitions by their places on a space-filling curve.

References
----------
PROTOCOL.md#clustered-table
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.row_range_frames import (
    bound_literal,
    in_partitions,
    range_key,
    with_range,
)
from sparkdelta.operations.compaction.curve_rules import NOISE_BITS, Curve, CurveRanges

PLACE = "__sparkdelta_place"
"""The column with the place of a row."""

_COORDINATE, _STEP, _FILE = "__sparkdelta_x", "__sparkdelta_step", "__sparkdelta_group_file"
_LONGEST_KEY = 128
"""The number of leading characters of a text that determine its order."""


def curve_key(value: str, data_type: DataType) -> str:
    """Return SQL for the `range_key` of a value that a curve orders."""
    if isinstance(data_type, BinaryType):
        return f"coalesce(hex(substring({value}, 1, {_LONGEST_KEY})), '')"
    if isinstance(data_type, StringType):
        value = f"substring({value}, 1, {_LONGEST_KEY})"
    return range_key(value, data_type)


def in_curve_order(
    rows: DataFrame,
    group: str,
    keys: Sequence[str],
    curve: Curve,
    ranges: Sequence[CurveRanges],
    places: Sequence[int],
) -> DataFrame:
    """Repartition rows so that each file of each group is a partition, sorted along the curve.

    Parameters
    ----------
    group
        The column, quoted, with the number of a row's group; the result does not have it.
    keys
        The `curve_key`s of a row, in SQL.
    ranges
        The ranges of each group.
    places
        See `RowRanges`, for the files of all groups.
    """
    wanted = [quoted(name) for name in rows.columns if quoted(name) != group]
    for number, key in enumerate(keys):
        bounds = [each.bounds[number] for each in ranges]
        rows = _with_range(rows, f"{_COORDINATE}{number}", key, group, bounds)
    rows = with_place(rows, [f"{_COORDINATE}{number}" for number in range(len(keys))], curve)
    rows = _with_range(rows, _FILE, PLACE, group, [each.last_places for each in ranges])
    counts = (len(each.last_places) + 1 for each in ranges)
    firsts = list(accumulate(counts, initial=0))[:-1]
    file = f"get(array({', '.join(map(str, firsts))}), {group}) + {_FILE}"
    return in_partitions(rows, file, places).sortWithinPartitions(PLACE).select(*wanted)


def with_place(rows: DataFrame, coordinates: Sequence[str], curve: Curve) -> DataFrame:
    """Add the place of each row on a curve, a LONG in the column PLACE.

    Rows of one cell get different ones, by the number of the row, which is the same if a task is
    run again.

    Parameters
    ----------
    coordinates
        Names of INT columns.
    """
    digits = []
    for bit in reversed(range(curve.bits)):
        parts = (
            f"shiftleft(shiftright({name}, {bit}) & 1, {curve.dimensions - 1 - number})"
            for number, name in enumerate(coordinates)
        )
        digits.append(f"({' | '.join(parts)})")
    if curve.is_hilbert:
        steps = f"array({', '.join(map(str, curve.steps))})"
        mask, before = (1 << curve.dimensions) - 1, "0"
        for number, digit in enumerate(digits):
            step = f"get({steps}, ({before} & ~{mask}) | {digit})"
            before = f"{_STEP}{number}"
            rows = rows.withColumn(before, F.expr(step))
        digits = [f"({_STEP}{number} & {mask})" for number in range(len(digits))]
    shifts = (
        f"shiftleft(CAST({digit} AS BIGINT), {NOISE_BITS + curve.dimensions * bit})"
        for bit, digit in zip(reversed(range(curve.bits)), digits, strict=True)
    )
    noise = f"(monotonically_increasing_id() & {(1 << NOISE_BITS) - 1})"
    return rows.withColumn(PLACE, F.expr(" | ".join([*shifts, noise])))


def _with_range(
    rows: DataFrame, name: str, key: str, group: str, bounds: Sequence[Sequence[float | str]]
) -> DataFrame:
    """Add the number of the range that a row is in, by the bounds of its group."""
    arrays = [f"array({', '.join(map(bound_literal, each))})" for each in bounds]
    of_group = f"get(array({', '.join(arrays)}), {group})" if len(arrays) > 1 else arrays[0]
    return with_range(rows, name, key, of_group, max(map(len, bounds)))
