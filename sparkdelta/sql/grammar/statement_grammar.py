"""Statements by their grammar: one line for each, and the function that carries it out.

A line is read from left to right. Words in upper case and symbols stand for themselves. ``name`` is
an argument of the function; a method of `Parser` of this name reads it, or ``kind`` of
``name:kind``. ``*name`` is several arguments. ``[...]`` is optional, and ``name=[...]`` is true if
it is there. Names and literals are parsed; expressions and queries stay the user's text, up to the
keyword that may come next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.relations import named_query
from sparkdelta.sql.grammar.tokens import Fragment

Function = TypeVar("Function", bound=Callable[..., Any])
Kind: TypeAlias = Callable[..., Any]
_Part: TypeAlias = "str | _Argument | _Option"

CHANGES = ("INSERT", "MERGE", "DELETE", "UPDATE")
"""The statements that may come after WITH."""
_EXPLAINED = (*CHANGES, "CREATE", "REPLACE")
_KINDS_OF_PLANS = ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")
_UP_TO_KEYWORD = {"alias", "expression", "of_rows", "assignments"}
_PART = re.compile(r"(?P<option>(?:\w+=)?\[)|\]|[^\s\[\]]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a table.

    Attributes
    ----------
    function
        Carries it out; takes the table and the arguments.
    only_delta
        True if Spark's own SQL does not have it.
    name
        The statement in errors.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    only_delta: bool = False
    name: str = ""


Rule: TypeAlias = Callable[[Parser], "Statement | None"]
STATEMENTS: dict[str, Rule] = {}
"""The rule of each statement by its first keywords; None is a statement that Spark has."""


def statement(
    *heads: str,
    line: str = "table",
    only_delta: bool = False,
    rules: dict[str, Rule] = STATEMENTS,
    **kinds: Kind,
) -> Callable[[Function], Function]:
    """Register a function as the one that carries out a statement.

    Parameters
    ----------
    heads
        The first keywords of the statement.
    line
        The grammar of what follows them.
    rules
        Where it is registered.
    kinds
        Functions of the parser that read arguments, by name.
    """

    def register(function: Function) -> Function:
        parts = _parts(iter(_PART.finditer(line)), kinds)
        name = heads[0].replace("|DESC", "")
        name = name if rules is STATEMENTS else f"ALTER TABLE ... {name}"

        def rule(parser: Parser) -> Statement:
            arguments = dict[str, Any]()
            _read(parser, parts, (), arguments)
            return Statement(function, arguments, only_delta, name)

        rules.update(dict.fromkeys(heads, rule))
        return function

    return register


def refused(error: Callable[[str], DeltaError], *heads: str) -> None:
    """Register statements that are refused for Delta tables.

    Parameters
    ----------
    error
        Makes the error of a statement.
    """

    def refuse(parser: Parser, head: str) -> None:
        parser.table()
        raise error(head)

    STATEMENTS.update({head: partial(refuse, head=head) for head in heads})


def no_v2_command(statement: str) -> DeltaError:
    """Return the error of a statement that Spark has for tables of its own sources only."""
    return DeltaError.of("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", statement=statement)


def not_allowed(operation: str) -> DeltaError:
    """Return the error of a statement that Delta tables do not have."""
    return DeltaError.of("DELTA_OPERATION_NOT_ALLOWED", operation=operation)


def no_partitions(parser: Parser) -> DeltaError:
    """Return the error of a statement about a partition of a Delta table."""
    return DeltaError.of(
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        table=quoted_path(parser.target or ()),
    )


def parse(parser: Parser) -> Statement | None:
    """Return the statement of a text; None if it is none of Delta's.

    Raises
    ------
    StatementSyntaxError
        It is one of Delta's, and is not understood.
    DELTA_STATEMENT_NOT_SUPPORTED
        It is none that Delta tables have here.
    """
    is_explained = parser.accept("EXPLAIN")
    if is_explained:
        has_kind = parser.token.is_word(*_KINDS_OF_PLANS)
        parser.explains = parser.next().text if has_kind else ""
    if parser.peek("WITH"):
        parser.queries = common_queries(parser)
    if is_explained or parser.queries:
        allowed = CHANGES if parser.queries else _EXPLAINED
        if not parser.token.is_word(*allowed):
            return None
    parser.operation = parser.token.text.upper()
    found = next_rule(parser, STATEMENTS)
    result = None if found is None else found(parser)
    if result is not None:
        parser.expect_end()
    return result


def next_rule(parser: Parser, rules: Mapping[str, Rule]) -> Rule | None:
    """Skip the most keywords that begin a rule, and return it; None if there are none."""
    first = parser.token.text.upper()
    heads = [head for head in rules if first in head and parser.peek(head)]
    if not heads:
        return None
    head = max(heads, key=lambda head: len(head.split()))
    parser.accept(head)
    return rules[head]


def common_queries(parser: Parser) -> Fragment:
    """Parse and return WITH and its queries."""
    start = parser.place
    parser.next()
    parser.accept("RECURSIVE")

    def query() -> None:
        named_query(parser)
        parser.in_parentheses()

    parser.listed(query)
    return parser.fragment(start)


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument; without a name several of them, by name."""

    name: str | None
    kind: Kind
    is_up_to_keyword: bool


@dataclass(frozen=True, slots=True)
class _Option:
    """Parts that are there if some words are; `flag` is an argument that is then true."""

    flag: str | None
    words: str
    parts: tuple[_Part, ...]


def _parts(line: Iterator[re.Match[str]], kinds: Mapping[str, Kind]) -> tuple[_Part, ...]:
    """Return the parts of a line up to the bracket that closes it."""
    parts = list[_Part]()
    for part in line:
        text = part[0]
        if text == "]":
            break
        if part["option"]:
            words, *inner = _parts(line, kinds)
            assert isinstance(words, str)
            parts.append(_Option(text[:-2] or None, words, tuple(inner)))
        elif text == text.upper():
            is_next = parts and isinstance(parts[-1], str)
            parts.append(f"{parts.pop()} {text}" if is_next else text)
        else:
            name, _, kind = text.lstrip("*").partition(":")
            method = kind or name
            read = kinds[name] if name in kinds else getattr(Parser, method)
            is_named = not text.startswith("*") and method != "table"
            parts.append(_Argument(name if is_named else None, read, method in _UP_TO_KEYWORD))
    return tuple(parts)


def _read(
    parser: Parser, parts: tuple[_Part, ...], after: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    """Parse the parts of a line, and add its arguments.

    Parameters
    ----------
    after
        The words that may come after the parts.
    """
    for number, part in enumerate(parts, 1):
        if isinstance(part, str):
            parser.expect(part)
            continue
        ends = _starts(parts[number:], after)
        if isinstance(part, _Option):
            if parser.accept(part.words):
                arguments.update({part.flag: True} if part.flag else {})
                _read(parser, part.parts, ends, arguments)
            continue
        value = part.kind(parser, *ends) if part.is_up_to_keyword else part.kind(parser)
        if part.name is not None and value is not None:
            arguments[part.name] = value
        elif isinstance(value, Mapping):
            arguments.update(value)


def _starts(parts: tuple[_Part, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that may come first."""
    found = list[str]()
    for part in parts:
        if isinstance(part, _Option):
            found.append(part.words.split()[0])
        else:
            return (*found, *([part.split()[0]] if isinstance(part, str) else ()))
    return (*found, *after)
