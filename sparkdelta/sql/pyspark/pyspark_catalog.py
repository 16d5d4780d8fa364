"""``spark.catalog`` of enabled sessions: its answers about Delta tables come from their logs.

Each function takes PySpark's method first, and calls it for anything but a Delta table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Column, Table
from pyspark.sql.types import StructType
from pyspark.storagelevel import StorageLevel

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot, read_delta
from sparkdelta.base.protocol.manifest_files import partition_directory
from sparkdelta.base.schema.sql_text import SESSION_CATALOG, text_literal
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.enabled_sessions import Original, Replacement, is_enabled
from sparkdelta.base.spark.session_settings import follow_settings
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.upkeep.catalog_entries import named
from sparkdelta.operations.upkeep.persisted_rows import remember_cached_view
from sparkdelta.sql.grammar.statement_grammar import no_v2_command, not_allowed
from sparkdelta.sql.statements.cached_tables import cache_table, is_cached, uncache_table
from sparkdelta.sql.statements.cached_views import CachedView
from sparkdelta.sql.statements.descriptions import show_partitions
from sparkdelta.sql.statements.maintenance_statements import drop_table, truncate_table
from sparkdelta.sql.statements.options import is_delta, table_properties
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.table.definition.table_description import all_properties
from sparkdelta.table.listing.table_names import (
    NewTable,
    name_in_catalog,
    path_in_name,
    table_name,
    table_path,
    with_database,
)

MAX_PARTITIONS = 1_000_000
MAX_TABLES = 1_000_000


def _of_delta_table(method: Callable[..., Any]) -> Replacement:
    """Return a replacement that calls PySpark's method for anything but a Delta table.

    Parameters
    ----------
    method
        Takes the table, and PySpark's arguments after its name.
    """

    def replacement(
        original: Original, catalog: Catalog, tableName: str, *args: Any, **kwargs: Any
    ) -> Any:
        table = _delta_table(catalog, tableName)
        if table is None:
            return original(catalog, tableName, *args, **kwargs)
        return method(table, *args, **kwargs)

    return replacement


def _delta_table(catalog: Any, name: str, database: str | None = None) -> StatementTable | None:
    """Return the Delta table of a name in a session that is enabled; None for other tables."""
    spark: SparkSession = catalog._sparkSession
    if not is_enabled(spark):
        return None
    try:
        parts = table_name(name)
    except InvalidArgumentError:  # Spark explains the error in the name
        return None
    parts = parts if database is None else (database, *parts)
    path = table_path(spark, parts)
    if path is None:
        return None
    return StatementTable(SparkSql(spark, spark.sql, {}), parts, path)


def _refused(error: Callable[[str], DeltaError], statement: str) -> Replacement:
    def refuse(*_: Any, **__: Any) -> None:
        raise error(statement)

    return _of_delta_table(refuse)


drop = _of_delta_table(lambda table, *_, **__: drop_table(table))
truncate = _of_delta_table(lambda table, *_, **__: truncate_table(table))
analyze_table = _refused(no_v2_command, "ANALYZE TABLE")
get_create_table_string = _refused(not_allowed, "SHOW CREATE TABLE")
recover_partitions = _refused(no_v2_command, "ALTER TABLE ... RECOVER PARTITIONS")


def table_exists(
    original: Original, catalog: Catalog, tableName: str, dbName: str | None = None
) -> bool:
    """Replace ``Catalog.tableExists``."""
    is_delta_table = _delta_table(catalog, tableName, dbName) is not None
    return is_delta_table or original(catalog, tableName, dbName)


def list_tables(
    original: Original, catalog: Catalog, dbName: str | None = None, pattern: str | None = None
) -> list[Table]:
    """Replace ``Catalog.listTables``, which lacks the kind and comment of Delta tables."""
    spark: SparkSession = catalog._sparkSession
    listed: list[Table]
    if is_enabled(spark) and spark.version.startswith("4.0."):
        listed = _shown_tables(catalog, dbName, pattern)
    else:
        listed = original(catalog, dbName, pattern)
    return [_described(catalog, each) for each in listed]


def _shown_tables(catalog: Any, database: str | None, pattern: str | None) -> list[Table]:
    """Return the tables of a database by SHOW TABLES, which finds no provider of a table; Spark
    4.0 does for ``listTables``, and has none for Delta tables.
    """
    within = "" if database is None else f" IN {quoted_path(table_name(database))}"
    like = "" if pattern is None else f" LIKE {text_literal(pattern)}"
    shown = catalog._sparkSession.sql(f"SHOW TABLES{within}{like}")
    tables = list[Table]()
    for row in read_rows(shown, what="tables of a database", bound=MAX_TABLES):
        namespace = [row["namespace"]] if row["namespace"] else []
        name = quoted_path((*namespace, row["tableName"]))
        if row["isTemporary"] or _delta_table(catalog, name) is None:
            tables.append(catalog.getTable(name))
        else:
            tables.append(Table(row["tableName"], SESSION_CATALOG, namespace, None, None, False))  # type: ignore[arg-type]  # as Spark does
    return tables


def _described(catalog: Catalog, listed: Table) -> Table:
    """Return a table of a list as `get_table` does, if it is a Delta table that can be read."""
    if listed.isTemporary or listed.tableType is not None or not listed.namespace:
        return listed
    table = _delta_table(catalog, quoted_path((*listed.namespace, listed.name)))
    if table is None:
        return listed
    with suppress(DeltaError):
        return _table(table)
    return listed


def _table(table: StatementTable) -> Table:
    spark, name = table.spark, table.name
    is_managed = path_in_name(name) is None and engine_of(spark).is_managed(name)
    return Table(
        name=name[-1],
        catalog=SESSION_CATALOG,
        namespace=[with_database(spark, name)[-2]],
        description=table.snapshot.metadata.description,
        tableType="MANAGED" if is_managed else "EXTERNAL",
        isTemporary=False,
    )


@_of_delta_table
def get_table(table: StatementTable) -> Table:
    """Replace ``Catalog.getTable``."""
    return _table(table)


def create_table(
    original: Original,
    catalog: Any,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    schema: StructType | None = None,
    description: str | None = None,
    **options: str,
) -> DataFrame:
    """Replace ``Catalog.createTable``; without a schema, it registers an existing table."""
    spark: SparkSession = catalog._sparkSession
    if not is_enabled(spark) or not is_delta(source, spark):
        rows: DataFrame = original(catalog, tableName, path, source, schema, description, **options)
        return rows
    others, properties = table_properties(options)
    path = others.pop("path", None) if path is None else path
    for name in others:
        problem = "a Delta table takes path and table properties"
        raise InvalidArgumentError(argument=name, problem=problem)
    parts = table_name(tableName)
    with follow_settings(spark, "CREATE", lambda: name_in_catalog(spark, parts)):
        if table_path(spark, with_database(spark, parts)) is not None:
            raise DeltaError.of("DELTA_TABLE_ALREADY_EXISTS", path=tableName)
        if schema is None and not properties and path is not None:
            table = NewTable.of(spark, parts, path)
            load_snapshot(spark, path)
            with named(table, spark):
                return read_delta(spark, path)
        return _created(spark, tableName, path, schema, description, properties)


def _created(
    spark: SparkSession,
    name: str,
    path: str | None,
    schema: StructType | None,
    description: str | None,
    properties: Mapping[str, str],
) -> DataFrame:
    builder = DeltaTable.create(spark).tableName(name).addColumns(schema or StructType())
    builder = builder if path is None else builder.location(path)
    builder = builder if description is None else builder.comment(description)
    for key, text in properties.items():
        builder = builder.property(key, text)
    return builder.execute().toDF()


def list_columns(
    original: Original, catalog: Catalog, tableName: str, dbName: str | None = None
) -> list[Column]:
    """Replace ``Catalog.listColumns``."""
    table = _delta_table(catalog, tableName, dbName)
    if table is None:
        columns: list[Column] = original(catalog, tableName, dbName)
        return columns
    return [
        Column(
            name=field.name,
            description=(field.metadata or {}).get("comment"),
            dataType=field.dataType.simpleString(),
            nullable=field.nullable,
            isPartition=field.name in table.snapshot.metadata.partition_columns,
            isBucket=False,
            isCluster=False,
        )
        for field in table.snapshot.schema.fields
    ]


@_of_delta_table
def refresh_table(table: StatementTable) -> None:
    """Replace ``Catalog.refreshTable``: nothing to do, each read finds the latest version."""


@_of_delta_table
def get_table_properties(table: StatementTable) -> dict[str, str]:
    """Replace ``Catalog.getTableProperties``, as ``SHOW TBLPROPERTIES``."""
    return dict(sorted(all_properties(table.snapshot).items()))


@_of_delta_table
def list_partitions(table: StatementTable) -> list[Any]:
    """Replace ``Catalog.listPartitions``; partitions are named as Spark names them."""
    from pyspark.sql.catalog import TablePartition  # later versions have it

    shown = show_partitions(table)
    texts = shown.select(*(shown[quoted(each)].cast("string") for each in shown.columns))
    rows = read_rows(texts, what="partitions of a catalog", bound=MAX_PARTITIONS)
    return [
        TablePartition(text)
        for text in sorted(partition_directory(shown.columns, row) for row in rows)
    ]


def _cached_view(catalog: Catalog, name: str) -> CachedView | None:
    """Return the permanent view of a name that reads Delta tables, in a session that is enabled."""
    spark: SparkSession = catalog._sparkSession
    try:
        return CachedView.find(spark, table_name(name)) if is_enabled(spark) else None
    except InvalidArgumentError:  # Spark explains the error in the name
        return None


def cache(
    original: Original, catalog: Catalog, tableName: str, storageLevel: StorageLevel | None = None
) -> None:
    """Replace ``Catalog.cacheTable``."""
    table, given = _delta_table(catalog, tableName), () if storageLevel is None else (storageLevel,)
    if table is not None:
        cache_table(table.spark, table.path, storageLevel)
    elif (view := _cached_view(catalog, tableName)) is not None:
        view.cache(storageLevel)
    else:
        original(catalog, tableName, *given)
        if is_enabled(catalog._sparkSession):
            remember_cached_view(catalog._sparkSession, tableName)


def uncache(original: Original, catalog: Catalog, tableName: str) -> None:
    """Replace ``Catalog.uncacheTable``."""
    table = _delta_table(catalog, tableName)
    if table is not None:
        uncache_table(table.spark, table.path)
    elif (view := _cached_view(catalog, tableName)) is not None:
        view.uncache()
    else:
        original(catalog, tableName)


def is_in_cache(original: Original, catalog: Catalog, tableName: str) -> bool:
    """Replace ``Catalog.isCached``."""
    table = _delta_table(catalog, tableName)
    if table is not None:
        return is_cached(table.spark, table.path)
    view = _cached_view(catalog, tableName)
    return bool(original(catalog, tableName)) if view is None else view.is_cached()
