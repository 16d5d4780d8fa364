"""DataFrames and temporary views that a user has persisted: after a commit, Spark caches their rows
anew, as it does for delta-spark's commits of the same application.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.scan.read_provenance import followed_tables

_persisted: dict[int, tuple[DataFrame, frozenset[str]]] = {}
"""The persisted DataFrames that follow tables, and the roots of these, by their ids."""


def remember_persisted(rows: DataFrame) -> None:
    """Remember a DataFrame that was persisted, if it follows tables."""
    tables = followed_tables(rows) if engine_of(rows.sparkSession).can("call back") else None
    for key, (other, _) in list(_persisted.items()):
        if not other.is_cached:
            _persisted.pop(key, None)
    if tables:
        _persisted[id(rows)] = rows, tables


def remember_cached_view(spark: SparkSession, name: str) -> None:
    """Remember a temporary view that was cached by its name, if it follows tables."""
    rows = spark.table(name)
    rows.is_cached = True
    remember_persisted(rows)


def persist_again(done: CommittedTransaction) -> None:
    """Let Spark cache the rows of a table's persisted DataFrames anew, once they are asked for."""
    if not engine_of(done.spark).can("call back"):
        return
    context = done.spark.sparkContext
    for key, (rows, tables) in list(_persisted.items()):
        if rows.sparkSession.sparkContext is not context or not rows.is_cached:
            _persisted.pop(key, None)
        elif done.store.table_root in tables:
            level = rows.storageLevel
            if level.useMemory or level.useDisk:  # else the whole cache was cleared
                rows.unpersist().persist(level)
