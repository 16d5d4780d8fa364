"""Runs SQL text: decides whether it is a Delta statement, a query on Delta tables, or Spark's
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.exceptions import (
    DeltaError,
    InvalidArgumentError,
    StatementNotSupportedError,
    StatementSyntaxError,
)
from sparkdelta.sql.grammar.cursor import Cursor, name_of_table
from sparkdelta.sql.grammar.parameters import Arguments, bind_parameters, check_quoted
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.statement_grammar import parse
from sparkdelta.sql.grammar.statement_values import (
    Clone,
    Convert,
    CreateLike,
    CreateTable,
    DropFeature,
    Generate,
    Optimize,
    Reorg,
    Repair,
    Restore,
    Statement,
    Vacuum,
)
from sparkdelta.sql.grammar.tokens import Token, tokenize
from sparkdelta.sql.grammar.variables import with_variables
from sparkdelta.sql.statements.execution import no_rows, run_statement
from sparkdelta.sql.statements.queries import Located, SparkSql
from sparkdelta.table.listing.table_names import (
    name_not_found,
    table_name,
    table_path,
    with_database,
)

_MAY_BE_OURS = re.compile(
    r"\b(?:from|join|table|into|overwrite|update|merge|optimize|reorg|vacuum|restore|describe|desc|show"
    r"|table_changes\w*)\b|delta",
    re.IGNORECASE,
)
_HEADS = (
    "SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN", "INSERT", "CREATE", "CACHE", "DESCRIBE",
    "DESC", "SET",
)  # fmt: skip
"""The first keywords of texts in which a DataFrame may stand for a table."""
_DELTA_ONLY = (DropFeature, Generate, Optimize, Reorg, Repair, Restore, Vacuum)
"""Statements that Spark's own SQL does not have."""


def run_sql(
    spark: SparkSession,
    run: Callable[..., DataFrame],
    text: str,
    arguments: Arguments,
    named: Mapping[str, Any],
    *,
    time_zone: str,
) -> DataFrame:
    """Run a SQL text: by this library if it is about Delta tables, else by Spark.

    Parameters
    ----------
    run
        PySpark's ``spark.sql``.
    arguments, named
        As of ``spark.sql``.
    time_zone
        In which statements convert values to the types of columns.

    Raises
    ------
    StatementSyntaxError, StatementNotSupportedError
        It is one of Delta's statements, and is not understood or not implemented.
    """

    def passed_on() -> DataFrame:
        return run(text, **named) if arguments is None else run(text, arguments, **named)

    if not isinstance(text, str) or not _MAY_BE_OURS.search(text):
        return passed_on()
    given = text if named else with_variables(spark, text)
    tokens = tokenize(given)
    if tokens is None:
        return passed_on()
    frames = {name: value for name, value in named.items() if isinstance(value, DataFrame)}
    values = {name: value for name, value in named.items() if name not in frames}
    bound, refused = given, None
    try:
        check_quoted(given, tokens, named)
        bound = bind_parameters(given, tokens, arguments, values)
    except (InvalidArgumentError, StatementSyntaxError) as error:
        refused = error
    if named:
        bound = bound.replace("{{", "{").replace("}}", "}")
    tokens = tokens if bound == given else tokenize(bound) or tokens
    sql, read = SparkSql(spark, run, frames, time_zone), None
    try:
        statement, path = _statement(spark, bound, tokens)
        if statement is None:
            _check_others(spark, bound, tokens)
            read = _tables_read(sql, bound, tokens)
    except StatementSyntaxError as error:
        raise refused or error from None
    if statement is None and not read:
        return passed_on()
    if refused is not None:
        raise refused
    if statement is None or path is None:
        return _with_query(sql, bound, tokens, read or ())
    return run_statement(sql, path, statement)


def _tables_read(sql: SparkSql, text: str, tokens: tuple[Token, ...]) -> Sequence[Located]:
    """Return the Delta tables that a text reads, if it may read some."""
    if not tokens[0].is_word(*_HEADS) and not tokens[0].is_symbol("("):
        return ()
    try:
        return sql.tables(text, tokens)
    except StatementSyntaxError:
        return ()  # Spark tells what is wrong


def _statement(
    spark: SparkSession, text: str, tokens: tuple[Token, ...]
) -> tuple[Statement | None, str | None]:
    """Return a statement about a Delta table and the table's path, an empty one if it is not known
    yet; None for both if it is about something else.

    Raises
    ------
    DeltaError
        It is about a Delta table, and is not understood, or assigns a column twice.
    TableNotFoundError
        Only Delta has the statement, and the name is not that of a Delta table.
    """
    parser, statement, error = Parser(text, tokens), None, None
    try:
        statement = parse(parser)
    except DeltaError as found:
        error = found
    target, path = parser.target, None
    if target is not None:
        if isinstance(statement, Clone | CreateLike | CreateTable):
            target = with_database(spark, target)
        path = table_path(spark, target)
    creates = isinstance(statement, Convert) or parser.is_clone or _uses_delta(tokens)
    if isinstance(statement, CreateLike):
        creates = creates or table_path(spark, statement.source) is not None
    if path is None and target is not None and creates:
        path = ""
    if path is None and isinstance(statement, _DELTA_ONLY):
        raise name_not_found(quoted_path(statement.target))
    if path is None:
        return None, None
    if error is not None:
        raise error
    return statement, path


def _uses_delta(tokens: tuple[Token, ...]) -> bool:
    """True if a statement creates a table by USING DELTA."""
    return tokens[0].is_word("CREATE", "REPLACE") and any(
        one.is_word("USING") and other.is_word("DELTA") for one, other in pairwise(tokens)
    )


def _check_others(spark: SparkSession, text: str, tokens: tuple[Token, ...]) -> None:
    """Refuse texts of several statements of which one is about a Delta table.

    Raises
    ------
    StatementNotSupportedError
    """
    if tokens[0].is_word("BEGIN"):
        kind, words = "a script that has Delta tables", {"FROM", "INTO", "TABLE", "UPDATE"}
    elif tokens[0].is_word("FROM"):
        kind, words = "FROM with several INSERTs into Delta tables", {"INTO", "OVERWRITE"}
    else:
        return
    for number, token in enumerate(tokens[:-2]):
        if token.is_word(*words):
            place = number + 1 + tokens[number + 1].is_word("TABLE")
            try:
                found = name_of_table(text, tokens, place)
            except StatementSyntaxError:
                continue  # an expression that only Spark can evaluate
            if found is not None and table_path(spark, found[1]) is not None:
                raise StatementNotSupportedError(statement=kind)


def _with_query(
    sql: SparkSql, text: str, tokens: tuple[Token, ...], read: Sequence[Located]
) -> DataFrame:
    """Run a query, or a statement of Spark's that holds one.

    Parameters
    ----------
    read
        The Delta tables that it reads.
    """
    cursor = Cursor(text, tokens)
    if cursor.accept("CACHE"):
        is_lazy = cursor.accept("LAZY")
        cursor.expect("TABLE")
        name = quoted_path(cursor.name())
        cursor.accept("AS")
        sql.query(cursor.rest()).createOrReplaceTempView(name)
        return sql.run(f"CACHE {'LAZY ' if is_lazy else ''}TABLE {name}")
    if not cursor.accept("CREATE"):
        return sql.spliced(text, tokens, read)
    replaces = cursor.accept("OR REPLACE")
    is_global = cursor.accept("GLOBAL")
    is_temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    if not cursor.accept("VIEW"):
        return sql.spliced(text, tokens, read)
    if not is_temporary:
        raise StatementNotSupportedError(statement="CREATE VIEW of a Delta table")
    name = quoted_path(cursor.name())
    columns = cursor.names() if cursor.peek("(") else ()
    columns = tuple(".".join(table_name(column)) for column in columns)
    cursor.expect("AS")
    rows = sql.query(cursor.rest())
    rows = rows.toDF(*columns) if columns else rows
    kind = "GlobalTempView" if is_global else "TempView"
    getattr(rows, f"{'createOrReplace' if replaces else 'create'}{kind}")(name)
    return no_rows(sql.spark)
