"""Shallow clones by delta-spark and by sparkdelta: commits, metadata, rows; both continue ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, clone, load_snapshot, read_delta, write_delta
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

COLUMNS = ["id", "part", "_metadata.row_id", "_metadata.row_commit_version"]


def clone_and_read(spark: SparkSession, source: str, theirs: str, ours: str, deep: str) -> Any:
    """Clone a table, and read and change our clones; runs in the process of delta-spark."""
    spark.sql(
        f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE delta.`{source}` VERSION AS OF 1 "
        "TBLPROPERTIES ('delta.appendOnly' = 'false', 'user.key' = 'x')"
    )
    found = {}
    for path in (theirs, ours, deep):
        rows = spark.read.format("delta").load(path).selectExpr(*COLUMNS).collect()
        found[path] = sorted(map(list, rows))
    for path in (ours, deep):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (5, 6)")
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (100, 1)")
    return found


@pytest.mark.slow
def test_both_clone_the_same(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    source, theirs, ours, deep = (
        str(tmp_path / name) for name in ("so urce", "theirs", "ours", "deep")
    )
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id % 2 AS INT) AS part")
    properties = {
        "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": "name", "delta.checkpointPolicy": "v2",
    }  # fmt: skip
    write_delta(rows, source, properties=properties, partition_by=["part"])
    DeltaTable.forPath(spark, source).delete("id IN (1, 2, 30)")
    write_delta(rows, source, mode="append")
    overrides = {"delta.appendOnly": "false", "user.key": "x"}
    DeltaTable.forPath(spark, source).cloneAtVersion(1, ours, True, False, overrides)
    clone(spark, source, deep, deep=True, version=1, properties=overrides)
    told = delta_spark.run(
        "tests.oracle.test_clone_oracle:clone_and_read",
        source=source,
        theirs=theirs,
        ours=ours,
        deep=deep,
    )
    ids = [[row[:2] for row in rows] for rows in told.values()]
    assert ids[0] == ids[1] == ids[2]
    assert told[ours] == sorted(
        map(list, read_delta(spark, ours, columns=COLUMNS, version=0).collect())
    )
    own = {row[2] for row in told[ours]}
    assert len(own) == len(told[ours])
    for path in (ours, deep):
        live = sorted(row["id"] for row in read_delta(spark, path).collect())
        assert live == sorted([*({r[0] for r in told[ours]} - {5, 6}), 100])
    before, after = load_snapshot(spark, theirs), load_snapshot(spark, ours, version=0)
    assert after.schema == before.schema
    for features in ("reader_features", "writer_features"):
        assert {*getattr(after.protocol, features)} == {*getattr(before.protocol, features)}
    names = {k for k in before.properties if "materialized" not in k}
    assert {k: after.properties[k] for k in names} == {k: before.properties[k] for k in names}
    mine, other = (first_commit(path) for path in (ours, theirs))
    for field in ("path", "deletionVector", "size", "partitionValues", "tags", "dataChange"):
        found = [
            sorted(json.dumps(add.get(field)) for add in commit["add"]) for commit in (mine, other)
        ]
        assert found[0] == found[1]
    infos = [commit["commitInfo"][0] for commit in (mine, other)]
    metrics = [info["operationMetrics"] for info in infos]
    assert {name: metrics[0][name] for name in metrics[1]} == metrics[1]
    assert infos[0]["operation"] == infos[1]["operation"]
    assert infos[0]["operationParameters"] == infos[1]["operationParameters"]


def first_commit(path: str) -> dict[str, list[dict[str, Any]]]:
    """The actions of version 0, by their kinds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{0:020d}.json").read_text().splitlines():
        ((kind, action),) = json.loads(line).items()
        found.setdefault(kind, []).append(action)
    return found
