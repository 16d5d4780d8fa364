"""VACUUM by delta-spark and by sparkdelta of copies of a table: what goes, history, last run."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, vacuum, write_delta
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

OLD = time.time() - 300 * 3600
OTHER_FILES = ["orphan", "_hidden", ".hidden", "part=2/orphan é%20", "_part=1/x", "_p=1/x", "_d/x",
               "a/_d/x", "a/b/x", "_change_data/x", "_delta_index/x", "metadata/x"]  # fmt: skip
EMPTY = ["empty", "nested/inner", "_empty"]


def run(spark: SparkSession, table: str, mode: str) -> dict[str, Any]:
    """Vacuum a table, and return the files of a dry run and the last commits; runs in the process
    of delta-spark.
    """
    planned = spark.sql(f"VACUUM delta.`{table}` {mode} DRY RUN").collect()
    spark.sql(f"VACUUM delta.`{table}` {mode}").collect()
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").limit(2).collect()
    return {"planned": [row[0] for row in planned], "history": [shown(row) for row in history]}


def shown(row: Any) -> dict[str, Any]:
    names = ("version", "operation", "operationParameters", "operationMetrics", "isolationLevel",
             "isBlindAppend")  # fmt: skip
    return {name: row[name] for name in names}


def entries(table: Path) -> set[str]:
    found = (str(path.relative_to(table)) for path in table.rglob("*"))
    return {name for name in found if not name.startswith("_delta_log") and ".crc" not in name}


@pytest.mark.parametrize("mode", ["full", "lite"])
def test_both_delete_the_same(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, mode: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    rows = spark.range(0, 60, 1, 3).selectExpr("id", "id % 3 AS part", "id % 2 AS _p")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_delta(rows, str(ours), properties=properties, partition_by=["part", "_p"])
    table = DeltaTable.forPath(spark, str(ours))
    table.delete("id < 5")
    table.update("id IN (6, 17)", {"id": "id + 100"})
    table.delete("part = 1")
    table.delete("id = 50")
    for name in OTHER_FILES:
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text("x")
    for name in EMPTY:
        (ours / name).mkdir(parents=True)
    log = ours / "_delta_log"
    for version in range(5):
        commit = log / f"{version:020d}.json"
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "remove" in action and version < 4:
                action["remove"]["deletionTimestamp"] = int(OLD * 1000)
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for path in [*ours.rglob("*"), ours]:
        os.utime(path, (OLD, OLD))
    for young in (log / f"{4:020d}.json", ours / "a/b/x"):
        os.utime(young)
    shutil.copytree(ours, theirs)
    planned = vacuum(spark, str(ours), mode=mode, dry_run=True)
    result = vacuum(spark, str(ours), mode=mode)
    told = delta_spark.run(
        "tests.oracle.test_vacuum_oracle:run", table=str(theirs), mode=mode.upper()
    )
    # They also plan to delete parents of empty directories, and those with young files.
    wanted = {f"file:{theirs}/{name}" for name in planned.files}
    assert (
        wanted
        <= {*told["planned"]}
        <= wanted | {f"file:{theirs}/{name}" for name in ("nested", "a/b", "a")}
    )
    assert entries(ours) - {"nested"} == entries(theirs) - {"nested"}
    mine = [shown(row) for row in table.history(2).collect()]
    for metrics in ("numDeletedFiles", "numFilesToDelete"):
        for commit in (*mine, *told["history"]):
            commit["operationMetrics"].pop(metrics, None)
    assert mine == told["history"]
    assert result.versions == (5, 6)
    info = [json.loads((t / "_delta_log/_last_vacuum_info").read_text()) for t in (ours, theirs)]
    assert info[0] == {"latestCommitVersionOutsideOfRetentionWindow": 3}
    assert info[1] == (info[0] if mode == "lite" else {})
