"""Checkpoints that are damaged, beside commits and version checksums.

PROTOCOL.md#checkpoints
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import clean_log, load_snapshot, read_delta, repair, write_delta
from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.table.checkpoint import checkpoint_reader
from tests.support.distributed import distributed_scans
from tests.support.log_writer import (
    CHECKPOINT,
    Action,
    log_directory,
    set_time,
    write_checkpoint,
    write_checksum,
    write_commit,
    write_last_checkpoint,
    write_parquet,
    write_parts,
    write_v2_checkpoint,
)
from tests.support.reference_model import State, replay
from tests.support.snapshots import raised_by, rows
from tests.support.spark_jobs import counted_jobs
from tests.support.table_builder import ids, metadata, protocol, write_data

CHECKPOINT_TIME = 1_700_000_000_000


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garbage(file: Path) -> None:
    file.write_bytes(b"PAR1" + b"\0" * 200 + b"PAR1")


def without_action_columns(file: Path) -> None:
    pq.write_table(pa.table({"foo": [1]}), file)


def without_adds(file: Path) -> None:
    actions = pq.read_table(file)
    pq.write_table(actions.filter(actions["add"].is_null()), file)


def with_damaged_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = b"\xff" * (end - 4)
    file.write_bytes(data)


def with_other_files(sidecar: Path) -> None:
    """A sidecar of at least its size, without the files that it had."""
    removes = [{"remove": {"path": f"gone-{n}" * 9}} for n in range(60)]
    size = sidecar.stat().st_size
    write_parquet(sidecar, removes, columns=("add", "remove"))
    assert sidecar.stat().st_size >= size


DAMAGES = (truncated, garbage, without_action_columns, without_adds, with_damaged_pages)


@pytest.fixture
def commits(table: Path) -> dict[int, list[Action]]:
    """Four commits of one file each, the last with a version checksum."""
    v2 = protocol(features=["v2Checkpoint"])
    found: dict[int, list[Action]] = {0: [v2, metadata()]}
    for version in range(4):
        file = write_data(table, f"f{version}", ids(version, version + 1))
        found.setdefault(version, []).append(file)
        write_commit(table, version, found[version])
    write_checksum(table, 3, checksum_of(replay(found)))
    return found


@pytest.fixture
def classic(commits: dict[int, list[Action]], table: Path) -> dict[int, list[Action]]:
    """The same without the feature v2Checkpoint: checkpoints are not read for its sidecars."""
    commits[0][0] = protocol()
    write_commit(table, 0, commits[0])
    write_checksum(table, 3, checksum_of(replay(commits)))
    return commits


def checksum_of(state: State, **fields: Any) -> dict[str, Any]:
    assert state.metadata is not None
    assert state.protocol is not None
    return {
        "numFiles": len(state.adds), "tableSizeBytes": sum(a["size"] for a in state.adds.values()),
        "numMetadata": 1, "numProtocol": 1, "metadata": state.metadata["metaData"],
        "protocol": state.protocol["protocol"], **fields,
    }  # fmt: skip


@pytest.mark.every_case
@pytest.mark.parametrize("damage", DAMAGES)
def test_commits_are_read_instead_of_a_damaged_checkpoint(
    spark: SparkSession,
    classic: dict[int, list[Action]],
    table: Path,
    damage: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = write_checkpoint(table, 2, replay(classic, until=2).checkpoint())
    damage(file)
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,), (3,)]
    assert file.name in caplog.text


@pytest.mark.parametrize("damage", DAMAGES[:3])
def test_an_append_succeeds_beside_a_damaged_checkpoint(
    spark: SparkSession,
    classic: dict[int, list[Action]],
    table: Path,
    damage: Callable[[Path], None],
) -> None:
    damage(write_checkpoint(table, 3, replay(classic).checkpoint()))
    write_delta(spark.range(4, 5), str(table), mode="append")
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,), (3,), (4,)]


@pytest.mark.every_case
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_error_names_the_damaged_checkpoint_where_commits_are_gone(
    spark: SparkSession,
    classic: dict[int, list[Action]],
    table: Path,
    damage: Callable[[Path], None],
) -> None:
    file = write_checkpoint(table, 3, replay(classic).checkpoint())
    damage(file)
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    error = raised_by(lambda: read_delta(spark, str(table)).collect())
    assert isinstance(error, MalformedLogFileError)
    assert file.name in error.message  # its fields are gone if a query listed the files


def test_a_distributed_scan_names_the_checkpoint_with_damaged_pages(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path
) -> None:
    """The list of its files is not read by the driver, so that commits cannot take its place."""
    file = write_checkpoint(table, 3, replay(classic).checkpoint())
    with_damaged_pages(file)
    with distributed_scans():
        error = raised_by(lambda: read_delta(spark, str(table)).collect())
    assert isinstance(error, MalformedLogFileError)
    assert file.name in error.problem


@pytest.mark.parametrize("damage", DAMAGES[:4])
def test_each_part_of_a_checkpoint_is_checked(
    spark: SparkSession,
    classic: dict[int, list[Action]],
    table: Path,
    damage: Callable[[Path], None],
) -> None:
    actions = replay(classic).checkpoint()
    files = write_parts(table, 3, [actions[:3], actions[3:]])
    damage(files[1])
    snapshot = load_snapshot(spark, str(table))
    assert set(snapshot.log.broken) == {file.name for file in files}
    assert len(snapshot.add_files().collect()) == 4


@pytest.mark.every_case
@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("damage", [truncated, with_other_files, with_damaged_pages])
def test_commits_are_read_instead_of_damaged_sidecars(
    spark: SparkSession,
    commits: dict[int, list[Action]],
    table: Path,
    damage: Callable[[Path], None],
    as_json: bool,
) -> None:
    state = replay(commits)
    adds = [{"add": add} for add in state.adds.values()]
    top = state.table_actions()
    write_v2_checkpoint(table, 3, top, sidecars=[adds[:2], adds[2:]], as_json=as_json)
    sidecar = sorted((table / "_delta_log" / "_sidecars").iterdir())[1]
    damage(sidecar)
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,), (3,)]


def test_sidecars_that_vanish_after_a_load_are_replaced_by_commits(
    spark: SparkSession, commits: dict[int, list[Action]], table: Path
) -> None:
    state = replay(commits)
    adds = [{"add": add} for add in state.adds.values()]
    write_v2_checkpoint(table, 3, state.table_actions(), sidecars=[adds])
    for file in log_directory(table).iterdir():
        set_time(file, CHECKPOINT_TIME)
    load_snapshot(spark, str(table))
    next((table / "_delta_log" / "_sidecars").iterdir()).unlink()
    assert len(load_snapshot(spark, str(table)).add_files().collect()) == 4


@pytest.mark.parametrize("hint", ["{", {"version": 3, "size": 9}, {"version": 7, "size": 9}])
def test_a_damaged_hint_beside_a_damaged_checkpoint(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path, hint: Any
) -> None:
    write_checkpoint(table, 1, replay(classic, until=1).checkpoint())
    garbage(write_checkpoint(table, 3, replay(classic).checkpoint()))
    write_last_checkpoint(table, hint)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == 1
    assert len(snapshot.add_files().collect()) == 4


def test_the_checksum_is_wrong_where_checkpoint_and_commits_agree(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path
) -> None:
    write_checkpoint(table, 2, replay(classic, until=2).checkpoint())
    write_checksum(table, 3, checksum_of(replay(classic), tableSizeBytes=1))
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,), (3,)]


def test_cleanup_keeps_the_commits_of_a_checkpoint_without_files(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path
) -> None:
    without_adds(write_checkpoint(table, 2, replay(classic, until=2).checkpoint()))
    write_checksum(table, 2, checksum_of(replay(classic, until=2)))
    result = clean_log(spark, str(table), now_ms=CHECKPOINT_TIME + 400 * 24 * 3600 * 1000)
    assert (result.files, result.checkpoint_version) == ((), None)


@pytest.mark.full
def test_a_damaged_checkpoint_is_put_aside_by_repair(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path
) -> None:
    file = write_checkpoint(table, 3, replay(classic).checkpoint())
    without_action_columns(file)
    assert file.name in [one.file for one in repair(spark, str(table), dry_run=False).repairs]
    snapshot = load_snapshot(spark, str(table))
    assert not snapshot.log.broken
    assert len(snapshot.add_files().collect()) == 4


def test_footers_cost_no_job_and_are_read_once(
    spark: SparkSession,
    classic: dict[int, list[Action]],
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = write_checkpoint(table, 2, replay(classic, until=2).checkpoint())
    set_time(file, CHECKPOINT_TIME)
    read: list[object] = []
    read_footers = checkpoint_reader.read_footers

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return read_footers(*arguments)

    monkeypatch.setattr(checkpoint_reader, "read_footers", counted)
    with counted_jobs(spark) as jobs:
        load_snapshot(spark, str(table))
        load_snapshot(spark, str(table))
    assert (len(read), jobs.count) == (1, 0)


def test_a_long_footer_is_read_whole(
    spark: SparkSession, classic: dict[int, list[Action]], table: Path
) -> None:
    file = write_checkpoint(table, 3, replay(classic).checkpoint())
    actions = pq.read_table(file, schema=CHECKPOINT)
    note = {"note": "x" * (1 << 17)}
    pq.write_table(actions.replace_schema_metadata(note), file)
    snapshot = load_snapshot(spark, str(table))
    assert not snapshot.log.broken
    assert len(snapshot.add_files().collect()) == 4
