"""The predicate tree to Spark SQL, where its columns have exact values: those of partitions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

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
from sparkdelta.schema.sql_text import simple_type_text, text_literal

ColumnOf = Callable[[ColumnPath], str]
_EPOCH = datetime(1970, 1, 1)
_INTEGER_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def truth(predicate: Predicate, column_of: ColumnOf) -> str:
    """Whether a usable predicate is true; null where it is neither true nor false."""
    if isinstance(predicate, And):
        return f"({' AND '.join(truth(term, column_of) for term in predicate.terms)})"
    if isinstance(predicate, Or):
        return f"({' OR '.join(truth(term, column_of) for term in predicate.terms)})"
    if isinstance(predicate, Not):
        return f"(NOT {truth(predicate.term, column_of)})"
    if isinstance(predicate, Comparison):
        left, right = value(predicate.left, column_of), value(predicate.right, column_of)
        return f"({left} {predicate.operator} {right})"
    if isinstance(predicate, IsNull):
        return f"({value(predicate.child, column_of)} IS NULL)"
    if isinstance(predicate, In):
        values = ", ".join(value(one, column_of) for one in predicate.values)
        return f"({value(predicate.child, column_of)} IN ({values}))"
    if isinstance(predicate, Truth):
        return value(predicate.child, column_of)
    raise ValueError(f"{predicate} has no value")


def value(expression: Expression, column_of: ColumnOf) -> str:
    """The value of an expression."""
    if isinstance(expression, predicates.Column):
        return column_of(expression.path)
    if isinstance(expression, Literal):
        return literal(expression)
    if isinstance(expression, Cast):
        function = "TRY_CAST" if expression.is_try else "CAST"
        child = value(expression.child, column_of)
        return f"{function}({child} AS {simple_type_text(expression.data_type)})"
    assert isinstance(expression, Call)
    arguments = ", ".join(value(argument, column_of) for argument in expression.arguments)
    return f"`{expression.function}`({arguments})"


def literal(constant: Literal) -> str:
    """The constant in its type, whatever the session's settings are."""
    content, data_type = constant.value, simple_type_text(constant.data_type)
    if content is None:
        return "NULL" if data_type == "void" else f"CAST(NULL AS {data_type})"
    if isinstance(content, datetime):
        if content.tzinfo is None:
            return f"CAST('{content.isoformat(sep=' ')}' AS timestamp_ntz)"
        naive = content.astimezone(timezone.utc).replace(tzinfo=None)
        return f"timestamp_micros({(naive - _EPOCH) // timedelta(microseconds=1)}L)"
    if isinstance(content, date):
        return f"date_from_unix_date({(content - date(1970, 1, 1)).days})"
    if isinstance(content, bytes | bytearray):
        return f"X'{content.hex()}'"
    if isinstance(content, str):
        text = text_literal(content)
        return text if data_type == "string" else f"CAST({text} AS {data_type})"
    if isinstance(content, float):
        return f"CAST(CAST('{content}' AS double) AS {data_type})"
    if data_type in _INTEGER_SUFFIXES:  # beside a decimal, Spark gives a number in digits the type
        return f"{content}{_INTEGER_SUFFIXES[data_type]}"  # that they need, and a cast a wider one
    text = format(content, "f") if isinstance(content, Decimal) else str(content).lower()
    return f"CAST('{text}' AS {data_type})"
