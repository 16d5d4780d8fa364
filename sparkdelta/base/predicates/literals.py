"""Literals of the predicate tree and casts between them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from sparkdelta.base.predicates.predicate_rules import Cast, Expression, Literal, LiteralValue
from sparkdelta.base.predicates.resolved_names import UnusableError
from sparkdelta.base.protocol.partition_values import parse_partition_value
from sparkdelta.exceptions import InvalidPartitionValueError

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_INTEGER = re.compile("-?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1)
_MAX_DECIMAL_DIGITS = 38
_TEMPORAL = ("date", "timestamp", "timestamp_ntz")
# The largest absolute values up to which every integer is exact in a floating point type.
_EXACT_INTEGERS = {"float": 1 << 24, "double": 1 << 53}


def decimal_literal(value: Decimal) -> Literal:
    """Return a decimal literal of the smallest type that holds the value.

    The type reported by an API may be too small.
    """
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UnusableError("a decimal that is not a number")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > _MAX_DECIMAL_DIGITS:
        raise UnusableError(f"a number with more than {_MAX_DECIMAL_DIGITS} digits")
    return Literal(value, f"decimal({precision},{scale})")


def cast(child: Expression, data_type: str, *, is_try: bool, time_zone: str) -> Expression:
    """Return a cast expression, or its result where `cast_literal` can compute it."""
    made = None
    if isinstance(child, Literal):
        made = cast_literal(child, data_type, time_zone=time_zone)
    return made or Cast(child, data_type, is_try)


def cast_literal(literal: Literal, data_type: str, *, time_zone: str) -> Literal | None:
    """Return the result of casting a literal, or None if only Spark can determine it.

    `time_zone` is the session time zone, for timestamps without one.
    """
    value = literal.value
    if value is None or literal.data_type == data_type:
        return Literal(value, data_type)
    if data_type in _TEMPORAL and literal.data_type in ("string", "date"):
        return _datetime_literal(str(value), data_type, time_zone)
    if isinstance(value, str) and data_type in INTEGER_BITS and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, int) and data_type in INTEGER_BITS:
        limit = 1 << (INTEGER_BITS[data_type] - 1)
        return Literal(value, data_type) if -limit <= value < limit else None
    if data_type == "double" and isinstance(value, Decimal):
        return Literal(float(value), data_type)
    if data_type in _EXACT_INTEGERS:
        limit = _EXACT_INTEGERS[data_type]
        is_exact = isinstance(value, int) and -limit <= value <= limit
        return Literal(float(value), data_type) if is_exact else None
    if data_type.startswith("decimal("):
        return _cast_decimal(Decimal(value), data_type)
    return None


def _datetime_literal(text: str, data_type: str, time_zone: str) -> Literal | None:
    try:
        value = parse_partition_value(text, data_type, time_zone=time_zone)
    except (InvalidPartitionValueError, LookupError, ValueError, OverflowError):
        return None
    if value is None or (data_type == "timestamp_ntz" and getattr(value, "tzinfo", None)):
        return None
    return Literal(value, data_type)


def is_ambiguous(moment: Literal, time_zone: str) -> bool:
    """Return True if a timestamp's local time occurs twice in a zone: clocks are set back."""
    if moment.data_type != "timestamp":
        return False
    assert isinstance(moment.value, datetime)
    local = moment.value.astimezone(ZoneInfo(time_zone))
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def _cast_decimal(value: Decimal, data_type: str) -> Literal | None:
    """Return a decimal literal of the given type, or None if the type does not hold all digits."""
    precision, scale = map(int, data_type.removeprefix("decimal(").rstrip(")").split(","))
    exponent = value.as_tuple().exponent
    fits = isinstance(exponent, int) and -exponent <= scale
    return Literal(value, data_type) if fits and value.adjusted() < precision - scale else None


def literal_of(value: Any, data_type: DataType) -> Literal:
    """Return a literal from Spark's internal representation.

    There, dates are days and timestamps microseconds since the epoch.
    """
    if isinstance(value, Decimal):
        return decimal_literal(value)
    return Literal(_external(value, data_type), simple_name(data_type))


def _external(value: Any, data_type: DataType) -> LiteralValue:
    try:
        if value is None:
            return None
        if isinstance(data_type, DateType):
            return date(1970, 1, 1) + timedelta(days=value)
        if isinstance(data_type, TimestampNTZType):
            return _EPOCH + timedelta(microseconds=value)
        if isinstance(data_type, TimestampType):
            return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=timezone.utc)
    except OverflowError as error:
        raise UnusableError("a timestamp outside the years 1 to 9999") from error
    external: LiteralValue = value
    return external


_NAMES = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date",
    "timestamp", "timestamp_ntz", "binary", "void",
}  # fmt: skip


def simple_name(data_type: DataType) -> str:
    """Return the simple name of a type; raise `UnusableError` if predicates cannot have it."""
    name = data_type.simpleString()
    if name not in _NAMES and not name.startswith("decimal("):
        raise UnusableError(f"a literal of type {name}")
    return name
