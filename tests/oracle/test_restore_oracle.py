"""RESTORE by delta-spark and by sparkdelta of copies of a table: metrics, actions, rows, ids."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from tests.oracle.test_optimize_oracle import last_commit
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

COLUMNS = ["id", "part", "_metadata.row_id", "_metadata.row_commit_version"]


def restore(spark: SparkSession, table: str, ours: str, version: int) -> dict[str, Any]:
    """Restore a table, and return the result and the rows of the table that we restored; runs in
    the process of delta-spark.
    """
    result = spark.sql(f"RESTORE delta.`{table}` TO VERSION AS OF {version}")
    again = spark.sql(f"RESTORE delta.`{table}` TO VERSION AS OF {version + 4}")
    rows = spark.read.format("delta").load(ours).selectExpr(*COLUMNS).collect()
    return {
        "metrics": result.collect()[0].asDict(),
        "nothing": len(again.collect()),
        "rows": sorted(map(list, rows)),
    }


@pytest.mark.slow
def test_both_restore_the_same(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id % 2 AS INT) AS part")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write_delta(rows, str(ours), properties=properties, partition_by=["part"])
    table = DeltaTable.forPath(spark, str(ours))
    table.delete("id IN (1, 2)")
    table.delete("id IN (3, 4, 39)")
    alter_table(spark, str(ours)).add_columns("more STRING")
    write_delta(spark.sql("SELECT 99L AS id, 7 AS part, 'x' AS more"), str(ours), mode="append")
    shutil.copytree(ours, theirs)
    (metrics,) = table.restoreToVersion(1).collect()
    told = delta_spark.run(
        "tests.oracle.test_restore_oracle:restore", table=str(theirs), ours=str(ours), version=1
    )
    assert metrics.asDict() == told["metrics"]
    assert told["nothing"] == table.restoreToVersion(5).count() == 0
    stored = read_delta(spark, str(ours), columns=COLUMNS).collect()
    assert told["rows"] == sorted(map(list, stored))
    theirs_restored = load_snapshot(spark, str(theirs), version=5)
    assert load_snapshot(spark, str(ours)).schema == theirs_restored.schema
    mine, other = last_commit(ours), last_commit(theirs)
    for name in ("add", "remove"):
        assert sorted(a["path"] for a in mine[name]) == sorted(a["path"] for a in other[name])
        assert {a["dataChange"] for a in mine[name]} == {a["dataChange"] for a in other[name]}
    infos = [commit["commitInfo"][0] for commit in (mine, other)]
    metrics_of = [info["operationMetrics"] for info in infos]
    assert {name: metrics_of[0][name] for name in metrics_of[1]} == metrics_of[1]
    assert infos[0]["operationParameters"] == infos[1]["operationParameters"]
    assert infos[0]["operation"] == infos[1]["operation"]
