"""The readers and writers of classic Spark, which keep what they were told in the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession, readwriter
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming import readwriter as streaming

from sparkdelta.base.jvm import jvm_builders
from sparkdelta.base.spark.spark_builders import (
    Builder,
    ReaderState,
    StreamWriterState,
    WriterState,
)


class ClassicBuilders:
    """The readers and writers of classic sessions.

    Attributes
    ----------
    classes
        The classes and modules with methods that `enabled_sessions` replaces, by their names in
        PySpark.
    """

    classes: ClassVar[Mapping[str, Any]] = {
        "Catalog": Catalog,
        "DataFrame": ClassicDataFrame,
        "DataFrameReader": readwriter.DataFrameReader,
        "DataFrameWriter": readwriter.DataFrameWriter,
        "DataFrameWriterV2": readwriter.DataFrameWriterV2,
        "DataStreamReader": streaming.DataStreamReader,
        "DataStreamWriter": streaming.DataStreamWriter,
        "SparkSession": SparkSession,
        "captured": captured,
    }

    def session_of(self, builder: Builder) -> SparkSession:
        spark: SparkSession = builder._spark
        return spark

    def reader(self, builder: Builder) -> ReaderState:
        """Return the state of a ``DataFrameReader`` or ``DataStreamReader``."""
        return ReaderState(**jvm_builders.reader_state(builder))

    def writer(self, builder: Builder) -> WriterState:
        state = jvm_builders.writer_state(builder)
        return WriterState(rows=builder._df, properties={}, **state)

    def table_writer(self, builder: Builder) -> WriterState:
        """Return the state of a ``DataFrameWriterV2``."""
        return WriterState(rows=builder._df, **jvm_builders.table_writer_state(builder))

    def stream_writer(self, builder: Builder) -> StreamWriterState:
        """Return the state of a ``DataStreamWriter``."""
        return StreamWriterState(rows=builder._df, **jvm_builders.stream_writer_state(builder))

    def is_clone(self, spark: SparkSession, of: SparkSession) -> bool:
        """Return True if the sessions are the same for Spark, or the first one was cloned from the
        other, as that of ``foreachBatch`` is.
        """
        return jvm_builders.is_clone(spark, of)

    def has_delta_spark(self, spark: SparkSession) -> bool:
        """Return True if delta-spark's JAR can be found in the session."""
        return jvm_builders.has_class(spark, _EXTENSION)


_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
