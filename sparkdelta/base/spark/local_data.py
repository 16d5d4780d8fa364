"""DataFrames of local data, which take no Spark job.

`createDataFrame` of an empty list would create an RDD, which takes a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.table_schema import has_user_defined_types, quoted
from sparkdelta.base.spark.spark_engine import engine_of


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return an empty DataFrame of a schema."""
    if has_user_defined_types(schema):  # SQL has no names of them
        nothing = F.from_json(F.lit(None).cast("string"), schema).alias("row")
        return spark.sql("VALUES (0)").where("FALSE").select(nothing).select("row.*")
    columns = [f"CAST(NULL AS {type_text(f.dataType)}) AS {quoted(f.name)}" for f in schema.fields]
    return engine_of(spark).empty_frame(columns)


def rows_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType) -> DataFrame:
    """Return a DataFrame of rows. PySpark's own would be read by Python workers in a job."""
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return local_frame(spark, pa.Table.from_pylist(named, to_arrow_schema(schema)), schema)


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a DataFrame of an Arrow table that has rows.

    Spark Connect 4.0.0 keeps only the first chunk of a table, without an error.
    """
    return spark.createDataFrame(table.combine_chunks())


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a DataFrame of an Arrow table with the given columns. Spark Connect does not accept an
    Arrow table without rows.
    """
    return arrow_frame(spark, table) if table.num_rows else empty_frame(spark, schema)
