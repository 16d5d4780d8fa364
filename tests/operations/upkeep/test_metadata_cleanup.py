"""Metadata cleanup of real logs. PROTOCOL.md#metadata-cleanup"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import clean_log, load_snapshot, write_version_checksum
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.exceptions import VersionNotFoundError
from sparkdelta.operations.upkeep.metadata_cleanup_rules import DAY_MS
from tests.support.errors import raises
from tests.support.log_writer import (
    UUID,
    set_time,
    write_checkpoint,
    write_checksum,
    write_commit,
    write_compaction,
    write_last_checkpoint,
    write_v2_checkpoint,
)
from tests.support.reference_model import compaction, replay
from tests.support.snapshots import expected, replayed
from tests.support.table_builder import add, metadata, protocol, remove

FIRST = 20_000 * DAY_MS
NOW = FIRST + 10 * DAY_MS + 1
FEATURES = ["v2Checkpoint", "domainMetadata"]
COMMITS: dict[int, list[Any]] = {
    0: [protocol(features=FEATURES),
        metadata(configuration={"delta.logRetentionDuration": "interval 3 days"}), add("a")],
    1: [add("b")], 2: [remove("a")], 3: [add("c")], 4: [add("d"), remove("b")], 5: [add("e")],
    6: [add("f")], 7: [remove("e")], 8: [add("g")], 9: [add("h")],
}  # fmt: skip


def write_log(table: Path, commits: dict[int, list[Any]] = COMMITS) -> None:
    """A commit a day at noon; on day 10, those of the last three days are within retention, and
    version 6 is the newest before."""
    for version, actions in commits.items():
        write_commit(table, version, actions, time_ms=FIRST + version * DAY_MS + DAY_MS // 2)


def v2(table: Path, version: int, *, uuid: str | None = UUID) -> list[Path]:
    """A V2 checkpoint with two sidecars, a week old."""
    state = replay(COMMITS, until=version)
    files = state.file_actions()
    before = set(table.rglob("_sidecars/*"))
    write_v2_checkpoint(
        table, version, state.table_actions(), sidecars=[files[:1], files[1:]], uuid=uuid
    )
    new = sorted(set(table.rglob("_sidecars/*")) - before)
    for file in new:
        set_time(file, NOW - 7 * DAY_MS)
    return new


def names(table: Path) -> set[str]:
    log = table / "_delta_log"
    return {str(file.relative_to(log)) for file in log.rglob("*") if file.is_file()}


def assert_reads(spark: SparkSession, table: Path, version: int) -> None:
    snapshot = load_snapshot(spark, str(table), version=version)
    assert replayed(snapshot) == expected(replay(COMMITS, until=version))


@pytest.mark.slow
def test_it_deletes_what_no_version_within_retention_needs(
    spark: SparkSession, table: Path
) -> None:
    write_log(table)
    write_checkpoint(table, 3, replay(COMMITS, until=3).checkpoint())
    write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
    gone = v2(table, 2)
    kept_sidecars = v2(table, 8)
    orphan, fresh = (table / f"_delta_log/_sidecars/{name}.parquet" for name in ("old", "new"))
    for file, age in ((orphan, 3), (fresh, 0)):
        file.write_bytes(b"")
        set_time(file, NOW - age * DAY_MS)
    for version in range(10):
        write_checksum(table, version, {})
    write_compaction(table, 5, 7, [])
    write_compaction(table, 0, 4, [])
    staged = table / "_delta_log/_staged_commits"
    staged.mkdir()
    for version in (4, 6):
        (staged / f"{version:020d}.{UUID}.json").write_text("")
    write_last_checkpoint(table, {"version": 8, "size": 1})
    (table / "_delta_log/notes.txt").write_text("")
    left_behind = [table / f"_delta_log/.sparkdelta-{UUID[:-1]}{n}" for n in range(2)]
    for directory, age in zip(left_behind, (3, 0), strict=True):
        directory.mkdir()
        (directory / "part").write_text("")
        temporary = directory.with_name(f"{directory.name}.tmp")
        temporary.write_text("")
        for file in (directory, temporary):
            set_time(file, NOW - age * DAY_MS)
    before = names(table)

    planned = clean_log(spark, str(table), now_ms=NOW, dry_run=True)
    assert names(table) == before
    done = clean_log(spark, str(table), now_ms=NOW)
    assert (done.cutoff_time_ms, done.cutoff_version, done.checkpoint_version) == (
        FIRST + 7 * DAY_MS, 6, 5,
    )  # fmt: skip
    assert sorted(done.files) == sorted(planned.files)
    directory = left_behind[0].name
    gone_names = before - names(table) - {f"{directory}/part"}
    assert set(done.files) == {*gone_names, directory}
    assert names(table) == {
        *(f"{v:020d}.{kind}" for v in range(5, 10) for kind in ("json", "crc")),
        f"{5:020d}.checkpoint.parquet",
        f"{8:020d}.checkpoint.{UUID}.parquet",
        *(f"_sidecars/{file.name}" for file in [*kept_sidecars, fresh]),
        f"_staged_commits/{6:020d}.{UUID}.json",
        "_last_checkpoint",
        "notes.txt",
        f"{left_behind[1].name}/part",
        f"{left_behind[1].name}.tmp",
    }
    assert all(f"_sidecars/{file.name}" in done.files for file in gone)
    for version in (5, 6, 9):
        assert_reads(spark, table, version)
    with pytest.raises(VersionNotFoundError):
        load_snapshot(spark, str(table), version=4)
    assert clean_log(spark, str(table), now_ms=NOW).files == ()


@pytest.mark.slow
@pytest.mark.classic("makes the storage of this process fail")
def test_wherever_it_dies_the_next_one_finishes(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(table)
    write_checkpoint(table, 2, replay(COMMITS, until=2).checkpoint())
    write_compaction(table, 0, 4, compaction([COMMITS[v] for v in range(5)]))
    v2(table, 5)
    delete = LocalLogStore.delete
    for done in (1, 2):

        def die(store: LocalLogStore, names: list[str], done: int = done) -> None:
            delete(store, names[:done])
            raise OSError("no more")

        monkeypatch.setattr(LocalLogStore, "delete", die)
        with pytest.raises(OSError, match="no more"):
            clean_log(spark, str(table), now_ms=NOW)
        assert_reads(spark, table, 6)
    monkeypatch.undo()
    clean_log(spark, str(table), now_ms=NOW)
    assert not any(name < f"{5:020d}" for name in names(table) if name[0].isdigit())
    assert_reads(spark, table, 9)


def test_nothing_goes_without_a_complete_checkpoint(spark: SparkSession, table: Path) -> None:
    write_log(table)
    write_checkpoint(table, 7, replay(COMMITS, until=7).checkpoint())
    before = names(table)
    result = clean_log(spark, str(table), now_ms=NOW)
    assert (result.files, result.checkpoint_version, names(table)) == ((), None, before)
    assert result.reason


@pytest.mark.full
def test_a_checkpoint_whose_sidecars_are_gone_is_not_complete(
    spark: SparkSession, table: Path
) -> None:
    write_log(table)
    v2(table, 2)
    lost, _ = v2(table, 5)
    lost.unlink()
    result = clean_log(spark, str(table), now_ms=NOW)
    assert result.checkpoint_version == 2
    assert_reads(spark, table, 4)


@pytest.mark.full
@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("size", [0, 40])
def test_a_checkpoint_that_cannot_be_read_is_not_complete(
    spark: SparkSession, table: Path, as_json: bool, size: int
) -> None:
    """A checkpoint that cannot be read does not count, even where a version checksum says what it
    should hold.
    """
    write_log(table)
    v2(table, 2)
    write_version_checksum(spark, str(table), version=5)
    state = replay(COMMITS, until=5)
    file = write_v2_checkpoint(table, 5, state.table_actions(), as_json=as_json)
    file.write_bytes(file.read_bytes()[:size])
    result = clean_log(spark, str(table), now_ms=NOW)
    assert result.checkpoint_version == 2
    file.unlink()
    assert_reads(spark, table, 5)


def test_files_in_use_stay_at_a_later_time_than_the_clock(spark: SparkSession, table: Path) -> None:
    write_log(table)
    write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
    in_use = table / f"_delta_log/.sparkdelta-{UUID}"
    in_use.mkdir()
    now = int(in_use.stat().st_mtime * 1000)
    result = clean_log(spark, str(table), now_ms=now + 100 * DAY_MS)
    assert f"{0:020}.json" in result.files
    assert in_use.is_dir()


def test_nothing_goes_that_has_not_expired(spark: SparkSession, table: Path) -> None:
    write_log(table)
    write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
    result = clean_log(spark, str(table), now_ms=FIRST + 3 * DAY_MS)
    assert (result.files, result.cutoff_version) == ((), None)


def test_a_table_may_ask_for_its_whole_log(spark: SparkSession, table: Path) -> None:
    settings = {
        "delta.logRetentionDuration": "interval 3 days", "delta.enableExpiredLogCleanup": "false",
    }  # fmt: skip
    write_log(table, {**COMMITS, 9: [metadata(configuration=settings)]})
    write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
    result = clean_log(spark, str(table), now_ms=NOW)
    assert result.files == ()
    assert "delta.enableExpiredLogCleanup" in (result.reason or "")


def test_in_commit_timestamps_decide_where_they_are_enabled(
    spark: SparkSession, table: Path
) -> None:
    """PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps"""
    configuration = {
        "delta.enableInCommitTimestamps": "true", "delta.logRetentionDuration": "interval 3 days",
    }  # fmt: skip
    first = [protocol(features=["inCommitTimestamp"]), metadata(configuration=configuration)]
    for version in range(6):
        moment = FIRST + version * DAY_MS
        info = {"commitInfo": {"inCommitTimestamp": moment, "operation": "WRITE"}}
        actions = [info, *(first if version == 0 else [add(str(version))])]
        write_commit(table, version, actions, time_ms=NOW)
        write_checkpoint(table, version, [*first, add(str(version))])
    result = clean_log(spark, str(table), now_ms=FIRST + 7 * DAY_MS - 1)
    assert (result.cutoff_version, result.checkpoint_version) == (3, 3)
    for file in (table / "_delta_log").glob("*.json"):
        os.utime(file, (0, 0))
    assert clean_log(spark, str(table), now_ms=FIRST + 7 * DAY_MS - 1).files == ()


@pytest.mark.parametrize("feature", ["futureFeature"])
def test_a_writer_feature_that_is_not_implemented_stops_it(
    spark: SparkSession, table: Path, feature: str
) -> None:
    refused = protocol(features=FEATURES)
    refused["protocol"]["writerFeatures"] = [*FEATURES, feature]
    write_log(table, {**COMMITS, 9: [refused]})
    write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
    before = names(table)
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as error:
        clean_log(spark, str(table), now_ms=NOW)
    assert error.value.features == (feature,)
    assert names(table) == before
