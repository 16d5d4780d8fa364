"""Staging of rows that are written more than once, or that the session of a write cannot read.

On classic Spark a DataFrame keeps its meaning in any session. A plan of Spark Connect is analyzed
by the session that runs it, so its rows are written to a staging directory in their own session and
read again by the session of the write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.rows.job_failures import write_failures
from sparkdelta.table.snapshot.staging import Staging, staging


def computed_once(rows: DataFrame, stage: Staging, part: str) -> DataFrame:
    """Stage rows that are written as data and as change data, so that both have the same values."""
    with write_failures(stage.store.table_root):
        return replace(stage, spark=rows.sparkSession).stage_rows(rows, part)


@contextmanager
def staged_rows(rows: DataFrame, spark: SparkSession, store: LogStore) -> Iterator[DataFrame]:
    """Yield the rows as a DataFrame that the `write_session` can write."""
    known = _known_rows(rows, spark)
    if known is not None:
        yield known
        return
    with staging(rows.sparkSession, store) as stage:
        yield rows_in_session(rows, spark, stage)


def rows_in_session(rows: DataFrame, spark: SparkSession, stage: Staging) -> DataFrame:
    """Return the rows as a DataFrame of a `write_session`; rows of another session are staged."""
    known = _known_rows(rows, spark)
    if known is not None:
        return known
    with write_failures(stage.store.table_root):
        return replace(stage, spark=spark).stage_rows(rows, f"rows-{uuid4()}")


def _known_rows(rows: DataFrame, spark: SparkSession) -> DataFrame | None:
    """Return the rows as a DataFrame of a session; None if they must be staged for it."""
    return rows if rows.sparkSession is spark else engine_of(spark).rows_in_copy(rows)
