"""The user's rows as the session that writes can read them.

On classic Spark a frame keeps the meaning that it had in its own session, wherever it is moved. The
plan of a Connect client has no meaning before it runs, and gets that of the session where it runs:
there the rows are first written as they are, and read again by a session of this write alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from sparkdelta.schema.table_schema import as_nullable, quoted
from sparkdelta.storage.log_store import LogStore, log_path
from sparkdelta.storage.parquet import PARQUET_OPTIONS
from sparkdelta.table.log.listing import read_options
from sparkdelta.table.staging import staging

_ROWS = "rows"


@contextmanager
def staged_rows(rows: DataFrame, spark: SparkSession, store: LogStore) -> Iterator[DataFrame]:
    """The rows as a frame that a `write_session` can write."""
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
