"""Tests that both engines raise the same errors where another writer commits first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.error_names import different_results, names_of
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_INFO = {"operation": "WRITE", "operationParameters": {}, "isBlindAppend": False, "timestamp": 1}
_FILE = {"path": "other.parquet", "partitionValues": {}, "dataChange": True}
_UPDATE = "UPDATE delta.`{path}` SET v = commit_other(v) WHERE id = 1"
_DELETE = "DELETE FROM delta.`{path}` WHERE commit_other(v) = 'a'"
_MERGE = (
    "MERGE INTO delta.`{path}` t USING (SELECT 1 AS k) ON id = k "
    "WHEN MATCHED THEN UPDATE SET v = commit_other(v)"
)


def _added(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"add": {**_FILE, "size": 1, "modificationTime": 1}}


def _removed(actions: Mapping[str, Any]) -> dict[str, Any]:
    removed = {**_FILE, "path": actions["add"]["path"], "deletionTimestamp": 1}
    return {"remove": {**removed, "extendedFileMetadata": True, "size": actions["add"]["size"]}}


def _renamed(actions: Mapping[str, Any]) -> dict[str, Any]:
    return {"metaData": {**actions["metaData"], "name": "other"}}


def _written(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"txn": {"appId": "app", "version": 5}}


Other = Callable[[Mapping[str, Any]], dict[str, Any]]
CONFLICTS: Mapping[str, tuple[str, Other]] = {
    "UPDATE and an append": (_UPDATE, _added),
    "DELETE and an append": (_DELETE, _added),
    "MERGE and an append": (_MERGE, _added),
    "UPDATE and a removed file": (_UPDATE, _removed),
    "DELETE and a removed file": (_DELETE, _removed),
    "MERGE and a removed file": (_MERGE, _removed),
    "UPDATE and other metadata": (_UPDATE, _renamed),
    "append and other metadata": ("append", _renamed),
    "append and the same transaction": ("append", _written),
}


def conflicts(spark: SparkSession, root: str) -> list[Any]:
    """Return the names of the error of each conflict; runs in either engine."""
    return [
        names_of(partial(_conflict, spark, f"{root}/{number}", *conflict), root)
        for number, conflict in enumerate(CONFLICTS.values())
    ]


def _conflict(spark: SparkSession, path: str, operation: str, other: Other) -> None:
    """Run an operation that has the action of another writer committed as it reads its rows."""
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, v STRING) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")
    actions: dict[str, Any] = {}
    for commit in sorted(Path(path, "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            actions |= json.loads(line)
    text = "\n".join(map(json.dumps, ({"commitInfo": _INFO}, other(actions))))
    commit_path = f"{path}/_delta_log/{2:020}.json"

    def commit_other(value: str) -> str:
        with open(commit_path, "w", encoding="utf-8") as file:
            file.write(text)
        return value

    spark.udf.register("commit_other", commit_other)
    if operation != "append":
        spark.sql(operation.format(path=path)).collect()
        return
    rows = spark.sql("SELECT 2 AS id, commit_other(string(id)) AS v FROM range(1)")
    writer = rows.write.format("delta").mode("append")
    writer.option("txnAppId", "app").option("txnVersion", "1").save(path)


def test_the_same_conflicts(enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    roots = [str(tmp_path / engine) for engine in ("theirs", "ours")]
    theirs = delta_spark.run("tests.oracle.test_conflicts_oracle:conflicts", root=roots[0])
    assert not different_results(CONFLICTS, theirs, conflicts(enabled, roots[1]))
