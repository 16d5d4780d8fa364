"""CREATE VIEW and ALTER VIEW AS of queries that read Delta tables.

Spark keeps permanent views as it keeps all others: the text of the query, its columns, the current
catalog and database, and the settings. Temporary views keep the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.relations import common_names, relations
from sparkdelta.sql.grammar.tokens import Fragment
from sparkdelta.sql.statements.options import check_no_schema, one_path
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.sql.statements.reading import read
from sparkdelta.sql.statements.view_tables import (
    tables_of_text,
    tables_of_view,
    text_without_versions,
)
from sparkdelta.table.listing.table_names import name_in_catalog, table_path, with_database


def create_or_alter_view(sql: SparkSql, text: Fragment) -> bool:
    """Carry out CREATE VIEW or ALTER VIEW AS of a query that reads Delta tables; return False if
    the text is another statement.
    """
    parser = Parser(text.whole, text.tokens)
    if parser.peek("ALTER VIEW"):
        return _define_permanent(sql, text)
    creation = _accept_create_view(parser)
    if creation is None:
        return False
    if not creation.is_temporary:
        return _define_permanent(sql, text)
    name = quoted_path(parser.table_name())
    columns = parser.enclosed(lambda: _column(parser)) if parser.peek("(") else []
    if parser.accept("COMMENT"):
        parser.string()
    if parser.accept("TBLPROPERTIES"):
        parser.properties()
    parser.expect("AS")
    rows = sql.query(parser.rest())
    if columns:
        rows = rows.toDF(*(column for column, _ in columns))
        rows = rows.select(
            *(
                F.col(quoted(column)).alias(column, metadata={"comment": comment})
                if comment
                else F.col(quoted(column))
                for column, comment in columns
            )
        )
    engine_of(rows.sparkSession).mark_query(rows)
    _create_temporary(rows, name, creation)
    return True


def create_rename_or_drop_view(sql: SparkSql, text: Fragment) -> bool:
    """Carry out ``CREATE TEMPORARY VIEW name USING delta OPTIONS (path '/p')``, or RENAME or DROP
    of a view that reads Delta tables; return False if the text is another statement.

    Spark would read a view that it renames or drops.

    Raises
    ------
    InvalidArgumentError
        ALTER VIEW names a Delta table, or the view is to have other columns than the table.
    """
    parser, spark = Parser(text.whole, text.tokens), sql.spark
    if parser.accept("DROP VIEW"):
        parser.accept("IF EXISTS")
        name = parser.table_name()
        if sql.view_of_delta(name) is None:
            return False
        parser.expect_end()
        engine_of(spark).drop_view(name)
        return True
    if parser.accept("ALTER VIEW"):
        name = parser.table_name()
        if table_path(spark, name) is not None:
            raise _no_view(spark, name, parser)
        if not parser.accept("RENAME TO"):
            return False
        new_name = parser.table_name()
        view = sql.view_of_delta(name)
        if view is None:
            return False
        parser.expect_end()
        engine_of(spark).rename_view(name, new_name, lambda: tables_of_view(sql, view))
        return True
    creation = _accept_create_view(parser, "VIEW|TABLE")
    if creation is None or not creation.is_temporary:
        return False
    view_name, has_columns = quoted_path(parser.table_name()), parser.peek("(")
    if has_columns:
        parser.in_parentheses()
    if not parser.accept("USING DELTA"):
        return False
    check_no_schema(given=has_columns)
    options = parser.properties() if parser.accept("OPTIONS") else {}
    parser.expect_end()
    rows = read(spark, one_path(None, options), options, function="CREATE TEMPORARY VIEW")
    _create_temporary(rows, view_name, creation)
    return True


def _no_view(spark: SparkSession, table: Name, parser: Parser) -> InvalidArgumentError:
    """Return the error of ALTER VIEW with the name of a table, given its clause."""
    problem = f"{'.'.join(table)} is a table; use ALTER TABLE"
    clause = "WITH SCHEMA ..." if parser.peek("WITH") else "AS"
    has_alternative = parser.token.is_word("SET", "UNSET")
    if has_alternative:
        clause = f"{parser.token.text.upper()} TBLPROPERTIES"
    kind = "USE_ALTER_TABLE" if has_alternative else "NO_ALTERNATIVE"
    return InvalidArgumentError(argument="ALTER VIEW", problem=problem).named(
        f"EXPECT_VIEW_NOT_TABLE.{kind}",
        tableName=quoted_path(name_in_catalog(spark, table) or table),
        operation=f"ALTER VIEW ... {clause}",
    )


def _column(parser: Parser) -> tuple[str, str | None]:
    """Return the name and the comment of a column, and go past them."""
    return parser.word(), parser.string() if parser.accept("COMMENT") else None


@dataclass(frozen=True, slots=True)
class _Creation:
    """The words of CREATE VIEW before the view's name."""

    replaces: bool
    is_global: bool
    is_temporary: bool


def _accept_create_view(parser: Parser, kind: str = "VIEW") -> _Creation | None:
    """Parse ``CREATE [OR REPLACE] [[GLOBAL] TEMPORARY] VIEW``; return None for anything else."""
    if not parser.accept("CREATE"):
        return None
    replaces, is_global = parser.accept("OR REPLACE"), parser.accept("GLOBAL")
    is_temporary = parser.accept("TEMP|TEMPORARY")
    return _Creation(replaces, is_global, is_temporary) if parser.accept(kind) else None


def _create_temporary(rows: DataFrame, name: str, creation: _Creation) -> None:
    verb = "createOrReplace" if creation.replaces else "create"
    getattr(rows, f"{verb}{'Global' if creation.is_global else ''}TempView")(name)


def _define_permanent(sql: SparkSql, text: Fragment) -> bool:
    """Define a permanent view by a query without parameters and DataFrames.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        The view reads itself, or on Spark Connect, reads what the server cannot name.
    AnalysisException
        As Spark raises it: the query is wrong, or reads a temporary view, or the name is taken.
    """
    engine, is_new = engine_of(sql.spark), text.tokens[0].is_word("CREATE")
    parser = Parser(text.whole, text.tokens)
    while not parser.accept("VIEW"):
        parser.next()
    parser.accept("IF NOT EXISTS")
    first, given = parser.token, parser.table_name()
    end = parser.ahead(-1).end
    query = _accept_query(parser, is_new=is_new)
    if query is None:
        return False
    if not is_new and engine.is_temporary_view(given):
        sql.query(query).createOrReplaceTempView(quoted_path(given))
        return True
    temporary = _temporary_view(sql, query)
    view = quoted_path(given)
    if temporary is not None:
        sql.run(f"CREATE OR REPLACE VIEW {view} AS TABLE {quoted_path(temporary)}")  # fails
    name = (SESSION_CATALOG, *with_database(sql.spark, given)[-2:])
    reading = replace(sql, defined=tuple(map(name_key, name)))
    rows = reading.query(query)
    # Only the columns count, and Spark takes the DataFrames in the query for temporary views.
    rows = sql.spark.createDataFrame([], rows.schema)
    # Spark's parser does not resolve a name in IDENTIFIER.
    beginning = f"{text.whole[: first.start]}{view}{text.whole[end : query.start]}"
    without_versions = partial(text_without_versions, reading, query)
    statement = beginning + engine.text_of_view(query.text, without_versions)
    engine.define_view(given, statement, rows, partial(tables_of_text, reading, query))
    return True


def _accept_query(parser: Parser, *, is_new: bool) -> Fragment | None:
    """Return the query of a view, given what follows its name; None if there is none."""
    if not is_new:
        is_query = parser.accept("AS") or parser.token.is_symbol("(")
        is_query = is_query or parser.token.is_word("SELECT", "WITH", "FROM", "VALUES", "TABLE")
        return parser.rest() if is_query and not parser.peek("WITH SCHEMA") else None
    depth = 0
    while not parser.is_at_end and (depth or not parser.accept("AS")):
        token = parser.next()
        depth += token.is_symbol("(") - token.is_symbol(")")
    return None if parser.is_at_end else parser.rest()


def _temporary_view(sql: SparkSql, query: Fragment) -> Name | None:
    """Return the name of a temporary view that a query reads, which Spark refuses in a permanent
    view; None if it reads none.
    """
    known = common_names(query.whole, query.tokens)
    for relation in relations(query):
        name = relation.name
        is_query = len(name) == 1 and name[0].lower() in known
        if is_query or relation.arguments is not None:
            continue
        if engine_of(sql.spark).is_temporary_view(name):
            return name
    return None
