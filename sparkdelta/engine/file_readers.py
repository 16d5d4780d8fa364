"""Files that Spark reads by a public source: of the log, deletion vectors, and new data files."""

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
    """Whatever a source of Spark's makes of these files, lazily.

    On classic Spark they are listed by two tasks per core; a session asks for each by a task of its
    own from 33 files on, which takes seconds for a thousand.

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
