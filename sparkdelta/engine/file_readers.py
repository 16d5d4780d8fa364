"""Reading files with Spark's public data sources: log files, deletion vectors and new data
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.engine.sessions import is_connect


def read_files(
    spark: SparkSession,
    source: str,
    paths: Sequence[str],
    *,
    options: Mapping[str, str],
    schema: StructType | None = None,
) -> DataFrame:
    """Return a lazy DataFrame of files read by a Spark data source.

    On classic Spark the files are listed with two tasks per core. By default Spark uses one task
    per file from 33 files on, which takes seconds for a thousand files.

    Parameters
    ----------
    source
        ``parquet``, ``text`` or ``binaryFile``.
    """
    if not is_connect(spark):
        from sparkdelta.storage import hadoop_scans  # needs py4j: classic Spark only

        return hadoop_scans.read_files(spark, source, paths, options, schema)
    reader = spark.read.format(source).options(**options)
    return (reader if schema is None else reader.schema(schema)).load(list(paths))
