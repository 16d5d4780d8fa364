"""Delta tables in Spark's cache, which follow the commits to the tables.

Spark keeps the rows of one version. A read of the latest version compares the version, and puts the
rows of a newer one in their place, whoever committed it. Spark alone knows whether the rows are
cached still, as ``CLEAR CACHE`` and others take them from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.spark_builders import builders_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.upkeep.persisted_rows import remember_persisted
from sparkdelta.table.listing.listing import open_log
from sparkdelta.table.snapshot.snapshot import Snapshot

_STORAGE_LEVEL = "storageLevel"
_LEVEL_NAME = re.compile(r"(DISK_ONLY|MEMORY_ONLY|MEMORY_AND_DISK|OFF_HEAP)(_SER)?(?:_([23]))?")


@dataclass(frozen=True, slots=True)
class _CachedTable:
    """A table of which Spark's cache has the rows of one version.

    Attributes
    ----------
    table_id
        A table that was created anew at the same path has another one.
    rows
        The DataFrame that Spark's cache knows.
    """

    root: str
    version: Version
    table_id: str
    rows: DataFrame

    @classmethod
    def of(cls, snapshot: Snapshot, level: StorageLevel | None) -> _CachedTable:
        """Mark the rows of a table as cached; Spark caches them when a query reads them.

        DataFrames that are made of them follow the table.
        """
        rows = snapshot.following().to_df()
        rows = rows.persist() if level is None else rows.persist(level)
        table = cls(snapshot.path, snapshot.version, snapshot.metadata.id, rows)
        remember_persisted(rows, partial(_cache_latest, table))
        return table

    def is_of(self, spark: SparkSession) -> bool:
        """Return True if the session, or the one that it was cloned from, cached the table."""
        session = self.rows.sparkSession
        return session is spark or builders_of(spark).is_clone(spark, session)


_cached: list[_CachedTable] = []


def cache_table(spark: SparkSession, path: str, level: StorageLevel | None = None) -> DataFrame:
    """Keep the rows of a table in Spark's cache from the next query on, and return them.

    Parameters
    ----------
    level
        Memory and disk by default. A table that is cached keeps the level that it has.
    """
    snapshot = load_snapshot(spark, path)
    table = _find(spark, path)
    if table is None:
        table = _CachedTable.of(snapshot, level)
        _cached.append(table)
    return _latest(table, snapshot).rows


def uncache_table(spark: SparkSession, path: str) -> StorageLevel | None:
    """Take the rows of a table from Spark's cache; return their storage level, None if they were
    not cached.
    """
    table = _find(spark, path)
    if table is None:
        return None
    level = table.rows.storageLevel
    _drop(table)
    return level


def is_cached(spark: SparkSession, path: str) -> bool:
    """Return True if the rows of a table are in Spark's cache, or will be after the next query."""
    return _find(spark, path) is not None


def cached_rows(spark: SparkSession, path: str) -> DataFrame | None:
    """Return the rows of the latest version of a table by Spark's cache; None if it is not
    cached.
    """
    table = _find(spark, path)
    if table is None:
        return None
    rows = _latest(table, load_snapshot(spark, path)).rows
    # Each read has columns of its own, so that a table can be joined with itself. The filter makes
    # it another query than the cached one, as Spark uncaches the query of a view that is dropped.
    engine = engine_of(spark)
    rows = engine.rebind_to_session(rows.toDF(*rows.columns).where("true"))
    engine.mark_rows_of_table(rows, table.root)
    return rows


def storage_level(options: Mapping[str, str]) -> StorageLevel | None:
    """Return the storage level that the options of ``CACHE TABLE`` name; None if they name none.

    Raises
    ------
    DELTA_UNKNOWN_ARGUMENT
        There is another option.
    InvalidArgumentError
        There is no such level.
    """
    for name in options:
        if name.lower() != _STORAGE_LEVEL.lower():
            raise DeltaError.of(
                "DELTA_UNKNOWN_ARGUMENT",
                function="CACHE TABLE",
                argument=name,
                suggestion=f"Use {_STORAGE_LEVEL}",
            )
    for text in options.values():
        parts = _LEVEL_NAME.fullmatch(text.upper())
        if parts is None:
            problem = f"{text!r} is no storage level of Spark, such as MEMORY_AND_DISK or DISK_ONLY"
            raise InvalidArgumentError(argument=_STORAGE_LEVEL, problem=problem)
        place, is_serialized, copies = parts[1], parts[2] is not None, int(parts[3] or 1)
        is_off_heap = place == "OFF_HEAP"
        return StorageLevel(
            useDisk=is_off_heap or "DISK" in place,
            useMemory=is_off_heap or "MEMORY" in place,
            useOffHeap=is_off_heap,
            deserialized="MEMORY" in place and not is_serialized,
            replication=copies,
        )
    return None


def _find(spark: SparkSession, path: str) -> _CachedTable | None:
    """Return the entry of a table whose rows are in Spark's cache still."""
    if not _cached:
        return None
    root = open_log(spark, path).table_root
    for table in tuple(_cached):
        if table.root == root and table.is_of(spark):
            if table.rows.storageLevel != StorageLevel.NONE:
                return table
            _forget(table)
    return None


def _latest(table: _CachedTable, snapshot: Snapshot) -> _CachedTable:
    """Return the entry for a version of a table, which takes the place of another version."""
    if (table.version, table.table_id) == (snapshot.version, snapshot.metadata.id):
        return table
    level = table.rows.storageLevel
    _drop(table)
    newer = _CachedTable.of(snapshot, level)
    _cached.append(newer)
    return newer


def _cache_latest(table: _CachedTable) -> None:
    """Cache the rows of the latest version in the place of others."""
    _latest(table, load_snapshot(table.rows.sparkSession, table.root))


def _drop(table: _CachedTable) -> None:
    table.rows.unpersist()
    _forget(table)


def _forget(table: _CachedTable) -> None:
    with suppress(ValueError):  # another thread has removed it
        _cached.remove(table)
