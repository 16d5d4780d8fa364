"""Runs SQL text: decides whether it is a Delta statement, a query on Delta tables, or Spark's
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.session_settings import creates_delta_tables, follows_settings
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import (
    DeltaError,
    InvalidArgumentError,
    StatementSyntaxError,
    TableNotFoundError,
)
from sparkdelta.operations.upkeep.persisted_rows import remember_cached_view
from sparkdelta.sql.grammar.parameters import (
    Arguments,
    bind_parameters,
    check_quoted,
    with_variables,
)
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.scripts import Block, parse_script
from sparkdelta.sql.grammar.statement_grammar import CHANGES, Statement, parse
from sparkdelta.sql.grammar.tokens import Fragment, Kind, Token, tokenize
from sparkdelta.sql.statements import alter_statements, row_statements
from sparkdelta.sql.statements.cached_views import cache_or_uncache_view
from sparkdelta.sql.statements.create_statements import create, create_clone, create_like
from sparkdelta.sql.statements.maintenance_statements import convert
from sparkdelta.sql.statements.queries import Located, SparkSql
from sparkdelta.sql.statements.rewritten_statements import (
    ImmediateStatement,
    explained_query,
    plan_of_command,
    separate_inserts,
)
from sparkdelta.sql.statements.script_execution import run_script
from sparkdelta.sql.statements.sql_functions import create_function, loading_functions
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.sql.statements.statement_targets import (
    check_merged,
    check_no_version,
    no_delta_table,
    path_of_view,
)
from sparkdelta.sql.statements.views import create_or_alter_view, create_rename_or_drop_view
from sparkdelta.table.listing.table_names import (
    check_absolute,
    name_in_catalog,
    table_or_view,
    table_path,
    with_database,
)
from sparkdelta.table.scan.logged_aggregates import aggregated_by_log

__all__ = ["alter_statements", "row_statements", "run_sql"]  # statements are registered on import

_EXPRESSION_ERRORS = ("DELTA_INVALID_ASSIGNMENT", "DELTA_INVALID_CONDITION")
_MAY_BE_OF_SPARKS_PARSER = (
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
    "DELTA_ILLEGAL_OPTION",
    "DELTA_STATEMENT_NOT_SUPPORTED",
    "DELTA_STATEMENT_SYNTAX",
)
_MAY_BE_OURS = re.compile(
    r"\b(?:from|join|table|into|overwrite|update|merge|optimize|reorg|vacuum|restore|describe|desc|show"
    r"|execute"
    r"|table_changes\w*|view)\b|delta",
    re.IGNORECASE,
)
_HEADS = (
    "SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN", "INSERT", "CREATE", "CACHE", "DESCRIBE",
    "DESC", "SET", "ALTER",
)  # fmt: skip
"""The first keywords of texts in which a DataFrame may stand for a table."""


def run_sql(
    spark: SparkSession,
    run: Callable[..., DataFrame],
    text: str,
    arguments: Arguments,
    named: Mapping[str, Any],
    *,
    time_zone: str | None = None,
) -> DataFrame:
    """Run a SQL text: by this library if it is about Delta tables, else by Spark.

    Parameters
    ----------
    run
        PySpark's ``spark.sql``.
    arguments, named
        As of ``spark.sql``.
    time_zone
        In which statements convert values to the types of columns; by default the session's.

    Raises
    ------
    StatementSyntaxError, DELTA_STATEMENT_NOT_SUPPORTED
        It is one of Delta's statements, and is not understood or not implemented.
    """
    run = loading_functions(spark, run)

    def passed_on() -> DataFrame:
        return run(text, **named) if arguments is None else run(text, arguments, **named)

    if not isinstance(text, str) or not _MAY_BE_OURS.search(text):
        return passed_on()
    given = text if named else with_variables(spark, text)
    parsed = tokenize(given)
    if parsed is None:
        return passed_on()
    frames = {name: value for name, value in named.items() if isinstance(value, DataFrame)}
    values = {name: value for name, value in named.items() if name not in frames}
    bound, refused = given, None
    try:
        check_quoted(parsed, named)
        bound = bind_parameters(parsed, arguments, values)
    except (InvalidArgumentError, StatementSyntaxError) as error:
        refused = error
    if named:
        bound = bound.replace("{{", "{").replace("}}", "}")
    parsed = parsed if bound == given else tokenize(bound) or parsed
    sql, read = SparkSql(spark, run, frames, time_zone, run_of=loading_functions), list[Located]()
    again = partial(run_sql, spark, time_zone=time_zone)
    parser = Parser(parsed.whole, parsed.tokens)
    with _naming_errors(spark, partial(run, **frames), parser):
        try:
            immediate = ImmediateStatement.parsed(parsed)
            if immediate is not None:
                return _run_immediately(immediate, run, passed_on, again)
            statement, path = _statement(spark, parser)
            if statement is None:
                inserts = separate_inserts(parsed)
                if inserts and _names_delta_table(sql, parsed, "INTO", "OVERWRITE"):
                    for insert in inserts:
                        again(run, insert, None, frames)
                    return no_rows(spark)
                script = None if refused else _script(sql, parsed)
                if script is not None:
                    rows = run_script(spark, partial(again, run), script, frames)
                    return no_rows(spark) if rows is None else rows
                read = _tables_read(sql, parsed)
        except StatementSyntaxError as error:
            raise refused or error from None
        if statement is None and not read:
            is_done = create_rename_or_drop_view(sql, parsed) or cache_or_uncache_view(sql, parsed)
            if is_done:
                return no_rows(spark)
            rows, parser = passed_on(), Parser(parsed.whole, parsed.tokens)
            if parser.accept("CACHE TABLE") or parser.accept("CACHE LAZY TABLE"):
                remember_cached_view(spark, quoted_path(parser.name()))
            return rows
        if refused is not None:
            raise refused
        if statement is None or path is None:
            return _with_query(sql, parsed, read)
        if parser.explains is not None:
            query = explained_query(parser, statement)
            return plan_of_command(again(run, query, None, frames), parser.operation, statement)
        table = StatementTable(sql, parser.target or (), path)
        return _carried_out(table, statement, parser)


@contextmanager
def _naming_errors(
    spark: SparkSession, run: Callable[..., DataFrame], parser: Parser
) -> Iterator[None]:
    """Give the errors of a statement the names of delta-spark in an enabled session.

    Parameters
    ----------
    run
        Runs a text by Spark.
    """
    try:
        yield
    except DeltaError as error:
        if follows_settings():
            if error.error_class in _MAY_BE_OF_SPARKS_PARSER and not error.has_names:
                _name_as_spark_parser(error, run, parser.text)
            words = (token.text.upper() for token in parser.tokens[:2])
            target = parser.target or ()
            if parser.is_path and parser.operation in ("VACUUM", "OPTIMIZE"):
                _name_path(error, parser.operation)
            table = target and name_in_catalog(spark, target)
            statement = "CLONE" if parser.creates_delta else " ".join(words)
            error.name_as_delta_spark(statement, table or target)
        raise


def _name_path(error: DeltaError, operation: str) -> None:
    """Name the error of a path in quotes that has no table: not as for ``delta.`/p` ``."""
    if isinstance(error, TableNotFoundError):
        error.named("DELTA_TABLE_ONLY_OPERATION", statement=operation)


@unlogged_errors()
def _name_as_spark_parser(error: DeltaError, run: Callable[..., DataFrame], text: str) -> None:
    """Give an error the names of that of Spark's parser, which delta-spark raises, if Spark does
    not understand the statement either.

    Statements that only Delta has are none for that parser, however they are wrong.
    """
    try:
        run(f"EXPLAIN {text}")
    except DeltaError:
        raise
    except ParseException as refusal:
        place = (refusal.getMessageParameters() or {}).get("error")
        is_known = place != f"'{text.split()[0]}'"
        if is_known or isinstance(error, StatementSyntaxError):
            error.named(refusal)
    except PySparkException:  # it is understood
        pass


def _carried_out(table: StatementTable, statement: Statement, parser: Parser) -> DataFrame:
    """Carry out a statement, and return its result.

    Raises
    ------
    DELTA_UNSUPPORTED_SUBQUERY
        An expression on the rows of the table has a subquery, other than assigned values.
    ParseException
        One cannot be parsed, or goes on after its end: ``a = 1 LIMIT``.
    """
    expressions = parser.row_expressions
    for each in expressions:
        if each in parser.assigned_expressions:
            continue
        for opening, inner in pairwise(each.tokens):
            if opening.is_symbol("(") and inner.is_word("SELECT"):
                raise DeltaError.of(
                    "DELTA_UNSUPPORTED_SUBQUERY",
                    operation=_operation_with(parser, each),
                    condition=each.text,
                )

    def parse_expressions() -> None:
        """Let Spark parse the expressions; it forgives names that it does not know."""
        columns = ", ".join(f"({each.text})" for each in expressions)
        table.sql.run(f"EXPLAIN SELECT {columns}")

    if any(map(_may_have_alias, expressions)):
        parse_expressions()
    try:
        result = statement.function(table, **statement.arguments)
    except DeltaError as error:
        if error.error_class in _EXPRESSION_ERRORS:
            parse_expressions()
        raise
    return no_rows(table.spark) if result is None else result


def _operation_with(parser: Parser, condition: Fragment) -> str:
    """Return the operation that has a condition, for errors: of a MERGE with ON or the action."""
    if parser.operation != "MERGE":
        return parser.operation
    end, action = [token for token in parser.tokens if token.start >= condition.end][:2]
    return f"MERGE {action.text.upper() if end.is_word('THEN') else 'ON'}"


def _may_have_alias(expression: Fragment) -> bool:
    """Return False if the end of an expression cannot be an alias, which Spark's parser of columns
    takes: the end is a number, or comes after an operator, as in ``a = b`` and ``a = f(x)``.
    """
    tokens = [token for token in expression.tokens if token.kind is not Kind.END]

    def is_operand(place: int) -> bool:
        before = tokens[place - 1]
        return place == 0 or (before.kind is Kind.SYMBOL and before.text not in (")", "]", "}"))

    place, depth = len(tokens) - 1, 0
    if tokens[place].kind is Kind.NUMBER:
        return False
    if not tokens[place].is_symbol(")"):
        return not is_operand(place)
    while place > 0:
        depth += tokens[place].is_symbol(")") - tokens[place].is_symbol("(")
        if not depth:
            break
        place -= 1
    is_call = place > 0 and tokens[place - 1].is_name
    return not is_operand(place - is_call)


def no_rows(spark: SparkSession) -> DataFrame:
    """Return the result of a statement that has none: no columns, no rows."""
    return spark.sql("VALUES (0)").where("FALSE").select()


def _tables_read(sql: SparkSql, text: Fragment) -> list[Located]:
    """Return the Delta tables that a text reads, if it may read some."""
    if not text.tokens[0].is_word(*_HEADS) and not text.tokens[0].is_symbol("("):
        return []
    try:
        return sql.tables(text)
    except StatementSyntaxError:
        return []  # Spark tells what is wrong


def _statement(spark: SparkSession, parser: Parser) -> tuple[Statement | None, str | None]:
    """Return a statement about a Delta table and the table's path, an empty one if it is not known
    yet; None for both if it is about something else.

    Raises
    ------
    DeltaError
        It is about a Delta table, and is not understood, or assigns a column twice.
    TableNotFoundError
        Only Delta has the statement, and the name is not that of a Delta table.
    """
    statement, error = None, None
    try:
        statement = parse(parser)
    except DeltaError as found:
        error = found
    function = None if statement is None else statement.function
    target, path = parser.target, None
    if target is not None:
        if function in (create, create_clone, create_like):
            target = with_database(spark, target)
        path = table_path(spark, target)
        if path is None and parser.operation in CHANGES:
            path = path_of_view(spark, target, parser.operation)
            if path is None and parser.operation != "INSERT":
                check_absolute(spark, target)
            if path is None and parser.operation == "MERGE":
                check_merged(spark, target)
    creates = function is convert or parser.creates_delta or _uses_delta(parser.tokens)
    if statement is not None and function is create and not creates:
        creates = "provider" not in statement.arguments and creates_delta_tables()
    if statement is not None and function is create_like and not creates:
        creates = table_path(spark, statement.arguments["source"]) is not None
    if path is None and target is not None and creates:
        path = ""
    if path is None and statement is not None and statement.only_delta:
        refusal = no_delta_table(spark, target or (), statement.name)
        if refusal is not None:
            raise refusal
    if path is None:
        return None, None
    if error is not None:
        raise error
    if parser.operation in CHANGES:
        check_no_version(spark, path)
    return statement, path


def _uses_delta(tokens: Sequence[Token]) -> bool:
    """Return True if a statement creates a table by USING DELTA."""
    return tokens[0].is_word("CREATE", "REPLACE", "EXPLAIN") and any(
        one.is_word("USING") and other.is_word("DELTA") for one, other in pairwise(tokens)
    )


def _script(sql: SparkSql, text: Fragment) -> Block | None:
    """Return a script that has Delta tables, or may make one or find its name as it runs; None for
    what Spark runs.

    Raises
    ------
    StatementSyntaxError, DELTA_STATEMENT_NOT_SUPPORTED
        It names a Delta table, and is not understood or not implemented.
    """
    if not text.tokens[0].is_word("BEGIN"):
        return None
    words = ("FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "UPDATE", "EXISTS")
    names_one = _names_delta_table(sql, text, *words)
    creates = creates_delta_tables()
    may_have_one = names_one or any(
        token.is_word("DELTA", "EXECUTE", "IDENTIFIER") or (creates and token.is_word("CREATE"))
        for token in text.tokens
    )
    try:
        return parse_script(text) if may_have_one else None
    except DeltaError:
        if names_one:
            raise
        return None


def _names_delta_table(sql: SparkSql, text: Fragment, *words: str) -> bool:
    """Return True if the name of a Delta table, or of a permanent view that reads one, follows one
    of some keywords.
    """
    for place, token in enumerate(text.tokens[:-2], 1):
        if token.is_word(*words):
            parser = Parser(text.whole, text.tokens, place)
            parser.accept("TABLE")
            with suppress(StatementSyntaxError):  # no name, or an expression that Spark evaluates
                named = table_or_view(sql.spark, parser.table_name())
                if isinstance(named, str) or (named is not None and sql.reads_delta(named)):
                    return True
    return False


def _run_immediately(
    immediate: ImmediateStatement,
    run: Callable[..., DataFrame],
    passed_on: Callable[[], DataFrame],
    again: Callable[..., DataFrame],
) -> DataFrame:
    """Run the text of EXECUTE IMMEDIATE; Spark runs the whole if it is not about Delta tables.

    Parameters
    ----------
    passed_on
        Lets Spark run EXECUTE IMMEDIATE.
    again
        `run_sql` of the session.
    """
    text = immediate.statement(run)
    if text is None:
        return passed_on()
    if immediate.variables:
        text = f"SET VAR ({', '.join(immediate.variables)}) = ({text})"

    def run_inner(inner: str, *args: Any, **frames: Any) -> DataFrame:
        return passed_on() if inner == text else run(inner, *args, **frames)

    return again(run_inner, text, immediate.parameters(run), {})


def _with_query(sql: SparkSql, text: Fragment, read: Sequence[Located]) -> DataFrame:
    """Run a query, or a statement of Spark's that holds one.

    Parameters
    ----------
    read
        The Delta tables that it reads.
    """
    parser = Parser(text.whole, text.tokens)
    if parser.accept("CACHE"):
        is_lazy = parser.accept("LAZY")
        parser.expect("TABLE")
        name, place = quoted_path(parser.name()), parser.place
        if parser.accept("OPTIONS"):
            parser.properties()
        options = parser.since(place) if parser.place > place else ""
        parser.accept("AS")
        sql.query(parser.rest()).createOrReplaceTempView(name)
        done = sql.run(f"CACHE {'LAZY ' if is_lazy else ''}TABLE {name} {options}")
        remember_cached_view(sql.spark, name)
        return done
    is_done = create_or_alter_view(sql, text) or create_function(sql, text, read)
    if is_done:
        return no_rows(sql.spark)
    rows = sql.spliced(read, text)
    may_be_known = any(token.is_word("COUNT", "DISTINCT", "MAX", "MIN") for token in text.tokens)
    return aggregated_by_log(rows) if may_be_known else rows
