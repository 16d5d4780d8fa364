"""Read a table as a stream.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.change_types import CHANGE_COLUMNS
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.table_properties import ENABLE_CHANGE_DATA_FEED, is_on
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import SPARK_ERRORS
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    ChangeDataColumnsError,
    InvalidExcludeRegexError,
    MissingChangeDataError,
)
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.operations.stream.table_source import TableStream
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot


def read_stream(
    spark: SparkSession, path: str, options: StreamOptions, *, partition_time_zone: str
) -> DataFrame:
    """Return the streaming DataFrame of a table; see `sparkdelta.read_stream`."""
    opened = open_snapshot(spark, path, partition_time_zone=partition_time_zone)
    if options.read_change_feed:
        _check_change_feed(opened)
    if options.exclude_regex is not None:
        _check_regex(spark, options.exclude_regex)
    return engine_of(spark).stream(TableStream(opened, options))


def _check_change_feed(opened: Snapshot) -> None:
    if not is_on(opened.properties, ENABLE_CHANGE_DATA_FEED):
        version = opened.version
        raise MissingChangeDataError(path=opened.path, start=version, end=version, version=version)
    taken = {name_key(name) for name in opened.schema.names}
    doubled = tuple(name for name in CHANGE_COLUMNS if name in taken)
    if doubled:
        raise ChangeDataColumnsError(columns=doubled)


def _check_regex(spark: SparkSession, regex: str) -> None:
    try:
        answer = spark.sql("VALUES (0)").selectExpr(f"'' RLIKE {text_literal(regex)} AS found")
        read_rows(answer, what="regular expression", bound=1)
    except SPARK_ERRORS as error:
        raise InvalidExcludeRegexError(regex=regex) from error
