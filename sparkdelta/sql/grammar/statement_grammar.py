"""The grammar of Delta's statements.

A statement begins with its keywords; names follow by the grammar, and expressions and queries are
cut out as text up to the keyword that ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkdelta.sql.grammar.change_grammar import (
    CHANGES,
    common_queries,
    delete,
    insert,
    merge,
    truncate,
    update,
    with_queries,
)
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.statement_values import (
    Alter,
    CacheTable,
    Convert,
    DescribeColumn,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    Generate,
    Optimize,
    Refresh,
    Reorg,
    Repair,
    Restore,
    ShowColumns,
    ShowPartitions,
    ShowProperties,
    Statement,
    UncacheTable,
    Unsupported,
    Vacuum,
)
from sparkdelta.sql.grammar.table_grammar import (
    alter_table,
    create_or_replace_table,
    create_table,
    drop_table,
    replace_table,
)
from sparkdelta.sql.grammar.tokens import Kind

_KINDS_OF_PLANS = ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")


def parse(parser: Parser) -> Statement | None:
    """Return the statement of a text; None if it is none of Delta's.

    Raises
    ------
    StatementSyntaxError
        It is one of Delta's, and is not understood.
    """
    cursor, queries = parser.cursor, ""
    is_explained = cursor.accept("EXPLAIN")
    if is_explained and cursor.token.is_word(*_KINDS_OF_PLANS):
        cursor.next()
    if cursor.peek("WITH"):
        queries = common_queries(cursor)
    if (queries or is_explained) and not cursor.token.is_word(*CHANGES):
        return None
    for words, rule in _RULES.items():
        if cursor.accept(words):
            statement = rule(parser)
            if statement is None:
                return None
            cursor.expect_end()
            if is_explained:
                return Unsupported(statement.target, "EXPLAIN of a change of rows")
            return with_queries(statement, queries) if queries else statement
    return None


def _optimize(parser: Parser) -> Optimize:
    cursor = parser.cursor
    target, is_full = parser.table(), cursor.accept("FULL")
    where, columns = parser.condition("ZORDER"), None
    if cursor.accept("ZORDER BY"):
        columns = cursor.names() if cursor.peek("(") else cursor.columns()
    return Optimize(target, where, columns, is_full)


def _reorg(parser: Parser) -> Reorg:
    cursor = parser.cursor
    cursor.expect("TABLE")
    target, where = parser.table(), parser.condition("APPLY")
    cursor.expect("APPLY ( PURGE )")
    return Reorg(target, where)


def _restore(parser: Parser) -> Restore:
    cursor = parser.cursor
    cursor.accept("TABLE")
    target = parser.table()
    cursor.accept("TO")
    version = parser.version()
    if version is not None:
        return Restore(target, version, None)
    if not parser.takes_time():
        raise cursor.error("VERSION AS OF or TIMESTAMP AS OF is expected")
    return Restore(target, None, cursor.expression())


def _history(parser: Parser) -> DescribeHistory:
    target = parser.table()
    return DescribeHistory(
        target, parser.cursor.number() if parser.cursor.accept("LIMIT") else None
    )


def _detail(parser: Parser) -> DescribeDetail:
    return DescribeDetail(parser.table())


_NO_TABLES = ("CATALOG", "DATABASE", "FUNCTION", "NAMESPACE", "PROCEDURE", "QUERY", "SCHEMA")


def _describe(parser: Parser) -> DescribeTable | DescribeColumn | Unsupported:
    cursor = parser.cursor
    if cursor.token.is_word(*_NO_TABLES) and cursor.ahead().kind is not Kind.END:
        raise cursor.error("a table is expected")  # it is Spark's
    cursor.accept("TABLE")
    is_extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    target = parser.table()
    if cursor.peek("PARTITION (") or cursor.peek("AS JSON"):
        cursor.rest()
        return Unsupported(target, "DESCRIBE of a partition, or AS JSON")
    if cursor.token.is_name:
        return DescribeColumn(target, cursor.name(), is_extended)
    return DescribeTable(target, is_extended)


def _show_partitions(parser: Parser) -> ShowPartitions:
    target = parser.table()
    partition = parser.partition() if parser.cursor.accept("PARTITION") else {}
    if None in partition.values():
        raise parser.cursor.error("each column of PARTITION needs a value")
    return ShowPartitions(target, partition)


def _show_columns(parser: Parser) -> ShowColumns:
    cursor = parser.cursor
    if not cursor.accept("IN"):
        cursor.expect("FROM")
    target = parser.table()
    if cursor.accept("IN") or cursor.accept("FROM"):
        parser.target = target = (*cursor.name(), *target)
    return ShowColumns(target)


def _properties(parser: Parser) -> ShowProperties:
    cursor, target, key = parser.cursor, parser.table(), None
    if cursor.accept("("):
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
    has_none = cursor.accept("NO STATISTICS")
    partitions = cursor.in_parentheses() if cursor.accept("PARTITIONED BY") else None
    return Convert(target, partitions, not has_none)


def _vacuum(parser: Parser) -> Vacuum:
    cursor = parser.cursor
    vacuum, seen = Vacuum(target=parser.table()), set[str]()
    while cursor.token.kind is not Kind.END:
        word = cursor.token.text.upper()
        clause = "LITE or FULL" if word in ("LITE", "FULL") else word
        if clause in seen:
            raise cursor.error(f"{clause} is there twice")
        seen.add(clause)
        if cursor.accept("LITE"):
            vacuum = replace(vacuum, mode="lite")
        elif cursor.accept("USING INVENTORY"):
            is_query = cursor.peek("(")
            text = f"({cursor.in_parentheses()})" if is_query else cursor.column()
            vacuum = replace(vacuum, inventory=text)
        elif cursor.accept("RETAIN"):
            vacuum = replace(vacuum, retention_hours=cursor.hours())
            cursor.expect("HOURS")
        elif cursor.accept("DRY RUN"):
            vacuum = replace(vacuum, dry_run=True)
        else:
            cursor.expect("FULL")
    return vacuum


def _comment(parser: Parser) -> Alter:
    """Return ``COMMENT ON TABLE t IS 'x'``; NULL is an empty comment."""
    cursor, target = parser.cursor, parser.table()
    cursor.expect("IS")
    text = "" if cursor.accept("NULL") else cursor.string()
    return Alter(target, "set_properties", ({"comment": text},), {})


def _refresh(parser: Parser) -> Refresh:
    return Refresh(parser.table())


def _cache(parser: Parser, *, is_lazy: bool = False) -> CacheTable | Unsupported:
    cursor, target = parser.cursor, parser.table()
    options = cursor.properties() if cursor.accept("OPTIONS") else {}
    if cursor.token.kind is not Kind.END:
        cursor.rest()
        return Unsupported(target, "CACHE TABLE of a query by the name of a Delta table")
    return CacheTable(target, is_lazy, options)


def _cache_lazily(parser: Parser) -> CacheTable | Unsupported:
    return _cache(parser, is_lazy=True)


def _uncache(parser: Parser) -> UncacheTable:
    parser.cursor.accept("IF EXISTS")
    return UncacheTable(parser.table())


def _partition_extended(parser: Parser) -> Unsupported | None:
    """Return ``SHOW TABLE EXTENDED`` of a partition; None if it is about tables, as Spark has
    them.
    """
    cursor = parser.cursor
    database = cursor.name() if cursor.accept("IN") or cursor.accept("FROM") else ()
    cursor.accept("LIKE")
    target = (*database, cursor.string())
    if not cursor.accept("PARTITION"):
        return None
    parser.target = target
    cursor.rest()
    return Unsupported(target, "SHOW TABLE EXTENDED of a partition")


def _repair(parser: Parser) -> Repair:
    return Repair(parser.table(), parser.cursor.accept("DRY RUN"))


def _unsupported(name: str) -> Callable[[Parser], Unsupported]:
    def unsupported(parser: Parser) -> Unsupported:
        target = parser.table()
        parser.cursor.rest()
        return Unsupported(target, name)

    return unsupported


_RULES: Mapping[str, Callable[[Parser], Statement | None]] = {
    "DELETE FROM": delete,
    "UPDATE": update,
    "MERGE": merge,
    "INSERT": insert,
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
    "SHOW TABLE EXTENDED": _partition_extended,
    "CREATE TABLE": create_table,
    "CREATE OR REPLACE TABLE": create_or_replace_table,
    "REPLACE TABLE": replace_table,
    "DROP TABLE": drop_table,
    "ALTER TABLE": alter_table,
    "COMMENT ON TABLE": _comment,
    "REFRESH TABLE": _refresh,
    "ANALYZE TABLE": _unsupported("ANALYZE TABLE"),
    "CACHE TABLE": _cache,
    "CACHE LAZY TABLE": _cache_lazily,
    "UNCACHE TABLE": _uncache,
    "MSCK REPAIR TABLE": _unsupported("MSCK REPAIR TABLE"),
    "GENERATE": _generate,
    "VACUUM": _vacuum,
    "CONVERT TO DELTA": _convert,
    "FSCK REPAIR TABLE": _repair,
    "TRUNCATE TABLE": truncate,
}
"""The rule of each statement, by its first keywords."""
