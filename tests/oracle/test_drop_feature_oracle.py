"""Table features that are dropped, and row tracking that is enabled late: delta-spark goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, read_delta
from sparkdelta.base.protocol.table_features import supported_features
from sparkdelta.operations.alter.drop_feature import drop_feature
from tests.operations.alter.test_drop_feature import USES, make, rows
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

ROW_TRACKING = "delta.enableRowTracking"


def go_on(spark: SparkSession, table: str) -> list[Any]:
    """Read a table, append to it and delete from it; runs in the process of delta-spark."""
    name = f"delta.`{table}`"
    read = sorted(map(tuple, spark.sql(f"SELECT * FROM {name}").collect()))
    spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 0")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    features = spark.sql(f"DESCRIBE DETAIL {name}").first()["tableFeatures"]
    return [[list(row) for row in read], sorted(features)]


def track(spark: SparkSession, tables: list[str]) -> dict[str, Any]:
    """Return the row ids of each table; runs in the process of delta-spark."""
    read = "SELECT id, _metadata.row_id FROM delta.`{}` ORDER BY ALL"
    return {t: [list(row) for row in spark.sql(read.format(t)).collect()] for t in tables}


def drop(spark: SparkSession, table: str, name: str) -> list[Any]:
    """Drop a feature of a table of ours; runs in the process of delta-spark."""
    spark.sql(f"ALTER TABLE delta.`{table}` DROP FEATURE {name}")
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()
    return [detail["minReaderVersion"], sorted(detail["tableFeatures"])]


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_delta_spark_goes_on(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    """delta-spark reads and writes a table that we dropped a feature of. A drop by delta-spark
    itself leaves the same features.
    """
    ours, other = str(tmp_path / "ours"), str(tmp_path / "other")
    before = make(spark, ours, name)
    shutil.copytree(ours, other)
    drop_feature(spark, ours, name)
    found = load_snapshot(spark, ours).protocol
    left = sorted(feature.value for feature in supported_features(found))
    read = delta_spark.run("tests.oracle.test_drop_feature_oracle:go_on", table=ours)
    assert [tuple(row) for row in read[0]] == before
    assert read[1] == left
    kept = [row for row in before if row[0] != 1]
    again = [row for row in before if row[0] == 0]
    assert rows(spark, ours) == sorted([*kept, *again])
    dropped = delta_spark.run("tests.oracle.test_drop_feature_oracle:drop", table=other, name=name)
    assert dropped == [found.min_reader_version, left]
    assert rows(spark, other) == before


def test_row_ids_that_came_late(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    make(spark, path, "deletionVectors")
    alter_table(spark, path).set_properties({ROW_TRACKING: "true"})
    found = read_delta(spark, path, columns=["id", "_metadata.row_id"]).orderBy("id")
    wanted = [list(row) for row in found.collect()]
    assert (
        delta_spark.run("tests.oracle.test_drop_feature_oracle:track", tables=[path])[path]
        == wanted
    )
