"""Sources of streaming queries that a Spark Connect server calls in Python processes of its own.

PySpark's Python data sources are sent with their classes. One process beside the server's driver
plans batches, with a session of its own on the server; tasks in Python workers read the rows.
"""

# ruff: noqa: N802, ARG002 - names and arguments of PySpark's interface

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from sparkdelta.base.spark.connect_functions import ShippedFunction, number_plans_apart
from sparkdelta.base.spark.library_sessions import set_up
from sparkdelta.base.storage.stream_source import ReadLimit, StreamSource
from sparkdelta.exceptions import DeltaError

Reopen = Callable[[SparkSession], StreamSource]

_PORT, _ADDRESS = "spark.connect.grpc.binding.port", "spark.connect.grpc.binding.address"
_START = {"start": True}
"""The offset before the first batch; only Spark's Python sources have one, and no checkpoint."""


def stream(spark: SparkSession, source: StreamSource, reopen: Reopen) -> DataFrame:
    """Return the streaming DataFrame of a source, which the server's process opens again.

    Raises
    ------
    DELTA_STREAM_NOT_SUPPORTED
        The batches are limited, and the server's Spark is older than 4.2.
    """
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    kind = _admitting_reader() if version >= (4, 2) else None
    if kind is None and source.is_limited:
        reason = "a Spark Connect server before 4.2, or its client, limits no batch of a source"
        raise DeltaError.of("DELTA_STREAM_NOT_SUPPORTED", verb="read_stream", reason=reason)
    address = spark.conf.get(_ADDRESS, None) or "localhost"
    user = getattr(spark.client, "_user_id", None)
    remote = f"sc://{address}:{spark.conf.get(_PORT, '15002')}"
    settings = {name: text for name, text in spark.conf.getAll.items() if name[:6] != "spark."}
    remote += f"/;user_id={user}" if user else ""
    opened = functools.partial(SourcePlanner.opened, reopen, remote, settings)
    pickled = CloudPickleSerializer().dumps(ShippedFunction(opened))  # type: ignore[no-untyped-call]
    attributes = {
        "label": f"sparkdelta_{hashlib.sha256(pickled).hexdigest()[:32]}",
        "fields": source.schema.json(),
        "pickled": pickled,
        "reader": kind or _Reader,
    }
    spark.dataSource.register(type("TableStream", (_Source,), attributes))
    return spark.readStream.format(str(attributes["label"])).load()


class _Source(DataSource):
    """A `StreamSource`, as PySpark declares it."""

    label: ClassVar[str]
    fields: ClassVar[str]
    pickled: ClassVar[bytes]
    reader: ClassVar[type]

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.fields))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return self.reader(self.pickled)  # type: ignore[no-any-return]


class _Reader(DataSourceStreamReader):
    """A reader whose batches have all that there is, as Spark before 4.2 asks for them."""

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._planner: Any = None
        self._last = dict(_START)

    def __reduce__(self) -> Any:
        return _WorkerReader, ()  # tasks need neither the planner nor the library's source

    def initialOffset(self) -> dict[str, Any]:
        return dict(_START)

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        return self._opened().latest_offset(self._last, limits=False)  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._last = end
        return [InputPartition(task) for task in self._opened().tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return pickle.loads(partition.value)()  # type: ignore[no-any-return] # noqa: S301 - of a batch

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.stop()

    def _opened(self) -> Any:
        if self._planner is None:
            self._planner = pickle.loads(self._pickled)()  # noqa: S301 - of the client, as this class
        return self._planner


class _WorkerReader(DataSourceStreamReader):
    """A reader that reads partitions in tasks."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return pickle.loads(partition.value)()  # type: ignore[no-any-return] # noqa: S301 - of a batch


def _admitting_reader() -> type | None:
    """Return a reader whose batches Spark limits; None if PySpark does not have its interfaces."""
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxFiles,
            SupportsTriggerAvailableNow,
        )
    except ImportError:
        return None

    class AdmittingReader(_Reader, SupportsTriggerAvailableNow):
        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # type: ignore[override]
            limits = not isinstance(limit, ReadAllAvailable)
            return self._opened().latest_offset(start, limits=limits)  # type: ignore[no-any-return]

        def getDefaultReadLimit(self) -> Any:
            return ReadMaxFiles(1)  # the planner has the limits

        def prepareForTriggerAvailableNow(self) -> None:
            self._opened().source.read_available("")

    return AdmittingReader


@dataclass(frozen=True, eq=False)
class SourcePlanner:
    """A planner of the batches of one query."""

    spark: SparkSession
    source: StreamSource

    @classmethod
    def opened(cls, reopen: Reopen, remote: str, settings: Mapping[str, str]) -> SourcePlanner:
        """Open a source in the process of a query."""
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        number_plans_apart()
        spark = SparkSession.builder.remote(remote).getOrCreate()
        set_up(spark, settings)
        return cls(spark, reopen(spark))

    def latest_offset(self, start: dict[str, Any], *, limits: bool) -> dict[str, Any]:
        """Return the end of the batch that begins at an offset."""
        limit = self.source.limit if limits else ReadLimit()
        end = self.source.latest_offset("", _text(start), limit)
        return start if end is None else json.loads(end)

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """Return the pickled functions by which tasks read a batch."""
        if start == end:
            return []
        serializer: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]
        return [
            serializer.dumps(read) for read in self.source.tasks("", _text(start), json.dumps(end))
        ]

    def stop(self) -> None:
        """Release the source and the session."""
        self.source.stop("")
        self.spark.stop()


def _text(offset: dict[str, Any]) -> str | None:
    return None if offset == _START else json.dumps(offset)
