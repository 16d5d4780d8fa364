"""``spark.catalog`` of enabled sessions: what it tells of Delta tables is in their logs.

Each function takes PySpark's method first, and leaves to it what is not about a Delta table.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Column, Table
from pyspark.sql.types import StructType

from sparkdelta.engine.enabled_sessions import Original, is_enabled
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError, TableAlreadyExistsError
from sparkdelta.io import load_snapshot, read_delta
from sparkdelta.schema.sql_text import SESSION_CATALOG
from sparkdelta.sql.options import is_delta, table_properties
from sparkdelta.table.log.table_names import (
    NewTable,
    path_in_name,
    table_name,
    table_path,
    with_database,
)
from sparkdelta.tables import DeltaTable


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
