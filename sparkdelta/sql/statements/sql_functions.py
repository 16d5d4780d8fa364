"""SQL functions that read Delta tables.

In the text of a function that Spark runs, temporary views stand for the Delta tables. They show the
current rows, as all temporary views do, and are there as long as the session. Of a permanent
function Spark's catalog has the text as it was written; a session loads the other one when a
statement calls the function for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
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
from sparkdelta.sql.statements.view_tables import called_names, tables_of_text
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
        It is a permanent function that reads temporary views, functions or variables; or on Spark
        Connect, what the server cannot name.
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
    trial = f"{name[-1]}_{uuid4().hex}"
    with _views_of(sql, tables, name[-1]) as (views, _):
        definition = text_with_views(parser.rest(), tables, views)
        sql.run(f"CREATE TEMPORARY FUNCTION {quoted(trial)} {definition}")
        try:
            qualified = (SESSION_CATALOG, *with_database(sql.spark, name)[-2:])
            is_stored = engine.store_function(
                qualified, text.text, trial, views, partial(tables_of_text, sql, text)
            )
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
            query = tokenize(text) if _NO_SOURCE in str(error) else None
            if query is None:
                raise
            sql = SparkSql(spark, run, {})
            engine = engine_of(spark)
            is_on_server = not engine.can("see plans")
            if is_on_server and _define_on_server(sql, query):
                return run("VALUES (0)").where("FALSE").select()
            with ExitStack() as undo:
                functions = _Functions(sql, undo)
                text = functions.loaded_text(query)
                if not functions.names:
                    raise
                rows = run(text, *arguments, **named)
                # A classic session knows the functions from now on.
                return engine.rows_of_view(functions.renamed(rows)) if is_on_server else rows

    return run_and_load


def _define_on_server(sql: SparkSql, text: Fragment) -> bool:
    """Carry out CREATE of a permanent function or view that calls functions which read Delta tables
    on Spark Connect; return False if the text is another statement.
    """
    parser = Parser(text.whole, text.tokens)
    parser.accept("CREATE")
    parser.accept("OR REPLACE")
    if not parser.accept("FUNCTION|VIEW"):
        return False
    parser.accept("IF NOT EXISTS")
    name = parser.table_name()
    tables = partial(tables_of_text, sql, text)
    return engine_of(sql.spark).store_function(name, text.text, "", (), tables)


@dataclass(slots=True)
class _Functions:
    """The permanent functions that read Delta tables, as a session loads them.

    Attributes
    ----------
    undo
        Drops what they need.
    names
        Loaded functions, and the names of temporary ones as SQL that stand for them.
    seen
        The names that were looked for.
    """

    sql: SparkSql
    undo: ExitStack
    names: dict[Name, str | None] = field(default_factory=dict)
    seen: set[Name] = field(default_factory=set)

    def loaded_text(self, text: Fragment) -> str:
        """Load the functions that a text calls; return the text with their new names."""
        parts, place = [], text.start
        for name, start, end in called_names(text):
            if name not in self.seen:
                self.seen.add(name)
                self._load(name)
            loaded = self.names.get(name)
            if loaded is not None:
                parts += [text.whole[place:start], loaded]
                place = end
        return "".join([*parts, text.whole[place : text.end]])

    def _load(self, name: Name) -> None:
        engine = engine_of(self.sql.spark)
        stored = engine.function_text(name)
        called = None if stored is None else tokenize(stored)
        body = None if called is None else tokenize(self.loaded_text(called))
        if called is None or body is None:
            return
        tables = self.sql.tables(body)
        if not tables and body.text == called.text:
            return
        views, keep = self.undo.enter_context(_views_of(self.sql, tables, name[-1]))
        loaded = engine.load_function(name, text_with_views(body, tables, views), views)
        self.names[name] = loaded
        if loaded is None:
            keep()
        else:
            self.undo.callback(self.sql.run, f"DROP TEMPORARY FUNCTION {loaded}")

    def renamed(self, rows: DataFrame) -> DataFrame:
        """Return rows whose columns are named after the permanent functions."""
        columns = rows.columns
        for name, loaded in self.names.items():
            if loaded is None:
                continue
            qualified = ".".join((SESSION_CATALOG, *with_database(self.sql.spark, name)[-2:]))
            columns = [each.replace(loaded.strip("`"), qualified) for each in columns]
        return rows if columns == rows.columns else rows.toDF(*columns)
