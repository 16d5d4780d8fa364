"""Translation of predicates to Spark SQL over columns with exact values: partition columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from sparkdelta.base.predicates import predicate_rules
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
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
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.sql_text import simple_type_text, text_literal
from sparkdelta.base.skipping.failing_values import TRIED

ColumnOf = Callable[[ColumnPath], str]
_EPOCH = datetime(1970, 1, 1)
_INTEGER_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def to_sql(predicate: Predicate, column_of: ColumnOf) -> str:
    """Return SQL for a usable predicate; null if it is neither true nor false."""
    if isinstance(predicate, And):
        return f"({' AND '.join(to_sql(term, column_of) for term in predicate.terms)})"
    if isinstance(predicate, Or):
        return f"({' OR '.join(to_sql(term, column_of) for term in predicate.terms)})"
    if isinstance(predicate, Not):
        return f"(NOT {to_sql(predicate.term, column_of)})"
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
    """Return SQL for an expression; null if one of its `failing_parts` fails."""
    if isinstance(expression, predicate_rules.Column):
        return column_of(expression.path)
    if isinstance(expression, Literal):
        return literal(expression)
    if isinstance(expression, Cast):
        return _tried_cast(value(expression.child, column_of), expression.data_type)
    assert isinstance(expression, Call)
    name, arguments = expression.function, [value(a, column_of) for a in expression.arguments]
    if name in ("date", "to_date") and len(arguments) == 1:
        return _tried_cast(arguments[0], "date")
    return f"`{TRIED.get(name, name)}`({', '.join(arguments)})"


def _tried_cast(child: str, data_type: str) -> str:
    return f"TRY_CAST({child} AS {simple_type_text(data_type)})"


def literal(constant: Literal) -> str:
    """Return SQL for a constant in its type, independent of the session's settings."""
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
    # Next to a decimal, Spark types a plain integer literal by its digits, but a cast more widely.
    if data_type in _INTEGER_SUFFIXES:
        return f"{content}{_INTEGER_SUFFIXES[data_type]}"
    text = format(content, "f") if isinstance(content, Decimal) else str(content).lower()
    return f"CAST('{text}' AS {data_type})"
