"""Columns that a file's bounds speak of, through casts that keep their order, and what they may be
compared with.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql.types import (
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.protocol.predicates import FUNCTIONS, Call, Cast, Column, ColumnPath, Expression
from sparkdelta.schema.table_schema import type_of_path

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MAX_DIGITS = 38
_BINARY_COLLATION = "UTF8_BINARY"

# What bounds of a family are comparable with, so that Spark either leaves the column as it is or
# converts it in a way that keeps its order.
_COMPARABLE = {
    "number": {"number", "string"},
    "string": {"string"},
    "date": {"date", "string", "timestamp", "timestamp_ntz"},
    "timestamp": {"timestamp", "date", "string", "timestamp_ntz"},
    "timestamp_ntz": {"timestamp_ntz", "date", "string"},
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """A column with an order, as a comparison sees it.

    Attributes
    ----------
    path
        The column.
    data_type
        The simple name of its type after the casts.
    casts
        The types that it is cast to, innermost first.
    is_float
        Whether the column itself may hold NaN.
    is_inexact
        Whether equal bounds do not prove that all rows are equal: timestamps are cut to
        milliseconds.
    spreads_days
        Whether the order holds but for a day: a moment's date, where clocks are set back at
        midnight.
    """

    path: ColumnPath
    data_type: str
    casts: tuple[str, ...] = ()
    is_float: bool = False
    is_inexact: bool = False
    spreads_days: bool = False

    @property
    def family(self) -> str:
        return family(self.data_type)


def ordered(expression: Expression, schema: StructType) -> Ordered | None:
    """The column behind an expression that keeps its order; None where there is none."""
    if isinstance(expression, Column):
        return _ordered_column(expression.path, schema)
    if isinstance(expression, Cast):
        child = ordered(expression.child, schema)
        return None if child is None else _cast(child, expression.data_type)
    if isinstance(expression, Call) and expression.function in ("date", "to_date"):
        child = ordered(expression.arguments[0], schema)
        is_date = child is not None and child.family in ("date", "timestamp", "timestamp_ntz")
        if child is not None and is_date and len(expression.arguments) == 1:
            return _cast(child, "date")
    return None


def _ordered_column(path: ColumnPath, schema: StructType) -> Ordered | None:
    data_type = type_of_path(schema, path)
    if isinstance(data_type, StringType):
        # Bounds are in binary order; a collation has another one. CHAR and VARCHAR are texts too.
        is_binary = getattr(data_type, "collation", _BINARY_COLLATION) == _BINARY_COLLATION
        return Ordered(path, "string") if is_binary else None
    if not isinstance(data_type, NumericType | DateType | TimestampType | TimestampNTZType):
        return None
    return Ordered(
        path,
        data_type.simpleString(),
        is_float=isinstance(data_type, FloatType | DoubleType),
        is_inexact=isinstance(data_type, TimestampType | TimestampNTZType),
    )


def _cast(child: Ordered, data_type: str) -> Ordered | None:
    if data_type == child.data_type:
        return child
    if not keeps_order(child.data_type, data_type):
        return None
    spreads = child.data_type == "timestamp" and data_type == "date"
    return replace(
        child,
        data_type=data_type,
        casts=(*child.casts, data_type),
        # Different values may become one, but equal bounds still mean equal values after the cast.
        is_inexact=(child.is_inexact and data_type != "date") or spreads,
        spreads_days=child.spreads_days or spreads,
    )


def keeps_order(source: str, target: str) -> bool:
    """Whether a cast from one type to another, by simple names, never fails and keeps the order."""
    if source in _INTEGERS and target in _INTEGERS:
        return _INTEGERS.index(source) < _INTEGERS.index(target)
    if family(source) == "number" and target in ("double", "float"):
        return source != "double" or target == "double"
    wanted, own = _digits(target), _digits(source)
    if _DECIMAL.fullmatch(target) and wanted is not None and own is not None:
        return wanted[0] >= own[0] and wanted[1] >= own[1]
    return (source, target) in {
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "date"),
        ("timestamp_ntz", "date"),
    }


def family(data_type: str) -> str:
    """The kind of a type by its simple name: all numbers are one, others their own."""
    is_number = data_type in (*_INTEGERS, "float", "double") or data_type.startswith("decimal")
    return "number" if is_number else data_type


def is_comparable(bound: Ordered, data_type: str | None) -> bool:
    """Whether a comparison with a value of a type can be made with the bounds instead."""
    return data_type is not None and (
        data_type == "void" or family(data_type) in _COMPARABLE.get(bound.family, ())
    )


def compares_each(data_type: str, value_types: Collection[str], *, negated: bool = False) -> bool:
    """Whether IN finds nothing that `=` would not find with one of the values, and NOT IN nothing
    that `<>` with each would not.

    `=` brings two values to one type, IN all of them: one DOUBLE among them makes neighbours of
    large numbers equal, and without ANSI rules one STRING makes texts of all.

    Parameters
    ----------
    data_type
        Of what is looked for.
    value_types
        Of the values, null ones included.
    """
    kinds = set(value_types) - {"void"}
    if (
        kinds == {"string"}
        and not negated
        and (data_type in ("date", "timestamp_ntz") or _digits(data_type) is not None)
    ):
        return True  # a value that is spelled like a text is what the text stands for
    if any(family(kind) != family(data_type) for kind in kinds):
        return False
    return len(kinds) == 1 or _have_room({data_type, *kinds})


def compares_exactly(data_type: str, other: str) -> bool:
    """Whether Spark compares values of two types without rounding one: DECIMAL as far as there are
    digits, FLOAT with no whole number.
    """
    if data_type == other or (_digits(data_type) is None and _digits(other) is None):
        return True
    return _have_room({data_type, other}) or "double" in (data_type, other)


def _have_room(data_types: Collection[str]) -> bool:
    """Whether one type holds all values of some types of exact numbers."""
    digits = [_digits(data_type) for data_type in data_types]
    exact = [pair for pair in digits if pair is not None]
    return len(exact) == len(digits) and (
        max(whole for whole, _ in exact) + max(scale for _, scale in exact) <= _MAX_DIGITS
    )


def _digits(data_type: str) -> tuple[int, int] | None:
    """The digits of an exact number before and after the point; None for other types."""
    if data_type in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[data_type], 0
    decimal = _DECIMAL.fullmatch(data_type)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))


def type_of(expression: Expression, schema: StructType) -> str | None:
    """The simple name of an expression's type; None where only Spark can tell.

    Any number's type may stand for another's: what matters is the family.
    """
    if isinstance(expression, Column):
        return type_of_path(schema, expression.path).simpleString()
    if isinstance(expression, Call):
        fixed = FUNCTIONS[expression.function]
        types = [type_of(argument, schema) for argument in expression.arguments]
        if fixed is None and all(t is not None and family(t) == "number" for t in types):
            return "double"
        return fixed
    return expression.data_type
