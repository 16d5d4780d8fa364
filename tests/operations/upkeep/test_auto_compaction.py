"""Auto compaction: what starts it, what it rewrites, and that it never fails a commit."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.base.protocol.table_properties import (
    COMPACTION_IN_BACKGROUND,
    compacts_after_commits,
)
from sparkdelta.operations.upkeep import auto_compaction
from sparkdelta.operations.upkeep.commit_hooks import BACKGROUND

ON = {"delta.autoOptimize.autoCompact": "true"}


def append(spark: SparkSession, path: str, part: str, **options: Any) -> None:
    rows = (
        spark.range(3).selectExpr("id", f"CAST({part} AS STRING) AS part", "1 AS other").coalesce(1)
    )
    write_delta(rows, path, mode="append", partition_by=["part", "other"], **options)


def operations(path: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in sorted(Path(path, "_delta_log").glob("*.json")):
        info = json.loads(file.read_text().splitlines()[0])["commitInfo"]
        found.append((info["operation"], info["operationParameters"]))
    return found


@pytest.mark.slow
def test_partitions_that_a_commit_wrote_into(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(auto_compaction, "MIN_SMALL_FILES", 3)
    append(spark, table_path, "NULL")
    append(spark, table_path, "NULL")
    append(spark, table_path, "NULL")
    alter_table(spark, table_path).set_properties(ON)
    for _ in range(2):
        append(spark, table_path, "'it''s'")
    assert [name for name, _ in operations(table_path)] == [
        "WRITE", "WRITE", "WRITE", "SET TBLPROPERTIES", "WRITE", "WRITE",
    ]  # fmt: skip
    append(spark, table_path, "'it''s'")
    [name, parameters] = operations(table_path)[-1]
    assert (name, parameters["auto"]) == ("OPTIMIZE", True)
    assert json.loads(parameters["predicate"]) == ["(part <=> 'it''s' AND other <=> '1')"]
    files = load_snapshot(spark, table_path).add_files().select("partitionValues.part").collect()
    assert sorted(str(row[0]) for row in files) == ["None", "None", "None", "it's"]

    def fails(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("no space left")

    monkeypatch.setattr(auto_compaction, "optimize_files", fails)
    table = DeltaTable.forPath(spark, table_path)
    with caplog.at_level(logging.WARNING):
        assert table.update("part IS NULL AND id = 1", {"id": "7"}).num_updated_rows == 3
    assert "its auto compaction failed: no space left" in caplog.text
    monkeypatch.undo()
    monkeypatch.setattr(auto_compaction, "MIN_SMALL_FILES", 3)
    table.update("part IS NULL AND id = 7", {"id": "8"})
    assert operations(table_path)[-1][0] == "OPTIMIZE"
    assert load_snapshot(spark, table_path).add_files().count() == 2
    assert read_delta(spark, table_path).count() == 18


@pytest.mark.full
def test_the_new_files_of_a_clustered_table(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#writer-requirements-for-clustered-table: Z-cubes stay as they are."""
    monkeypatch.setattr(auto_compaction, "MIN_SMALL_FILES", 2)
    write_delta(spark.range(9).coalesce(1), table_path, properties=ON)
    alter_table(spark, table_path).cluster_by("id")
    for _ in range(3):
        write_delta(spark.range(9).coalesce(1), table_path, mode="append")
    files = load_snapshot(spark, table_path).add_files()
    assert [row[0] for row in files.select("clusteringProvider").collect()].count("liquid") == 2


@pytest.mark.parametrize("value", ["true", "AUTO", "legacy"])
def test_values_of_the_property(value: str) -> None:
    assert compacts_after_commits({"delta.autoOptimize.autoCompact": value})
    assert compacts_after_commits({"delta.autoOptimize": "true"})
    assert not compacts_after_commits({"delta.autoOptimize.autoCompact": "false"})
    assert not compacts_after_commits({})


@pytest.mark.full
def test_a_compaction_in_the_background(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The writer does not wait for it; what fails is warned of, and done after the next commit."""
    monkeypatch.setattr(auto_compaction, "MIN_SMALL_FILES", 3)
    free, optimize_files = Event(), auto_compaction.optimize_files

    def waits(*arguments: Any) -> Any:
        assert free.wait(300)
        return optimize_files(*arguments)

    monkeypatch.setattr(auto_compaction, "optimize_files", waits)
    asked = {**ON, COMPACTION_IN_BACKGROUND: "true"}
    append(spark, table_path, "'a'", properties=asked)
    for part in ("'a'", "'a'", "'b'", "'b'", "'b'"):
        append(spark, table_path, part)
    assert {name for name, _ in operations(table_path)} == {"WRITE"}
    free.set()
    BACKGROUND.wait()
    assert [name for name, _ in operations(table_path)[6:]] == ["OPTIMIZE", "OPTIMIZE"]
    assert load_snapshot(spark, table_path).add_files().count() == 2

    def fails(*arguments: Any) -> None:
        raise RuntimeError("no space left")

    monkeypatch.setattr(auto_compaction, "optimize_files", fails)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            append(spark, table_path, "'b'")
        BACKGROUND.wait()
    assert "its auto compaction in the background failed: no space left" in caplog.text
    monkeypatch.setattr(auto_compaction, "optimize_files", optimize_files)
    append(spark, table_path, "'b'")
    BACKGROUND.wait()
    assert load_snapshot(spark, table_path).add_files().count() == 2
    assert read_delta(spark, table_path).count() == 27


@pytest.mark.slow
def test_a_process_ends_after_its_compactions(table_path: str) -> None:
    program = (
        "from pyspark.sql import SparkSession\n"
        "from sparkdelta import write_delta\n"
        "from sparkdelta.operations.upkeep import auto_compaction\n"
        "auto_compaction.MIN_SMALL_FILES = 3\n"
        "spark = SparkSession.builder.master('local[2]').getOrCreate()\n"
        "for _ in range(3):\n"
        f"    write_delta(spark.range(1), {table_path!r}, mode='append', properties="
        f"{ {**ON, COMPACTION_IN_BACKGROUND: 'true'}!r} if not _ else None)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    assert [name for name, _ in operations(table_path)] == ["WRITE"] * 3 + ["OPTIMIZE"]
