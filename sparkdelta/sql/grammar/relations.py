"""The places of a query where tables are read: after FROM and JOIN, and commas between tables.

A table is a name, perhaps with a version or time, and options; of a table function, the arguments
are read. Everything else of the query stays text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sparkdelta.exceptions import StatementSyntaxError
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.tokens import Fragment, Kind, Token

ENDS_FROM = {
    "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET",
    "WINDOW", "UNION", "EXCEPT", "MINUS", "INTERSECT", "QUALIFY", "SELECT", "VALUES",
}  # fmt: skip
NO_ALIAS = ENDS_FROM | {
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
    is_stream
        True for ``STREAM t`` and ``STREAM(t)``.
    needs_alias
        True if the text gives it none, where columns may be qualified by its own name.
    alias_at
        Where an alias goes.
    """

    name: Name
    start: int
    end: int
    version: Fragment | None = None
    timestamp: Fragment | None = None
    arguments: tuple[Fragment, ...] | None = None
    needs_alias: bool = False
    alias_at: int = 0
    options: Mapping[str, str] | None = None
    is_stream: bool = False


@dataclass(slots=True)
class _Level:
    """The state inside a pair of parentheses."""

    is_query: bool = False
    in_from: bool = False
    expects: bool = False
    is_new: bool = True


def named_query(parser: Parser) -> str:
    """Parse and return the name that WITH gives to a query, up to the query.

    The rule is ``name [(columns)] [MAX RECURSION LEVEL n] [AS] (query)``.
    """
    name = parser.word()
    if parser.peek("(") and parser.ahead().is_name and parser.ahead(2).is_symbol(",", ")"):
        parser.words()
    if parser.accept("MAX RECURSION LEVEL"):
        parser.number()
    parser.accept("AS")
    return name


def common_names(text: str, tokens: Sequence[Token]) -> dict[str, list[range]]:
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
            for name, start in _named_queries(Parser(text, tokens, number + 1)):
                found.setdefault(name.lower(), []).append(range(start, end))
    return found


def _named_queries(parser: Parser) -> Iterator[tuple[str, int]]:
    """Yield the names of queries after WITH, and the places in the text from which on they refer to
    these; none if WITH is something else.
    """
    is_recursive = parser.accept("RECURSIVE")
    with suppress(StatementSyntaxError):
        while True:
            first = parser.token
            name = named_query(parser)
            parser.in_parentheses()
            yield name, first.start if is_recursive else parser.ahead(-1).end
            if not parser.accept(","):
                return


def _closing(tokens: Sequence[Token], place: int) -> Token:
    """Return the parenthesis that closes the one at a place, else the end."""
    depth = 0
    for token in tokens[place:] if tokens[place].is_symbol("(") else ():
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth:
            return token
    return tokens[-1]


def relations(query: Fragment) -> Iterator[Relation]:
    """Yield the tables and functions of changes that a query reads, in the order of the text.

    Raises
    ------
    StatementSyntaxError
        A version, a time or options are not understood.
    """
    parser = Parser(query.whole, query.tokens)
    starts_in_from = query.follows_from
    levels = [_Level(starts_in_from, starts_in_from, starts_in_from, not starts_in_from)]
    nothing = query.tokens[-1]
    while not parser.is_at_end:
        before = parser.ahead(-1) if parser.place else nothing
        token, level = parser.next(), levels[-1]
        word = token.text.upper() if token.kind is Kind.WORD and not before.is_symbol(".") else ""
        is_first, level.is_new = level.is_new, False
        if token.is_symbol("("):
            is_trim = before.is_word("TRIM")  # TRIM(FROM x) is no query
            levels.append(_Level(expects=level.expects, in_from=level.expects, is_new=not is_trim))
            level.expects = False
        elif token.is_symbol(")"):
            if len(levels) > 1:
                levels.pop()
        elif word == "FROM" and not parser.token.is_symbol(",", ")"):
            if (level.is_query or is_first) and not before.is_word("DISTINCT"):
                level.is_query = level.in_from = level.expects = True
        elif word == "JOIN":
            level.in_from = level.expects = True
        elif word == "VIEW" and before.is_word("LATERAL"):
            level.in_from = False  # no table comes after it, but names of columns with commas
        elif token.is_symbol(","):
            level.expects = level.in_from
        elif word == "TABLE":
            if is_first or before.is_word("UNION", "ALL", "EXCEPT", "INTERSECT", "AS"):
                level.is_query = level.expects = True
        elif word in _QUERY and (word != "WITH" or is_first or not level.in_from):
            level.is_query, level.expects, level.in_from = True, False, False
        elif word in ENDS_FROM or token.is_symbol("|>"):
            level.expects = level.in_from = False
        elif level.expects and word != "LATERAL":
            level.expects = False
            if token.is_name:
                parser.place -= 1
                relation = relation_at(parser, takes_alias=not before.is_word("TABLE"))
                if relation is not None:
                    yield relation


def relation_at(parser: Parser, *, takes_alias: bool = True) -> Relation | None:
    """Return the relation at a place, and go past it; None for a function of other rows.

    Raises
    ------
    StatementSyntaxError
        A version, a time or options are not understood.
    """
    place, start = parser.place, parser.token.start
    is_stream = _accept_stream(parser)
    in_parentheses = is_stream and parser.accept("(")
    try:
        name = parser.table_name()
    except StatementSyntaxError:
        parser.place = place + 1
        return None  # IDENTIFIER of an expression that only Spark can evaluate
    if in_parentheses:
        parser.expect(")")
    elif parser.peek("("):
        if len(name) > 1 or name[0].lower() not in _CHANGES:
            return None
        arguments = _arguments(parser)
        end = parser.ahead(-1).end
        return Relation((name[0].lower(),), start, end, arguments=arguments, alias_at=end)
    version = timestamp = options = None
    if parser.peek("@") and parser.ahead().is_name:  # t@v5
        parser.next()
        name = (*name[:-1], f"{name[-1]}@{parser.word()}")
    place = parser.place
    parser.accept("FOR")
    if parser.accept("VERSION|SYSTEM_VERSION AS OF"):
        version = _operand(parser)
    elif parser.accept("TIMESTAMP|SYSTEM_TIME AS OF"):
        timestamp = _operand(parser, "+", "-", "||")
    else:
        parser.place = place
    if takes_alias and parser.peek("WITH ("):
        parser.next()
        options = parser.properties()
    place = parser.place
    end = alias_at = parser.ahead(-1).end
    if parser.peek("TABLESAMPLE ("):
        parser.next()
        _arguments(parser)
        alias_at = parser.ahead(-1).end
    after = parser.token
    has_alias = after.is_word("AS") or (after.is_name and not after.is_word(*NO_ALIAS))
    needs_alias, parser.place = takes_alias and not has_alias, place
    return Relation(
        name, start, end, version, timestamp, None, needs_alias, alias_at, options, is_stream
    )


def _accept_stream(parser: Parser) -> bool:
    """Skip STREAM if a table's name or a parenthesis follows it; return True if one did."""
    after = parser.ahead()
    is_name = after.is_name and not after.is_word("AS", "FOR", "VERSION", "TIMESTAMP", *NO_ALIAS)
    return (is_name or after.is_symbol("(")) and parser.accept("STREAM")


def _arguments(parser: Parser) -> tuple[Fragment, ...]:
    """Return the arguments in parentheses, and go past them."""
    parser.next()
    depth, found, start = 1, list[Fragment](), parser.place
    while not parser.is_at_end:
        token = parser.token
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth or (token.is_symbol(",") and depth == 1):
            found.append(parser.fragment(start))
            start = parser.place + 1
        parser.next()
        if not depth:
            return tuple(found)
    raise parser.error(") is expected")


def _operand(parser: Parser, *operators: str) -> Fragment:
    """Parse literals, calls, intervals or parentheses with operators between them."""
    start = parser.place
    while True:
        _one_operand(parser)
        if not parser.token.is_symbol(*operators):
            return parser.fragment(start)
        parser.next()


def _one_operand(parser: Parser) -> None:
    if parser.is_at_end:
        raise parser.error("a version or time is expected")
    if parser.peek("("):
        _arguments(parser)
    elif parser.accept("INTERVAL"):
        parser.next()
        while parser.token.is_word(*_UNITS) or parser.token.kind in (Kind.NUMBER, Kind.STRING):
            parser.next()
    else:
        first = parser.next()
        if first.is_word("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
            parser.place += parser.token.kind is Kind.STRING
        while first.is_name and parser.accept("."):
            parser.next()
        if first.is_name and parser.peek("("):
            _arguments(parser)
    if parser.accept("::"):
        parser.next()
