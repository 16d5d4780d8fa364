"""Frames of no rows, or of few that the driver has: they cost no Spark job.

One that Spark makes of an empty list is an RDD, which is read.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.table_schema import quoted


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows, in columns of these names and types."""
    columns = (f"CAST(NULL AS {type_text(f.dataType)}) AS {quoted(f.name)}" for f in schema.fields)
    return spark.sql(f"SELECT {', '.join(columns)} WHERE FALSE")


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """The rows of a table of these columns: local data, which Spark Connect does not take as an
    Arrow table where it has no rows.
    """
    return spark.createDataFrame(table) if table.num_rows else empty_frame(spark, schema)
