"""Sources of streaming queries, called by the micro-batch engine of classic Spark.

Spark's interface of a source is implemented in Python: it asks for offsets and for the plan of each
batch, and no row passes through Python. The interface is not public; its classes are looked for
when a stream is read, and a Spark without them is refused.
"""

# ruff: noqa: N802 - names of Spark's interface

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.jvm import (
    JvmSession,
    class_name,
    frame_of,
    jvm_of,
    none_of,
    same_active_session,
)
from sparkdelta.base.jvm.jvm_callbacks import complete_interfaces
from sparkdelta.base.jvm.jvm_scans import java_schema_of
from sparkdelta.base.storage.stream_source import ReadLimit, StreamSource
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_QUERY_ID = "sql.streaming.queryId"
_EXECUTION = "org.apache.spark.sql.execution.streaming"
_READING = "org.apache.spark.sql.connector.read.streaming"


def query_id(spark: SparkSession) -> str:
    """Return the id of the streaming query that calls this thread.

    Raises
    ------
    InvalidArgumentError
        Python threads do not stand for threads of the JVM.
    """
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        problem = "without pinned threads a stream cannot tell which query it belongs to; unset it"
        raise InvalidArgumentError(argument="PYSPARK_PIN_THREAD", problem=problem)
    return found


class JvmStreams(JvmSession):
    """The part of a classic engine that reads streams."""

    def stream(
        self,
        source: StreamSource,
        reopen: Callable[[SparkSession], StreamSource],  # noqa: ARG002 - it stays open
    ) -> DataFrame:
        """Return the streaming DataFrame of a source, which streaming queries call in this process.

        Parameters
        ----------
        reopen
            Opens the source in another process, where queries do not run in this one.

        Raises
        ------
        DELTA_STREAM_NOT_SUPPORTED
            This Spark lacks the classes that it takes.
        """
        spark, jvm = self.spark, self.spark._jvm
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        complete_interfaces(spark, _Source)
        options = [none_of(self.jvm)]
        unassigned = _class(jvm, "org.apache.spark.sql.catalyst.streaming.Unassigned$")
        if unassigned is not None:  # the name of the source, since Spark 4.2
            options.append(getattr(unassigned, "MODULE$"))
        relation = _execution_class(jvm, "StreamingExecutionRelation")
        attributes = _attributes(spark, source.schema)
        return frame_of(relation(_Source(spark, source), attributes, *options, self.java), spark)


def _empty_batch(spark: SparkSession, schema: StructType) -> Any:
    """Return a streaming Java DataFrame without rows."""
    jvm = jvm_of(spark)
    local = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
    nothing = jvm.PythonUtils.toSeq([])
    plan = local(_attributes(spark, schema), nothing, True, none_of(jvm))
    return jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)


class _Source:
    """A `StreamSource` as Spark calls it."""

    class Java:
        implements = (
            f"{_EXECUTION}.Source",
            f"{_READING}.SupportsAdmissionControl",
            f"{_READING}.SupportsTriggerAvailableNow",
        )

    def __init__(self, spark: SparkSession, source: StreamSource) -> None:
        self._spark = spark
        self._source = source
        self._offset = _execution_class(spark._jvm, "SerializedOffset")

    def schema(self) -> Any:
        return java_schema_of(jvm_of(self._spark), self._source.schema)

    def getDefaultReadLimit(self) -> Any:
        jvm = jvm_of(self._spark)
        limits = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
        limit = self._source.limit
        parts = [] if limit.max_files is None else [limits.maxFiles(limit.max_files)]
        parts += [] if limit.max_bytes is None else [limits.maxBytes(limit.max_bytes)]
        if len(parts) == 1:
            return parts[0]
        gateway: Any = self._spark.sparkContext._gateway
        both = gateway.new_array(limits, len(parts))
        for number, part in enumerate(parts):
            both[number] = part
        return limits.compositeLimit(both)

    def prepareForTriggerAvailableNow(self) -> None:
        self._source.read_available(query_id(self._spark))

    def latestOffset(self, start: Any, limit: Any) -> Any:
        with same_active_session(self._spark):
            query = query_id(self._spark)
            found = self._source.latest_offset(query, _json(start), _read_limit(limit))
        return None if found is None else self._offset(found)

    def reportLatestOffset(self) -> None:
        """Report nothing: it would take another listing of the log for each batch."""

    def getBatch(self, start: Any, end: Any) -> Any:
        with same_active_session(self._spark):
            before = _json(start.get()) if start.isDefined() else None
            rows = self._source.batch(query_id(self._spark), before, str(end.json()))
            return _empty_batch(self._spark, self._source.schema) if rows is None else rows._jdf

    def commit(self, end: Any) -> None:
        """Forget nothing: batches that were read are never asked for again."""

    def deserializeOffset(self, json: str) -> Any:
        return self._offset(json)

    def stop(self) -> None:
        self._source.stop(query_id(self._spark))

    def toString(self) -> str:
        return self._source.description

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is self


def _read_limit(limit: Any) -> ReadLimit:
    kind = class_name(limit)
    if kind == "CompositeReadLimit":
        parts = [_read_limit(part) for part in limit.getReadLimits()]
        files = [part.max_files for part in parts if part.max_files is not None]
        sizes = [part.max_bytes for part in parts if part.max_bytes is not None]
        return ReadLimit(min(files, default=None), min(sizes, default=None))
    if kind == "ReadMaxFiles":
        return ReadLimit(max_files=int(limit.maxFiles()))
    return ReadLimit(max_bytes=int(limit.maxBytes())) if kind == "ReadMaxBytes" else ReadLimit()


def _json(offset: Any) -> str | None:
    return None if offset is None else str(offset.json())


def _attributes(spark: SparkSession, schema: StructType) -> Any:
    jvm = jvm_of(spark)
    types = jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils
    return types.toAttributes(java_schema_of(jvm, schema))


def _execution_class(jvm: Any, name: str) -> Any:
    """Return a class of Spark's streaming engine, which is in another package since Spark 4.1."""
    for package in (f"{_EXECUTION}.runtime", _EXECUTION):
        found = _class(jvm, f"{package}.{name}")
        if found is not None:
            return found
    raise DeltaError.of(
        "DELTA_STREAM_NOT_SUPPORTED",
        verb="read_stream",
        reason=f"this version of Spark has no class {_EXECUTION}.{name}",
    )


def _class(jvm: Any, name: str) -> Any:
    """Return a class of the JVM, or None."""
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, JavaClass) else None
