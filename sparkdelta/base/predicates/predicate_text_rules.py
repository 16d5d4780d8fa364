"""Formatting of predicates as SQL-like text for users."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INFIX = {"+", "-", "*", "/", "%", "like", "ilike", "rlike"}
_SHOWN_VALUES = 5
_SHOWN_CHARACTERS = 200


def describe(predicate: Predicate) -> str:
    """Format a predicate similar to SQL; long lists and strings are truncated."""
    if isinstance(predicate, And):
        given = len(predicate.terms) - predicate.implied
        text = " AND ".join(_term(term) for term in predicate.terms[:given])
        implied = " AND ".join(_term(term) for term in predicate.terms[given:])
        return f"{text} (implies {implied})" if implied else text
    if isinstance(predicate, Or):
        return " OR ".join(_term(term) for term in predicate.terms)
    if isinstance(predicate, Not):
        return _negated(predicate.term)
    if isinstance(predicate, Comparison):
        return f"{_value(predicate.left)} {predicate.operator} {_value(predicate.right)}"
    if isinstance(predicate, IsNull):
        return f"{_value(predicate.child)} IS NULL"
    if isinstance(predicate, In):
        return f"{_value(predicate.child)} IN ({_list(predicate.values)})"
    if isinstance(predicate, Truth):
        return _unwrapped(_value(predicate.child))
    return _truncated(predicate.text)


def _negated(term: Predicate) -> str:
    if isinstance(term, IsNull):
        return f"{_value(term.child)} IS NOT NULL"
    if isinstance(term, In):
        return f"{_value(term.child)} NOT IN ({_list(term.values)})"
    return f"NOT ({describe(term)})"


def _term(term: Predicate) -> str:
    is_compound = isinstance(term, Or | Unusable) or (isinstance(term, And) and len(term.terms) > 1)
    return f"({describe(term)})" if is_compound else describe(term)


def _value(expression: Expression) -> str:
    if isinstance(expression, Column):
        return ".".join(_name(part) for part in expression.path)
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Cast):
        function = "TRY_CAST" if expression.is_try else "CAST"
        return (
            f"{function}({_unwrapped(_value(expression.child))} AS {expression.data_type.upper()})"
        )
    assert isinstance(expression, Call)
    arguments = [_value(argument) for argument in expression.arguments]
    if expression.function in _INFIX and len(arguments) == 2:
        return f"({f' {expression.function.upper()} '.join(arguments)})"
    if expression.function == "negative":
        return f"-{arguments[0]}"
    return f"{expression.function}({', '.join(_unwrapped(argument) for argument in arguments)})"


def _literal(constant: Literal) -> str:
    content = constant.value
    if content is None:
        return "NULL"
    if isinstance(content, bool):
        return str(content).upper()
    if isinstance(content, datetime):
        if content.tzinfo is None:
            return f"TIMESTAMP_NTZ'{content}'"
        return f"TIMESTAMP'{content.astimezone(timezone.utc).replace(tzinfo=None)}Z'"
    if isinstance(content, date):
        return f"DATE'{content}'"
    if isinstance(content, bytes | bytearray):
        return f"X'{_truncated(content.hex())}'"
    if isinstance(content, str):
        escaped = _truncated(content).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(content)


def _list(values: tuple[Expression, ...]) -> str:
    shown = [_value(value) for value in values[:_SHOWN_VALUES]]
    more = len(values) - len(shown)
    return ", ".join([*shown, f"... {more} more"] if more else shown)


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _unwrapped(text: str) -> str:
    """Remove the parentheses around a single infix call."""
    is_one = text.startswith("(") and text.find(")") == len(text) - 1
    return text[1:-1] if is_one else text


def _truncated(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
