"""The table that a statement changes by the name of a view, and errors of names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, TableNotFoundError
from sparkdelta.sql.grammar.parser import Name
from sparkdelta.sql.statements.queries import SparkSql, sparks_sql
from sparkdelta.table.listing.table_names import (
    name_not_found,
    table_or_view,
    with_database,
)
from sparkdelta.table.log.path_versions import split_path
from sparkdelta.table.scan.read_provenance import followed_tables

_CLUSTER_BY = "ALTER TABLE ... CLUSTER BY"
_ONLY_OF_DELTA = ("OPTIMIZE", "VACUUM", "GENERATE", "DESCRIBE HISTORY", _CLUSTER_BY)


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
    DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION, DELTA_UNEXPECTED_PARTIAL_SCAN
        The view has the rows of a version, or some of the rows.
    DELTA_UNSUPPORTED_SOURCE, DELTA_STATEMENT_NOT_SUPPORTED
        It is another view of a Delta table, or reads it by a permanent view.
    TableNotFoundError
        It takes no rows, as a query defines it.
    """
    engine = engine_of(spark)
    view = engine.table_of_view(name)
    if operation == "INSERT":
        if engine.is_view_of_query(name):
            raise view_refused(name, "INSERT")
        is_table = view is not None and view.is_frame and view.version is None
        return view.root if view is not None and is_table else None
    if view is None and not _reads_delta(spark, name):
        return None
    if view is None or view.is_by_permanent_view:
        raise DeltaError.of("DELTA_UNSUPPORTED_SOURCE", operation=operation, view=quoted_path(name))
    if view.version is not None:
        raise DeltaError.of(
            "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", path=view.root, version=view.version
        )
    if view.is_partial:
        raise DeltaError.of("DELTA_UNEXPECTED_PARTIAL_SCAN", path=view.root, view=quoted_path(name))
    if any(name_key(one) != name_key(other or "") for one, other in view.columns.items()):
        problem = "has other columns than the table"
    elif operation == "MERGE" and len(view.columns) < view.num_columns:
        problem = "does not have all columns of the table"
    else:
        return view.root
    statement = f"{operation} by a view that {problem}"
    raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=statement)


def _reads_delta(spark: SparkSession, name: Name) -> bool:
    """Return True if a view reads the latest version of a Delta table."""
    sql, engine = sparks_sql(spark), engine_of(spark)
    if engine.following_view(name) is not None:
        return True
    if engine.is_temporary_view(name):
        return bool(followed_tables(sql(f"TABLE {quoted_path(name)}")))
    return SparkSql(spark, sql, {}).view_of_delta(name) is not None


def check_no_version(spark: SparkSession, path: str) -> None:
    """Refuse to change the version that a path ends with."""
    root, version, time = split_path(spark, path)
    if version is not None or time is not None:
        found = load_snapshot(spark, root, version=version, timestamp=time).version
        raise DeltaError.of("DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", path=root, version=found)


def check_merged(spark: SparkSession, name: Name) -> None:
    """Refuse MERGE of a name that is not there, or of a table that Spark's own catalog has and does
    not merge into: where the source is a Delta table, Spark's error would be about that.
    """
    if not spark.catalog.tableExists(quoted_path(name)):
        raise name_not_found(spark, name, has_builtin=True)
    catalog = name[0] if len(name) > 2 else spark.catalog.currentCatalog()
    is_sparks = spark.conf.get(f"spark.sql.catalog.{SESSION_CATALOG}", None) in (None, "builtin")
    if catalog.lower() == SESSION_CATALOG and is_sparks and view_of_name(spark, name) is None:
        error = DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement="MERGE of another format")
        raise error.named("UNSUPPORTED_FEATURE.TABLE_OPERATION", operation="MERGE INTO TABLE")


def no_delta_table(spark: SparkSession, name: Name, operation: str) -> DeltaError | None:
    """Return the error of a statement that only Delta has, and whose table is none of Delta's; None
    if Spark refuses the statement for the table.
    """
    view = view_of_name(spark, name)
    error = name_not_found(spark, name, searches=operation != "RESTORE")
    if view is not None:
        error = view_refused(view, operation)
        is_other = operation == "RESTORE"
    else:
        exists = spark.catalog.tableExists(quoted_path(name))
        if exists and operation.endswith("CONSTRAINT"):
            return None
        if exists and operation == "REORG":
            *_, database, table = with_database(spark, name)
            error.named("DELTA_NOT_A_DELTA_TABLE", tableName=f"{database}.{table}")
        is_other = exists and operation in _ONLY_OF_DELTA
    shown = operation.replace(" ...", "")
    return error.named("DELTA_ONLY_OPERATION", operation=shown) if is_other else error


def view_of_name(spark: SparkSession, name: Name) -> Name | None:
    """Return the name of a view, a permanent one with catalog and database; None for others."""
    if engine_of(spark).is_temporary_view(name):
        return name
    view = table_or_view(spark, name)
    return tuple(view.name) if isinstance(view, StoredView) else None


def view_refused(view: Name, operation: str) -> TableNotFoundError:
    """Return the error of a statement that takes tables only."""
    shown = quoted_path(view)
    advice = "It is a view. Name the table"
    return TableNotFoundError(path=shown, advice=advice).named(
        "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", viewName=shown, operation=operation
    )
