"""Constants of a condition to literals of the predicate tree."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from sparkdelta.predicates.names import UnusableError
from sparkdelta.protocol.predicates import Literal, LiteralValue

_EPOCH = datetime(1970, 1, 1)
_MAX_DECIMAL_DIGITS = 38


def decimal_literal(value: Decimal) -> Literal:
    """A decimal in the smallest type that holds it: what an API says of its type may be less."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UnusableError("a decimal that is no number")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > _MAX_DECIMAL_DIGITS:
        raise UnusableError(f"a number of more than {_MAX_DECIMAL_DIGITS} digits")
    return Literal(value, f"decimal({precision},{scale})")


def literal_of(value: Any, data_type: DataType) -> Literal:
    """A literal from Spark's internal value: days and microseconds since the epoch."""
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
        raise UnusableError("a moment outside the years 1 to 9999") from error
    external: LiteralValue = value
    return external


_NAMES = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date",
    "timestamp", "timestamp_ntz", "binary", "void",
}  # fmt: skip


def simple_name(data_type: DataType) -> str:
    """The simple name of a type that expressions of the tree may have."""
    name = data_type.simpleString()
    if name not in _NAMES and not name.startswith("decimal("):
        raise UnusableError(f"a value of type {name}")
    return name
