"""Functions by which delta-spark makes, reads and extends tables with checkpoints; they run in its
process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.golden.expected import comparable


def make_table(spark: SparkSession, path: str, *, deletion_vectors: bool) -> int:
    """A table with V2 checkpoints, of which deletes and updates are left; its latest version."""
    table = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(10, 2), "
        "day DATE) USING delta PARTITIONED BY (day) TBLPROPERTIES ("
        f"'delta.enableDeletionVectors' = '{str(deletion_vectors).lower()}', "
        "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1000')"
    )
    rows = (
        "SELECT id, concat('n', id) AS name, timestamp_micros(1700000000123456 + id) AS at, "
        "CAST(id / 8 AS DECIMAL(10, 2)) AS price, "
        "date_add(DATE'2024-01-01', CAST(id % 4 AS INT)) AS day FROM range({}, {})"
    )
    for first in (0, 20, 40):
        spark.sql(f"INSERT INTO {table} {rows.format(first, first + 20)}")
    spark.sql(f"DELETE FROM {table} WHERE id % 7 = 0")
    spark.sql(f"UPDATE {table} SET name = NULL WHERE id % 11 = 0")
    spark.sql(f"INSERT INTO {table} {rows.format(60, 70)}")
    return _latest(spark, path)


def rows(spark: SparkSession, path: str, to: str) -> dict[str, Any]:
    """Write what delta-spark reads, with a cold cache; and the plan's idea of a filter."""
    spark.sql("CLEAR CACHE")
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    table = spark.read.format("delta").load(path)
    Path(to).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(comparable(table).toArrow(), to, store_schema=False)
    some = table.where("day = DATE'2024-01-02' AND id BETWEEN 20 AND 39")
    ids = [row["id"] for row in some.select("id").orderBy("id").collect()]
    return {"version": _latest(spark, path), "ids": ids}


def append(spark: SparkSession, path: str) -> int:
    """Go on where our checkpoint ends, and write one of delta-spark's own."""
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1000, 'x', NULL, NULL, DATE'2024-01-01')")
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.checkpoint()
    return _latest(spark, path)


def _latest(spark: SparkSession, path: str) -> int:
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").select("version")
    return int(history.collect()[0]["version"])
