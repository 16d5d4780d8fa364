"""SQL functions that read Delta tables.

In the text of a function that Spark runs, temporary views stand for the Delta tables. They show the
current rows, as all temporary views do, and are there as long as the session. Of a permanent
function Spark's catalog has the text as it was written; a session loads the other one when a
statement calls the function for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.tokens import Fragment, tokenize
from sparkdelta.sql.statements.queries import Located, SparkSql, sparks_sql, text_with_views
from sparkdelta.table.listing.table_names import with_database

_NO_SOURCE = "DATA_SOURCE_NOT_FOUND"
"""The error of Spark for the text of a function that reads a Delta table."""


def create_function(sql: SparkSql, text: Fragment, tables: Sequence[Located]) -> bool:
    """Carry out CREATE FUNCTION; return False if the text is another statement.

    Parameters
    ----------
    tables
        The Delta tables that the function reads.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        It is a permanent function of Spark Connect, or reads temporary views, functions or
        variables.
    """
    parser = Parser(text.whole, text.tokens)
    is_creation = parser.accept("CREATE")
    parser.accept("OR REPLACE")
    is_temporary = parser.accept("TEMP|TEMPORARY")
    if not is_creation or not parser.accept("FUNCTION"):
        return False
    parser.accept("IF NOT EXISTS")
    name = parser.table_name()
    if is_temporary:
        with _views_of(sql, tables, name[-1]) as (views, keep):
            sql.run(text_with_views(text, tables, views))
            keep()
        return True
    engine = engine_of(sql.spark)
    if not engine.can("see plans"):
        kind = "a permanent function that reads Delta tables (use CREATE TEMPORARY FUNCTION)"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
    trial = f"{name[-1]}_{uuid4().hex}"
    with _views_of(sql, tables, name[-1]) as (views, _):
        definition = text_with_views(parser.rest(), tables, views)
        sql.run(f"CREATE TEMPORARY FUNCTION {quoted(trial)} {definition}")
        try:
            qualified = (SESSION_CATALOG, *with_database(sql.spark, name)[-2:])
            is_stored = engine.store_function(qualified, text.text, trial, views)
        finally:
            sql.run(f"DROP TEMPORARY FUNCTION {quoted(trial)}")
    if not is_stored:
        kind = "a permanent function that reads temporary views, functions or variables"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
    return True


@contextmanager
def _views_of(
    sql: SparkSql, tables: Sequence[Located], function: str
) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """Yield names of temporary views of tables, and a function that keeps the views."""
    # A function of this name may have some.
    views = [f"{function}_reads_{uuid4().hex}" for _ in tables]
    with ExitStack() as undo:
        for view, table in zip(views, tables, strict=True):
            sql.rows_of(*table).createTempView(quoted(view))
            undo.callback(sql.spark.catalog.dropTempView, view)
        yield views, undo.pop_all


def loading_functions(
    spark: SparkSession, run: Callable[..., DataFrame] | None = None
) -> Callable[..., DataFrame]:
    """Return ``spark.sql`` of a session, PySpark's by default, which loads the permanent functions
    of a text when Spark does not find the source of a table.
    """
    run = sparks_sql(spark) if run is None else run

    def run_and_load(text: Any, *arguments: Any, **named: Any) -> DataFrame:
        try:
            return run(text, *arguments, **named)
        except Exception as error:  # a Java error that PySpark has no class for
            is_missing = _NO_SOURCE in str(error) and engine_of(spark).can("see plans")
            if not is_missing or not _load_functions(SparkSql(spark, run, {}), text):
                raise
        return run(text, *arguments, **named)

    return run_and_load


def _load_functions(sql: SparkSql, text: str) -> bool:
    """Load the permanent functions that a text and their own texts call and that read Delta
    tables; return False if there are none.
    """
    engine, has_loaded, seen = engine_of(sql.spark), False, set[Name]()
    bodies = [tokenize(text)]
    while bodies:
        body = bodies.pop()
        for name in set(() if body is None else _called(body)) - seen:
            seen.add(name)
            stored = engine.function_text(name)
            called = None if stored is None else tokenize(stored)
            tables = [] if called is None else sql.tables(called)
            if called is not None and tables:
                with _views_of(sql, tables, name[-1]) as (views, keep):
                    engine.load_function(name, text_with_views(called, tables, views), views)
                    keep()
                has_loaded = True
            bodies.append(called)
    return has_loaded


def _called(text: Fragment) -> Iterator[Name]:
    """Yield the names before parentheses."""
    for place, (token, after) in enumerate(pairwise(text.tokens)):
        if token.is_name and after.is_symbol("("):
            start = place
            while start >= 2 and text.tokens[start - 1].is_symbol("."):
                start -= 2
            yield Parser(text.whole, text.tokens, start).name()
