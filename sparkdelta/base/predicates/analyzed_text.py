"""Predicates from the text that Spark's `Expression.sql` returns for an analyzed condition.

This text is unambiguous: columns are qualified, the types of constants and casts are explicit, and
nested operators are in parentheses. The user's SQL text has many more syntax rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.column_tree import ColumnTree
from sparkdelta.base.predicates.literals import (
    INTEGER_BITS,
    cast,
    cast_literal,
    decimal_literal,
    is_ambiguous,
)
from sparkdelta.base.predicates.predicate_rules import (
    Column,
    Expression,
    Literal,
    Predicate,
    Unusable,
)
from sparkdelta.base.predicates.resolved_names import UnusableError, find_comparable_column
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.table_schema import quoted, type_of_path


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operator or function call with its operands."""

    name: str
    operands: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """The parts between parentheses, separated by commas."""

    parts: tuple[_Part, ...]


_Part: TypeAlias = "_Token | _Operation | _Group | list[_Part]"
"""A list holds the parts of a type or of an unsupported operation."""

_TEXT = r"""
    (?P<space>\s+)
    |(?P<column>{qualifier}(?:\.(?:`(?:[^`]|``)*`|[A-Za-z0-9_]+))+)
    |(?P<string>'(?:[^'\\]|\\.)*')
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<number>\d+(?:\.\d+)?(?:E[+-]?\d+)?(?:BD|[YSLDF])?(?!\w))
    |(?P<word>\w+)
    |(?P<symbol><=>|<=|>=|.)
"""
_NAME_PART = re.compile(r"\.(?:`((?:[^`]|``)*)`|([A-Za-z0-9_]+))")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"(-?[\d.]+(?:E[+-]?\d+)?)(BD|[YSLDF])?")
_INTEGER_TYPES = {"Y": "tinyint", "S": "smallint", "": "int", "L": "bigint"}
_DATETIME_KEYWORDS = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz"}
_WORDS: dict[str, tuple[bool | None, str]] = {
    "NULL": (None, "void"), "TRUE": (True, "boolean"), "FALSE": (False, "boolean"),
}  # fmt: skip
_INFIX = frozenset(("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "AND", "OR"))
_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int",
    "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "STRING": "string", "DATE": "date",
    "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz", "BINARY": "binary",
}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def qualifier_of(schema: StructType) -> str:
    """Return an alias for the table's rows that is not the name of a column."""
    names, name = {name_key(field.name) for field in schema.fields}, "sparkdelta rows"
    while name in names:
        name += "_"
    return name


def parse_analyzed(
    text: str,
    schema: StructType,
    *,
    time_zone: str,
    shown_zone: str | None = None,
    alias: str | None = None,
) -> Predicate:
    """Return the predicate of an analyzed condition.

    Parameters
    ----------
    schema
        The table's columns.
    alias
        An alias of the rows beside `qualifier_of(schema)`.
    time_zone
        The session time zone, for strings that are cast to timestamps.
    shown_zone
        The time zone in which Spark formatted timestamps; `time_zone` by default.
    """
    try:
        part = _parsed(_tokens(text, *filter(None, (alias, qualifier_of(schema)))))
        return _AnalyzedTree(schema, time_zone, shown_zone or time_zone).predicate(part)
    except UnusableError as error:
        return Unusable(text, error.reason)
    except RecursionError:
        return Unusable(text, "it is nested too deeply")


_CALL = re.compile(r"\b(?!(?:CAST|TRY_CAST|DECIMAL)\()\w+\(")


def has_call(text: str) -> bool:
    """Return True if a condition calls a function, perhaps the user's under the name of Spark's.

    Spark writes no names of other things right before a parenthesis.
    """
    return _CALL.search(text) is not None


def of_user_functions(text: str) -> Unusable:
    """Return the predicate of a condition that calls functions of the user."""
    return Unusable(text, "a function of the user may have the name of one of Spark's")


def _tokens(text: str, *qualifiers: str) -> Iterator[_Token]:
    # Spark quotes them if needed.
    forms = (re.escape(form) for name in qualifiers for form in (quoted(name), name))
    pattern = _TEXT.replace("{qualifier}", f"(?:{'|'.join(forms)})")
    for found in re.finditer(pattern, text, re.VERBOSE | re.DOTALL):
        kind = str(found.lastgroup)
        if kind != "space":
            yield _Token(kind, found.group())


def _parsed(tokens: Iterator[_Token]) -> _Part:
    """Return the operation of tokens, made from the innermost parentheses outwards.

    A chain of operators is nested as deeply as it is long.
    """
    levels: list[list[_Part]] = [[]]
    for token in tokens:
        if token == _Token("symbol", "("):
            levels.append([])
        elif token == _Token("symbol", ")") and len(levels) > 1:
            inner = levels.pop()
            levels[-1].append(_group(inner))
        else:
            levels[-1].append(token)
    if len(levels) > 1:
        raise UnusableError("its parentheses are not closed")
    return _operation(levels[0])


def _group(listed: list[_Part]) -> _Group:
    arguments: list[list[_Part]] = [[]]
    for part in listed:
        if part == _Token("symbol", ","):
            arguments.append([])
        else:
            arguments[-1].append(part)
    return _Group(tuple(map(_operation, arguments)) if listed else ())


def _operation(parts: list[_Part]) -> _Part:
    """Return a token or an operation, or the parts unchanged if they are not supported."""
    if not parts:
        return parts
    last = parts[-1]
    if len(parts) == 1:
        return last.parts[0] if isinstance(last, _Group) and len(last.parts) == 1 else last
    words = [part.text.upper() if isinstance(part, _Token) else "" for part in parts]
    if "AS" in words:  # of a cast
        at = words.index("AS")
        return _Operation("as", (_operation(parts[:at]), parts[at + 1 :]))
    if words[0] == "NOT":
        return _Operation("not", (_operation(parts[1:]),))
    if words[0] == "-" and len(parts) == 2:
        if isinstance(last, _Token) and last.kind == "number":
            return _Token("number", f"-{last.text}")
        return _Operation("negative", (_operation(parts[1:]),))
    infix = [  # not the sign of a number
        n for n, word in enumerate(words) if n > 0 and word in _INFIX and words[n - 1] not in _INFIX
    ]
    if len(infix) == 1:
        (at,) = infix
        operands = (_operation(parts[:at]), _operation(parts[at + 1 :]))
        return _Operation(words[at].lower(), operands)
    if words[-2:] == ["IS", "NULL"]:
        return _Operation("isnull", (_operation(parts[:-2]),))
    if words[-3:] == ["IS", "NOT", "NULL"]:
        return _Operation("isnotnull", (_operation(parts[:-3]),))
    if words[-2:-1] == ["IN"] and isinstance(last, _Group):
        return _Operation("in", (_operation(parts[:-2]), *last.parts))
    if words.count("LIKE") == 1 and "ESCAPE" not in words:
        at = words.index("LIKE")
        return _Operation("like", (_operation(parts[:at]), _operation(parts[at + 1 :])))
    function = parts[0] if len(parts) == 2 else None
    if isinstance(function, _Token) and function.kind == "word" and isinstance(last, _Group):
        return _function(function.text, last)
    return parts


def _function(name: str, group: _Group) -> _Part:
    typed = group.parts[0] if len(group.parts) == 1 else None
    if name in ("CAST", "TRY_CAST") and isinstance(typed, _Operation) and typed.name == "as":
        return _Operation(name, typed.operands)
    return _without_hiding(_Operation(name.lower(), group.parts))


def _without_hiding(call: _Operation) -> _Part:
    """Return the value that a call returns unchanged, as scans hide columns from Parquet's filters.

    Returns the call if it is another one.
    """
    name, operands = call.name, call.operands
    if name == "greatest" and len(operands) == 2 and _is_null(operands[1]):
        return operands[0]
    if name != "if" or len(operands) != 3:
        return call
    condition, of_null, of_value = operands  # of a field of a struct that may be null
    if not isinstance(condition, _Operation) or condition.name != "isnull":
        return call
    if _text(of_null) == "false":
        is_present = _Operation("isnotnull", condition.operands)
        return _Operation("and", (is_present, of_value))
    parent, path = _text(condition.operands[0]), _text(of_value)
    return of_value if _is_null(of_null) and path.startswith(f"{parent}.") else call


def _is_null(part: _Part) -> bool:
    return _text(part).startswith("CAST(NULL AS ")


class _AnalyzedTree(ColumnTree):
    def __init__(self, schema: StructType, time_zone: str, shown_zone: str) -> None:
        super().__init__(schema, time_zone)
        self.shown_zone = shown_zone

    def predicate(self, node: Any, level: int = 0) -> Predicate:
        if isinstance(node, _Operation) and node.name == "between" and len(node.operands) == 3:
            child, low, high = node.operands
            limits = (_Operation(">=", (child, low)), _Operation("<=", (child, high)))
            return super().predicate(_Operation("and", limits), level)
        return super().predicate(node, level)

    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        if not isinstance(node, _Operation) or node.name in ("CAST", "TRY_CAST"):
            return None
        return node.name, node.operands

    def shown(self, node: Any) -> str:
        return _text(node)

    def value(self, node: Any) -> Expression:
        if isinstance(node, _Operation):
            return self._cast(node)
        if isinstance(node, _Token):
            return self._token(node)
        if isinstance(node, list) and [type(part) for part in node] == [_Token, _Token]:
            word, string = node
            if string.kind == "string" and word.text in _DATETIME_KEYWORDS:
                return self._datetime_literal(string.text[1:-1], _DATETIME_KEYWORDS[word.text])
            if string.kind == "string" and word.text == "X":
                return Literal(bytes.fromhex(string.text[1:-1]), "binary")
        raise UnusableError(f"{_text(node)} is not supported")

    def _token(self, token: _Token) -> Expression:
        if token.kind == "column":
            names = [
                plain or name.replace("``", "`") for name, plain in _NAME_PART.findall(token.text)
            ]
            return find_comparable_column(self.schema, names)
        if token.kind == "string":
            return Literal(_ESCAPE.sub(r"\1", token.text[1:-1]), "string")
        if token.kind == "number":
            return _number(token.text)
        if token.text.upper() in _WORDS:
            return Literal(*_WORDS[token.text.upper()])
        raise UnusableError(f"{token.text} is not supported")

    def _datetime_literal(self, text: str, data_type: str) -> Literal:
        literal = cast_literal(Literal(text, "string"), data_type, time_zone=self.shown_zone)
        if literal is None or is_ambiguous(literal, self.shown_zone):
            raise UnusableError(f"{data_type} {text} is one of two moments, or of no year here")
        return literal

    def _cast(self, node: _Operation) -> Expression:
        operand, wanted = node.operands
        text, child = _text(wanted), self.expression(operand)
        decimal = _DECIMAL.fullmatch(text.replace(" ", ""))
        data_type = f"decimal({decimal[1]},{decimal[2]})" if decimal else _TYPES.get(text)
        if data_type is None:
            raise UnusableError(f"a cast to {text}")
        if (
            isinstance(child, Column)
            and data_type == type_of_path(self.schema, child.path).simpleString()
        ):
            return child  # Spark adds such casts to the operands of IN
        return cast(child, data_type, is_try=node.name == "TRY_CAST", time_zone=self.time_zone)


def _number(text: str) -> Literal:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnusableError(f"{text} is not supported")
    digits, suffix = match.group(1), match.group(2) or ""
    if suffix == "D":
        return Literal(float(digits), "double")
    if suffix == "BD":
        return decimal_literal(Decimal(digits))
    data_type = _INTEGER_TYPES.get(suffix)
    if data_type is None or not digits.lstrip("-").isdigit():
        raise UnusableError(f"{text} is not supported")
    value, limit = int(digits), 1 << (INTEGER_BITS[data_type] - 1)
    if not -limit <= value < limit:
        raise UnusableError(f"{text} is out of range")
    return Literal(value, data_type)


def _text(part: _Part) -> str:
    """Return a part as text for messages."""
    if isinstance(part, _Token):
        return part.text.partition(".")[2] if part.kind == "column" else part.text
    if isinstance(part, _Operation):
        texts = [f"({_text(p)})" if _is_infix(p) else _text(p) for p in part.operands]
        if _is_infix(part):
            return f"{texts[0]} {part.name.upper()} {texts[1]}"
        if part.name in ("CAST", "TRY_CAST"):
            return f"{part.name}({' AS '.join(texts)})"
        return f"{part.name}({', '.join(texts)})"
    if isinstance(part, _Group):
        return f"({', '.join(map(_text, part.parts))})"
    return re.sub(r" ?([(,]) ?", r"\1", " ".join(map(_text, part)))


def _is_infix(part: _Part) -> bool:
    return isinstance(part, _Operation) and part.name.upper() in (*_INFIX, "LIKE")
