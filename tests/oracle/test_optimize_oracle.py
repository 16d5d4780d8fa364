"""OPTIMIZE and REORG by delta-spark and by sparkdelta: files, metrics, rows, row ids, Z-cubes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, reorg, write_delta
from sparkdelta import optimize as sparkdelta_optimize
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

OF_SESSION = {"startTimeMs", "endTimeMs", "totalClusterParallelism", "numTableColumnsWithStats"}
OF_FILES = {"filesAdded", "minFileSize"}


def optimize(spark: SparkSession, table: str, ours: str, where: str) -> dict[str, Any]:
    """Optimize a table, and return the result and the rows of the table that we optimized; runs in
    the process of delta-spark.
    """
    result = spark.sql(f"OPTIMIZE delta.`{table}`{where}")
    columns = "id, part, _metadata.row_id"
    rows = spark.read.format("delta").load(ours).selectExpr(*columns.split(", ")).collect()
    return {
        "type": result.schema["metrics"].dataType.jsonValue(),
        "metrics": result.collect()[0]["metrics"].asDict(recursive=True),
        "rows": sorted(map(list, rows)),
    }


def last_commit(path: Path) -> dict[str, list[dict[str, Any]]]:
    return actions(max(Path(path, "_delta_log").glob("*.json")))


def commit(path: Path, version: int) -> dict[str, list[dict[str, Any]]]:
    return actions(Path(path, "_delta_log", f"{version:020d}.json"))


def actions(file: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in file.read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


def parameters(actions_of: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = actions_of["commitInfo"][0]["operationParameters"]
    return found


def nullable(data_type: DataType) -> Any:
    """The type without what delta-spark says about nulls."""
    text = json.dumps(data_type.jsonValue())
    return json.loads(text.replace('"nullable": false', '"nullable": true'))


@pytest.mark.slow
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
        "tests.oracle.test_optimize_oracle:optimize",
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


def run_sql(
    spark: SparkSession,
    statements: list[str],
    settings: dict[str, str],
    reads: dict[str, list[str]],
) -> dict[str, Any]:
    """Execute statements, and return the metrics of the last one and rows of tables; runs in the
    process of delta-spark.
    """
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        results = [spark.sql(statement).collect() for statement in statements]
    finally:
        for name in settings:
            spark.conf.unset(name)
    rows = {
        table: sorted(
            map(list, spark.read.format("delta").load(table).selectExpr(*columns).collect())
        )
        for table, columns in reads.items()
    }
    metrics = [row["metrics"].asDict(recursive=True) for row in results[-1] if "metrics" in row]
    return {"metrics": metrics, "rows": rows}


def live_files(spark: SparkSession, path: Path) -> dict[str, str | None]:
    """The id of the Z-cube of each file."""
    files = load_snapshot(spark, str(path)).add_files().select("path", "tags.ZCUBE_ID")
    return {row[0]: row[1] for row in files.collect()}


def files_read(spark: SparkSession, path: Path, conditions: list[str]) -> int:
    snapshot = load_snapshot(spark, str(path))
    return sum(snapshot.scan(condition).files().count() for condition in conditions)


ROWS = ["id", "x", "y", "_metadata.row_id"]


def points(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end, 1, 8).selectExpr(
        "id",
        "CAST(pmod(hash(id), 1000) AS INT) AS x",
        "CAST(pmod(hash(id, 1), 1000) AS STRING) AS y",
        "sha2(CAST(id AS STRING), 256) AS filler",
    )


@pytest.mark.slow
def test_z_order_of_both(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """Both engines rewrite the same files as equally many, and conditions read no more files of
    ours.
    """
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    properties = {"delta.enableRowTracking": "true"}
    write_delta(points(spark, 0, 20_000), str(ours), properties=properties)
    shutil.copytree(ours, theirs)
    size = load_snapshot(spark, str(ours)).add_files().selectExpr("sum(size)").first()[0] // 16
    alter_table(spark, str(ours)).set_properties({"delta.targetFileSize": str(size)})
    alter_table(spark, str(theirs)).set_properties({"delta.targetFileSize": str(size)})
    result = DeltaTable.forPath(spark, str(ours)).optimize().executeZOrderBy("x", "y")
    told = delta_spark.run(
        "tests.oracle.test_optimize_oracle:run_sql",
        statements=[f"OPTIMIZE delta.`{theirs}` ZORDER BY (x, y)"],
        settings={"spark.databricks.delta.optimize.maxFileSize": str(size)},
        reads={str(ours): ROWS, str(theirs): ROWS},
    )
    assert told["rows"][str(ours)] == told["rows"][str(theirs)]
    mine, [other] = result.collect()[0]["metrics"].asDict(recursive=True), told["metrics"]
    assert mine["numFilesAdded"] == other["numFilesAdded"] == 16
    for name in ("numFilesRemoved", "zOrderStats", "partitionsOptimized", "numBins"):
        assert mine[name] == other[name]
    assert parameters(last_commit(ours)) == parameters(last_commit(theirs))
    conditions = [f"{name} = '{value}'" for name in "xy" for value in range(50, 1000, 100)]
    conditions += [f"x BETWEEN {low} AND {low + 50} AND y = '{low}'" for low in range(0, 900, 150)]
    assert files_read(spark, ours, conditions) <= files_read(spark, theirs, conditions)


@pytest.mark.slow
def test_both_cluster_one_table(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """Each leaves the Z-cubes of the other alone, and clusters what is new."""
    table = tmp_path / "table"
    properties = {"delta.enableRowTracking": "true"}
    write_delta(points(spark, 0, 8000), str(table), properties=properties, cluster_by=["x", "y"])
    size = load_snapshot(spark, str(table)).add_files().selectExpr("sum(size)").first()[0] // 8
    done = sparkdelta_optimize(spark, str(table), target_file_size=size, min_cube_size=2 * size)
    assert done.added.count == 8
    [cube] = set(live_files(spark, table).values())
    write_delta(points(spark, 8000, 14_000), str(table), mode="append")
    prefix = "spark.databricks.delta.optimize"
    told = delta_spark.run(
        "tests.oracle.test_optimize_oracle:run_sql",
        statements=[f"OPTIMIZE delta.`{table}`"],
        settings={
            f"{prefix}.maxFileSize": str(size),
            f"{prefix}.clustering.mergeStrategy.minCubeSize.threshold": str(2 * size),
            f"{prefix}.clustering.mergeStrategy.minCubeSize.targetCubeSize": str(20 * size),
        },
        reads={str(table): ROWS},
    )
    before = [list(row) for row in read_delta(spark, str(table), columns=ROWS).collect()]
    assert told["rows"][str(table)] == sorted(before)
    theirs = live_files(spark, table)
    assert sum(each == cube for each in theirs.values()) == 8
    assert len(set(theirs.values())) == 2
    stats = told["metrics"][0]["clusteringStats"]
    assert (stats["inputNumZCubes"], stats["inputZCubeFiles"]["numFiles"]) == (1, 8)
    mine, other = [
        {*version["add"][0]["tags"], version["add"][0]["clusteringProvider"]}
        for version in (commit(table, done.versions[0]), last_commit(table))
    ]
    assert mine == other
    assert parameters(commit(table, done.versions[0])) == parameters(last_commit(table))
    write_delta(points(spark, 20_000, 21_000), str(table), mode="append")
    last = sparkdelta_optimize(spark, str(table), target_file_size=size, min_cube_size=2 * size)
    assert last.removed.count == 8
    assert last.clustered_files is not None
    assert last.clustered_files.num_cubes == 2
    assert theirs.items() <= live_files(spark, table).items()


def test_both_purge_the_same_files(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
    }
    rows = points(spark, 0, 400).selectExpr("*", "named_struct('a', id, 'b', id) AS s")
    write_delta(rows, str(ours), properties=properties)
    alter_table(spark, str(ours)).drop_columns("s.b")
    rows = points(spark, 400, 800).selectExpr("*", "named_struct('a', id) AS s")
    write_delta(rows, str(ours), mode="append")
    DeltaTable.forPath(spark, str(ours)).delete("id = 420")
    shutil.copytree(ours, theirs)
    done = reorg(spark, str(ours))
    told = delta_spark.run(
        "tests.oracle.test_optimize_oracle:run_sql",
        statements=[f"REORG TABLE delta.`{theirs}` APPLY (PURGE)"],
        settings={},
        reads={str(ours): ROWS, str(theirs): ROWS},
    )
    assert told["rows"][str(ours)] == told["rows"][str(theirs)]
    mine, other = last_commit(ours), last_commit(theirs)
    assert {r["path"] for r in mine["remove"]} == {r["path"] for r in other["remove"]}
    assert done.removed.count == 9
    infos = [version["commitInfo"][0] for version in (mine, other)]
    assert infos[0]["operation"] == infos[1]["operation"]
    assert parameters(mine) == parameters(other)
    assert infos[0]["operationMetrics"].keys() == infos[1]["operationMetrics"].keys()
