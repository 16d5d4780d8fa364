"""Columns with min/max statistics under order-preserving casts, and the comparisons that can use
their bounds.

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
    DecimalType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.predicates.predicate_rules import (
    FUNCTIONS,
    Call,
    Cast,
    Column,
    Expression,
)
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.table_schema import type_of_path

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MAX_DIGITS = 38
_DOUBLE_DIGITS = 15
_BINARY_COLLATION = "UTF8_BINARY"

# For each family of a column, the families of the other operand for which Spark compares the column
# without a cast or with one that preserves its order.
_COMPARABLE = {
    "number": {"number", "string"},
    "string": {"string"},
    "date": {"date", "string", "timestamp", "timestamp_ntz"},
    "timestamp": {"timestamp", "date", "string", "timestamp_ntz"},
    "timestamp_ntz": {"timestamp_ntz", "date", "string"},
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """An orderable column as a comparison sees it, after casts.

    Attributes
    ----------
    data_type
        The simple name of the type after the casts.
    casts
        The simple names of the types that it is cast to, innermost first.
    is_float
        True if the column itself is FLOAT or DOUBLE and may contain NaN.
    is_inexact
        True if equal bounds do not prove that all rows are equal: timestamps are truncated to
        milliseconds, and some bounds are rounded.
    is_rounded
        True for a DECIMAL of more than 15 digits: writers may have rounded its bounds to DOUBLE.
    may_be_a_day_off
        True if the order may be off by one day: the date of a timestamp where clocks are set back
        at midnight.
    """

    path: ColumnPath
    data_type: str
    casts: tuple[str, ...] = ()
    is_float: bool = False
    is_inexact: bool = False
    is_rounded: bool = False
    may_be_a_day_off: bool = False

    @property
    def family(self) -> str:
        return family(self.data_type)


def ordered(expression: Expression, schema: StructType) -> Ordered | None:
    """Return the column under an order-preserving expression, or None for other expressions."""
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
        # Bounds are in binary order, which differs from that of a collation. CHAR and VARCHAR are
        # StringType too.
        is_binary = getattr(data_type, "collation", _BINARY_COLLATION) == _BINARY_COLLATION
        return Ordered(path, "string") if is_binary else None
    if not isinstance(data_type, NumericType | DateType | TimestampType | TimestampNTZType):
        return None
    is_rounded = isinstance(data_type, DecimalType) and data_type.precision > _DOUBLE_DIGITS
    return Ordered(
        path,
        data_type.simpleString(),
        is_float=isinstance(data_type, FloatType | DoubleType),
        is_inexact=is_rounded or isinstance(data_type, TimestampType | TimestampNTZType),
        is_rounded=is_rounded,
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
        # Distinct values may become equal, but equal bounds still mean equal values after the cast.
        is_inexact=(child.is_inexact and data_type != "date") or spreads,
        may_be_a_day_off=child.may_be_a_day_off or spreads,
    )


def keeps_order(source: str, target: str) -> bool:
    """Return True if a cast between types, by simple name, never fails and keeps the order."""
    if source in _INTEGERS and target in _INTEGERS:
        return _INTEGERS.index(source) < _INTEGERS.index(target)
    if family(source) == "number" and target in ("double", "float"):
        return source != "double" or target == "double"
    target_digits, source_digits = exact_digits(target), exact_digits(source)
    if _DECIMAL.fullmatch(target) and target_digits is not None and source_digits is not None:
        return target_digits[0] >= source_digits[0] and target_digits[1] >= source_digits[1]
    return (source, target) in {
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "date"),
        ("timestamp_ntz", "date"),
    }


def family(data_type: str) -> str:
    """Return the type family of a simple name: "number" for numeric types, else the name itself."""
    is_number = data_type in (*_INTEGERS, "float", "double") or data_type.startswith("decimal")
    return "number" if is_number else data_type


def is_comparable(bound: Ordered, data_type: str | None) -> bool:
    """Return True if a comparison with a value of this type can be evaluated on bounds."""
    return data_type is not None and (
        data_type == "void" or family(data_type) in _COMPARABLE.get(bound.family, ())
    )


def compares_each(data_type: str, value_types: Collection[str], *, negated: bool = False) -> bool:
    """Return True if IN selects only rows that `=` with one of the values would select.

    If negated, NOT IN must select only rows that `<>` with every value would. `=` casts two
    operands to a common type, IN all of them: one DOUBLE among them makes large neighbouring
    numbers equal, and without ANSI mode one STRING turns all of them into strings.

    Parameters
    ----------
    data_type
        The type of the left side of IN.
    value_types
        The types of all values, nulls included.
    """
    kinds = set(value_types) - {"void"}
    if (
        kinds == {"string"}
        and not negated
        and (data_type in ("date", "timestamp_ntz") or exact_digits(data_type) is not None)
    ):
        return True  # a value that formats to one of the strings also equals that string's value
    if any(family(kind) != family(data_type) for kind in kinds):
        return False
    return len(kinds) == 1 or _have_exact_common_type({data_type, *kinds})


def compares_exactly(data_type: str, other: str) -> bool:
    """Return True if Spark compares values of two types without rounding.

    It does for DECIMAL if the common type has enough digits, but never for FLOAT with an integer.
    """
    if data_type == other or (exact_digits(data_type) is None and exact_digits(other) is None):
        return True
    return _have_exact_common_type({data_type, other}) or "double" in (data_type, other)


def _have_exact_common_type(data_types: Collection[str]) -> bool:
    """Return True if all types are exact numbers and one DECIMAL type holds the values of all."""
    digits = [exact_digits(data_type) for data_type in data_types]
    exact = [pair for pair in digits if pair is not None]
    return len(exact) == len(digits) and (
        max(whole for whole, _ in exact) + max(scale for _, scale in exact) <= _MAX_DIGITS
    )


def exact_digits(data_type: str) -> tuple[int, int] | None:
    """Return the digits of an exact numeric type before and after the point; None for others."""
    if data_type in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[data_type], 0
    decimal = _DECIMAL.fullmatch(data_type)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))


def type_of(expression: Expression, schema: StructType) -> str | None:
    """Return the simple name of an expression's type, or None if only Spark can determine it.

    For numeric expressions only the family is reliable, not the exact type.
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
