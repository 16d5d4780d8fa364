"""The readers and writers of Spark Connect clients, which keep what they were told in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect import readwriter
from pyspark.sql.connect.catalog import Catalog
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.connect.streaming import readwriter as streaming

from sparkdelta.base.spark.spark_builders import (
    Builder,
    ReaderState,
    StreamWriterState,
    WriterState,
    names_delta_spark,
)
from sparkdelta.exceptions import InvalidArgumentError


class ConnectBuilders:
    """The readers and writers of Spark Connect sessions."""

    classes: ClassVar[Mapping[str, type]] = {
        "Catalog": Catalog,
        "DataFrame": ConnectDataFrame,
        "DataFrameReader": readwriter.DataFrameReader,
        "DataFrameWriter": readwriter.DataFrameWriter,
        "DataFrameWriterV2": readwriter.DataFrameWriterV2,
        "DataStreamReader": streaming.DataStreamReader,
        "DataStreamWriter": streaming.DataStreamWriter,
        "SparkSession": ConnectSession,
    }

    def session_of(self, builder: Builder) -> SparkSession:
        readers = (readwriter.DataFrameReader, streaming.DataStreamReader)
        if isinstance(builder, readers):
            return cast(SparkSession, builder._client)
        is_stream = isinstance(builder, streaming.DataStreamWriter)
        return cast(SparkSession, builder._session if is_stream else builder._spark)

    def reader(self, builder: Builder) -> ReaderState:
        return ReaderState(
            source=builder._format,
            options=dict(builder._options),
            has_schema=bool(builder._schema),
        )

    def writer(self, builder: Builder) -> WriterState:
        write = builder._write
        layout = "bucketBy" if write.bucket_cols else "sortBy" if write.sort_cols else None
        return WriterState(
            rows=self._rows(builder),
            source=write.source,
            options=dict(write.options),
            mode=write.mode,
            partition_by=tuple(write.partitioning_cols) or None,
            cluster_by=tuple(getattr(write, "clustering_cols", ())) or None,
            other_layout=layout,
            properties={},
        )

    def table_writer(self, builder: Builder) -> WriterState:
        write = builder._write
        return WriterState(
            rows=self._rows(builder),
            source=write.provider,
            options=dict(write.options),
            partition_by=tuple(map(_name, write.partitioning_columns)) or None,
            cluster_by=tuple(getattr(write, "clustering_columns", ())) or None,
            table=write.table_name,
            properties=dict(write.table_properties),
        )

    def stream_writer(self, builder: Builder) -> StreamWriterState:
        write = builder._write_proto
        return StreamWriterState(
            rows=cast(DataFrame, ConnectDataFrame(builder._write_stream._child, builder._session)),
            source=write.format or next(filter(write.HasField, _FUNCTIONS), None),
            options=dict(write.options)
            | ({"queryName": name} if (name := write.query_name) else {}),
            output_mode=write.output_mode or "append",
            partition_by=tuple(write.partitioning_column_names) or None,
            trigger=_trigger(write),
        )

    def is_clone(self, spark: SparkSession, of: SparkSession) -> bool:
        return getattr(spark, "session_id", None) == getattr(of, "session_id", ...)

    def has_delta_spark(self, spark: SparkSession) -> bool:
        return names_delta_spark(spark)

    def _rows(self, builder: Builder) -> DataFrame:
        return cast(DataFrame, ConnectDataFrame(builder._df, builder._spark))


_FUNCTIONS = ("foreach_batch", "foreach_writer")
"""The fields of functions that are sinks themselves, whatever the session's default format is."""

_TRIGGERS = {
    "processing_time_interval": "processingTime",
    "available_now": "availableNow",
    "once": "once",
}


def _trigger(write: Any) -> dict[str, str | bool] | None:
    """Return a trigger as the arguments of ``DataStreamWriter.trigger``."""
    kind = write.WhichOneof("trigger")
    if kind is None:
        return None
    if kind not in _TRIGGERS:
        raise InvalidArgumentError(argument="trigger", problem=f"{kind} cannot write Delta tables")
    return {_TRIGGERS[kind]: getattr(write, kind)}


def _name(column: Column) -> str:
    """Return the name of a Column, or its text if it is an expression."""
    return str(column).removeprefix("Column<'").removesuffix("'>").strip("`")
