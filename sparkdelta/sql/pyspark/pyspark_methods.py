"""PySpark's methods that read and write, as they are in enabled sessions.

Each takes the original method first, and calls it for anything but a Delta table. Only methods that
start work are replaced: they take the earlier settings from the reader or writer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException, PySparkException, SparkRuntimeException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.enabled_sessions import Original, Replacement, enable_child, is_enabled
from sparkdelta.base.spark.session_settings import (
    evolves_schemas,
    follow_settings,
    follows_settings,
)
from sparkdelta.base.spark.spark_builders import Builder, WriterState, builders_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, from_message
from sparkdelta.operations.upkeep.catalog_entries import named
from sparkdelta.operations.upkeep.persisted_rows import remember_persisted
from sparkdelta.sql.pyspark import pyspark_catalog, pyspark_streaming, pyspark_writing
from sparkdelta.sql.pyspark.pyspark_merging import MergeWriter
from sparkdelta.sql.statements.inserted_rows import Insertion, inserted_rows
from sparkdelta.sql.statements.options import (
    check_format_of_table,
    check_no_schema,
    given_location,
    is_delta,
    one_path,
)
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.sql.statements.reading import read
from sparkdelta.sql.statements.statement_targets import path_of_view
from sparkdelta.sql.statements.statement_text import run_sql
from sparkdelta.table.listing.table_names import (
    NewTable,
    check_absolute,
    name_in_catalog,
    name_not_found,
    table_name,
    table_name_in,
    table_or_view,
    table_path,
    with_database,
)
from sparkdelta.table.scan.logged_aggregates import count_by_log


def load(
    original: Original,
    reader: Builder,
    path: Any = None,
    format: str | None = None,  # noqa: A002 - PySpark's name
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Replace ``DataFrameReader.load``."""
    builders = builders_of(reader)
    spark = builders.session_of(reader)
    if not is_enabled(spark) or not is_delta(format or builders.reader(reader).source, spark):
        rows: DataFrame = original(reader, path, format, schema, **options)
        return rows
    state = builders.reader(reader.options(**options))
    check_no_schema(given=schema is not None or state.has_schema)
    return read(spark, one_path(path, state.options), state.options)


def save(
    original: Original,
    writer: Builder,
    path: str | None = None,
    format: str | None = None,  # noqa: A002 - PySpark's name
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    """Replace ``DataFrameWriter.save``."""
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    if not is_enabled(spark) or not is_delta(format or builders.writer(writer).source, spark):
        original(writer, path, format, mode, partitionBy, **options)
        return
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    state = builders.writer(writer)
    pyspark_writing.save(state, one_path(path, state.options))


def save_as_table(
    original: Original,
    writer: Builder,
    name: str,
    format: str | None = None,  # noqa: A002 - PySpark's name
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    """Replace ``DataFrameWriter.saveAsTable``."""
    builders = builders_of(writer)
    spark, before = builders.session_of(writer), builders.writer(writer)
    source = format or before.source
    if (mode or before.mode or "").lower() == "append" and _named_path(spark, name, qualified=True):
        check_format_of_table(source, spark, name)
    if not is_enabled(spark) or not is_delta(source, spark):
        original(writer, name, format, mode, partitionBy, **options)
        return
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    state = builders.writer(writer)
    converts = (state.mode or "").lower() == "append"  # as delta-spark does, and in no other mode
    with _writing_to(spark, name):
        parts = table_name_in(spark, name)
        table = NewTable.of(spark, parts, given_location(state.options))
        with named(table, spark):
            pyspark_writing.save(
                state,
                table.path,
                defines_table=True,
                is_managed=table.is_managed,
                converts=converts,
            )


def insert_into(
    original: Original, writer: Builder, tableName: str, overwrite: bool | None = None
) -> None:
    """Replace ``DataFrameWriter.insertInto``: columns are matched by position."""
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    state = builders.writer(writer)
    is_delta_writer = is_enabled(spark) and is_delta(state.source, spark)
    with _writing_to(spark, tableName):
        path = _named_path(spark, tableName, of_view="INSERT")
        if path is None and is_delta_writer:
            _check_exists(spark, tableName)
    if path is None:
        with _other_format(writer) if is_delta_writer else nullcontext():
            original(writer, tableName, overwrite)
        return
    overwrites = state.mode is not None and state.mode.lower() == "overwrite"
    if overwrite is not None:
        overwrites = overwrite
    mode, snapshot = "overwrite" if overwrites else "append", load_snapshot(spark, path)
    with _writing_to(spark, tableName):
        rows = inserted_rows(state.rows, snapshot, Insertion(evolves=evolves_schemas()))
        pyspark_writing.save(replace(state, rows=rows, mode=mode), path, converts=True)


def _check_exists(spark: SparkSession, name: str) -> None:
    """Refuse a name of the session catalog that is not there, as delta-spark does."""
    try:
        parts = table_name(name)
    except InvalidArgumentError:  # Spark explains the error in the name
        return
    if len(parts) < 3 and not spark.catalog.tableExists(name):
        schema, table = (SESSION_CATALOG, *with_database(spark, parts)[:-1]), parts[-1]
        raise name_not_found(spark, parts).named(
            "TABLE_OR_VIEW_NOT_FOUND",
            relationName=quoted_path((*schema, table)),
            searchPath=f"[{quoted_path(schema)}]",
        )


@contextmanager
def _other_format(writer: Builder) -> Iterator[None]:
    """Hide the format ``delta`` of a writer from Spark, which has no such source and ignores the
    format of ``insertInto``.
    """
    writer.format("parquet")
    try:
        yield
    finally:
        writer.format("delta")


@contextmanager
def _writing_to(spark: SparkSession, name: str) -> Iterator[None]:
    """Follow the settings of a session in the block, which writes to the table of a name."""

    def full_name() -> tuple[str, ...]:
        parts = table_name(name)
        return name_in_catalog(spark, parts) or parts

    with follow_settings(spark, "writeTo", full_name):
        yield


def _create(mode: str, *, requires_table: bool = False) -> Replacement:
    def create(original: Original, writer: Builder) -> None:
        found = _creating_writer(writer)
        if found is None:
            original(writer)
            return
        state, location = found
        spark = state.rows.sparkSession
        with _writing_to(spark, state.table):
            name, replaces = table_name(state.table), mode == "overwrite"
            table = NewTable.of(spark, name, location, replaces=replaces)
            with named(table, spark):
                pyspark_writing.create_as(
                    state,
                    table.path,
                    mode=mode,
                    requires_table=requires_table,
                    is_managed=table.is_managed,
                )

    return create


def append(original: Original, writer: Builder) -> None:
    """Replace ``DataFrameWriterV2.append``."""
    found = _table_writer(writer)
    if found is None:
        original(writer)
    else:
        pyspark_writing.write_into(*found)


def overwrite(original: Original, writer: Builder, condition: str | Column) -> None:
    """Replace ``DataFrameWriterV2.overwrite``."""
    found = _table_writer(writer)
    if found is None:
        original(writer, condition)
    else:
        where = F.col(condition) if isinstance(condition, str) else condition
        pyspark_writing.write_into(*found, replace_where=where)


def overwrite_partitions(original: Original, writer: Builder) -> None:
    """Replace ``DataFrameWriterV2.overwritePartitions``."""
    found = _table_writer(writer)
    if found is None:
        original(writer)
    else:
        pyspark_writing.write_into(*found, overwrites_partitions=True)


def _creating_writer(writer: Builder) -> tuple[WriterState, str | None] | None:
    """Return the state of a ``DataFrameWriterV2`` that creates or replaces a table, and the table's
    location if it is given; None for tables of other formats.
    """
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    if not is_enabled(spark):
        return None
    state = builders.table_writer(writer)
    name = table_name(state.table)
    if not is_delta(state.source, spark) and table_path(spark, with_database(spark, name)) is None:
        return None
    properties = dict(state.properties)
    declared = properties.pop("location", None)
    return replace(state, properties=properties), given_location(state.options) or declared


def _table_writer(writer: Builder) -> tuple[WriterState, str] | None:
    """Return the state of a ``DataFrameWriterV2`` and the path of its table; None for tables of
    other formats.
    """
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    if not is_enabled(spark):
        return None
    state = builders.table_writer(writer)
    path = table_path(spark, table_name(state.table))
    return None if path is None else (state, path)


def _named_path(
    spark: SparkSession, name: str, *, qualified: bool = False, of_view: str = ""
) -> str | None:
    """Return the path of a Delta table by its name, in an enabled session; None for other tables.

    Parameters
    ----------
    qualified
        True if the name is a table's even where a temporary view has it, too.
    of_view
        The statement, if it may name a temporary view of the table.
    """
    if not is_enabled(spark):
        return None
    try:
        parts = table_name(name)
        path = table_path(spark, with_database(spark, parts) if qualified else parts)
        return path_of_view(spark, parts, of_view) if path is None and of_view else path
    except InvalidArgumentError:  # Spark explains the error in the name
        return None


def sql(
    original: Original, spark: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any
) -> DataFrame:
    """Replace ``SparkSession.sql``."""
    run: Callable[..., DataFrame] = functools.partial(original, spark)
    if is_enabled(spark):
        with follow_settings(spark):
            return run_sql(spark, run, sqlQuery, args, kwargs)
    return run(sqlQuery, **kwargs) if args is None else run(sqlQuery, args, **kwargs)


def table_of_reader(original: Original, reader: Builder, tableName: str) -> DataFrame:
    """Replace ``DataFrameReader.table``."""
    builders = builders_of(reader)
    spark = builders.session_of(reader)
    named = _table_or_view(spark, tableName)
    if isinstance(named, DataFrame):
        return named
    if named is None:
        rows: DataFrame = original(reader, tableName)
        return rows
    state = builders.reader(reader)
    check_no_schema(given=state.has_schema)
    return read(spark, named, state.options)


def table_of_session(original: Original, spark: SparkSession, tableName: str) -> DataFrame:
    """Replace ``SparkSession.table``."""
    named = _table_or_view(spark, tableName)
    if isinstance(named, DataFrame):
        return named
    if named is None:
        rows: DataFrame = original(spark, tableName)
        return rows
    return read(spark, named, {})


def _table_or_view(spark: SparkSession, name: str) -> str | DataFrame | None:
    """Return the path of a Delta table by its name, or the rows of a permanent view that reads one,
    in an enabled session; None for others.
    """
    if not is_enabled(spark):
        return None
    try:
        parts = table_name(name)
    except InvalidArgumentError:  # Spark explains the error in the name
        return None
    named = table_or_view(spark, parts)
    if named is None:
        with follow_settings(spark):
            check_absolute(spark, parts)
    if not isinstance(named, StoredView):
        return named
    sql = SparkSql(spark, spark.sql, {})
    return sql.view_rows(named) if sql.reads_delta(named) else None


def changes(original: Original, reader: Builder, tableName: str) -> DataFrame:
    """Replace ``DataFrameReader.changes`` and ``DataStreamReader.changes``.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        It is a Delta table; delta-spark, too, reads its changes by an option.
    """
    if _named_path(builders_of(reader).session_of(reader), tableName) is None:
        rows: DataFrame = original(reader, tableName)
        return rows
    method = f'{type(reader).__name__}.changes (use option("readChangeFeed", "true").table)'
    raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=method)


def merge_into(original: Original, rows: DataFrame, table: str, condition: Column) -> Any:
    """Replace ``DataFrame.mergeInto``."""
    with _writing_to(rows.sparkSession, table):
        path = _named_path(rows.sparkSession, table, of_view="MERGE")
    return (
        original(rows, table, condition)
        if path is None
        else MergeWriter(rows, path, table, condition)
    )


def persist(original: Original, rows: DataFrame, *args: Any, **kwargs: Any) -> DataFrame:
    """Replace ``DataFrame.persist`` and ``DataFrame.cache``."""
    persisted: DataFrame = original(rows, *args, **kwargs)
    if is_enabled(rows.sparkSession):
        remember_persisted(persisted)
    return persisted


def count(original: Original, rows: DataFrame) -> int:
    """Replace ``DataFrame.count``: the log may know the number of rows of a table."""
    with follow_settings(rows.sparkSession):
        known = count_by_log(rows) if follows_settings() else None
    return int(original(rows)) if known is None else known


def child_session(
    original: Original, spark: SparkSession, *args: Any, **kwargs: Any
) -> SparkSession:
    """Replace ``SparkSession.newSession`` and ``SparkSession.cloneSession``."""
    return enable_child(original(spark, *args, **kwargs), spark)


def convert_exception(original: Original, exception: Any) -> PySparkException:
    """Replace ``convert_exception``: an error of ours that a query got from the JVM, and that
    delta-spark raises as an ``AnalysisException``, is one again.
    """
    converted: PySparkException = original(exception)
    if isinstance(converted, SparkRuntimeException):
        error = from_message(str(converted))
        if isinstance(error, DeltaError) and isinstance(error, AnalysisException):
            error.name_as_delta_spark()
            return error
    return converted


METHODS: Mapping[str, Callable[..., Any]] = {
    "Catalog.analyzeTable": pyspark_catalog.analyze_table,
    "Catalog.cacheTable": pyspark_catalog.cache,
    "Catalog.createTable": pyspark_catalog.create_table,
    "Catalog.dropTable": pyspark_catalog.drop,
    "Catalog.getCreateTableString": pyspark_catalog.get_create_table_string,
    "Catalog.getTable": pyspark_catalog.get_table,
    "Catalog.getTableProperties": pyspark_catalog.get_table_properties,
    "Catalog.isCached": pyspark_catalog.is_in_cache,
    "Catalog.listColumns": pyspark_catalog.list_columns,
    "Catalog.listTables": pyspark_catalog.list_tables,
    "Catalog.listPartitions": pyspark_catalog.list_partitions,
    "Catalog.recoverPartitions": pyspark_catalog.recover_partitions,
    "Catalog.refreshTable": pyspark_catalog.refresh_table,
    "Catalog.tableExists": pyspark_catalog.table_exists,
    "Catalog.truncateTable": pyspark_catalog.truncate,
    "Catalog.uncacheTable": pyspark_catalog.uncache,
    "DataFrame.cache": persist,
    "DataFrame.count": count,
    "DataFrame.mergeInto": merge_into,
    "DataFrame.persist": persist,
    "DataFrameReader.changes": changes,
    "DataFrameReader.load": load,
    "DataFrameReader.table": table_of_reader,
    "DataFrameWriter.save": save,
    "DataFrameWriter.saveAsTable": save_as_table,
    "DataFrameWriter.insertInto": insert_into,
    "DataFrameWriterV2.create": _create("error"),
    "DataFrameWriterV2.replace": _create("overwrite", requires_table=True),
    "DataFrameWriterV2.createOrReplace": _create("overwrite"),
    "DataFrameWriterV2.append": append,
    "DataFrameWriterV2.overwrite": overwrite,
    "DataFrameWriterV2.overwritePartitions": overwrite_partitions,
    "DataStreamReader.changes": changes,
    "DataStreamReader.load": pyspark_streaming.load,
    "DataStreamReader.table": pyspark_streaming.table,
    "DataStreamWriter.start": pyspark_streaming.start,
    "DataStreamWriter.toTable": pyspark_streaming.to_table,
    "SparkSession.cloneSession": child_session,
    "SparkSession.newSession": child_session,
    "SparkSession.sql": sql,
    "SparkSession.table": table_of_session,
    "captured.convert_exception": convert_exception,
}
"""The methods of an enabled session; the last one is a function of classic Spark's."""
