"""Ranges of the keys of a MERGE's source: the rows of the table outside them match none."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Comparison,
    Expression,
    In,
    Literal,
    Or,
    Predicate,
)
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.predicate_value_frames import literal
from sparkdelta.base.spark.driver import count_rows, read_table
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.operations.merge.merge_sides import SOURCE_ROW, StagedSource

MAX_READ_KEYS = 1_000_000
"""The keys of a source of up to this many rows come to the driver, if its files are small."""

MAX_SAMPLED_KEYS = 4_096
"""The number of sampled keys that find the gaps between the keys of a larger source."""

MAX_RANGES = 64
"""The most ranges of a key when files are chosen."""

MAX_ROW_RANGES = 4
"""The most ranges of a key when row groups and rows are left out: Spark compares every row with all
of them."""

_TASK_BYTES = 8 << 20
"""One task reads the keys of a source of up to this size: a shuffle would take longer."""

_NARROWEST = 10_000
"""The range of keys, divided by its smallest gap that counts: smaller gaps rule out hardly any
file, but make the condition longer to plan."""

_KEY, _RANGE = "key", "range"
_RANGED = (IntegralType, DecimalType, DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The rows of a source, and what its keys say about the rows of the table that match one.

    Attributes
    ----------
    predicates
        Terms that are true of each matching row.
    row_predicates
        The same terms, of few ranges.
    matches_none
        True if no row can match, as there are no rows, or the keys of all are null.
    """

    num_rows: int
    predicates: tuple[Predicate, ...] = ()
    row_predicates: tuple[Predicate, ...] = ()
    matches_none: bool = False


def source_keys(source: StagedSource, terms: MatchTerms) -> SourceKeys:
    """Read the ranges of the keys of a source."""
    columns = [
        _key_of(key, terms.source).alias(f"{_KEY}{number}") for number, key in enumerate(terms.keys)
    ]
    rows = source.rows.select(*columns, SOURCE_ROW)
    types = [field.dataType for field in rows.schema.fields]
    keys = [
        (key, f"{_KEY}{number}", types[number])
        for number, key in enumerate(terms.keys)
        if isinstance(types[number], _RANGED) or types[number] == StringType()
    ]
    if len(keys) < len(terms.keys):
        rows = rows.select(*(name for _, name, _ in keys), SOURCE_ROW)
    is_small = source.size_bytes <= _TASK_BYTES
    if is_small:
        rows = rows.coalesce(1)
    found = _all_keys(source, [key for key, _, _ in keys], rows, terms) if is_small else None
    is_whole = found is not None
    if found is None:
        found = read_table(
            rows.orderBy(F.expr(f"xxhash64({quoted(SOURCE_ROW)})")).limit(MAX_SAMPLED_KEYS),
            what="sampled keys of a source",
            bound=MAX_SAMPLED_KEYS,
        )
        is_whole = found.num_rows < MAX_SAMPLED_KEYS
    num_rows = found.num_rows if is_whole else None
    predicates, row_predicates = [], []
    for key, name, data_type in keys:
        try:
            ranges = key_ranges(found[name], data_type, MAX_RANGES)
            if not is_whole:
                bounds = [last for _, last in ranges]
                exact, num_rows = _exact_ranges(rows, name, data_type, bounds)
                ranges = without_narrow_gaps(exact)
        except (OverflowError, ValueError):  # a moment that Python has not
            continue
        if not ranges:
            return SourceKeys(num_rows or 0, matches_none=True)
        predicates.append(_predicate(key, data_type, ranges))
        if any(least != greatest for least, greatest in ranges):
            ranges = joined_ranges(ranges, MAX_ROW_RANGES)
        row_predicates.append(_predicate(key, data_type, ranges))
    if num_rows is None:
        num_rows = count_rows(rows, what="number of rows of a source")
    return SourceKeys(
        num_rows, tuple(predicates), tuple(row_predicates), matches_none=num_rows == 0
    )


def _all_keys(
    source: StagedSource, keys: Sequence[EqualKey], rows: DataFrame, terms: MatchTerms
) -> pa.Table | None:
    """Return the keys of all rows of a small source, as `rows`; None if they are more than
    `MAX_READ_KEYS`.
    """
    bound = MAX_READ_KEYS
    numbers = [key.source_column for key in keys if key.source_column is not None]
    try:
        if len(numbers) < len(keys) or terms.source:
            return read_table(rows.limit(bound + 1), what="keys of a source", bound=bound)
        return source.read_keys(numbers, bound=bound).rename_columns(rows.columns)
    except DriverReadTooLargeError:
        return None


def _key_of(key: EqualKey, terms: Sequence[Column]) -> Column:
    """Return the key of rows of which all terms are true; null for others, whose key might fail."""
    return F.when(reduce(operator.and_, terms), key.source) if terms else key.source


def key_ranges(keys: pa.ChunkedArray, data_type: DataType, most: int) -> list[tuple[Any, Any]]:
    """Return at most `most` ranges of all keys that are not null, as `joined_ranges` does."""
    values = keys.drop_null().unique()
    values = pc.array_take(values, pc.array_sort_indices(values))
    if len(values) <= most:
        each = _values(values, data_type)
        return list(zip(each, each, strict=True))
    places = _places(values, data_type, most)
    firsts, lasts = [0, *places], [*(place - 1 for place in places), len(values) - 1]
    least, greatest = (
        _values(pc.array_take(values, pa.array(at)), data_type) for at in (firsts, lasts)
    )
    return list(zip(least, greatest, strict=True))


def _places(values: pa.Array, data_type: DataType, most: int) -> list[int]:
    """Return the indexes of sorted keys at which ranges begin, but the first."""
    if isinstance(data_type, StringType):
        return [len(values) * number // most for number in range(1, most)]
    if isinstance(data_type, DecimalType):
        numbers = values.cast(pa.float64()).to_numpy()
    else:
        signed = values.cast(pa.int32() if isinstance(data_type, DateType) else pa.int64())
        numbers = signed.to_numpy().astype(np.uint64)  # their differences have no sign
    gaps, [whole] = np.diff(numbers), numbers[-1:] - numbers[:1]
    wide = np.flatnonzero(gaps > float(whole) / _NARROWEST)
    widest = wide[np.argsort(gaps[wide], kind="stable")[1 - most :]]
    return [int(place) + 1 for place in np.sort(widest)]


def joined_ranges(ranges: Sequence[tuple[Any, Any]], most: int) -> list[tuple[Any, Any]]:
    """Join adjacent ranges of a sorted list to at most `most`, at the narrowest gaps; ranges of
    texts are joined evenly.
    """
    if len(ranges) <= most:
        return [*ranges]
    if isinstance(ranges[0][0], str):
        return _cut(ranges, [len(ranges) * number // most for number in range(1, most)])
    widest = sorted(_wide_gaps(ranges), key=lambda at: ranges[at][0] - ranges[at - 1][1])
    return _cut(ranges, sorted(widest[1 - most :]))


def without_narrow_gaps(ranges: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Join adjacent ranges of a sorted list, unless the gap may leave out files."""
    return _cut(ranges, _wide_gaps(ranges))


def _wide_gaps(ranges: Sequence[tuple[Any, Any]]) -> list[int]:
    """Return the indexes of sorted ranges that follow a wide gap; for texts, all but the first."""
    places = range(1, len(ranges))
    if not ranges or isinstance(ranges[0][0], str):
        return [*places]
    least = (ranges[-1][1] - ranges[0][0]) / _NARROWEST
    return [at for at in places if ranges[at][0] - ranges[at - 1][1] > least]


def _cut(ranges: Sequence[tuple[Any, Any]], places: Sequence[int]) -> list[tuple[Any, Any]]:
    """Join adjacent ranges of a sorted list, except before the given indexes."""
    starts, ends = [0, *places], [*places, len(ranges)]
    return [
        (ranges[start][0], ranges[end - 1][1])
        for start, end in zip(starts, ends, strict=True)
        if start < end
    ]


def _exact_ranges(
    rows: DataFrame, name: str, data_type: DataType, bounds: Sequence[Any]
) -> tuple[list[tuple[Any, Any]], int]:
    """Return the least and greatest of all keys in each of the ranges with these upper bounds; and
    the number of rows, also of those without a key.
    """
    kind = data_type.simpleString()
    cases = " ".join(
        f"WHEN {name} <= {literal(Literal(bound, kind))} THEN {number}"
        for number, bound in enumerate(bounds)
    )
    placed = rows.selectExpr(
        name, f"CASE WHEN {name} IS NULL THEN -1 {cases} ELSE {len(bounds)} END AS {_RANGE}"
    )
    limits = grouped(placed, [_RANGE], F.min(name), F.max(name), F.count("*")).drop(_RANGE)
    table = read_table(limits, what="key ranges of a source", bound=MAX_RANGES + 2)
    least, greatest, counts = table.columns
    found = zip(_values(least, data_type), _values(greatest, data_type), strict=True)
    return sorted(found), sum(counts.to_pylist())


def _values(column: pa.Array | pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """Return the values that are not null."""
    if isinstance(data_type, TimestampType):
        # Arrow's have no zone if they are stored as INT96. In a time zone whose clocks repeat an
        # hour, Python takes different moments for equal.
        column = column.cast(pa.timestamp("us", "UTC"))
    values: list[Any] = column.drop_null().to_pylist()
    return values


def _predicate(key: EqualKey, data_type: DataType, ranges: Sequence[tuple[Any, Any]]) -> Predicate:
    kind, target = data_type.simpleString(), key.target

    def between(least: Any, greatest: Any) -> tuple[Predicate, Predicate]:
        return (
            Comparison(">=", target, Literal(least, kind)),
            Comparison("<=", target, Literal(greatest, kind)),
        )

    if all(least == greatest for least, greatest in ranges):
        values: tuple[Expression, ...] = tuple(Literal(least, kind) for least, _ in ranges)
        return In(target, values)
    each = Or(tuple(And(between(*limits)) for limits in ranges))
    return And((each, *between(ranges[0][0], ranges[-1][1])), implied=2)
