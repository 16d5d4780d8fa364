"""Reading with delta-spark's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.api.reading_and_writing import latest_version, read_changes, read_delta
from sparkdelta.api.streams import read_stream
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.session_settings import follow_settings, follows_settings
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, TableNotFoundError
from sparkdelta.sql.statements.cached_tables import cached_rows
from sparkdelta.sql.statements.options import (
    CHANGES,
    READ,
    READ_STREAM,
    READS_CHANGES,
    arguments,
    asks_for_changes,
    check_no_version,
)
from sparkdelta.table.listing.listing import open_log
from sparkdelta.table.log.path_versions import split_path
from sparkdelta.table.log.session_times import session_time

_FUNCTION = 'spark.read.format("delta")'
_STREAM_FUNCTION = 'readStream.format("delta")'


def read(
    spark: SparkSession, path: str, options: Mapping[str, str], *, function: str = _FUNCTION
) -> DataFrame:
    """Return the rows of a table, or its changes, as options ask for.

    Times are in the session's time zone, as in delta-spark.

    Raises
    ------
    DELTA_UNKNOWN_ARGUMENT, InvalidArgumentError
        An option or its value is unknown.
    DeltaError
        The table cannot be read; see `sparkdelta.read_delta`.
    """
    with follow_settings(spark, "load"):
        try:
            return _read(spark, path, options, function)
        except TableNotFoundError as error:
            if not open_log(spark, error.path).is_alone():
                error.named("DELTA_TABLE_NOT_FOUND", tableName=quoted(error.path))
            raise


def _read(spark: SparkSession, path: str, options: Mapping[str, str], function: str) -> DataFrame:
    path, version, time = split_path(spark, path)
    if asks_for_changes(options):
        others = [*READS_CHANGES, *READ]
        found = arguments(options, CHANGES, function=function, others=others)
        check_no_version(options)
        verb: Callable[..., DataFrame] = read_changes
    else:
        found = arguments(options, READ, function=function, others=[*READS_CHANGES, *CHANGES])
        verb = read_delta
    _convert_times(spark, found)
    named = {"version": version} if version is not None else {"timestamp": time} if time else {}
    if named and found:
        problem = "it ends with the version to read, and an option gives one, too"
        raise InvalidArgumentError(argument="path", problem=problem)
    if verb is read_delta and not found and not named:
        return latest_rows(spark, path)
    return verb(spark, path, **found, **named)


def read_stream_with(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """Return the stream of a table as options ask for.

    Raises
    ------
    DELTA_UNKNOWN_ARGUMENT, InvalidArgumentError
        An option or its value is unknown.
    DeltaError
        The table cannot be read; see `sparkdelta.read_stream`.
    """
    found = arguments(options, READ_STREAM, function=_STREAM_FUNCTION)
    _convert_times(spark, found)
    with follow_settings(spark):
        return read_stream(spark, path, **found)


def _convert_times(spark: SparkSession, found: dict[str, Any]) -> None:
    """Convert the texts of timestamps among arguments by the session's time zone."""
    for name, text in found.items():
        if name.endswith("timestamp"):
            found[name] = session_time(spark, text_literal(text))


def latest_rows(spark: SparkSession, path: str) -> DataFrame:
    """Return the rows of the latest version of a table, by Spark's cache if it has them; in an
    enabled session, of the latest version whenever a query runs.
    """
    with follow_settings(spark):
        rows = cached_rows(spark, path)
        rows = latest_version(spark, path) if rows is None else rows
        return rows if rows.columns or not follows_settings() else _no_columns(spark, path)


def _no_columns(spark: SparkSession, path: str) -> DataFrame:
    """Return the rows of a table without columns: a query that reads them fails, as in
    delta-spark.
    """
    error = DeltaError.of("DELTA_READ_TABLE_WITHOUT_COLUMNS", path=path)
    return spark.range(1).where(F.raise_error(F.lit(str(error))).isNull()).select()
