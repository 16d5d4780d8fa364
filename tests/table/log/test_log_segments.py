"""Every way to lay out one history in a log gives the same state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, load_snapshot
from sparkdelta.base.protocol.actions import Format, Metadata, Protocol
from sparkdelta.base.protocol.log_files import LogFileKind
from sparkdelta.exceptions import (
    MalformedLogFileError,
    TableNotFoundError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from sparkdelta.table.log import loading
from sparkdelta.table.log.table_configuration import TableConfiguration
from tests.support.errors import raises
from tests.support.log_writer import (
    write_checkpoint,
    write_commit,
    write_compaction,
    write_last_checkpoint,
    write_parts,
    write_v2_checkpoint,
)
from tests.support.reference_model import compaction, replay
from tests.support.snapshots import expected, paths, replayed
from tests.support.table_builder import add, create, ids, metadata, protocol, remove, write_data
from tests.table.log.histories import COMMITS, write_history

LATEST = max(COMMITS)
AT = 4


def _classic(table: Path) -> None:
    write_checkpoint(table, AT, replay(COMMITS, until=AT).checkpoint())


def _parts(table: Path) -> None:
    actions = replay(COMMITS, until=AT).checkpoint()
    write_parts(table, AT, [actions[:3], actions[3:5], actions[5:]])


def _v2(
    *, as_json: bool, with_sidecars: bool, classic_name: bool = False
) -> Callable[[Path], None]:
    def write(table: Path) -> None:
        state = replay(COMMITS, until=AT)
        files = state.file_actions()
        top = state.table_actions() + ([] if with_sidecars else files)
        sidecars = [files[:2], files[2:]] if with_sidecars else []
        known = {"uuid": None} if classic_name else {}
        write_v2_checkpoint(table, AT, top, sidecars=sidecars, as_json=as_json, **known)

    return write


CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "classic": _classic,
    "multi-part": _parts,
    "V2 JSON": _v2(as_json=True, with_sidecars=False),
    "V2 JSON with sidecars": _v2(as_json=True, with_sidecars=True),
    "V2 Parquet": _v2(as_json=False, with_sidecars=False),
    "V2 Parquet with sidecars": _v2(as_json=False, with_sidecars=True),
    "V2 with a classic name": _v2(as_json=False, with_sidecars=True, classic_name=True),
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints_with_commits_after_them(spark: SparkSession, table: Path, kind: str) -> None:
    """PROTOCOL.md#checkpoints"""
    CHECKPOINTS[kind](table)
    write_history(table, first=AT + 1)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is not None
    assert replayed(snapshot) == expected(replay(COMMITS))


@pytest.mark.parametrize("kind", ["classic", "V2 JSON with sidecars"])
def test_a_checkpoint_alone_is_a_table(spark: SparkSession, table: Path, kind: str) -> None:
    CHECKPOINTS[kind](table)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.version == AT
    assert snapshot.timestamp is None
    assert replayed(snapshot) == expected(replay(COMMITS, until=AT))
    with raises("DELTA_NO_COMMITS_FOUND"):
        load_snapshot(spark, str(table), timestamp="2024-01-01")
    assert DeltaTable.forPath(spark, str(table)).history().count() == 0


def test_no_checkpoint(spark: SparkSession, table: Path) -> None:
    write_history(table)
    assert replayed(load_snapshot(spark, str(table))) == expected(replay(COMMITS))


@pytest.mark.full
def test_every_version(spark: SparkSession, table: Path) -> None:
    write_history(table)
    CHECKPOINTS["V2 Parquet with sidecars"](table)
    for version in COMMITS:
        state = replay(COMMITS, until=version)
        assert paths(load_snapshot(spark, str(table), version=version)) == sorted(
            fields["path"] for fields in state.adds.values()
        )


@pytest.mark.parametrize("as_json", [True, False])
def test_file_actions_beside_sidecars(
    spark: SparkSession, table: Path, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#v2-spec: they are all in sidecars, or none is; the log is read without it."""
    first = [protocol(features=["v2Checkpoint"]), metadata(), add("a")]
    write_commit(table, 0, first)
    write_commit(table, 1, [add("b")])
    top = write_v2_checkpoint(table, 1, first, sidecars=[[add("b")]], as_json=as_json)
    snapshot = load_snapshot(spark, str(table))
    assert paths(snapshot) == ["a", "b"]
    assert top.name in snapshot.log.broken
    monkeypatch.setattr(loading, "SMALL_CHECKPOINT_BYTES", 0)
    assert top.name in load_snapshot(spark, str(table)).log.broken
    for number in (0, 1):
        (table / "_delta_log" / f"{number:020d}.json").unlink()
    with pytest.raises(MalformedLogFileError):
        load_snapshot(spark, str(table))


def test_sidecars_are_read_though_the_feature_was_dropped_later(
    spark: SparkSession, table: Path
) -> None:
    """The name and content of a checkpoint say of which kind it is, not a later protocol."""
    CHECKPOINTS["V2 Parquet with sidecars"](table)
    dropped = protocol(features=["deletionVectors", "domainMetadata"])
    write_commit(table, AT + 1, [dropped, metadata(), add("new")])
    before = {fields["path"] for fields in replay(COMMITS, until=AT).adds.values()}
    assert set(paths(load_snapshot(spark, str(table)))) == {*before, "new"}


@pytest.mark.parametrize(
    "hint",
    [
        '{"version":4,"size":1}', '{"version":2,"size":1}', '{"version":99,"size":1}', "", "{",
        "[]", '{"version":"4"}', '{"version":4,"size":1,"checksum":"0"}', '{"version":4,"parts":3}',
        '{"version":-1,"size":1}', "\x00\x00",
    ],
)  # fmt: skip
def test_the_hint_is_only_a_hint(spark: SparkSession, table: Path, hint: str) -> None:
    """PROTOCOL.md#last-checkpoint-file"""
    write_history(table)
    _classic(table)
    write_last_checkpoint(table, hint)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.version == LATEST
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == AT


def test_a_hint_that_is_newer_than_the_version_asked_for(spark: SparkSession, table: Path) -> None:
    write_history(table)
    _classic(table)
    write_last_checkpoint(table, {"version": AT, "size": 1})
    assert load_snapshot(spark, str(table), version=2).segment.checkpoint is None


def test_a_hinted_checkpoint_that_is_gone(spark: SparkSession, table: Path) -> None:
    write_history(table)
    write_last_checkpoint(table, {"version": AT, "size": 1})
    assert load_snapshot(spark, str(table)).segment.checkpoint is None


def test_an_incomplete_multi_part_checkpoint_is_ignored(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#multi-part-checkpoint"""
    write_history(table)
    files = write_parts(table, AT, [[], [], []])
    files[1].unlink()
    write_last_checkpoint(table, {"version": AT, "size": 1, "parts": 3})
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is None
    assert replayed(snapshot) == expected(replay(COMMITS))


class TestCompactions:
    """PROTOCOL.md#log-compaction-files"""

    def test_one_is_used(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        write_compaction(table, 1, 5, compaction([COMMITS[v] for v in range(1, 6)]))
        snapshot = load_snapshot(spark, str(table))
        assert [file.kind for file in snapshot.segment.deltas] == [
            LogFileKind.COMMIT, LogFileKind.COMPACTION, LogFileKind.COMMIT,
        ]  # fmt: skip
        assert replayed(snapshot) == expected(replay(COMMITS))

    def test_one_after_a_checkpoint(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        _classic(table)
        write_compaction(table, 3, 5, compaction([COMMITS[v] for v in range(3, 6)]))
        write_compaction(table, 5, 6, compaction([COMMITS[v] for v in range(5, 7)]))
        snapshot = load_snapshot(spark, str(table))
        assert len(snapshot.segment.deltas) == 1
        assert replayed(snapshot) == expected(replay(COMMITS))

    def test_broken_ones_are_left_out(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        broken = [add("wrong"), add("h"), remove("h")]
        write_compaction(table, 1, 5, broken)
        write_compaction(table, 1, 3, broken)
        snapshot = load_snapshot(spark, str(table))
        assert {file.kind for file in snapshot.segment.deltas} == {LogFileKind.COMMIT}
        assert replayed(snapshot) == expected(replay(COMMITS))

    def test_the_good_one_of_two_stays(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        write_compaction(table, 1, 5, [add("wrong"), add("h"), remove("h")])
        write_compaction(table, 2, 4, compaction([COMMITS[v] for v in range(2, 5)]))
        snapshot = load_snapshot(spark, str(table))
        used = [f.version for f in snapshot.segment.deltas if f.kind is LogFileKind.COMPACTION]
        assert used == [2]
        assert replayed(snapshot) == expected(replay(COMMITS))

    def test_a_broken_one_whose_commits_are_gone(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        write_compaction(table, 1, 3, [add("h"), remove("h")])
        (table / "_delta_log" / f"{2:020d}.json").unlink()
        with pytest.raises(VersionsNotContiguousError):
            load_snapshot(spark, str(table))

    def test_timestamps_never_come_from_one(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        before = load_snapshot(spark, str(table)).timestamp_ms
        write_compaction(table, 4, 6, compaction([COMMITS[v] for v in range(4, 7)]))
        assert load_snapshot(spark, str(table)).timestamp_ms == before


class TestErrors:
    """Errors for directories that cannot be a table, which say what is wrong."""

    def test_no_table(self, spark: SparkSession, table: Path) -> None:
        with pytest.raises(TableNotFoundError) as raised:
            load_snapshot(spark, str(table))
        assert raised.value.path.endswith("/table")
        (table / "_delta_log").mkdir(parents=True)
        (table / "_delta_log" / "notes.txt").write_text("x")
        with pytest.raises(TableNotFoundError):
            load_snapshot(spark, str(table))

    def test_paths_near_a_table_get_advice(self, spark: SparkSession, tmp_path: Path) -> None:
        table = create(tmp_path / "a b", write_data(tmp_path / "a b", "p=1/q=2/f", ids(0, 1)))
        plain = TableNotFoundError(path="").advice
        parquet = tmp_path / "[x]"
        write_data(parquet, "part.parquet", ids(0, 1))

        def advice(path: object) -> str:
            with pytest.raises(TableNotFoundError) as raised:
                load_snapshot(spark, str(path))
            return raised.value.advice

        root = f"path={str(table)!r}"
        for inside in ("p=1", "p=1/q=2/", "p=1/q=2/f", "_delta_log", "_delta_log/00.json"):
            assert root in advice(f"{table}/{inside}")
        assert f"{root}, version=0" in advice(table / "_delta_log" / f"{0:020d}.json")
        assert f"{root}, version=7" in advice(f"{table}@v7")
        assert "spark.read.parquet" in advice(parquet)
        assert advice(tmp_path / "nothing") == advice(f"{tmp_path}/nothing@v1") == plain
        with pytest.raises(TableNotFoundError) as raised:
            DeltaTable.forPath(spark, f"{table}@v7")
        assert root in raised.value.advice

    def test_versions_beyond_the_log(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        for version in (-1, LATEST + 1):
            with pytest.raises(VersionNotFoundError) as raised:
                load_snapshot(spark, str(table), version=version)
            error = raised.value
            assert (error.version, error.earliest, error.latest) == (version, 0, LATEST)

    def test_a_gap(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        (table / "_delta_log" / f"{3:020d}.json").unlink()
        with pytest.raises(VersionsNotContiguousError):
            load_snapshot(spark, str(table))
        assert load_snapshot(spark, str(table), version=2).version == 2

    def test_a_truncated_log(self, spark: SparkSession, table: Path) -> None:
        write_history(table, first=1)
        with pytest.raises(TruncatedTransactionLogError):
            load_snapshot(spark, str(table))

    def test_versions_before_the_first_checkpoint(self, spark: SparkSession, table: Path) -> None:
        write_history(table, first=3)
        _classic(table)
        with pytest.raises(VersionNotFoundError) as raised:
            load_snapshot(spark, str(table), version=3)
        assert raised.value.earliest == AT

    def test_parts_without_the_rest(self, spark: SparkSession, table: Path) -> None:
        write_parts(table, AT, [[], []])[0].unlink()
        with raises("DELTA_MISSING_PART_FILES"):
            load_snapshot(spark, str(table))

    def test_no_protocol_and_no_metadata(self, spark: SparkSession, table: Path) -> None:
        write_commit(table, 0, [metadata()])
        with raises("DELTA_STATE_RECOVER_ERROR") as raised:
            load_snapshot(spark, str(table))
        assert raised.value.what == "protocol"
        write_commit(table, 0, [protocol()])
        with raises("DELTA_STATE_RECOVER_ERROR") as raised:
            load_snapshot(spark, str(table))
        assert raised.value.what == "metadata"

    def test_a_schema_that_is_none(self, spark: SparkSession, table: Path) -> None:
        action = metadata()
        action["metaData"]["schemaString"] = json.dumps({"type": "array"})
        write_commit(table, 0, [protocol(), action])
        with pytest.raises(Exception, match="DELTA_INVALID_SCHEMA"):
            load_snapshot(spark, str(table))

    def test_data_files_that_are_no_parquet(self) -> None:
        """PROTOCOL.md#format-specification"""
        schema = json.dumps({"type": "struct", "fields": []})
        stated = Metadata(id="0", schema_string=schema, format=Format("PARQUET"))
        TableConfiguration.validate(Protocol(1, 2), stated, path="t")
        other = Metadata(id="0", schema_string=schema, format=Format("orc"))
        with raises("DELTA_UNSUPPORTED_FORMAT") as raised:
            TableConfiguration.validate(Protocol(1, 2), other, path="t")
        assert raised.value.provider == "orc"

    def test_foreign_files_are_nobodys_business(self, spark: SparkSession, table: Path) -> None:
        create(table, add("a"))
        log = table / "_delta_log"
        for name in (
            "00000000000000000001.json.tmp", ".00000000000000000001.json.crc", "1.json",
            "00000000000000000009.checkpoint.parquet.crc", "_staged_commits.json", "x.json",
            "00000000000000000009.checkpoint.1.2.parquet",
        ):  # fmt: skip
            (log / name).write_text("{")
        (log / "00000000000000000001.json.d").mkdir()
        (log / "00000000000000000002.json").mkdir()
        assert load_snapshot(spark, str(table)).version == 0
