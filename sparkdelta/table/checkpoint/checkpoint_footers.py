"""Footers of a checkpoint's own Parquet files.

They are read before the checkpoint is relied on, so that a damaged one is found while commits can
take its place.

References
----------
PROTOCOL.md#checkpoint-schema
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.parquet.footer_rules import TAIL_BYTES
from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.schema.action_schemas import ACTIONS
from sparkdelta.base.schema.table_schema import as_nullable
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore, in_parallel
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.exceptions import LogFileNotFoundError, MalformedLogFileError
from sparkdelta.table.listing.log_segment_rules import Checkpoint

TIME_PRECISION_S = 2.0
"""Modification times are coarse: a file that was written within this time of being read may have
been replaced since."""

_FIRST_BYTES = 1 << 16
_ACTIONS = {stored_name_key(name) for name in ACTIONS.names}
_IN_EVERY_CHECKPOINT = ("protocol", "metaData")
_KEYS = {"add": "path", "remove": "path", "txn": "appId", "domainMetadata": "domain"}
_SCHEMA_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True, slots=True)
class CheckpointFooters:
    """The contents of a checkpoint's own files, by their footers.

    Attributes
    ----------
    columns
        The names of the columns of each file, in lower case.
    counts
        The number of actions of each kind in `_KEYS`, as far as the footers count them.
    spark_schema
        The schema of the first file in JSON, where Spark wrote it.
    """

    columns: tuple[frozenset[str], ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    spark_schema: str | None = None

    @property
    def schema(self) -> StructType | None:
        """The schema of the first file, as Spark reads it; None if another engine wrote it."""
        if self.spark_schema is None:
            return None
        schema = as_nullable(StructType.fromJson(json.loads(self.spark_schema)))
        assert isinstance(schema, StructType)
        return schema

    def check(self, store: LogStore, checkpoint: Checkpoint) -> None:
        """Check that each file has actions, and that some file has protocol and metaData."""
        for file, names in zip(checkpoint.files, self.columns, strict=True):
            if names.isdisjoint(_ACTIONS):
                raise _malformed(store, file, "has no column of an action")
        for name in _IN_EVERY_CHECKPOINT:
            if not any(stored_name_key(name) in names for names in self.columns):
                raise _malformed(store, checkpoint.files[0], f"has no {name}")


Value = TypeVar("Value")


class RecentCheckpoints(Generic[Value]):
    """A cache of what was last read from checkpoints.

    Most versions of a table have the checkpoint of the previous version.
    """

    def __init__(self, size: int) -> None:
        self._values: RecentValues[object, Value] = RecentValues(size)

    def find(self, store: LogStore, checkpoint: Checkpoint) -> Value | None:
        return self._values.find((store.table_root, checkpoint.files))

    def keep(self, store: LogStore, checkpoint: Checkpoint, value: Value) -> None:
        """Keep what was read from a checkpoint, unless its files were just written."""
        newest = max(file.modification_time_ms for file in checkpoint.files)
        if newest < (time.time() - TIME_PRECISION_S) * 1000:
            self._values.keep((store.table_root, checkpoint.files), value)


def reads_footers(spark: SparkSession) -> bool:
    """Return True if footers cost no job: a Spark Connect client cannot read a part of a file."""
    return engine_of(spark).can("see plans")


def read_footers(store: LogStore, checkpoint: Checkpoint, version: Version) -> CheckpointFooters:
    """Read the footers of a checkpoint's own files, which are Parquet, without a Spark job.

    Parameters
    ----------
    version
        The one that is read, for error messages.
    """
    columns, counts, schemas = [], [], []
    for metadata in in_parallel(lambda file: read_metadata(store, file, version), checkpoint.files):
        leaves = _leaves(metadata)
        columns.append(frozenset(leaf.partition(".")[0] for leaf in leaves))
        counts.append(count_actions(metadata))
        schemas.append((metadata.metadata or {}).get(_SCHEMA_OF_SPARK))
    totals = {
        action: sum(of_file[action] for of_file in counts)
        for action in _KEYS
        if all(action in of_file for of_file in counts)
    }
    return CheckpointFooters(tuple(columns), totals, schemas[0] and schemas[0].decode())


def read_metadata(store: LogStore, file: LogFile, version: Version) -> pq.FileMetaData:
    """Read the footer of a Parquet file of the log, as `read_footers` does."""
    try:
        tail = store.read_from(file.name, max(0, file.size_bytes - _FIRST_BYTES))
        size = int.from_bytes(tail[-TAIL_BYTES:-4], "little") + TAIL_BYTES
        if len(tail) < size <= file.size_bytes:
            tail = store.read_from(file.name, file.size_bytes - size)
    except FileNotFoundError as error:
        root, name = store.table_root, str(error.filename)
        raise LogFileNotFoundError(path=root, version=version, file=name) from error
    try:
        return pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        raise _malformed(store, file, f"is not a complete Parquet file: {problem}") from error


def count_actions(metadata: pq.FileMetaData) -> dict[str, int]:
    """Count the actions of each kind in `_KEYS`, except kinds whose nulls no statistics count."""
    leaves, counts = _leaves(metadata), {}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for action, key in _KEYS.items():
        leaf = f"{action}.{key}".lower()
        if leaf not in leaves:
            counts[action] = 0
            continue
        columns = [group.column(leaves.index(leaf)) for group in groups if group.num_rows]
        if all(one.statistics is not None and one.statistics.has_null_count for one in columns):
            nulls = sum(one.statistics.null_count for one in columns)
            counts[action] = metadata.num_rows - nulls
    return counts


def _leaves(metadata: pq.FileMetaData) -> list[str]:
    """Return the paths of the leaf columns, in lower case."""
    return [metadata.schema.column(n).path.lower() for n in range(metadata.num_columns)]


def _malformed(store: LogStore, file: LogFile, problem: str) -> MalformedLogFileError:
    return MalformedLogFileError(
        path=store.table_root, version=file.version, problem=f"{file.name} {problem}"
    )
