"""GEOMETRY and GEOGRAPHY: each engine reads and changes the tables of the other one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, sql, verify
from tests.operations.write.test_spatial_columns import ONE, TWO, point
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PREVIEW = "spark.databricks.delta.geo.preview.enabled"
STATEMENTS = (
    """CREATE TABLE {} (id INT, g GEOMETRY(4326), l ARRAY<GEOGRAPHY(4326)>) USING delta
    TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')""",
    f"INSERT INTO {{}} SELECT id, {point(ONE)}, array(st_geogfromwkb(X'{TWO}')) FROM range(4)",
)
CHANGES = (
    "DELETE FROM {} WHERE id = 0",
    f"UPDATE {{}} SET g = {point(TWO)} WHERE id = 1",
    f"""MERGE INTO {{}} t USING (SELECT 2 AS id, {point(TWO)} AS g) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET g = s.g""",
    "ALTER TABLE {} ADD COLUMN other GEOGRAPHY(4326)",
)
ROWS = "id", "hex(st_asbinary(g)) AS g", "hex(st_asbinary(l[0])) AS l"


def run(spark: SparkSession, path: str, statements: tuple[str, ...]) -> list[str]:
    """Run statements on a table and return its rows; runs in the process of delta-spark."""
    spark.conf.set(PREVIEW, "true")
    for statement in statements:
        spark.sql(statement.format(f"delta.`{path}`"))
    rows = spark.read.format("delta").load(path).selectExpr(*ROWS).orderBy("id").collect()
    return [str(tuple(row)) for row in rows]


def ours(spark: SparkSession, path: str) -> list[str]:
    rows = read_delta(spark, path).selectExpr(*ROWS).orderBy("id").collect()
    return [str(tuple(row)) for row in rows]


def test_each_engine_changes_tables_of_the_other(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    mine, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    function = "tests.oracle.test_spatial_oracle:run"
    for statement in STATEMENTS:
        sql(spark, statement.format(f"delta.`{mine}`"))
    delta_spark.run(function, path=other, statements=STATEMENTS)
    mine_now, others = load_snapshot(spark, mine), load_snapshot(spark, other)
    assert mine_now.schema == others.schema
    assert mine_now.protocol.reader_features == others.protocol.reader_features
    for statement in CHANGES:
        sql(spark, statement.format(f"delta.`{other}`"))
    theirs = delta_spark.run(function, path=mine, statements=CHANGES)
    there = delta_spark.run(function, path=other, statements=())
    assert ours(spark, mine) == theirs == ours(spark, other) == there
    assert theirs == [str((1, TWO, TWO)), str((2, TWO, TWO)), str((3, ONE, TWO))]
    assert verify(spark, other, footers=True).is_clean
