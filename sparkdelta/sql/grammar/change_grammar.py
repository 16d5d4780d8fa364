"""The grammar of the statements that change rows: INSERT, DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkdelta.exceptions import DuplicateInsertColumnsError
from sparkdelta.operations.merge.merge_clauses import Clause
from sparkdelta.sql.grammar.cursor import Cursor
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.relations import named_query, relation_at
from sparkdelta.sql.grammar.statement_values import (
    Delete,
    Insert,
    Merge,
    MergeAction,
    Statement,
    Truncate,
    Update,
)
from sparkdelta.sql.grammar.tokens import Kind

_QUERY = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")
CHANGES = ("INSERT", "MERGE", "DELETE", "UPDATE")
"""The statements that may come after WITH."""


def common_queries(cursor: Cursor) -> str:
    """Go past WITH and its queries; return their text."""
    start = cursor.next()
    cursor.accept("RECURSIVE")
    while True:
        named_query(cursor)
        cursor.in_parentheses()
        if not cursor.accept(","):
            return cursor.since(start)


def with_queries(statement: Statement, queries: str) -> Statement:
    """Return a statement with the common queries of WITH, to which its own query may refer."""
    if isinstance(statement, Insert):
        return replace(statement, query=f"{queries} ({statement.query})")
    if isinstance(statement, Merge):
        return replace(statement, queries=queries)
    return statement  # of whose conditions none may read a table


def delete(parser: Parser) -> Delete:
    """``DELETE FROM``, after its keywords."""
    target, alias = parser.table(), parser.alias("WHERE")
    return Delete(target, alias, parser.condition())


def truncate(parser: Parser) -> Truncate:
    """``TRUNCATE TABLE``, after its keywords."""
    return Truncate(parser.table())


def update(parser: Parser) -> Update:
    """``UPDATE``, after its keyword."""
    target, alias = parser.table(), parser.alias("SET")
    parser.cursor.expect("SET")
    values = parser.assignments("WHERE")
    return Update(target, alias, values, parser.condition())


def merge(parser: Parser) -> Merge:
    """``MERGE``, after its keyword."""
    cursor = parser.cursor
    evolves = cursor.accept("WITH SCHEMA EVOLUTION")
    cursor.expect("INTO")
    target, alias = parser.table(), parser.alias("USING")
    cursor.expect("USING")
    source, source_alias = _source(parser)
    cursor.expect("ON")
    condition = cursor.expression("WHEN")
    actions = []
    while cursor.accept("WHEN"):
        actions.append(_merge_action(parser))
    return Merge(target, alias, source, source_alias, condition, tuple(actions), evolves)


def _source(parser: Parser) -> tuple[str, str | None]:
    """Return the source of a merge with its alias, and the alias, or else the table's name."""
    cursor, name = parser.cursor, None
    start = cursor.token
    if cursor.accept("{"):
        cursor.word()
        cursor.expect("}")
    elif cursor.token.is_name:
        cursor.place, found = relation_at(cursor.text, cursor.tokens, cursor.place)
        name = found[0].name[-1].partition("@")[0] if found else None
    if cursor.peek("("):
        cursor.in_parentheses()
    if cursor.token is start:
        raise cursor.error("a table or query is expected")
    alias = parser.alias("ON")
    if alias is not None and cursor.peek("("):
        cursor.names()
    return cursor.since(start), alias or name


def _merge_action(parser: Parser) -> MergeAction:
    cursor = parser.cursor
    is_matched = not cursor.accept("NOT")
    cursor.expect("MATCHED")
    is_of_table = not is_matched and cursor.accept("BY SOURCE")
    if not is_matched and not is_of_table:
        cursor.accept("BY TARGET")
    condition = cursor.expression("THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if not is_matched and not is_of_table:
        cursor.expect("INSERT")
        return MergeAction(Clause.NOT_MATCHED_INSERT, condition, _inserted_values(parser))
    if cursor.accept("DELETE"):
        of_source, of_both = Clause.NOT_MATCHED_BY_SOURCE_DELETE, Clause.MATCHED_DELETE
        return MergeAction(of_both if is_matched else of_source, condition, None)
    cursor.expect("UPDATE SET")
    if is_matched and cursor.accept("*"):
        return MergeAction(Clause.MATCHED_UPDATE, condition, None)
    kind = Clause.MATCHED_UPDATE if is_matched else Clause.NOT_MATCHED_BY_SOURCE_UPDATE
    return MergeAction(kind, condition, parser.assignments("WHEN"))


def _inserted_values(parser: Parser) -> Mapping[str, str] | None:
    cursor = parser.cursor
    if cursor.accept("*"):
        return None
    names = cursor.names()
    cursor.expect("VALUES")
    cursor.expect("(")
    values = [cursor.expression(closing=",")]
    while cursor.accept(","):
        values.append(cursor.expression(closing=","))
    if len(values) != len(names):
        raise cursor.error(f"{len(names)} values are expected, not {len(values)}")
    cursor.expect(")")
    if len(set(names)) != len(names):
        raise DuplicateInsertColumnsError(columns=names)
    return dict(zip(names, values, strict=True))


def insert(parser: Parser) -> Insert:
    """``INSERT``, after its keyword."""
    cursor = parser.cursor
    evolves = cursor.accept("WITH SCHEMA EVOLUTION")
    overwrites = cursor.accept("OVERWRITE")
    if not overwrites:
        cursor.expect("INTO")
    cursor.accept("TABLE")
    target, alias = parser.table(), parser.alias("BY", "PARTITION", "REPLACE", *_QUERY)
    options = {}
    if cursor.peek("WITH ("):
        cursor.next()
        options = cursor.properties()
    partition = parser.partition() if cursor.accept("PARTITION") else {}
    columns, by_name = None, cursor.accept("BY NAME")
    if not by_name and cursor.peek("(") and not cursor.ahead().is_word(*_QUERY):
        columns = None if cursor.ahead().is_symbol("(") else cursor.names()
        by_name = columns is None and cursor.accept("BY NAME")
    insert = Insert(
        target=target,
        query="",
        alias=alias,
        columns=columns,
        by_name=by_name,
        overwrites=overwrites,
        partition=partition,
        evolves=evolves,
        options=options,
    )
    if cursor.accept("REPLACE"):
        insert = _replacing(parser, insert)
    elif alias is not None:
        raise cursor.error("REPLACE ON is expected after an alias")
    if not cursor.token.is_word(*_QUERY) and not cursor.token.is_symbol("("):
        raise cursor.error("a query is expected")
    if insert.replace_on is not None and cursor.peek("("):
        return _insert_of_parentheses(parser, insert)
    return replace(insert, query=cursor.rest())


_QUERY_IN_PARENTHESES = tuple(f"( {word}" for word in _QUERY if word != "FROM")  # TRIM(FROM x)


def _replacing(parser: Parser, insert: Insert) -> Insert:
    """Return an INSERT with the clause after REPLACE (ON, USING or WHERE), and go past it."""
    cursor = parser.cursor
    is_plain = insert.columns is None and not insert.partition and not insert.overwrites
    if cursor.accept("ON") and is_plain:
        return replace(insert, replace_on=_replaced(cursor))
    if insert.alias is not None:
        raise cursor.error("ON is expected")
    if cursor.accept("USING") and is_plain:
        return replace(insert, replace_using=cursor.names())
    cursor.expect("WHERE")
    return replace(insert, replace_where=_replaced(cursor))


def _replaced(cursor: Cursor) -> str:
    """Return a condition as text, and go past it; it ends where a query begins."""
    return cursor.expression(*_QUERY, *_QUERY_IN_PARENTHESES)


def _insert_of_parentheses(parser: Parser, insert: Insert) -> Insert:
    """Go past a query in parentheses, which may have an alias, or be only the first of a union."""
    cursor = parser.cursor
    start = cursor.token
    cursor.in_parentheses()
    if cursor.token.is_word("AS") or cursor.ahead().kind is Kind.END:
        return replace(insert, query=cursor.since(start), query_alias=parser.alias())
    cursor.rest()
    return replace(insert, query=cursor.since(start))
