"""Engines that answer one question: which files of a table may hold the rows of a predicate?

Each returns the paths in the log, sorted, so that all can be compared. Those that take a session
and JSON arguments also run in a `SparkWorker`.
"""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch
from urllib.parse import unquote

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sparkdelta import Snapshot, load_snapshot
from sparkdelta.table.log import loading
from tests.benchmarks.file_actions import PARTITION


def by_snapshot(snapshot: Snapshot, where: str) -> list[str]:
    """sparkdelta, the snapshot loaded."""
    files = snapshot.scan(where=where).files()
    return sorted(files.select("path").toArrow()["path"].to_pylist())


def by_sparkdelta(spark: SparkSession, root: str, where: str) -> list[str]:
    """sparkdelta, from the log, which is not kept from an earlier call."""
    with patch.object(loading, "_recent", loading._RecentLogs(0)):
        return by_snapshot(load_snapshot(spark, root), where)


def by_delta_rs(root: str, where: str) -> list[str]:
    """delta-rs, from the log: the cheapest it has, without a scan or an Arrow table of all
    files.
    """
    return _in_log(DeltaTable(root).file_uris(file_pruning_predicate=where))


def by_delta_spark(spark: SparkSession, root: str, where: str, *, cold: bool) -> list[str]:
    """delta-spark, from the log, or with the state that an earlier call left in its cache."""
    if cold:
        jvm = spark._jvm
        assert jvm is not None
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return _in_log(spark.read.format("delta").load(root).where(where).inputFiles())


def _in_log(uris: Iterable[str]) -> list[str]:
    """Files begin with the directory of their partition."""
    return sorted(uri[uri.rindex(f"{PARTITION}=") :] for uri in map(unquote, uris))
