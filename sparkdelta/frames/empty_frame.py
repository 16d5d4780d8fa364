"""A frame without rows, which costs no Spark job: one of an empty list is an RDD that is read."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.table_schema import quoted


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows, in columns of these names and types."""
    columns = (f"CAST(NULL AS {type_text(f.dataType)}) AS {quoted(f.name)}" for f in schema.fields)
    return spark.sql(f"SELECT {', '.join(columns)} WHERE FALSE")
