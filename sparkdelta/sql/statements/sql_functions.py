"""CREATE TEMPORARY FUNCTION of SQL that reads Delta tables.

Spark keeps the text of a function, in which temporary views stand for the Delta tables. They show
the current rows, as all temporary views do, and are there as long as the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from uuid import uuid4

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.tokens import Fragment
from sparkdelta.sql.statements.queries import Located, SparkSql, text_with_views


def create_function(sql: SparkSql, text: Fragment, tables: Sequence[Located]) -> bool:
    """Carry out CREATE TEMPORARY FUNCTION; return False if the text is another statement.

    Parameters
    ----------
    tables
        The Delta tables that the function reads.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        It is a permanent function, which cannot read temporary views.
    """
    parser = Parser(text.whole, text.tokens)
    is_creation = parser.accept("CREATE")
    parser.accept("OR REPLACE")
    is_temporary = parser.accept("TEMP|TEMPORARY")
    if not is_creation or not parser.accept("FUNCTION"):
        return False
    if not is_temporary:
        kind = "a permanent function that reads Delta tables (use CREATE TEMPORARY FUNCTION)"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
    name = parser.word()
    views = [f"{name}_reads_{uuid4().hex}" for _ in tables]  # a function of this name may have some
    with ExitStack() as undo:
        for view, table in zip(views, tables, strict=True):
            sql.rows_of(*table).createTempView(quoted(view))
            undo.callback(sql.spark.catalog.dropTempView, view)
        sql.run(text_with_views(text, tables, views))
        undo.pop_all()
    return True
