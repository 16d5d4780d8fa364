"""The state of classic Spark's readers and writers, from their members in the JVM.

Scala's private members are public for the JVM.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import jvm_of, scala_items
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.exceptions import InvalidArgumentError


def reader_state(reader: Any) -> dict[str, Any]:
    """Return format, options and whether columns were given of a ``DataFrameReader``."""
    java = reader._jreader
    return {
        "source": str(java.source()),
        "options": _texts(java.extraOptions().originalMap()),
        "has_schema": bool(java.userSpecifiedSchema().isDefined()),
    }


def writer_state(writer: Any) -> dict[str, Any]:
    """Return format, options, mode and columns of a ``DataFrameWriter``."""
    java = writer._jwrite
    is_bucketed = java.bucketColumnNames().isDefined()
    layout = "bucketBy" if is_bucketed else "sortBy" if java.sortColumnNames().isDefined() else None
    return {
        "source": str(java.source()),
        "options": _texts(java.extraOptions().originalMap()),
        "mode": str(java.curmode().name()),
        "partition_by": _names(java.partitioningColumns()),
        "cluster_by": _names(java.clusteringColumns()),
        "other_layout": layout,
    }


def table_writer_state(writer: Any) -> dict[str, Any]:
    """Return provider, options, properties and columns of a ``DataFrameWriterV2``."""
    java = writer._jwriter
    provider, clustering = java.provider(), java.clustering()
    return {
        "source": str(provider.get()) if provider.isDefined() else None,
        "options": _texts(java.options()),
        "properties": _texts(java.properties()),
        "partition_by": _transform_names(java.partitioning()),
        "cluster_by": tuple(_references(clustering.get())) if clustering.isDefined() else None,
        "table": quoted_path(scala_items(java.tableName())),
    }


def stream_writer_state(writer: Any) -> dict[str, Any]:
    """Return format, options, output mode, columns and trigger of a ``DataStreamWriter``."""
    java = writer._jwrite
    return {
        "source": str(java.source()),
        "options": _texts(java.extraOptions().originalMap()),
        "output_mode": str(java.outputMode().toString()).lower(),
        "partition_by": _names(java.partitioningColumns()),
        "trigger": _trigger(str(java.trigger().toString())),
    }


_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")


def _trigger(text: str) -> dict[str, str | bool] | None:
    """Return a trigger as the arguments of ``DataStreamWriter.trigger``."""
    interval = _INTERVAL.fullmatch(text)
    if interval is not None:
        is_default = interval[1] == "0"
        return None if is_default else {"processingTime": f"{interval[1]} milliseconds"}
    if "AvailableNow" in text:
        return {"availableNow": True}
    if "OneTime" in text:
        return {"once": True}
    raise InvalidArgumentError(argument="trigger", problem=f"{text} cannot write Delta tables")


def is_clone(spark: SparkSession, of: SparkSession) -> bool:
    """Return True if a session is another one or was cloned from it."""
    one, other = spark._jsparkSession, of._jsparkSession
    if one.equals(other):
        return True
    parent = one.parentSessionState()
    return bool(parent.isDefined() and parent.get().equals(other.sessionState()))


def has_class(spark: SparkSession, name: str) -> bool:
    """Return True if the session's class loader finds a class."""
    jvm = jvm_of(spark)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def _names(option: Any) -> tuple[str, ...] | None:
    return tuple(map(str, scala_items(option.get()))) if option.isDefined() else None


def _transform_names(option: Any) -> tuple[str, ...] | None:
    """Return the columns of a V2 table's transforms: names, or the text of another transform."""
    return tuple(map(_transform_name, scala_items(option.get()))) if option.isDefined() else None


def _transform_name(transform: Any) -> str:
    is_column = str(transform.name()) == "identity"
    return _references(transform)[0] if is_column else str(transform.toString())


def _references(transform: Any) -> list[str]:
    return [".".join(column.fieldNames()) for column in transform.references()]


def _texts(scala_map: Any) -> dict[str, str]:
    entries, found = scala_map.iterator(), {}
    while entries.hasNext():
        entry = entries.next()
        found[str(entry._1())] = str(entry._2())
    return found
