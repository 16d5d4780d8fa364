"""Temporary views by which statements change the rows of a Delta table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Name
from sparkdelta.sql.statements.queries import sparks_sql
from sparkdelta.table.scan.read_provenance import followed_tables


def path_of_view(spark: SparkSession, name: Name, operation: str) -> str | None:
    """Return the path of the table that a statement changes by a temporary view; None for other
    names, and for views whose statement Spark refuses.

    The view has all rows, and columns of the table under their names. As in delta-spark, INSERT
    takes no view that a query defines, and MERGE only one that has all columns. The columns that a
    view does not have keep their values.

    Parameters
    ----------
    operation
        The first keyword of the statement.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        The view is another one of a Delta table.
    """
    engine = engine_of(spark)
    view = engine.table_of_view(name)
    if operation == "INSERT":
        return view.root if view is not None and view.is_frame else None
    if view is None:
        problem = "does not have all rows of one table"
        is_temporary = engine.is_temporary_view(name)
        if not is_temporary or not followed_tables(sparks_sql(spark)(f"TABLE {quoted_path(name)}")):
            return None
    elif any(name_key(one) != name_key(other) for one, other in view.columns.items()):
        problem = "has other columns than the table"
    elif operation == "MERGE" and len(view.columns) < view.num_columns:
        problem = "does not have all columns of the table"
    else:
        return view.root
    statement = f"{operation} by a view that {problem}"
    raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=statement)
