"""REPAIR: what is mended, what is left, and that rows stay.

PROTOCOL.md#checkpoints, PROTOCOL.md#version-checksum-file, PROTOCOL.md#last-checkpoint-file
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    compact_log,
    load_snapshot,
    read_delta,
    repair,
    verify,
    write_checkpoint,
    write_version_checksum,
)
from sparkdelta.exceptions import DeltaError
from tests.support.crashing_store import dying_writer
from tests.support.log_writer import write_checksum, write_commit
from tests.support.memory_log import Crash
from tests.support.table_builder import create, ids, write_data, write_vectors


def files_of(table: Path) -> dict[str, bytes]:
    return {str(f.relative_to(table)): f.read_bytes() for f in table.rglob("*") if f.is_file()}


def damaged_table(table: Path, spark: SparkSession) -> Path:
    """Ten files in five versions, of which many things are wrong."""
    actions = [write_data(table, f"{n} é.parquet", ids(n, n + 1)) for n in range(10)]
    create(table, *actions[:2])
    for version in range(1, 5):
        write_commit(table, version, actions[2 * version : 2 * version + 2])
    log = table / "_delta_log"
    write_checkpoint(spark, str(table), version=2)
    compact_log(spark, str(table), start=3, end=4)
    write_version_checksum(spark, str(table))
    (log / f"{2:020d}.checkpoint.parquet").write_bytes(b"nothing")
    compaction = log / f"{3:020d}.{4:020d}.compacted.json"
    compaction.write_text(compaction.read_text().replace("7 é", "8 é").replace("7%20", "8%20"))
    checksum = log / f"{4:020d}.crc"
    checksum.write_text(json.dumps({**json.loads(checksum.read_text()), "numFiles": 7}))
    for hidden in log.glob(".*.crc"):
        hidden.unlink()
    (table / "3 é.parquet").unlink()
    (table / "5 é.parquet").write_bytes(b"short")
    return table


@pytest.mark.slow
def test_repair_replaces_damaged_files(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#state-validation: afterwards nothing is wrong but what was left."""
    table = damaged_table(tmp_path / "table", spark)
    before = files_of(table)
    planned = repair(spark, str(table))
    assert files_of(table) == before
    done = repair(spark, str(table), dry_run=False)
    assert planned.repairs == done.repairs
    assert (planned.version, done.version, done.num_missing_files) == (None, 5, 1)
    mended = {Path(one.file).name for one in done.repairs}
    log = [f"{2:020d}.checkpoint.parquet", f"{3:020d}.{4:020d}.compacted.json", f"{4:020d}.crc"]
    assert mended == {*log, "_last_checkpoint", "3 é.parquet"}
    assert [(check, Path(path).name) for check, path, _ in done.untouched] == [
        ("data file", "5 é.parquet")
    ]
    assert (table / "_delta_log" / f"{log[0]}.damaged").read_bytes() == b"nothing"
    assert "3 é.parquet: does not exist" in str(done)
    assert "5 é.parquet" in str(planned)
    found = verify(spark, str(table)).findings.collect()
    assert [(row.check, Path(row.path).name) for row in found] == [("data file", "5 é.parquet")]
    (table / "5 é.parquet").write_bytes((table / "6 é.parquet").read_bytes())
    rows = read_delta(spark, str(table)).collect()
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 4, 6, 6, 7, 8, 9]
    (commit,) = DeltaTable.forPath(spark, str(table)).history(1).collect()
    assert (commit.operation, commit.operationMetrics["numMissingFiles"]) == ("FSCK", "1")
    assert load_snapshot(spark, str(table)).segment.checkpoint is not None
    assert repair(spark, str(table), dry_run=False).version is None


@pytest.mark.full
def test_repair_leaves_damage_that_could_lose_rows(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#deletion-vectors: rows that a missing vector deleted must not come back.

    PROTOCOL.md#append-only-tables; a table without any file is on a storage that is not there.
    """
    table = tmp_path / "table"
    (vector,) = write_vectors(table, [0])
    kept = write_data(table, "a.parquet", ids(0, 3), deletionVector=vector)
    create(table, kept, write_data(table, "b.parquet", ids(3, 6)))
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                             "readerFeatures": ["deletionVectors"],
                             "writerFeatures": ["deletionVectors"]}}  # fmt: skip
    write_commit(table, 1, [protocol])
    next(table.glob("*.bin")).unlink()
    result = repair(spark, str(table), dry_run=False)
    assert (result.repairs, result.version) == ((), None)
    assert [check for check, *_ in result.untouched] == ["deletion vector"]
    assert "deleted rows would come back" in str(result)
    for file in table.glob("*.parquet"):
        file.unlink()
    assert repair(spark, str(table), dry_run=False).version is None
    append_only = tmp_path / "append only"
    files = (write_data(append_only, f"{n}.parquet", ids(n, n + 1)) for n in range(2))
    create(append_only, *files, configuration={"delta.appendOnly": "true"})
    (append_only / "0.parquet").unlink()
    result = repair(spark, str(append_only), dry_run=False)
    assert ([check for check, *_ in result.untouched], result.version) == (["data file"], None)
    assert "append-only" in str(result)


@pytest.mark.full
def test_a_checkpoint_that_is_needed(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#checkpoints: without its commits a damaged checkpoint is all there is."""
    table = tmp_path / "table"
    create(table, write_data(table, "a.parquet", ids(0, 3)))
    write_commit(table, 1, [write_data(table, "b.parquet", ids(3, 6))])
    write_checkpoint(spark, str(table), version=1)
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    checkpoint = table / "_delta_log" / f"{1:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"nothing")
    with pytest.raises(DeltaError):
        repair(spark, str(table), dry_run=False)
    assert checkpoint.read_bytes() == b"nothing"


def table_of_witnesses(table: Path, spark: SparkSession) -> Path:
    """Seven files in versions 0 to 3; a compaction, a checkpoint and a checksum know commit 1."""
    create(table, write_data(table, "0.parquet", ids(0, 1)))
    for version in range(1, 4):
        files = [write_data(table, f"{version}{n}", ids(version, version + 1)) for n in "ab"]
        write_commit(table, version, [{"commitInfo": {"operation": "WRITE"}}, *files])
    compact_log(spark, str(table), start=1, end=2)
    write_version_checksum(spark, str(table))
    write_checkpoint(spark, str(table), version=2)
    return table


def damage_commit(table: Path, *, is_torn: bool) -> Path:
    """Change a line of commit 1, or take its last line away."""
    commit = table / "_delta_log" / f"{1:020d}.json"
    lines = commit.read_text().splitlines(keepends=True)
    last = [lines[-1].replace('"path"', "~path", 1)] if is_torn else []
    commit.write_text("".join([*lines[:-1], *last]))
    for hidden in commit.parent.glob(".*.crc"):
        hidden.unlink()
    return commit


@pytest.mark.parametrize("is_torn", [True, False])
@pytest.mark.slow
def test_a_damaged_commit_that_checkpoint_and_compaction_know(
    spark: SparkSession, tmp_path: Path, is_torn: bool
) -> None:
    """PROTOCOL.md#checkpoints: what has the rows stays, and the finding is about the commit."""
    table = table_of_witnesses(tmp_path / "table", spark)
    commit = damage_commit(table, is_torn=is_torn)
    before = files_of(table)
    result = repair(spark, str(table), dry_run=False)
    assert {check for check, *_ in result.untouched} == {"log"}
    assert commit.name in {path for _, path, _ in result.untouched}
    assert (result.repairs, files_of(table)) == ((), before)
    assert read_delta(spark, str(table)).count() == 7


@pytest.mark.slow
def test_a_damaged_checkpoint_after_a_damaged_commit(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#checkpoints: it is not put aside, as its version cannot be read without it."""
    table = table_of_witnesses(tmp_path / "table", spark)
    damage_commit(table, is_torn=True)
    (table / "_delta_log" / f"{1:020d}.{2:020d}.compacted.json").unlink()
    checkpoint = table / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"nothing")
    before = files_of(table)
    result = repair(spark, str(table), dry_run=False)
    assert ("checkpoint", checkpoint.name) in {found[:2] for found in result.untouched}
    assert (result.repairs, files_of(table)) == ((), before)


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_replaced(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#checkpoints: what was put aside gets its name back."""
    table = table_of_witnesses(tmp_path / "table", spark)
    checkpoint = table / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"nothing")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("sparkdelta.operations.verify.repair.checkpoint_table", fail)
    with pytest.raises(OSError, match="the disk is full"):
        repair(spark, str(table), dry_run=False)
    assert checkpoint.read_bytes() == b"nothing"
    assert not [*checkpoint.parent.glob("*.damaged")]


@pytest.mark.slow
def test_a_checksum_after_a_wrong_one(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#version-checksum-file: it is not derived from the one before."""
    table = table_of_witnesses(tmp_path / "table", spark)
    last = table / "_delta_log" / f"{3:020d}.crc"
    of_last = json.loads(last.read_text())
    write_checksum(table, 2, of_last)
    write_checksum(table, 3, of_last | {"numFiles": 70})
    assert [one.file for one in repair(spark, str(table), dry_run=False).repairs] == [last.name]
    assert verify(spark, str(table)).is_clean


@pytest.mark.slow
@pytest.mark.classic("stops a writer that creates files itself")
def test_a_crash_at_any_change(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#state-validation: the next run goes on, and rows stay."""
    before = damaged_table(tmp_path / "before", spark)
    nth, died = 0, True
    while died:
        nth, died = nth + 1, False
        for when in ("before", "after"):
            table = tmp_path / f"{nth}-{when}"
            shutil.copytree(before, table)
            with dying_writer(nth, when):
                try:
                    repair(spark, str(table), dry_run=False)
                except Crash:
                    died = True
            left = repair(spark, str(table), dry_run=False).untouched
            assert [Path(path).name for _, path, _ in left] == ["5 é.parquet"]
            assert len(load_snapshot(spark, str(table)).add_files().collect()) == 9
    assert nth > 6
