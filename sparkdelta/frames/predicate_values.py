"""The predicate tree to Spark, where its columns have exact values: those of partitions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from sparkdelta.protocol import predicates
from sparkdelta.protocol.predicates import (
    And,
    Call,
    Cast,
    ColumnPath,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
)

ColumnOf = Callable[[ColumnPath], Column]
_EPOCH = datetime(1970, 1, 1)


def truth(predicate: Predicate, column_of: ColumnOf) -> Column:
    """Whether a usable predicate is true; null where it is neither true nor false."""
    if isinstance(predicate, And):
        return reduce(Column.__and__, [truth(term, column_of) for term in predicate.terms])
    if isinstance(predicate, Or):
        return reduce(Column.__or__, [truth(term, column_of) for term in predicate.terms])
    if isinstance(predicate, Not):
        return ~truth(predicate.term, column_of)
    if isinstance(predicate, Comparison):
        left, right = value(predicate.left, column_of), value(predicate.right, column_of)
        return compare(predicate.operator, left, right)
    if isinstance(predicate, IsNull):
        return value(predicate.child, column_of).isNull()
    if isinstance(predicate, In):
        return value(predicate.child, column_of).isin([literal(v) for v in predicate.values])
    if isinstance(predicate, Truth):
        return value(predicate.child, column_of)
    raise ValueError(f"{predicate} has no value")


def value(expression: Expression, column_of: ColumnOf) -> Column:
    """The value of an expression."""
    if isinstance(expression, predicates.Column):
        return column_of(expression.path)
    if isinstance(expression, Literal):
        return literal(expression)
    if isinstance(expression, Cast):
        child = value(expression.child, column_of)
        cast = child.try_cast if expression.is_try else child.cast
        return cast(expression.data_type)
    assert isinstance(expression, Call)
    arguments = [value(argument, column_of) for argument in expression.arguments]
    return F.call_function(expression.function, *arguments)


def literal(constant: Literal) -> Column:
    """The constant in its type, whatever the session's settings are."""
    content, data_type = constant.value, constant.data_type
    if content is None:
        return F.lit(None) if data_type == "void" else F.lit(None).cast(data_type)
    if isinstance(content, datetime):
        is_moment = content.tzinfo is not None
        naive = content.astimezone(timezone.utc).replace(tzinfo=None) if is_moment else content
        if is_moment:
            return F.timestamp_micros(F.lit((naive - _EPOCH) // timedelta(microseconds=1)))
        return F.lit(naive.isoformat(sep=" ")).cast("timestamp_ntz")
    if isinstance(content, date):
        return F.date_from_unix_date(F.lit((content - date(1970, 1, 1)).days))
    if isinstance(content, Decimal):
        return F.lit(format(content, "f")).cast(data_type)
    if isinstance(content, bytes | bytearray):
        return F.unhex(F.lit(content.hex()))
    return F.lit(content) if data_type == "string" else F.lit(content).cast(data_type)


def compare(operator: str, left: Column, right: Column) -> Column:
    """A comparison by its operator in SQL."""
    if operator == "<=>":
        return left.eqNullSafe(right)
    operations: dict[str, Callable[[Column, Column], Column]] = {
        "=": Column.__eq__,
        "<>": Column.__ne__,
        "<": Column.__lt__,
        "<=": Column.__le__,
        ">": Column.__gt__,
        ">=": Column.__ge__,
    }
    return operations[operator](left, right)
