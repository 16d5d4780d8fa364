"""The state of Spark's readers and writers, of either kind of session.

Spark keeps format, options and columns of a reader or writer itself, in whatever order they were
given; nothing is kept a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from sparkdelta.base.spark.classic_builders import ClassicBuilders
    from sparkdelta.base.spark.connect_builders import ConnectBuilders

Builder = Any
"""A reader or writer of a session, such as ``spark.read`` and ``df.write``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderState:
    """The state of a ``DataFrameReader``.

    Attributes
    ----------
    source
        The format; None if none was given.
    options
        With names as they were written.
    has_schema
        True if columns were given.
    """

    source: str | None
    options: Mapping[str, str]
    has_schema: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterState:
    """The state of a ``DataFrameWriter`` or, with a table, of a ``DataFrameWriterV2``.

    Attributes
    ----------
    mode
        Of a ``DataFrameWriter`` only.
    partition_by, cluster_by
        Names of columns, or the text of another transform such as ``years(at)``; None if not
        given.
    other_layout
        The name of another method that was called and arranges rows, such as ``bucketBy``.
    table, properties
        Of a ``DataFrameWriterV2`` only.
    """

    rows: DataFrame
    source: str | None
    options: Mapping[str, str]
    mode: str | None = None
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    other_layout: str | None = None
    table: str = ""
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWriterState:
    """The state of a ``DataStreamWriter``.

    Attributes
    ----------
    trigger
        The arguments of its ``trigger``; None if there is none.
    """

    rows: DataFrame
    source: str | None
    options: Mapping[str, str]
    output_mode: str
    partition_by: tuple[str, ...] | None
    trigger: Mapping[str, str | bool] | None


Builders: TypeAlias = "ClassicBuilders | ConnectBuilders"
"""The readers and writers of one kind of session; `ClassicBuilders` describes both."""


def builders_of(owner: Builder | SparkSession) -> Builders:
    """Return the access to the readers and writers of the kind of a session, reader or writer."""
    if type(owner).__module__.startswith("pyspark.sql.connect"):
        from sparkdelta.base.spark.connect_builders import ConnectBuilders

        return ConnectBuilders()
    from sparkdelta.base.spark.classic_builders import ClassicBuilders  # needs py4j

    return ClassicBuilders()


DELTA_SETTINGS = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
"""Settings that name classes of delta-spark where it is in use."""


def names_delta_spark(spark: SparkSession) -> bool:
    """Return True if a setting of the session names a class of delta-spark."""
    return any(_is_of_delta_spark(str(spark.conf.get(name, ""))) for name in DELTA_SETTINGS)


def drop_delta_settings(builder: SparkSession.Builder) -> None:
    """Remove delta-spark's JAR and classes from the settings of a builder.

    Without its JAR, Spark ignores the extension, and could not open its catalog with the other one.
    """
    options: dict[str, Any] = builder._options
    for name in (*DELTA_SETTINGS, "spark.jars.packages"):
        values = str(options.get(name, "")).split(",")
        others = [each for each in values if not _is_of_delta_spark(each)]
        if len(others) < len(values):
            del options[name]
            if others:
                options[name] = ",".join(others)


_PARTS_OF_DELTA_SPARK = ("io.delta.", ".sql.delta.", "io.delta:delta-spark", "io.delta:delta-core")


def _is_of_delta_spark(value: str) -> bool:
    return any(part in value for part in _PARTS_OF_DELTA_SPARK)
