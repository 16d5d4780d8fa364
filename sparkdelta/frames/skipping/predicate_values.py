"""Translation of predicates to Spark SQL over columns with exact values: partition columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from pyspark.sql.types import StructType

from sparkdelta.frames.skipping.failing_values import TRIED
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
    marked_conjuncts,
)
from sparkdelta.schema.ordered_casts import compares_each, compares_exactly, family
from sparkdelta.schema.sql_text import simple_type_text, text_literal
from sparkdelta.schema.table_schema import quoted, type_of_path

ColumnOf = Callable[[ColumnPath], str]
_EPOCH = datetime(1970, 1, 1)
_INTEGER_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_TEXT_SEARCHES = ("startswith", "endswith", "contains")


def infallible_conjuncts(predicate: Predicate, schema: StructType) -> str | None:
    """Return SQL for the terms of a condition that fail for no row; None without such terms."""
    terms = [
        truth(term, _column_text)
        for term, is_implied in marked_conjuncts(predicate)
        if not is_implied and is_infallible(term, schema)
    ]
    return " AND ".join(terms) or None


def is_infallible(predicate: Predicate, schema: StructType) -> bool:
    """Return True if a condition fails for no row: it only compares bare columns with constants.

    A cast of a column, arithmetic and most functions fail for some values.
    """
    if isinstance(predicate, And | Or):
        implied = predicate.implied if isinstance(predicate, And) else 0
        given = predicate.terms[: len(predicate.terms) - implied]
        return all(is_infallible(term, schema) for term in given)
    if isinstance(predicate, Not):
        return is_infallible(predicate.term, schema)
    if isinstance(predicate, Comparison):
        left, right = predicate.left, predicate.right
        return _compares_unconverted(left, right, schema) or _compares_unconverted(
            right, left, schema
        )
    if isinstance(predicate, IsNull):
        return isinstance(predicate.child, predicates.Column)
    if isinstance(predicate, In):
        own, literals = _type_of(predicate.child, schema), predicate.literals
        kinds = None if literals is None else [literal.data_type for literal in literals]
        return own is not None and kinds is not None and compares_each(own, kinds)
    if isinstance(predicate, Truth):
        child = predicate.child
        if isinstance(child, Call) and child.function in _TEXT_SEARCHES:
            own, text = _type_of(child.arguments[0], schema), child.arguments[1]
            return own == "string" and isinstance(text, Literal) and text.data_type == "string"
        return isinstance(child, Literal) or _type_of(child, schema) == "boolean"
    return False


def _compares_unconverted(column: Expression, constant: Expression, schema: StructType) -> bool:
    own = _type_of(column, schema)
    if own is None or not isinstance(constant, Literal):
        return False
    if constant.data_type in ("void", "string"):
        return (
            constant.data_type == "void" or own == "string" or family(own) in _CONVERTED_FROM_STRING
        )
    return family(own) == family(constant.data_type) and compares_exactly(own, constant.data_type)


_CONVERTED_FROM_STRING = ("number", "date", "timestamp", "timestamp_ntz")
"""Type families to which Spark converts a string when comparing the two."""


def _type_of(expression: Expression, schema: StructType) -> str | None:
    """Return the simple name of a column's type; None if the expression is not a column."""
    if not isinstance(expression, predicates.Column):
        return None
    name = type_of_path(schema, expression.path).simpleString()
    return "string" if name.startswith(("char(", "varchar(", "string")) else name


def _column_text(path: ColumnPath) -> str:
    return ".".join(quoted(name) for name in path)


def truth(predicate: Predicate, column_of: ColumnOf) -> str:
    """Return SQL for a usable predicate; null if it is neither true nor false."""
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
    """Return SQL for an expression; null if one of its `failing_parts` fails."""
    if isinstance(expression, predicates.Column):
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
