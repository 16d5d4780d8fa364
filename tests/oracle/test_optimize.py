"""OPTIMIZE by delta-spark and by sparkdelta of copies of a table: files, metrics, rows, row ids."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from sparkdelta import DeltaTable, read_delta, write_delta
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

OF_SESSION = {"startTimeMs", "endTimeMs", "totalClusterParallelism", "numTableColumnsWithStats"}
OF_FILES = {"filesAdded", "minFileSize"}


def optimize(spark: SparkSession, table: str, ours: str, where: str) -> dict[str, Any]:
    """In the process of delta-spark: the result, and the rows of the table that we optimized."""
    result = spark.sql(f"OPTIMIZE delta.`{table}`{where}")
    columns = "id, part, _metadata.row_id"
    rows = spark.read.format("delta").load(ours).selectExpr(*columns.split(", ")).collect()
    return {
        "type": result.schema["metrics"].dataType.jsonValue(),
        "metrics": result.collect()[0]["metrics"].asDict(recursive=True),
        "rows": sorted(map(list, rows)),
    }


def last_commit(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    commit = max(Path(path, "_delta_log").glob("*.json"))
    for line in commit.read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


def nullable(data_type: DataType) -> Any:
    """The type without what delta-spark says about nulls."""
    text = json.dumps(data_type.jsonValue())
    return json.loads(text.replace('"nullable": false', '"nullable": true'))


@pytest.mark.parametrize("where", ["", "part = 1"])
def test_both_choose_the_same_files(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, where: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id % 2 AS INT) AS part")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write_delta(rows, str(ours), properties=properties, partition_by=["part"])
    alone = spark.sql("SELECT 99L AS id, 7 AS part")
    write_delta(alone, str(ours), mode="append")
    DeltaTable.forPath(spark, str(ours)).delete("id IN (1, 2)")
    shutil.copytree(ours, theirs)
    builder = DeltaTable.forPath(spark, str(ours)).optimize()
    result = (builder.where(where) if where else builder).executeCompaction()
    told = delta_spark.run(
        "tests.oracle.test_optimize:optimize",
        table=str(theirs),
        ours=str(ours),
        where=f" WHERE {where}" if where else "",
    )
    columns = ["id", "part", "_metadata.row_id"]
    stored = read_delta(spark, str(ours), columns=columns).collect()
    assert told["rows"] == sorted(map(list, stored))
    metrics = result.collect()[0]["metrics"].asDict(recursive=True)
    kept = metrics.keys() - OF_SESSION - OF_FILES
    assert {name: metrics[name] for name in kept} == {name: told["metrics"][name] for name in kept}
    assert metrics["filesAdded"]["totalFiles"] == told["metrics"]["filesAdded"]["totalFiles"]
    assert nullable(result.schema["metrics"].dataType) == nullable(
        StructType.fromJson(told["type"])
    )
    mine, other = last_commit(ours), last_commit(theirs)
    assert {r["path"] for r in mine["remove"]} == {r["path"] for r in other["remove"]}
    infos = [commit["commitInfo"][0] for commit in (mine, other)]
    assert infos[0]["operationMetrics"].keys() == infos[1]["operationMetrics"].keys()
    assert infos[0]["operationParameters"].keys() == infos[1]["operationParameters"].keys()
    assert infos[0]["tags"] == infos[1]["tags"]
