"""Bounds of single columns implied by a predicate, for skipping row groups of Parquet files."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.parquet.row_group_workers import Bound, RowGroupBound
from sparkdelta.base.predicates.ordered_casts import compares_each, compares_exactly, ordered
from sparkdelta.base.predicates.predicate_rules import (
    Column,
    Comparison,
    Expression,
    In,
    Literal,
    Predicate,
    conjuncts,
    flipped,
)
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.table_schema import type_of_path


def row_group_bounds(
    predicate: Predicate, schema: StructType, partition_columns: frozenset[str]
) -> tuple[RowGroupBound, ...]:
    """Return the bounds on data columns in all rows that match a predicate without `Not`."""
    lower: dict[ColumnPath, Any] = {}
    upper: dict[ColumnPath, Any] = {}
    for term in conjuncts(predicate):
        path, least, greatest = _interval(term, schema)
        if path is None or path[0] in partition_columns:
            continue
        if least is not None:
            lower[path] = max(lower.get(path, least), least)
        if greatest is not None:
            upper[path] = min(upper.get(path, greatest), greatest)
    paths = sorted({*lower, *upper})
    return tuple(RowGroupBound(path, lower.get(path), upper.get(path)) for path in paths)


def _interval(
    term: Predicate, schema: StructType
) -> tuple[ColumnPath | None, Bound | None, Bound | None]:
    if isinstance(term, In):
        kinds = [value.data_type for value in term.literals or ()]
        values = [_bound(term.child, value, schema) for value in term.values]
        if not isinstance(term.child, Column) or not kinds or None in values:
            return None, None, None
        own = type_of_path(schema, term.child.path).simpleString()
        if not compares_each(own, kinds):
            return None, None, None
        bounds: Any = values
        return term.child.path, min(bounds), max(bounds)
    if not isinstance(term, Comparison):
        return None, None, None
    if isinstance(term.left, Literal):
        term = flipped(term)
    value = _bound(term.left, term.right, schema)
    if not isinstance(term.left, Column) or value is None:
        return None, None, None
    has_lower = term.operator in (">", ">=", "=", "<=>")
    has_upper = term.operator in ("<", "<=", "=", "<=>")
    return term.left.path, value if has_lower else None, value if has_upper else None


def _bound(column: Expression, constant: Expression, schema: StructType) -> Bound | None:
    """Return a constant as a value of the column's type; None if it cannot be converted exactly."""
    if not isinstance(column, Column) or not isinstance(constant, Literal):
        return None
    if ordered(column, schema) is None:
        return None
    data_type = type_of_path(schema, column.path)
    if not compares_exactly(data_type.simpleString(), constant.data_type):
        return None
    return _converted(constant.value, data_type)


def _converted(value: Any, data_type: DataType) -> Bound | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(data_type, FloatType | DoubleType):
        is_number = isinstance(value, int | float | Decimal)
        return float(value) if is_number and not math.isnan(value) else None
    if isinstance(data_type, IntegralType):
        return value if isinstance(value, int) else None
    if isinstance(data_type, DecimalType):
        return Decimal(value) if isinstance(value, int | Decimal) else None
    if isinstance(data_type, TimestampType | TimestampNTZType):
        has_zone = isinstance(data_type, TimestampType)
        is_moment = isinstance(value, datetime) and (value.tzinfo is not None) == has_zone
        return value if is_moment else None
    if isinstance(data_type, DateType):
        return value if isinstance(value, date) and not isinstance(value, datetime) else None
    return value if isinstance(data_type, StringType) and isinstance(value, str) else None
