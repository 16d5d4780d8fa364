"""Symlink manifests: their places and contents, after GENERATE and after commits.

PROTOCOL.md#data-files, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, clone, load_snapshot, write_delta
from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.operations.upkeep import commit_hooks
from tests.support.errors import raises

MODE = "symlink_format_manifest"
ENABLED = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
VALUES = "CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN 'a/b c' WHEN 2 THEN '' ELSE 'é%=' END"


def manifests(path: str) -> dict[str, list[str]]:
    """The lines of each manifest, by its directory."""
    root = Path(path, "_symlink_format_manifest")
    files = {file.name for file in root.rglob("*") if file.is_file()}
    assert files <= {"manifest", ".manifest.crc"}  # the latter by Hadoop
    return {
        str(file.parent.relative_to(root)): sorted(file.read_text().splitlines())
        for file in root.rglob("manifest")
    }


def live(spark: SparkSession, path: str) -> list[str]:
    snapshot = load_snapshot(spark, path)
    return sorted(resolve(snapshot.path, row.path) for row in snapshot.add_files().collect())


@pytest.mark.slow
def test_each_partition_has_a_manifest(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a table")
    rows = spark.range(0, 8, 1, 2).selectExpr("id", f"{VALUES} AS `p:1`", "id % 2 AS q")
    write_delta(rows, path, partition_by=["p:1", "q"])
    table = DeltaTable.forPath(spark, path)
    table.generate(MODE.upper())
    found = manifests(path)
    assert found.keys() == {
        "p%3A1=__HIVE_DEFAULT_PARTITION__/q=0", "p%3A1=a%2Fb c/q=1", "p%3A1=é%25%3D/q=1",
    }  # fmt: skip
    assert sorted(file for files in found.values() for file in files) == live(spark, path)
    assert all(file.startswith(f"file:{path}/") for files in found.values() for file in files)
    write_delta(rows.where("id = 1"), path, mode="overwrite")
    table.generate(MODE)
    assert manifests(path) == {"p%3A1=a%2Fb c/q=1": live(spark, path)}
    assert not Path(path, "_symlink_format_manifest", "p%3A1=é%25%3D", "q=1").exists()
    write_delta(rows.select("id"), path, mode="overwrite", overwrite_schema=True)
    table.generate(MODE)
    assert manifests(path) == {".": live(spark, path)}
    table.delete()
    table.generate(MODE)
    assert manifests(path) == {".": []}


@pytest.mark.slow
@pytest.mark.parametrize("most", [100, pytest.param(0, marks=pytest.mark.full)])
def test_commits_write_the_manifests_that_they_change(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(commit_hooks, "MAX_TOUCHED_PARTITIONS", most)
    rows = spark.range(0, 6, 1, 2).selectExpr("id", "id % 3 AS p")
    write_delta(rows, table_path, partition_by=["p"], properties=ENABLED)
    assert {*manifests(table_path)} == {"p=0", "p=1", "p=2"}
    untouched = Path(table_path, "_symlink_format_manifest", "p=2", "manifest")
    before = untouched.stat().st_mtime_ns
    table = DeltaTable.forPath(spark, table_path)
    table.delete("p = 0")
    table.update("id = 1", {"id": "100"})
    found = manifests(table_path)
    assert {*found} == {"p=1", "p=2"}
    assert sorted(file for files in found.values() for file in files) == live(spark, table_path)
    assert (untouched.stat().st_mtime_ns == before) is (most > 0)
    target = f"{table_path}-clone"
    clone(spark, table_path, target)
    assert manifests(target) == found


@pytest.mark.full
def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_delta(spark.range(0, 8, 1, 2), path, properties=VECTORS)
    table = DeltaTable.forPath(spark, path)
    with raises("DELTA_MODE_NOT_SUPPORTED", match="what"):
        table.generate("what")
    with raises("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"):
        alter_table(spark, path).set_properties(ENABLED)
    with raises("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"):
        write_delta(spark.range(1), str(tmp_path / "new"), properties={**VECTORS, **ENABLED})
    table.generate(MODE)
    assert manifests(path) == {".": live(spark, path)}
    table.delete("id = 1")
    with raises("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"):
        table.generate(MODE)
    mapped = str(tmp_path / "mapped")
    write_delta(spark.range(1), mapped, properties={"delta.columnMapping.mode": "name"})
    with raises("DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"):
        DeltaTable.forPath(spark, mapped).generate(MODE)
    linked = str(tmp_path / "linked")
    write_delta(spark.range(1).selectExpr("id", "id AS p"), linked, partition_by=["p"])
    (tmp_path / "elsewhere").mkdir()
    Path(linked, "_symlink_format_manifest").mkdir()
    Path(linked, "_symlink_format_manifest", "p=0").symlink_to(tmp_path / "elsewhere")
    with raises("DELTA_PATH_OUTSIDE_TABLE"):
        DeltaTable.forPath(spark, linked).generate(MODE)
    assert not list((tmp_path / "elsewhere").iterdir())
