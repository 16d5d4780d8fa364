"""Reads of the corpus, many at a time.

More than two thousand small Spark jobs, one after the other, would take far longer than a CI run
may. Their cost is latency and planning, not data, so a few threads on one session run them while
pytest asserts the results of the first ones. (Measured on plain Parquet reads: four threads take a
third of the time of one; a union of many reads into one job is no faster than that, and one
failing read fails them all.) Each snapshot is loaded once for all its reads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import load_snapshot, read_changes, read_delta
from sparkdelta.exceptions import DeltaError, from_message
from tests.support.corpus import ChangeRead, LiveFile, Query
from tests.support.rows import spark_rows

T = TypeVar("T")
THREADS = 4


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """The facts of a snapshot, with all its lazy parts collected."""

    version: int
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    schema: dict[str, Any]
    live_files: list[LiveFile]
    transactions: dict[str, int]
    domain_metadata: dict[str, str]


class CorpusReader:
    """Runs queries on a pool of threads and keeps every result for the session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="conformance")
        self._futures: dict[tuple[str, Query], Future[Any]] = {}
        self._snapshots: dict[Query, Any] = {}
        self._num_scanned: dict[Query, int] = {}
        self._locks: dict[Query, Lock] = {}
        self._lock = Lock()

    def start_rows(self, query: Query) -> Future[pa.Table]:
        return self._start("rows", query, self._read)

    def start_facts(self, query: Query) -> Future[SnapshotFacts]:
        return self._start("facts", query, self._load_facts)

    def start_num_files(self, query: Query) -> Future[int]:
        return self._start("num_files", query, self._count_files)

    def start_num_tombstones(self, query: Query) -> Future[int]:
        return self._start("num_tombstones", query, self._count_tombstones)

    def rows(self, query: Query) -> pa.Table:
        """Return the rows of a query, or raise what the read raised."""
        return self.start_rows(query).result()

    def facts(self, query: Query) -> SnapshotFacts:
        """Return what the snapshot says, or raise what loading it raised."""
        return self.start_facts(query).result()

    def num_files(self, query: Query) -> int:
        """Return the number of live files of a version."""
        return self.start_num_files(query).result()

    def num_scanned(self, query: Query) -> int:
        """Return the number of data files that the rows of a query were read from."""
        self.rows(query)
        return self._num_scanned[query]

    def num_tombstones(self, query: Query) -> int:
        """Return the number of remove actions that a version still holds."""
        return self.start_num_tombstones(query).result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, kind: str, query: Query, run: Callable[[Query], T]) -> Future[T]:
        with self._lock:
            future = self._futures.get((kind, query))
            if future is None:
                future = self._futures[kind, query] = self._pool.submit(_unwrapped, run, query)
        return future

    def _read(self, query: Query) -> pa.Table:
        frame = self._frame(query)
        files = [name for name in frame.inputFiles() if "/deletion_vector_" not in name]
        self._num_scanned[query] = len(files)
        return spark_rows(frame)

    def _frame(self, query: Query) -> DataFrame:
        at_once = query.version is None and query.where is None and query.columns is None
        if at_once or query.timestamp is not None:
            return read_delta(
                self._spark,
                query.location,
                version=query.version,
                timestamp=query.timestamp,
                where=query.where,
                columns=_as_columns(query),
            )
        scan = self._snapshot(query).scan(where=query.where, columns=_as_columns(query))
        frame: DataFrame = scan.to_df()
        return frame

    def _snapshot(self, query: Query) -> Any:
        key = Query(query.location, version=query.version, timestamp=query.timestamp)
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._snapshots:
                self._snapshots[key] = load_snapshot(
                    self._spark, key.location, version=key.version, timestamp=key.timestamp
                )
            return self._snapshots[key]

    def _load_facts(self, query: Query) -> SnapshotFacts:
        snapshot = self._snapshot(query)
        named = self._named_values(snapshot)
        return SnapshotFacts(
            version=snapshot.version,
            protocol=_protocol(snapshot.protocol),
            metadata=_metadata(snapshot.metadata),
            schema=snapshot.schema.jsonValue(),
            live_files=_live_files(snapshot.add_files()),
            transactions={name: int(value) for kind, name, value in named if kind == "txn"},
            domain_metadata={name: value for kind, name, value in named if kind == "domain"},
        )

    def _count_files(self, query: Query) -> int:
        count: int = self._snapshot(query).add_files().count()
        return count

    def _count_tombstones(self, query: Query) -> int:
        count: int = self._snapshot(query).remove_files().count()
        return count

    def _named_values(self, snapshot: Any) -> list[tuple[str, str, str]]:
        """Return transactions and live domains, both by one job."""
        transactions = snapshot.transactions().select(
            F.lit("txn").alias("kind"),
            F.col("appId").alias("name"),
            F.col("version").cast("string").alias("value"),
        )
        live = snapshot.domain_metadata().where(~F.coalesce("removed", F.lit(False)))
        domains = live.select(F.lit("domain"), "domain", "configuration")
        return [tuple(row) for row in transactions.union(domains).collect()]


def changed_rows(spark: SparkSession, read: ChangeRead) -> pa.Table:
    """Return the changes without their timestamps, which the corpus does not have."""
    rows = read_changes(
        spark,
        read.location,
        start_version=read.start_version,
        end_version=read.end_version,
        where=read.where,
    )
    return spark_rows(rows.drop("_commit_timestamp"))


def _unwrapped(run: Callable[[Query], T], query: Query) -> T:
    """Run, and raise what our own plans raise inside Spark as the error that it is."""
    try:
        return run(query)
    except Exception as error:
        ours = None if isinstance(error, DeltaError) else from_message(str(error))
        if ours is None:
            raise
        raise ours from error


def _as_columns(query: Query) -> list[str] | None:
    return None if query.columns is None else list(query.columns)


def _protocol(protocol: Any) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": _as_list(protocol.reader_features),
        "writerFeatures": _as_list(protocol.writer_features),
    }


def _as_list(features: tuple[str, ...] | None) -> list[str] | None:
    return None if features is None else sorted(features)


def _metadata(metadata: Any) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {
            "provider": metadata.format.provider,
            "options": dict(metadata.format.options),
        },
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": metadata.created_time,
    }


def _live_files(add_files: DataFrame) -> list[LiveFile]:
    cardinality = F.col("deletionVector.cardinality").cast("long").alias("dv_cardinality")
    rows = add_files.select("path", "partitionValues", "size", cardinality).collect()
    return [
        LiveFile(path, tuple(sorted((values or {}).items())), size, dv_cardinality)
        for path, values, size, dv_cardinality in rows
    ]
