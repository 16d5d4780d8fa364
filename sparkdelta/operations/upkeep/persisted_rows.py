"""DataFrames and temporary views that a user has persisted: after a commit, Spark caches their rows
anew, as it does for delta-spark's commits of the same application. On Spark Connect, nothing is
remembered: a query finds the rows when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.scan.read_provenance import followed_tables


@dataclass(frozen=True, slots=True)
class _Persisted:
    """A persisted DataFrame that follows tables.

    Attributes
    ----------
    tables
        The roots of the tables.
    again
        Lets Spark cache its rows anew.
    """

    rows: DataFrame
    tables: frozenset[str]
    again: Callable[[], object]


_persisted: dict[int, _Persisted] = {}
"""By the ids of the DataFrames."""


def remember_persisted(rows: DataFrame, again: Callable[[], object] | None = None) -> None:
    """Remember a DataFrame that was persisted, if it follows tables.

    Parameters
    ----------
    again
        Lets Spark cache its rows anew after a commit; by default, they are persisted again.
    """
    if engine_of(rows.sparkSession).late_scans is None:
        return
    tables = followed_tables(rows)
    for key, other in list(_persisted.items()):
        if not other.rows.is_cached:
            _persisted.pop(key, None)
    if tables:
        _persisted[id(rows)] = _Persisted(rows, tables, again or partial(_persist_again, rows))


def _persist_again(rows: DataFrame) -> None:
    level = rows.storageLevel
    rows.unpersist()
    with suppress(DeltaError):  # the columns have changed, which queries on the rows report
        rows.persist(level)


def remember_cached_view(spark: SparkSession, name: str) -> None:
    """Remember a temporary view that was cached by its name, if it follows tables."""
    if engine_of(spark).late_scans is None:
        return
    rows = spark.table(name)
    rows.is_cached = True
    remember_persisted(rows)


def persist_again(done: CommittedTransaction) -> None:
    """Let Spark cache the rows of a table's persisted DataFrames anew, once they are asked for."""
    if engine_of(done.spark).late_scans is None:
        return
    context = done.spark.sparkContext
    for key, one in list(_persisted.items()):
        if one.rows.sparkSession.sparkContext is not context or not one.rows.is_cached:
            _persisted.pop(key, None)
        elif done.store.table_root in one.tables:
            level = one.rows.storageLevel
            if level.useMemory or level.useDisk:  # else the whole cache was cleared
                one.again()
