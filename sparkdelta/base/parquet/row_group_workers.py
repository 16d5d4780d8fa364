"""Selection of the row groups of a Parquet file that a task reads, by split and statistics.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow.parquet as pq
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.parquet.legacy_calendar_workers import DAY_MICROS, Calendars
from sparkdelta.base.parquet.parquet_column_workers import find_node
from sparkdelta.base.parquet.parquet_schema_workers import Leaf, Node
from sparkdelta.base.protocol.column_names import name_key

Bound: TypeAlias = int | float | str | date | datetime | Decimal

_TEXTS = ("STRING", "NONE", "ENUM", "JSON")


@dataclass(frozen=True, slots=True)
class RowGroupBound:
    """A bound on a column: rows with null or a value outside `lower` and `upper` are not needed.

    Attributes
    ----------
    column
        The logical path of a data column, through structs only.
    lower, upper
        The inclusive bounds, in the column's type; None without a bound. A datetime has a time zone
        for TIMESTAMP, and none for TIMESTAMP_NTZ.
    """

    column: tuple[str, ...]
    lower: Bound | None = None
    upper: Bound | None = None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group to read: its index in the file, the index of its first row, and its rows."""

    number: int
    first_row: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class LeafBound:
    """A bound on a leaf column of a file.

    Attributes
    ----------
    data_type
        The type of the table's column.
    lower, upper
        The inclusive bounds as numbers or bytes that are ordered like the column, as `_stored`
        returns for statistics; None without a bound.
    """

    leaf: Leaf
    data_type: DataType
    lower: Any
    upper: Any

    def excludes(self, group: pq.RowGroupMetaData) -> bool:
        """Return True if the statistics show that no row of a row group is needed."""
        statistics = group.column(self.leaf.number).statistics
        if statistics is None or not statistics.has_min_max:
            return False
        # Truncated string bounds are still valid: a smaller minimum or a greater maximum.
        if self.upper is not None and _stored(statistics.min_raw, self) > self.upper:
            return True
        if self.lower is None or isinstance(self.data_type, (FloatType, DoubleType)):
            return False  # NaN is greater than any number, but statistics ignore it
        return bool(_stored(statistics.max_raw, self) < self.lower)


def leaf_bounds(
    root: Node,
    columns: Sequence[tuple[StructField, StructField]],
    bounds: Sequence[RowGroupBound],
    calendars: Calendars,
) -> list[LeafBound]:
    """Return the bounds that can be compared with a file's statistics.

    `columns` are the columns that are read, as pairs of logical and physical fields.
    """
    found = []
    for bound in bounds:
        leaf, data_type = _leaf(root, columns, bound.column)
        if leaf is None or data_type is None or not _is_ordered(leaf, data_type, calendars):
            continue
        lower, upper = _comparable(bound.lower, data_type), _comparable(bound.upper, data_type)
        if lower is not None or upper is not None:
            found.append(LeafBound(leaf, data_type, lower, upper))
    return found


def row_groups(
    metadata: pq.FileMetaData, start: int, end: int | None, bounds: Sequence[LeafBound]
) -> Iterator[RowGroup]:
    """Yield the row groups that start in a split and are not excluded by the bounds.

    A row group is in exactly one split of a file: `start` is inclusive, `end` exclusive, in bytes.
    """
    first_row = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        is_inside = start <= _position(group) and (end is None or _position(group) < end)
        if is_inside and not any(bound.excludes(group) for bound in bounds):
            yield RowGroup(number, first_row, group.num_rows)
        first_row += group.num_rows


def _position(group: pq.RowGroupMetaData) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(column.dictionary_page_offset or column.data_page_offset)


def _leaf(
    root: Node, columns: Sequence[tuple[StructField, StructField]], path: Sequence[str]
) -> tuple[Leaf | None, DataType | None]:
    node: Node | None = root
    fields, data_type = columns, None
    for name in path:
        match = next((pair for pair in fields if name_key(pair[0].name) == name_key(name)), None)
        node = find_node(node.children, match[1]) if node and match else None
        if node is None or match is None:
            return None, None
        data_type, stored = match[0].dataType, match[1].dataType
        is_struct = isinstance(data_type, StructType) and isinstance(stored, StructType)
        fields = list(zip(data_type.fields, stored.fields, strict=True)) if is_struct else []  # type: ignore[attr-defined] # both are structs
    return node.leaf if node else None, data_type


def _is_ordered(leaf: Leaf, data_type: DataType, calendars: Calendars) -> bool:
    """Return True if a leaf's statistics are ordered like the column's type."""
    is_integer = leaf.physical in ("INT32", "INT64") and leaf.logical in ("NONE", "INT")
    if leaf.is_repeated or not leaf.signed:
        return False
    if isinstance(data_type, IntegralType):
        return is_integer
    if isinstance(data_type, DecimalType):
        return is_integer or leaf.logical == "DECIMAL"
    if isinstance(data_type, (FloatType, DoubleType)):
        return is_integer or leaf.physical in ("FLOAT", "DOUBLE")
    if isinstance(data_type, StringType):
        return leaf.physical == "BYTE_ARRAY" and leaf.logical in _TEXTS
    if isinstance(data_type, (DateType, TimestampType, TimestampNTZType)):
        is_moment = leaf.logical == "TIMESTAMP" and leaf.unit in ("milliseconds", "microseconds")
        return not calendars.dates and (leaf.logical == "DATE" or is_moment)
    return False


def _stored(raw: Any, bound: LeafBound) -> Any:
    """Convert a value of the statistics from its physical type."""
    leaf = bound.leaf
    if leaf.logical == "DECIMAL":
        number = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
        return Fraction(number, 10**leaf.scale)
    if leaf.logical == "TIMESTAMP" and leaf.unit == "milliseconds":
        return raw * 1000
    if leaf.logical == "DATE" and isinstance(bound.data_type, TimestampNTZType):
        return raw * DAY_MICROS
    return raw


def _comparable(value: Bound | None, data_type: DataType) -> Any:
    """Convert a bound to the form of `_stored`; None if it is not of the type."""
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):  # type: ignore[arg-type] # a number
        return None
    if isinstance(data_type, IntegralType):
        return value if is_number and isinstance(value, int) else None
    if isinstance(data_type, DecimalType):
        return Fraction(value) if is_number and not isinstance(value, float) else None  # type: ignore[arg-type] # a number
    if isinstance(data_type, (FloatType, DoubleType)):
        return value if is_number and not isinstance(value, Decimal) else None
    if isinstance(data_type, StringType):
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None
    if isinstance(value, datetime):
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc if value.tzinfo else None)
        if isinstance(data_type, TimestampType if value.tzinfo else TimestampNTZType):
            return (value - epoch) // timedelta(microseconds=1)
        return None
    if isinstance(value, date) and isinstance(data_type, DateType):
        return (value - date(1970, 1, 1)).days
    return None
