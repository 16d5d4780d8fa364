"""The grammar of Delta's statements.

A statement begins with its keywords; names follow by the grammar, and expressions and queries are
cut out as text up to the keyword that ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkdelta.sql.parser import Parser
from sparkdelta.sql.statements import (
    Convert,
    Delete,
    DescribeColumn,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    Generate,
    Insert,
    Merge,
    MergeAction,
    Optimize,
    Refresh,
    Reorg,
    Repair,
    Restore,
    ShowColumns,
    ShowPartitions,
    ShowProperties,
    Statement,
    Truncate,
    Unsupported,
    Update,
    Vacuum,
)
from sparkdelta.sql.table_grammar import (
    alter_table,
    create_or_replace_table,
    create_table,
    drop_table,
    replace_table,
)
from sparkdelta.sql.tokens import Kind
from sparkdelta.table.write.merge_clauses import Clause

_QUERY = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")


def parse(parser: Parser) -> Statement | None:
    """Return the statement of a text; None if it is none of Delta's.

    Raises
    ------
    StatementSyntaxError
        It is one of Delta's, and is not understood.
    """
    for words, rule in _RULES.items():
        if parser.cursor.takes(words):
            statement = rule(parser)
            parser.cursor.expect_end()
            return statement
    return None


def _delete(parser: Parser) -> Delete:
    target, alias = parser.table(), parser.alias("WHERE")
    return Delete(target, alias, parser.condition())


def _truncate(parser: Parser) -> Truncate:
    return Truncate(parser.table())


def _update(parser: Parser) -> Update:
    target, alias = parser.table(), parser.alias("SET")
    parser.cursor.expect("SET")
    values = parser.assignments("WHERE")
    return Update(target, alias, values, parser.condition())


def _merge(parser: Parser) -> Merge:
    cursor = parser.cursor
    evolves = cursor.takes("WITH SCHEMA EVOLUTION")
    cursor.expect("INTO")
    target, alias = parser.table(), parser.alias("USING")
    cursor.expect("USING")
    source, source_alias = _source(parser)
    cursor.expect("ON")
    condition = cursor.expression("WHEN")
    actions = []
    while cursor.takes("WHEN"):
        actions.append(_merge_action(parser))
    return Merge(target, alias, source, source_alias, condition, tuple(actions), evolves)


def _source(parser: Parser) -> tuple[str, str | None]:
    """Return the source of a merge with its alias, and the alias, or else the table's name."""
    cursor, before, last = parser.cursor, None, None
    start, name = cursor.token, None
    if start.is_name:
        name, place = cursor.token.text, 1
        while cursor.ahead(place).is_symbol(".") and cursor.ahead(place + 1).is_name:
            name, place = cursor.ahead(place + 1).text, place + 2
    depth = 0
    while depth or not cursor.token.is_word("ON"):
        if cursor.token.kind is Kind.END:
            raise cursor.error("ON is expected")
        depth += cursor.token.is_symbol("(") - cursor.token.is_symbol(")")
        before, last = last, cursor.next()
    if last is None:
        raise cursor.error("a table or query is expected")
    source = cursor.text[start.start : last.end]
    is_alias = last.is_name and before is not None and not before.is_symbol(".")
    return source, last.text if is_alias else name


def _merge_action(parser: Parser) -> MergeAction:
    cursor = parser.cursor
    is_matched = not cursor.takes("NOT")
    cursor.expect("MATCHED")
    is_of_table = not is_matched and cursor.takes("BY SOURCE")
    if not is_matched and not is_of_table:
        cursor.takes("BY TARGET")
    condition = cursor.expression("THEN") if cursor.takes("AND") else None
    cursor.expect("THEN")
    if not is_matched and not is_of_table:
        cursor.expect("INSERT")
        return MergeAction(Clause.NOT_MATCHED_INSERT, condition, _inserted_values(parser))
    if cursor.takes("DELETE"):
        of_source, of_both = Clause.NOT_MATCHED_BY_SOURCE_DELETE, Clause.MATCHED_DELETE
        return MergeAction(of_both if is_matched else of_source, condition, None)
    cursor.expect("UPDATE SET")
    if is_matched and cursor.takes("*"):
        return MergeAction(Clause.MATCHED_UPDATE, condition, None)
    kind = Clause.MATCHED_UPDATE if is_matched else Clause.NOT_MATCHED_BY_SOURCE_UPDATE
    return MergeAction(kind, condition, parser.assignments("WHEN"))


def _inserted_values(parser: Parser) -> Mapping[str, str] | None:
    cursor = parser.cursor
    if cursor.takes("*"):
        return None
    names = cursor.names()
    cursor.expect("VALUES")
    cursor.expect("(")
    values = [cursor.expression(closing=",")]
    while cursor.takes(","):
        values.append(cursor.expression(closing=","))
    if len(values) != len(names):
        raise cursor.error(f"{len(names)} values are expected, not {len(values)}")
    cursor.expect(")")
    if len(set(names)) != len(names):
        raise cursor.error("a column is assigned twice")
    return dict(zip(names, values, strict=True))


def _insert(parser: Parser) -> Insert:
    cursor = parser.cursor
    evolves = cursor.takes("WITH SCHEMA EVOLUTION")
    overwrites = cursor.takes("OVERWRITE")
    if not overwrites:
        cursor.expect("INTO")
    cursor.takes("TABLE")
    target, alias = parser.table(), parser.alias("BY", "PARTITION", "REPLACE", *_QUERY)
    partition = _partition(parser) if cursor.takes("PARTITION") else {}
    columns, by_name = None, cursor.takes("BY NAME")
    if not by_name and cursor.looks_at("(") and not cursor.ahead().is_word(*_QUERY):
        columns = None if cursor.ahead().is_symbol("(") else cursor.names()
        by_name = columns is None and cursor.takes("BY NAME")
    insert = Insert(
        target=target,
        query="",
        alias=alias,
        columns=columns,
        by_name=by_name,
        overwrites=overwrites,
        partition=partition,
        evolves=evolves,
    )
    if cursor.takes("REPLACE"):
        insert = _replacing(parser, insert)
    elif alias is not None:
        raise cursor.error("REPLACE ON is expected after an alias")
    if not cursor.token.is_word(*_QUERY) and not cursor.token.is_symbol("("):
        raise cursor.error("a query is expected")
    if insert.replace_on is not None and cursor.looks_at("("):
        return _insert_of_parentheses(parser, insert)
    return replace(insert, query=cursor.rest())


_QUERY_IN_PARENTHESES = tuple(f"( {word}" for word in _QUERY if word != "FROM")  # TRIM(FROM x)


def _replacing(parser: Parser, insert: Insert) -> Insert:
    """Go past what follows REPLACE."""
    cursor = parser.cursor
    is_plain = insert.columns is None and not insert.partition and not insert.overwrites
    if cursor.takes("ON") and is_plain:
        return replace(insert, replace_on=cursor.expression(*_QUERY, *_QUERY_IN_PARENTHESES))
    if insert.alias is not None:
        raise cursor.error("ON is expected")
    if cursor.takes("USING") and is_plain:
        return replace(insert, replace_using=cursor.names())
    cursor.expect("WHERE")
    return replace(insert, replace_where=cursor.expression(*_QUERY))


def _insert_of_parentheses(parser: Parser, insert: Insert) -> Insert:
    """Go past a query in parentheses, which may have an alias, or be only the first of a union."""
    cursor = parser.cursor
    start = cursor.token
    cursor.in_parentheses()
    if cursor.token.is_word("AS") or cursor.ahead().kind is Kind.END:
        return replace(insert, query=cursor.since(start), query_alias=parser.alias())
    cursor.rest()
    return replace(insert, query=cursor.since(start))


def _partition(parser: Parser) -> Mapping[str, str | None]:
    cursor, found = parser.cursor, dict[str, str | None]()
    cursor.expect("(")
    while True:
        name = cursor.word()
        if name.lower() in map(str.lower, found):
            raise cursor.error(f"{name} is there twice")
        found[name] = cursor.constant() if cursor.takes("=") else None
        if not cursor.takes(","):
            cursor.expect(")")
            return found


def _optimize(parser: Parser) -> Optimize:
    cursor = parser.cursor
    target, is_full = parser.table(), cursor.takes("FULL")
    where, columns = parser.condition("ZORDER"), None
    if cursor.takes("ZORDER BY"):
        if cursor.looks_at("("):
            columns = cursor.names()
        else:
            columns = (cursor.column(),)
            while cursor.takes(","):
                columns = (*columns, cursor.column())
    return Optimize(target, where, columns, is_full)


def _reorg(parser: Parser) -> Reorg:
    cursor = parser.cursor
    cursor.takes("TABLE")
    target, where = parser.table(), parser.condition("APPLY")
    cursor.expect("APPLY ( PURGE )")
    return Reorg(target, where)


def _restore(parser: Parser) -> Restore:
    cursor = parser.cursor
    cursor.takes("TABLE")
    target = parser.table()
    cursor.takes("TO")
    if cursor.takes("VERSION AS OF"):
        return Restore(target, cursor.number(), None)
    cursor.expect("TIMESTAMP AS OF")
    return Restore(target, None, cursor.expression())


def _history(parser: Parser) -> DescribeHistory:
    target = parser.table()
    return DescribeHistory(target, parser.cursor.number() if parser.cursor.takes("LIMIT") else None)


def _detail(parser: Parser) -> DescribeDetail:
    return DescribeDetail(parser.table())


_NO_TABLES = ("CATALOG", "DATABASE", "FUNCTION", "NAMESPACE", "PROCEDURE", "QUERY", "SCHEMA")


def _describe(parser: Parser) -> DescribeTable | DescribeColumn | Unsupported:
    cursor = parser.cursor
    if cursor.token.is_word(*_NO_TABLES) and cursor.ahead().kind is not Kind.END:
        raise cursor.error("a table is expected")  # it is Spark's
    cursor.takes("TABLE")
    is_extended = cursor.takes("EXTENDED") or cursor.takes("FORMATTED")
    target = parser.table()
    if cursor.looks_at("PARTITION (") or cursor.looks_at("AS JSON"):
        cursor.rest()
        return Unsupported(target, "DESCRIBE of a partition, or AS JSON")
    if cursor.token.is_name:
        return DescribeColumn(target, cursor.name(), is_extended)
    return DescribeTable(target, is_extended)


def _show_partitions(parser: Parser) -> ShowPartitions:
    target = parser.table()
    partition = _partition(parser) if parser.cursor.takes("PARTITION") else {}
    if None in partition.values():
        raise parser.cursor.error("each column of PARTITION needs a value")
    return ShowPartitions(target, partition)


def _show_columns(parser: Parser) -> ShowColumns:
    cursor = parser.cursor
    if not cursor.takes("IN"):
        cursor.expect("FROM")
    target = parser.table()
    if cursor.takes("IN") or cursor.takes("FROM"):
        parser.target = target = (*cursor.name(), *target)
    return ShowColumns(target)


def _properties(parser: Parser) -> ShowProperties:
    cursor, target, key = parser.cursor, parser.table(), None
    if cursor.takes("("):
        is_string = cursor.token.kind is Kind.STRING
        key = cursor.string() if is_string else ".".join(cursor.name())
        cursor.expect(")")
    return ShowProperties(target, key)


def _generate(parser: Parser) -> Generate:
    mode = parser.cursor.word()
    parser.cursor.expect("FOR TABLE")
    return Generate(parser.table(), mode)


def _convert(parser: Parser) -> Convert:
    cursor, target = parser.cursor, parser.table()
    has_none = cursor.takes("NO STATISTICS")
    partitions = cursor.in_parentheses() if cursor.takes("PARTITIONED BY") else None
    return Convert(target, partitions, not has_none)


def _vacuum(parser: Parser) -> Vacuum:
    cursor = parser.cursor
    vacuum = Vacuum(target=parser.table())
    while cursor.token.kind is not Kind.END:
        if cursor.takes("LITE"):
            vacuum = replace(vacuum, mode="lite")
        elif cursor.takes("USING INVENTORY"):
            is_query = cursor.looks_at("(")
            text = f"({cursor.in_parentheses()})" if is_query else cursor.column()
            vacuum = replace(vacuum, inventory=text)
        elif cursor.takes("RETAIN"):
            vacuum = replace(vacuum, retention_hours=cursor.hours())
            cursor.expect("HOURS")
        elif cursor.takes("DRY RUN"):
            vacuum = replace(vacuum, dry_run=True)
        else:
            cursor.expect("FULL")
    return vacuum


def _refresh(parser: Parser) -> Refresh:
    return Refresh(parser.table())


def _repair(parser: Parser) -> Repair:
    return Repair(parser.table(), parser.cursor.takes("DRY RUN"))


def _unsupported(name: str, *words: str) -> Callable[[Parser], Unsupported]:
    def unsupported(parser: Parser) -> Unsupported:
        for each in words:
            parser.cursor.takes(each)
        target = parser.table()
        parser.cursor.rest()
        return Unsupported(target, name)

    return unsupported


_RULES: Mapping[str, Callable[[Parser], Statement]] = {
    "DELETE FROM": _delete,
    "UPDATE": _update,
    "MERGE": _merge,
    "INSERT": _insert,
    "OPTIMIZE": _optimize,
    "REORG": _reorg,
    "RESTORE": _restore,
    "DESCRIBE HISTORY": _history,
    "DESC HISTORY": _history,
    "DESCRIBE DETAIL": _detail,
    "DESC DETAIL": _detail,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW TBLPROPERTIES": _properties,
    "SHOW COLUMNS": _show_columns,
    "SHOW CREATE TABLE": _unsupported("SHOW CREATE TABLE"),
    "SHOW PARTITIONS": _show_partitions,
    "CREATE TABLE": create_table,
    "CREATE OR REPLACE TABLE": create_or_replace_table,
    "REPLACE TABLE": replace_table,
    "DROP TABLE": drop_table,
    "ALTER TABLE": alter_table,
    "REFRESH TABLE": _refresh,
    "ANALYZE TABLE": _unsupported("ANALYZE TABLE"),
    "CACHE TABLE": _unsupported("CACHE TABLE"),
    "CACHE LAZY TABLE": _unsupported("CACHE TABLE"),
    "GENERATE": _generate,
    "VACUUM": _vacuum,
    "CONVERT TO DELTA": _convert,
    "FSCK REPAIR TABLE": _repair,
    "TRUNCATE TABLE": _truncate,
}
"""The rule of each statement, by its first keywords."""
