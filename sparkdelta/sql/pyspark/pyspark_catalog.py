"""``spark.catalog`` of enabled sessions: what it tells of Delta tables is in their logs.

Each function takes PySpark's method first, and leaves to it what is not about a Delta table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Column, Table
from pyspark.sql.types import StructType
from pyspark.storagelevel import StorageLevel

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot, read_delta
from sparkdelta.base.protocol.manifest_rules import partition_directory
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.enabled_sessions import Original, Replacement, is_enabled
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError, TableAlreadyExistsError
from sparkdelta.sql.grammar.statement_values import (
    DropTable,
    Name,
    ShowPartitions,
    Statement,
    Truncate,
    Unsupported,
)
from sparkdelta.sql.statements.cached_tables import cache_table, is_cached, uncache_table
from sparkdelta.sql.statements.descriptions import all_properties, shown_partitions
from sparkdelta.sql.statements.execution import run_statement
from sparkdelta.sql.statements.options import is_delta, table_properties
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.table.listing.table_names import (
    NewTable,
    path_in_name,
    table_name,
    table_path,
    with_database,
)

MAX_PARTITIONS = 1_000_000


def table_exists(
    original: Original, catalog: Catalog, tableName: str, dbName: str | None = None
) -> bool:
    """``Catalog.tableExists``."""
    return _found(catalog, tableName, dbName) is not None or original(catalog, tableName, dbName)


def get_table(original: Original, catalog: Catalog, tableName: str) -> Table:
    """``Catalog.getTable``."""
    found = _found(catalog, tableName)
    if found is None:
        table: Table = original(catalog, tableName)
        return table
    spark, name, path = found
    database = with_database(spark, name)[-2]
    is_managed = path_in_name(name) is None and engine_of(spark).is_managed(name)
    return Table(
        name=name[-1],
        catalog=SESSION_CATALOG,
        namespace=[database],
        description=load_snapshot(spark, path).metadata.description,
        tableType="MANAGED" if is_managed else "EXTERNAL",
        isTemporary=False,
    )


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
    """``Catalog.createTable``; without a schema, it registers an existing table."""
    spark: SparkSession = catalog._sparkSession
    if not is_enabled(spark) or not is_delta(source):
        rows: DataFrame = original(catalog, tableName, path, source, schema, description, **options)
        return rows
    others, properties = table_properties(options)
    path = others.pop("path", None) if path is None else path
    for name in others:
        problem = "a Delta table takes path and table properties"
        raise InvalidArgumentError(argument=name, problem=problem)
    if schema is None and not properties and path is not None:
        load_snapshot(spark, path)
        table = NewTable.of(spark, table_name(tableName), path)
        if table.name is None:
            raise TableAlreadyExistsError(path=table.path)
        with table.named(spark):
            return read_delta(spark, path)
    builder = DeltaTable.create(spark).tableName(tableName).addColumns(schema or StructType())
    builder = builder if path is None else builder.location(path)
    builder = builder if description is None else builder.comment(description)
    for name, text in properties.items():
        builder = builder.property(name, text)
    return builder.execute().toDF()


def list_columns(
    original: Original, catalog: Catalog, tableName: str, dbName: str | None = None
) -> list[Column]:
    """``Catalog.listColumns``."""
    found = _found(catalog, tableName, dbName)
    if found is None:
        columns: list[Column] = original(catalog, tableName, dbName)
        return columns
    snapshot = load_snapshot(found[0], found[2])
    partitions = snapshot.metadata.partition_columns
    return [
        Column(
            name=field.name,
            description=(field.metadata or {}).get("comment"),
            dataType=field.dataType.simpleString(),
            nullable=field.nullable,
            isPartition=field.name in partitions,
            isBucket=False,
            isCluster=False,
        )
        for field in snapshot.schema.fields
    ]


def refresh_table(original: Original, catalog: Catalog, tableName: str) -> None:
    """``Catalog.refreshTable``: each read of a Delta table finds its latest version."""
    if _found(catalog, tableName) is None:
        original(catalog, tableName)


def get_table_properties(original: Original, catalog: Catalog, tableName: str) -> dict[str, str]:
    """``Catalog.getTableProperties``, as ``SHOW TBLPROPERTIES``."""
    found = _found(catalog, tableName)
    if found is None:
        properties: dict[str, str] = original(catalog, tableName)
        return properties
    return dict(sorted(all_properties(load_snapshot(found[0], found[2])).items()))


def list_partitions(original: Original, catalog: Catalog, tableName: str) -> list[Any]:
    """``Catalog.listPartitions``: the partitions of ``SHOW PARTITIONS``, as Spark names them."""
    found = _found(catalog, tableName)
    if found is None:
        partitions: list[Any] = original(catalog, tableName)
        return partitions
    from pyspark.sql.catalog import TablePartition  # later versions have it

    spark, name, path = found
    shown = shown_partitions(_sql_of(spark), path, ShowPartitions(name, {}))
    texts = shown.select(*(shown[quoted(each)].cast("string") for each in shown.columns))
    rows = read_rows(texts, what="partitions of a catalog", bound=MAX_PARTITIONS)
    return [
        TablePartition(text)
        for text in sorted(partition_directory(shown.columns, row) for row in rows)
    ]


def cache(
    original: Original, catalog: Catalog, tableName: str, storageLevel: StorageLevel | None = None
) -> None:
    """``Catalog.cacheTable``."""
    found = _found(catalog, tableName)
    if found is None:
        original(catalog, tableName, storageLevel)
    else:
        cache_table(found[0], found[2], storageLevel)


def uncache(original: Original, catalog: Catalog, tableName: str) -> None:
    """``Catalog.uncacheTable``."""
    found = _found(catalog, tableName)
    if found is None:
        original(catalog, tableName)
    else:
        uncache_table(found[0], found[2])


def is_in_cache(original: Original, catalog: Catalog, tableName: str) -> bool:
    """``Catalog.isCached``."""
    found = _found(catalog, tableName)
    return bool(original(catalog, tableName)) if found is None else is_cached(found[0], found[2])


def _by_statement(statement: Callable[[Name], Statement]) -> Replacement:
    """Return a method that runs the SQL statement of the same effect."""

    def method(
        original: Original, catalog: Catalog, tableName: str, *args: Any, **kwargs: Any
    ) -> Any:
        found = _found(catalog, tableName)
        if found is None:
            return original(catalog, tableName, *args, **kwargs)
        spark, name, path = found
        run_statement(_sql_of(spark), path, statement(name))
        return None

    return method


drop_table = _by_statement(DropTable)
truncate_table = _by_statement(Truncate)
analyze_table = _by_statement(lambda name: Unsupported(name, "ANALYZE TABLE"))
get_create_table_string = _by_statement(lambda name: Unsupported(name, "SHOW CREATE TABLE"))
recover_partitions = _by_statement(lambda name: Unsupported(name, "MSCK REPAIR TABLE"))


def _sql_of(spark: SparkSession) -> SparkSql:
    return SparkSql(spark, spark.sql, {}, session_time_zone(spark))


def _found(
    catalog: Any, name: str, database: str | None = None
) -> tuple[SparkSession, tuple[str, ...], str] | None:
    """Return the session of a catalog, and the parts of the name of a Delta table and its path;
    None for other tables.
    """
    spark: SparkSession = catalog._sparkSession
    if not is_enabled(spark):
        return None
    try:
        parts = table_name(name)
    except InvalidArgumentError:  # Spark tells what is wrong with the name
        return None
    parts = parts if database is None else (database, *parts)
    path = table_path(spark, parts)
    return None if path is None else (spark, parts, path)
