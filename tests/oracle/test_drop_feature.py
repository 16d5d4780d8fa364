"""Table features that are dropped, and row tracking that is enabled late: delta-spark goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, read_delta
from sparkdelta.commands.drop_feature import drop_feature
from sparkdelta.protocol.table_features import supported_features
from tests.commands.test_drop_feature import USES, make, rows
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

ROW_TRACKING = "delta.enableRowTracking"


def go_on(spark: SparkSession, tables: list[str]) -> dict[str, Any]:
    """In the process of delta-spark: read, append to and delete from each table."""
    found = {}
    for table in tables:
        name = f"delta.`{table}`"
        read = sorted(map(tuple, spark.sql(f"SELECT * FROM {name}").collect()))
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 0")
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
        features = spark.sql(f"DESCRIBE DETAIL {name}").first()["tableFeatures"]
        found[table] = [[list(row) for row in read], sorted(features)]
    return found


def track(spark: SparkSession, tables: list[str]) -> dict[str, Any]:
    """In the process of delta-spark: the row ids of each table."""
    read = "SELECT id, _metadata.row_id FROM delta.`{}` ORDER BY ALL"
    return {t: [list(row) for row in spark.sql(read.format(t)).collect()] for t in tables}


def drop_all(spark: SparkSession, tables: dict[str, str]) -> dict[str, Any]:
    """In the process of delta-spark: drop a feature of each table of ours."""
    found = {}
    for name, table in tables.items():
        spark.sql(f"ALTER TABLE delta.`{table}` DROP FEATURE {name}")
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()
        found[name] = [detail["minReaderVersion"], sorted(detail["tableFeatures"])]
    return found


def test_delta_spark_goes_on(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """It reads and writes each table that we dropped a feature of; and of the same tables it drops
    the same, so that the features that are left are those that we leave."""
    ours = {name: str(tmp_path / "ours" / name) for name in USES}
    others = {name: str(tmp_path / "others" / name) for name in USES}
    before = {name: make(spark, path, name) for name, path in ours.items()}
    left = {}
    shutil.copytree(tmp_path / "ours", tmp_path / "others")
    for name, path in ours.items():
        drop_feature(spark, path, name)
        found = load_snapshot(spark, path).protocol
        features = sorted(feature.value for feature in supported_features(found))
        left[name] = [found.min_reader_version, features]
    read = delta_spark.run("tests.oracle.test_drop_feature:go_on", tables=list(ours.values()))
    for name, path in ours.items():
        assert [tuple(row) for row in read[path][0]] == before[name], name
        assert read[path][1] == left[name][1], name
        kept = [row for row in before[name] if row[0] != 1]
        again = [row for row in before[name] if row[0] == 0]
        assert rows(spark, path) == sorted([*kept, *again]), name
    assert delta_spark.run("tests.oracle.test_drop_feature:drop_all", tables=others) == left
    for name, path in others.items():
        assert rows(spark, path) == before[name], name


def test_row_ids_that_came_late(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    make(spark, path, "deletionVectors")
    alter_table(spark, path).set_properties({ROW_TRACKING: "true"})
    found = read_delta(spark, path, columns=["id", "_metadata.row_id"]).orderBy("id")
    wanted = [list(row) for row in found.collect()]
    assert delta_spark.run("tests.oracle.test_drop_feature:track", tables=[path])[path] == wanted
