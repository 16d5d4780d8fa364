"""Parameters of Delta's statements: ``:name``, ``?`` and ``{name}`` become literals in the text;
variables, ``${name}``, the values of settings of the session.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.sql.grammar.parser import syntax_error
from sparkdelta.sql.grammar.tokens import Fragment, Kind

Arguments = Mapping[str, Any] | Sequence[Any] | None
_LARGEST_INT = 2**31
_VARIABLE = re.compile(r"\$\{(?:(spark|sparkconf|hivevar|hiveconf):)?([^\s}]+)\}")


def with_variables(spark: SparkSession, text: str) -> str:
    """Return a text with the values of its variables; those that have none stay, as they do for
    Spark.
    """
    if "${" not in text or spark.conf.get("spark.sql.variable.substitute") != "true":
        return text

    def value(found: re.Match[str]) -> str:
        setting = spark.conf.get(found[2], None)
        return found[0] if setting is None else setting

    return _VARIABLE.sub(value, text)


def bind_parameters(statement: Fragment, arguments: Arguments, named: Mapping[str, Any]) -> str:
    """Return a statement with literals in the place of its parameters.

    Parameters
    ----------
    arguments
        By name or by position.
    named
        Values of names in braces.

    Raises
    ------
    InvalidArgumentError
        A value is of no type that SQL has literals for.
    StatementSyntaxError
        A parameter has no value.
    """
    by_name = arguments if isinstance(arguments, Mapping) else {}
    in_order = list(arguments) if arguments and not isinstance(arguments, Mapping) else []
    text, tokens, parts, place = statement.whole, statement.tokens, [], 0
    for number, token in enumerate(tokens[:-2]):
        start, after = token.start, tokens[number + 1]
        if token.is_symbol("?") and in_order:
            value, end = in_order.pop(0), token.end
        elif token.is_symbol("?") and isinstance(arguments, Sequence):
            raise syntax_error(text, start, "this parameter has no value")
        elif token.is_symbol(":") and after.kind is Kind.WORD and after.text in by_name:
            value, end = by_name[after.text], after.end
        elif token.is_symbol("{") and after.text in named and tokens[number + 2].is_symbol("}"):
            value, end = named[after.text], tokens[number + 2].end
        else:
            continue
        parts += [text[place:start], _separated(text[:start][-1:], literal(value), text[end:][:1])]
        place = end
    return "".join([*parts, text[place:]])


def check_quoted(statement: Fragment, named: Mapping[str, Any]) -> None:
    """Refuse names in braces inside of quotes, which would stay as they are.

    Raises
    ------
    StatementSyntaxError
        There is one.
    """
    if not named:
        return
    braces = re.compile(rf"(?<!{{){{({'|'.join(map(re.escape, named))})\b")
    for token in statement.tokens:
        if token.kind in (Kind.STRING, Kind.NAME) and braces.search(token.text):
            problem = "a name in braces stands for a whole value, and cannot be inside of quotes"
            raise syntax_error(statement.whole, token.start, problem)


def _separated(before: str, value: str, after: str) -> str:
    """Return a literal that stays a word of its own between its neighbours, as in ``=?AND``."""
    return f"{' ' * _is_of_word(before)}{value}{' ' * _is_of_word(after)}"


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def literal(value: Any) -> str:
    """Return a Python value as a SQL literal.

    Raises
    ------
    InvalidArgumentError
        There are no literals of its type.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        suffix = "" if -_LARGEST_INT <= value < _LARGEST_INT else "L"
        return _number(f"{value}{suffix}")
    if isinstance(value, float):
        text = float.__repr__(value)
        return _number(f"{text}D") if math.isfinite(value) else f"DOUBLE('{text}')"
    if isinstance(value, str):
        has_braces = not {"{", "}"}.isdisjoint(value)  # Spark would take them for names
        return f"CAST(X'{value.encode().hex()}' AS string)" if has_braces else text_literal(value)
    if isinstance(value, bytes | bytearray):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal) and value.is_finite():
        return _number(f"{value:f}BD")
    if isinstance(value, datetime):
        moment = value.astimezone(timezone.utc).replace(tzinfo=None)
        return f"TIMESTAMP_LTZ '{moment.isoformat(sep=' ')}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, list | tuple):
        return f"ARRAY({', '.join(map(literal, value))})"
    problem = f"there is no SQL literal of a {type(value).__name__}"
    raise InvalidArgumentError(argument="args", problem=problem)


def _number(text: str) -> str:
    """Return a number in parentheses if it is negative: ``10-?`` must not become ``10--5``, which
    begins a comment.
    """
    return f"({text})" if text.startswith("-") else text
