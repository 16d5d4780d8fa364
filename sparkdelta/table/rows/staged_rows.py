"""Staging of rows that are written more than once, or that the session of a write cannot read.

On classic Spark a DataFrame keeps its meaning in any session. A plan of Spark Connect is analyzed
by the session that runs it, so its rows are written to a staging directory in their own session and
read again by the session of the write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from sparkdelta.base.parquet.parquet_options import PARQUET_OPTIONS
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.storage.log_store import LogStore, log_path
from sparkdelta.table.listing.listing import read_options
from sparkdelta.table.rows.job_failures import write_failures
from sparkdelta.table.snapshot.staging import Staging, staging

_ROWS = "rows"


def computed_once(rows: DataFrame, stage: Staging, part: str) -> DataFrame:
    """Stage rows that are written as data and as change data, so that both have the same values."""
    with write_failures(stage.store.table_root):
        return stage.stage_rows(rows, part)


@contextmanager
def staged_rows(rows: DataFrame, spark: SparkSession, store: LogStore) -> Iterator[DataFrame]:
    """Yield the rows as a DataFrame that the `write_session` can write."""
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
