"""Functions by which delta-spark writes and reads tables for the tests of log maintenance; they run
in its process.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "1000",
}


def write_table(spark: SparkSession, path: str) -> int:
    """A partitioned table of some commits, with a version checksum each; the latest version."""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})"
    )
    for number in range(3):
        append(spark, path, number)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 3")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p = 'x 1'")
    append(spark, path, 3)
    return int(spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]["version"])


def append(spark: SparkSession, path: str, number: int) -> None:
    """Add twenty rows, as a numbered batch of an application."""
    rows = spark.range(20 * number, 20 * number + 20).selectExpr(
        "id", "IF(id % 7 = 0, NULL, concat('x ', id % 2)) AS p"
    )
    options = {"txnAppId": "app", "txnVersion": number}
    rows.coalesce(1).write.format("delta").mode("append").options(**options).save(path)


def rows(spark: SparkSession, path: str) -> list[list[object]]:
    """All rows of the latest version."""
    found = spark.read.format("delta").load(path).select("id", "p").collect()
    return sorted(map(list, found), key=str)
