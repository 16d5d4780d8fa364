"""The user's rows where settings of ours say what is done with them.

On classic Spark a frame keeps the meaning that it had in its own session, wherever it is moved. The
plan of a Connect client has no meaning before it runs, and gets that of the session where it runs:
there the rows are first written as they are, and read again by a session of this write alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from sparkdelta.engine.sessions import computing_session, is_connect, session_of_one_write
from sparkdelta.schema.table_schema import as_nullable, quoted
from sparkdelta.storage import connect
from sparkdelta.storage.log_store import LogStore, log_path
from sparkdelta.storage.parquet import PARQUET_OPTIONS
from sparkdelta.table.log.listing import read_options
from sparkdelta.table.staging import staging

_ROWS = "rows"


@contextmanager
def writing_rows(spark: SparkSession) -> Iterator[SparkSession]:
    """The session by which the table is read and written while rows are: the user's own, but on
    Spark Connect.
    """
    if not is_connect(spark):
        yield spark
        return
    with session_of_one_write(spark) as own:
        yield own


@contextmanager
def staged_rows(rows: DataFrame, spark: SparkSession, store: LogStore) -> Iterator[DataFrame]:
    """The rows as a frame that a session of `writing_rows` can write."""
    if rows.sparkSession is spark:
        yield rows
        return
    # Parquet has no column of nothing but nulls.
    typed = [field for field in rows.schema.fields if not isinstance(field.dataType, NullType)]
    with staging(rows.sparkSession, store) as stage:
        stage.write_parquet(rows.select(*(quoted(field.name) for field in typed)), _ROWS, {})
        schema = as_nullable(StructType(typed))
        assert isinstance(schema, StructType)
        reader = spark.read.options(**read_options(store, {}), **PARQUET_OPTIONS).schema(schema)
        staged = reader.parquet(log_path(store.table_root, f"{stage.name}/{_ROWS}"))
        names = {field.name for field in typed}
        yield staged.select(
            *(
                F.col(quoted(name)) if name in names else F.lit(None).alias(name)
                for name in rows.columns
            )
        )


@contextmanager
def computed(rows: DataFrame, spark: SparkSession) -> Iterator[DataFrame]:
    """The same rows where expressions of a table mean the same whatever the user has set."""
    if is_connect(spark):
        yield rows
        return
    from sparkdelta.storage.hadoop import rows_in  # needs py4j: classic Spark only

    with rows_in(rows, computing_session(spark)) as ours:
        yield ours


@contextmanager
def meant_by_the_user(rows: DataFrame, spark: SparkSession) -> Iterator[DataFrame]:
    """The same rows where a condition of the user means what it means in their session."""
    from sparkdelta.storage.hadoop import rows_in  # needs py4j: classic Spark only

    with rows_in(rows, spark) as own:
        yield own


def moved_back(rows: DataFrame, spark: SparkSession) -> DataFrame:
    """What was made of `computed` rows, as a frame of the session that writes."""
    if is_connect(spark):
        return rows
    from sparkdelta.storage.hadoop import moved_rows  # needs py4j: classic Spark only

    return moved_rows(rows, spark)


def parquet_writer(spark: SparkSession) -> Callable[..., None]:
    """What writes data files by Spark's Parquet writer, see `hadoop.write_parquet`."""
    if is_connect(spark):
        return connect.write_parquet
    from sparkdelta.storage import hadoop  # needs py4j: classic Spark only

    return hadoop.write_parquet
