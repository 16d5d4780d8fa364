"""``readStream`` and ``writeStream`` of enabled sessions.

Each function takes PySpark's method first, and calls it for anything but a Delta table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkdelta.api.streams import start_stream
from sparkdelta.base.spark.enabled_sessions import Original, Replacement, is_enabled
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.session_settings import evolves_schemas, follow_settings
from sparkdelta.base.spark.spark_builders import Builder, StreamWriterState, builders_of
from sparkdelta.base.spark.spark_engine import SparkEngine, engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.upkeep.catalog_entries import named
from sparkdelta.sql.statements.options import (
    WRITE_STREAM,
    arguments,
    check_format_of_table,
    check_no_schema,
    given_location,
    is_delta,
    one_path,
    table_properties,
)
from sparkdelta.sql.statements.reading import read_stream_with
from sparkdelta.table.listing.table_names import (
    NewTable,
    table_name,
    table_name_in,
    table_path,
    with_database,
)


def load(
    original: Original,
    reader: Builder,
    path: str | None = None,
    format: str | None = None,  # noqa: A002 - PySpark's name
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Replace ``DataStreamReader.load``."""
    builders = builders_of(reader)
    spark = builders.session_of(reader)
    if not is_enabled(spark) or not is_delta(format or builders.reader(reader).source, spark):
        rows: DataFrame = original(reader, path, format, schema, **options)
        return rows
    state = builders.reader(reader.options(**options))
    check_no_schema(given=schema is not None or state.has_schema)
    return read_stream_with(spark, one_path(path, state.options), dict(state.options))


def table(original: Original, reader: Builder, tableName: str) -> DataFrame:
    """Replace ``DataStreamReader.table``."""
    builders = builders_of(reader)
    spark = builders.session_of(reader)
    path = table_path(spark, table_name(tableName)) if is_enabled(spark) else None
    if path is None:
        rows: DataFrame = original(reader, tableName)
        return rows
    return read_stream_with(spark, path, dict(builders.reader(reader).options))


Enable: TypeAlias = Callable[[SparkSession], object]


def foreach_batch(enable: Enable) -> Replacement:
    """Return the replacement of ``DataStreamWriter.foreachBatch``.

    Parameters
    ----------
    enable
        Enables the sessions that a function has in another process.
    """

    def set_function(
        original: Original, writer: Builder, func: Callable[[DataFrame, int], None]
    ) -> Builder:
        spark = builders_of(writer).session_of(writer)
        if is_enabled(spark):
            func = engine_of(spark).stream_function(_EnabledFunction(func, enable))
        return cast(Builder, original(writer, func))

    return set_function


@dataclass(frozen=True)
class _EnabledFunction:
    """A user's function, whose sessions are enabled in another process, too."""

    function: Callable[[DataFrame, int], None]
    enable: Enable

    def __call__(self, engine: SparkEngine, batch: DataFrame, number: int) -> None:
        if not is_enabled(engine.spark):
            self.enable(engine.spark)
        self.function(batch, number)

    def __reduce__(self) -> Any:
        return _enabled_function, (self.function, self.enable)


def _enabled_function(
    function: Callable[[DataFrame, int], None], enable: Enable
) -> _EnabledFunction:
    """Load a pickled function, and enable the active session, to which it may refer."""
    active = SparkSession.getActiveSession()
    if active is not None:
        enable(active)
    return _EnabledFunction(function, enable)


def start(
    original: Original,
    writer: Builder,
    path: str | None = None,
    format: str | None = None,  # noqa: A002 - PySpark's name
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """Replace ``DataStreamWriter.start``."""
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    if not is_enabled(spark) or not is_delta(
        format or builders.stream_writer(writer).source, spark
    ):
        query: StreamingQuery = original(
            writer, path, format, outputMode, partitionBy, queryName, **options
        )
        return query
    state = _told(writer, outputMode, partitionBy, queryName, options)
    return _write(state, one_path(path, state.options))


def to_table(
    original: Original,
    writer: Builder,
    tableName: str,
    format: str | None = None,  # noqa: A002 - PySpark's name
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """Replace ``DataStreamWriter.toTable``."""
    builders = builders_of(writer)
    spark = builders.session_of(writer)
    if is_enabled(spark):
        name = table_name_in(spark, tableName)
        source = format or builders.stream_writer(writer).source
        if table_path(spark, with_database(spark, name)) is not None:
            check_format_of_table(source, spark, tableName)
        if is_delta(source, spark):
            state = _told(writer, outputMode, partitionBy, queryName, options)
            place = NewTable.of(spark, name, given_location(state.options))
            with named(place, spark):
                return _write(state, place.path)
    passed: StreamingQuery = original(
        writer, tableName, format, outputMode, partitionBy, queryName, **options
    )
    return passed


def _told(
    writer: Builder, output_mode: Any, partition_by: Any, query_name: Any, options: dict[str, Any]
) -> StreamWriterState:
    """Apply the arguments of ``start`` or ``toTable`` to a writer, and return its state."""
    writer.options(**options)
    if output_mode is not None:
        writer.outputMode(output_mode)
    if partition_by is not None:
        writer.partitionBy(partition_by)
    if query_name is not None:
        writer.queryName(query_name)
    return builders_of(writer).stream_writer(writer)


def _write(state: StreamWriterState, path: str) -> StreamingQuery:
    options, properties = table_properties(state.options)
    found = arguments(options, WRITE_STREAM, function='writeStream.format("delta")')
    if "checkpoint_location" not in found:
        problem = "it is required, and identifies the query"
        raise InvalidArgumentError(argument="checkpointLocation", problem=problem)
    spark = state.rows.sparkSession
    with follow_settings(spark):
        found.setdefault("merge_schema", evolves_schemas())
        return start_stream(
            state.rows,
            path,
            time_zone=session_time_zone(spark),
            output_mode=state.output_mode,
            trigger=state.trigger,
            partition_by=state.partition_by,
            properties=properties,
            **found,
        )
