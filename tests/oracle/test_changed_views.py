"""Statements on temporary views of a table: both engines change it alike, or refuse."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.exceptions import DeltaError
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

QUERIES = (
    "SELECT * FROM vt",
    "SELECT x.ID, x.S, x.P FROM vt x",
    "SELECT p, s, id FROM vt",
    "SELECT id, p FROM vt",
    "SELECT * FROM (SELECT id, s, p FROM vt_below) q",
    "SELECT id AS a, s, p FROM vt",
    "SELECT *, id + 1 AS q FROM vt",
    "SELECT * FROM vt WHERE id > 0",
    "SELECT * FROM vt ORDER BY id LIMIT 5",
    "SELECT a.* FROM vt a JOIN vt b ON a.id = b.id",
    "SELECT max(id) AS id, s, p FROM vt GROUP BY s, p",
    "SELECT * FROM vt VERSION AS OF 1",
    "SELECT 1 AS id, 'a' AS s, 2 AS p",
)
STATEMENTS = (
    "DELETE FROM vv WHERE id = 1",
    "UPDATE vv v SET v.id = v.id + 10 WHERE v.id = 2",
    "MERGE INTO vv USING (SELECT 3 AS k) ON vv.id = k WHEN MATCHED THEN UPDATE SET p = 7",
    "INSERT INTO vv VALUES (4, 'd', 4)",
)
HERE = {
    # By these, delta-spark can delete rows, as the table has deletion vectors.
    "SELECT *, id + 1 AS q FROM vt",
    "new name",
    # UPDATE writes nulls to `s`.
    "SELECT id, p FROM vt",
    # Its rules of Catalyst fail for MERGE.
    "SELECT p, s, id FROM vt",
    "other order",
    # INSERT changes the latest one.
    "a version",
}
"""The views by which other changes are done than in delta-spark."""


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    """DataFrames by which both engines make views."""
    [detail] = spark.sql("DESCRIBE DETAIL vt").collect()
    reader, path = spark.read.format("delta"), detail["location"]
    return {
        "path": reader.load(path),
        "alias": spark.table("vt").alias("x"),
        "query": spark.sql("SELECT * FROM vt"),
        "other order": spark.table("vt").select("p", "s", "id"),
        "condition": spark.table("vt").where("id > 0"),
        "new name": spark.table("vt").withColumnRenamed("p", "q"),
        "a version": spark.read.format("delta").option("versionAsOf", "1").load(path),
    }


def outcomes(spark: SparkSession) -> list[list[Any]]:
    """Return each view with the results of the statements, None for an error, and the rows of the
    table after them; runs in either engine.
    """
    spark.sql(
        "CREATE TABLE vt (id INT, s STRING, p INT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    values = "VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)"
    spark.sql(f"INSERT INTO vt {values}")
    spark.table("vt").createOrReplaceTempView("vt_below")
    views: dict[str, DataFrame | None] = {**dict.fromkeys(QUERIES), **frames(spark)}
    told = list[list[Any]]()
    for name, rows in views.items():
        if rows is None:
            spark.sql(f"CREATE OR REPLACE TEMP VIEW vv AS {name}")
        else:
            rows.createOrReplaceTempView("vv")
        results = [_result(spark, statement) for statement in STATEMENTS]
        rest = sorted(str(tuple(row)) for row in spark.table("vt").collect())
        told.append([name, results, rest])
        if any(result is not None for result in results):
            spark.sql(f"INSERT OVERWRITE vt {values}")
    spark.catalog.dropTempView("vv")
    spark.catalog.dropTempView("vt_below")
    spark.sql("DROP TABLE vt")
    return told


def _result(spark: SparkSession, statement: str) -> str | None:
    try:
        return str([tuple(row) for row in spark.sql(statement).collect()])
    except (DeltaError, PySparkException, Py4JJavaError):
        return None


def test_the_same_views_change_the_table(enabled: SparkSession, delta_spark: DeltaSpark) -> None:
    theirs = delta_spark.run("tests.oracle.test_changed_views:outcomes")
    ours = outcomes(enabled)
    different = [each for each in zip(theirs, ours, strict=True) if each[0] != each[1]]
    for each in different:
        print(*each, sep="\n    ")
    assert {name for (name, _, _), _ in different} == HERE
    assert sum(None not in results for _, results, _ in theirs) >= 2
