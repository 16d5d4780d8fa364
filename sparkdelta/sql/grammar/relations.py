"""The places of a query where tables are read: after FROM and JOIN, and commas between tables.

A table is a name, perhaps with a version or time, and options; what is read of a table function is
its arguments. Everything else of the query stays text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sparkdelta.exceptions import StatementSyntaxError
from sparkdelta.sql.grammar.cursor import Cursor, name_of_table, syntax_error
from sparkdelta.sql.grammar.tokens import Kind, Token

_ENDS_FROM = {
    "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET",
    "WINDOW", "UNION", "EXCEPT", "MINUS", "INTERSECT", "QUALIFY", "SELECT", "VALUES",
}  # fmt: skip
_NO_ALIAS = _ENDS_FROM | {
    "ANTI", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI",
    "USING", "PIVOT", "UNPIVOT", "TABLESAMPLE", "WHEN", "SET", "WATERMARK", "MATCH_RECOGNIZE",
}  # fmt: skip
_QUERY = {"SELECT", "WITH", "VALUES"}
_CHANGES = ("table_changes", "table_changes_by_path")
_UNITS = {
    unit
    for word in (
        "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND",
        "MICROSECOND",
    )
    for unit in (word, f"{word}S")
} | {"TO"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the text."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table in a query.

    Attributes
    ----------
    start, end
        Its place in the text, with the version or time, and the options.
    arguments
        Of a function that returns changes.
    options
        The options clause after the table, ``WITH ('option' = 'value')``; None without one.
    needs_alias
        True if the text gives it none, where columns may be qualified by its own name.
    alias_at
        Where an alias goes.
    """

    name: tuple[str, ...]
    start: int
    end: int
    version: Slice | None = None
    timestamp: Slice | None = None
    arguments: tuple[Slice, ...] | None = None
    needs_alias: bool = False
    alias_at: int = 0
    options: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Level:
    """The state inside a pair of parentheses."""

    is_query: bool = False
    in_from: bool = False
    expects: bool = False
    is_new: bool = True


def relations(text: str, tokens: tuple[Token, ...]) -> list[Relation]:
    """Return the tables and functions of changes that a query reads, in the order of the text.

    Raises
    ------
    StatementSyntaxError
        A version, a time or options are not understood.
    """
    return list(_relations(text, tokens))


def named_query(cursor: Cursor) -> str:
    """Go past the name that WITH gives to a query, up to the query; return it.

    The rule is ``name [(columns)] [MAX RECURSION LEVEL n] [AS] (query)``.
    """
    name = cursor.word()
    if cursor.peek("(") and cursor.ahead().is_name and cursor.ahead(2).is_symbol(",", ")"):
        cursor.words()
    if cursor.accept("MAX RECURSION LEVEL"):
        cursor.number()
    cursor.accept("AS")
    return name


def common_names(text: str, tokens: tuple[Token, ...]) -> dict[str, list[range]]:
    """Return the names in lower case that WITH gives to queries, and the ranges of the text where
    they refer to these queries: up to the end of the query that WITH begins, but not inside their
    own, where a name is a table's unless the query is recursive.
    """
    found, opened = dict[str, list[range]](), list[int]()
    for number, token in enumerate(tokens):
        if token.is_symbol("("):
            opened.append(number)
        elif token.is_symbol(")"):
            del opened[-1:]
        elif token.is_word("WITH") and not tokens[number - 1].is_symbol("."):
            end = _closing(tokens, opened[-1] if opened else 0).end
            for name, start in _named_queries(text, tokens, number + 1):
                found.setdefault(name.lower(), []).append(range(start, end))
    return found


def _named_queries(text: str, tokens: tuple[Token, ...], place: int) -> Iterator[tuple[str, int]]:
    """Yield the names of queries after WITH, and the places in the text from which on they refer to
    these; none if WITH is something else.
    """
    cursor = Cursor(text, tokens, place)
    is_recursive = cursor.accept("RECURSIVE")
    with suppress(StatementSyntaxError):
        while True:
            first = cursor.token
            name = named_query(cursor)
            cursor.in_parentheses()
            yield name, first.start if is_recursive else tokens[cursor.place - 1].end
            if not cursor.accept(","):
                return


def _closing(tokens: Sequence[Token], place: int) -> Token:
    """Return the parenthesis that closes the one at a place, else the end."""
    depth = 0
    for token in tokens[place:] if tokens[place].is_symbol("(") else ():
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth:
            return token
    return tokens[-1]


def _relations(text: str, tokens: tuple[Token, ...]) -> Iterator[Relation]:
    levels = [_Level()]
    place = 0
    while tokens[place].kind is not Kind.END:
        token, level = tokens[place], levels[-1]
        is_field = place > 0 and tokens[place - 1].is_symbol(".")
        word = token.text.upper() if token.kind is Kind.WORD and not is_field else ""
        is_first, level.is_new = level.is_new, False
        place += 1
        if token.is_symbol("("):
            is_trim = tokens[place - 2].is_word("TRIM")  # TRIM(FROM x) is no query
            levels.append(_Level(expects=level.expects, in_from=level.expects, is_new=not is_trim))
            level.expects = False
        elif token.is_symbol(")"):
            if len(levels) > 1:
                levels.pop()
        elif word == "FROM" and not tokens[place].is_symbol(",", ")"):
            before = tokens[place - 2] if place > 1 else token
            if (level.is_query or is_first) and not before.is_word("DISTINCT"):
                level.is_query = level.in_from = level.expects = True
        elif word == "JOIN":
            level.in_from = level.expects = True
        elif word == "VIEW" and tokens[place - 2].is_word("LATERAL"):
            level.in_from = False  # no table comes after it, but names of columns with commas
        elif token.is_symbol(","):
            level.expects = level.in_from
        elif word == "TABLE":
            before = tokens[place - 2] if place > 1 else token
            if is_first or before.is_word("UNION", "ALL", "EXCEPT", "INTERSECT", "AS"):
                level.is_query = level.expects = True
        elif word in _QUERY and (word != "WITH" or is_first or not level.in_from):
            level.is_query, level.expects, level.in_from = True, False, False
        elif word in _ENDS_FROM or token.is_symbol("|>"):
            level.expects = level.in_from = False
        elif level.expects and word != "LATERAL":
            level.expects = False
            if token.is_name:
                takes_alias = not tokens[place - 2].is_word("TABLE")
                place, found = relation_at(text, tokens, place - 1, takes_alias=takes_alias)
                yield from found


def relation_at(
    text: str, tokens: tuple[Token, ...], place: int, *, takes_alias: bool = True
) -> tuple[int, tuple[Relation] | tuple[()]]:
    """Return the relation at a place, and the place after it; none for a function of other rows.

    Raises
    ------
    StatementSyntaxError
        A version, a time or options are not understood.
    """
    start = tokens[place].start
    try:
        found = name_of_table(text, tokens, place)
    except StatementSyntaxError:
        return place + 1, ()  # IDENTIFIER of an expression that only Spark can evaluate
    if found is None:
        raise syntax_error(text, start, "the name of a table is expected")
    place, name = found
    if tokens[place].is_symbol("("):
        if len(name) > 1 or name[0].lower() not in _CHANGES:
            return place, ()
        place, arguments = _arguments(text, tokens, place)
        end = tokens[place - 1].end
        return place, (Relation((name[0].lower(),), start, end, arguments=arguments, alias_at=end),)
    version = timestamp = None
    if tokens[place].is_symbol("@") and tokens[place + 1].is_name:  # t@v5
        name = (*name[:-1], f"{name[-1]}@{tokens[place + 1].text}")
        place += 2
    kind = place + 1 if tokens[place].is_word("FOR") else place
    if tokens[kind + 1].is_word("AS") and tokens[kind + 2].is_word("OF"):
        if tokens[kind].is_word("VERSION", "SYSTEM_VERSION"):
            place, version = _operand(text, tokens, kind + 3)
        elif tokens[kind].is_word("TIMESTAMP", "SYSTEM_TIME"):
            place, timestamp = _sum(text, tokens, kind + 3)
    options = None
    if takes_alias and tokens[place].is_word("WITH") and tokens[place + 1].is_symbol("("):
        cursor = Cursor(text, tokens, place + 1)
        options, place = cursor.properties(), cursor.place
    end = tokens[place - 1].end
    alias_at, after = end, place
    if tokens[after].is_word("TABLESAMPLE") and tokens[after + 1].is_symbol("("):
        after, _ = _arguments(text, tokens, after + 1)
        alias_at = tokens[after - 1].end
    has_alias = (
        not takes_alias
        or tokens[after].is_word("AS")
        or (tokens[after].is_name and not tokens[after].is_word(*_NO_ALIAS))
    )
    return place, (
        Relation(name, start, end, version, timestamp, None, not has_alias, alias_at, options),
    )


def _arguments(text: str, tokens: Sequence[Token], place: int) -> tuple[int, tuple[Slice, ...]]:
    """Return the arguments in parentheses, and the place after these."""
    depth, found, start = 0, [], tokens[place].end
    while tokens[place].kind is not Kind.END:
        token = tokens[place]
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        if (token.is_symbol(",") and depth == 1) or not depth:
            found.append(Slice(text[start : token.start].strip(), start))
            start = token.end
        place += 1
        if not depth:
            return place, tuple(found)
    raise syntax_error(text, tokens[place].start, ") is expected")


def _operand(text: str, tokens: Sequence[Token], place: int) -> tuple[int, Slice]:
    """Return a literal, a call, an interval or what is in parentheses, and the place after it."""
    first = tokens[place]
    if first.kind is Kind.END:
        raise syntax_error(text, first.start, "a version or time is expected")
    if first.is_symbol("("):
        place, _ = _arguments(text, tokens, place)
    elif first.is_word("INTERVAL"):
        place += 2
        while tokens[place].is_word(*_UNITS) or tokens[place].kind in (Kind.NUMBER, Kind.STRING):
            place += 1
    else:
        place += 1
        if first.is_word("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
            place += tokens[place].kind is Kind.STRING
        while tokens[place].is_symbol(".") and first.is_name:
            place += 2
        if tokens[place].is_symbol("(") and first.is_name:
            place, _ = _arguments(text, tokens, place)
    if tokens[place].is_symbol("::"):
        place += 2
    return place, Slice(text[first.start : tokens[place - 1].end], first.start)


def _sum(text: str, tokens: Sequence[Token], place: int) -> tuple[int, Slice]:
    """Return operands with + and - in between, and the place after them."""
    start = tokens[place].start
    place, _ = _operand(text, tokens, place)
    while tokens[place].is_symbol("+", "-", "||"):
        place, _ = _operand(text, tokens, place + 1)
    return place, Slice(text[start : tokens[place - 1].end], start)
