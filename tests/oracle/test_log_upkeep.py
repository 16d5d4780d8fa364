"""Other engines read logs that we compacted and cleaned; our checksums are delta-spark's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as RsTable
from pyspark.sql import SparkSession

from sparkdelta import (
    clean_log,
    compact_log,
    load_snapshot,
    read_delta,
    verify,
    write_checkpoint,
    write_version_checksum,
)
from sparkdelta.operations.upkeep.metadata_cleanup_rules import DAY_MS
from tests.support.delta_spark import DeltaSpark
from tests.support.log_writer import set_time

pytestmark = pytest.mark.oracle

THEIRS_ALONE = {"allFiles"}


@pytest.fixture(scope="module")
def original(delta_spark: DeltaSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("upkeep") / "table"
    latest = delta_spark.run("tests.oracle.upkeep:write_table", path=str(table))
    assert latest == 6
    return table


@pytest.fixture
def table(original: Path, tmp_path: Path) -> Path:
    """A copy, under a path that delta-spark has not seen."""
    return Path(shutil.copytree(original, tmp_path / "copy"))


def crc(table: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((table / f"_delta_log/{version:020d}.crc").read_text())
    return found


def without_crc(table: Path, *versions: int) -> None:
    for version in versions:
        for name in (f"{version:020d}.crc", f".{version:020d}.crc.crc"):
            (table / "_delta_log" / name).unlink(missing_ok=True)


def assert_all_read(spark: SparkSession, delta_spark: DeltaSpark, table: Path, like: Path) -> None:
    expected = delta_spark.run("tests.oracle.upkeep:rows", path=str(like))
    assert delta_spark.run("tests.oracle.upkeep:rows", path=str(table)) == expected
    ours = read_delta(spark, str(table)).select("id", "p").collect()
    assert sorted(map(list, ours), key=str) == expected
    assert RsTable(str(table)).version() == 6
    files = sorted(RsTable(str(table)).file_uris())
    assert len(files) == load_snapshot(spark, str(table)).add_files().count()


@pytest.mark.parametrize("incremental", [False, True])
def test_our_checksum_is_delta_sparks(
    spark: SparkSession, original: Path, table: Path, incremental: bool
) -> None:
    """Equal in every field that both have; allFiles in what tells which files they are."""
    without_crc(table, *(range(6, 7) if incremental else range(7)))
    result = write_version_checksum(spark, str(table))
    assert (result.written, result.incremental) == (True, incremental)
    ours, theirs = crc(table, 6), crc(original, 6)
    assert theirs.keys() - ours.keys() <= THEIRS_ALONE
    for name in ours.keys() & theirs.keys() - {"allFiles", "setTransactions"}:
        assert ours[name] == theirs[name], name
    assert [t["version"] for t in ours["setTransactions"]] == [3]
    if "allFiles" in theirs:
        mine, other = (
            {f["path"]: (f["size"], f["partitionValues"], f.get("deletionVector")) for f in files}
            for files in (ours["allFiles"], theirs["allFiles"])
        )
        assert mine == other


def test_delta_spark_goes_on_from_our_checksum(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path
) -> None:
    """delta-spark computes its next checksum from ours, and it is that of the state."""
    without_crc(table, *range(7))
    write_version_checksum(spark, str(table))
    delta_spark.run("tests.oracle.upkeep:append", path=str(table), number=9)
    assert "numFiles" in crc(table, 7)
    report = verify(spark, str(table), footers=True)
    assert report.is_clean, str(report)


def test_a_compaction_is_read_instead_of_its_commits(
    spark: SparkSession, delta_spark: DeltaSpark, original: Path, table: Path
) -> None:
    assert compact_log(spark, str(table), start=1, end=5).written
    assert_all_read(spark, delta_spark, table, original)
    without_crc(table, *range(7))
    for version in range(1, 6):
        commit = table / f"_delta_log/{version:020d}.json"
        commit.write_text('{"commitInfo":{"timestamp":1}}\n')
        (commit.parent / f".{commit.name}.crc").unlink(missing_ok=True)
    other = Path(shutil.copytree(table, table.parent / "emptied"))
    expected = delta_spark.run("tests.oracle.upkeep:rows", path=str(original))
    assert delta_spark.run("tests.oracle.upkeep:rows", path=str(other)) == expected


def test_a_cleaned_log_is_read(
    spark: SparkSession, delta_spark: DeltaSpark, original: Path, table: Path
) -> None:
    now = 20_000 * DAY_MS
    for version in range(7):
        set_time(table / f"_delta_log/{version:020d}.json", now - (9 - version) * DAY_MS)
    write_checkpoint(spark, str(table), version=4)
    result = clean_log(spark, str(table), now_ms=now)
    assert result.checkpoint_version == 4
    assert sorted(file.name for file in (table / "_delta_log").glob("*.json")) == [
        f"{version:020d}.json" for version in (4, 5, 6)
    ]
    assert_all_read(spark, delta_spark, table, original)
