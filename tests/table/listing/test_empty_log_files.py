"""Files of the log that lost their content; Spark passes over a file of no bytes.

A version checksum is beside each, which has the protocol and the metaData, so that nothing but the
damaged file could tell.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, verify, write_checkpoint
from sparkdelta.exceptions import (
    DeltaError,
    MalformedLogFileError,
    TruncatedTransactionLogError,
)
from tests.support.log_writer import (
    Action,
    log_directory,
    write_checksum,
    write_commit,
    write_compaction,
    write_v2_checkpoint,
)
from tests.support.log_writer import write_checkpoint as write_classic
from tests.support.reference_model import compaction, replay
from tests.support.snapshots import paths
from tests.support.table_builder import add, metadata, protocol, remove

COMMITS: dict[int, list[Action]] = {
    0: [protocol(features=["v2Checkpoint"]), metadata(), add("a")],
    1: [add("b"), add("c")],
    2: [remove("a"), add("d")],
}
STATE = replay(COMMITS)
LIVE = sorted(STATE.adds)


@pytest.fixture
def log(table: Path) -> Path:
    """The log of three commits and a version checksum."""
    for version, actions in COMMITS.items():
        write_commit(table, version, actions)
    table_actions = {**COMMITS[0][0], **COMMITS[0][1]}
    document = {"protocol": table_actions["protocol"], "metadata": table_actions["metaData"]}
    write_checksum(table, 2, document)
    return log_directory(table)


def sidecars(as_json: bool, table: Path) -> Path:
    """A checkpoint of the latest version with two sidecars."""
    adds: list[Action] = [{"add": action} for action in STATE.adds.values()]
    return write_v2_checkpoint(
        table, 2, STATE.table_actions(), sidecars=[adds[:1], adds[1:]], as_json=as_json
    )


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [True, False])
def test_a_sidecar(spark: SparkSession, table: Path, log: Path, as_json: bool) -> None:
    """PROTOCOL.md#sidecar-files"""
    checkpoint = sidecars(as_json, table)
    assert load_snapshot(spark, str(table)).log.sidecars
    sidecar = min(table.rglob("_sidecars/*"))
    for damage in (
        lambda: sidecar.write_bytes(b""),
        sidecar.unlink,
    ):
        damage()
        assert_read_without(spark, table, checkpoint, sidecar.name)
    written = write_checkpoint(spark, str(table), kind="v2-json")
    assert (written.num_adds, written.num_reused_sidecars) == (len(LIVE), 0)
    assert log.joinpath(str(written.file)).exists()


@pytest.mark.full
@pytest.mark.parametrize("kept", [[0], [0, 1], [1, 2, 3, 4]])
def test_lines_of_a_json_checkpoint(
    spark: SparkSession, table: Path, log: Path, kept: list[int]
) -> None:
    """PROTOCOL.md#v2-spec"""
    checkpoint = sidecars(True, table)
    lines = checkpoint.read_text().splitlines(keepends=True)
    checkpoint.write_text("".join(lines[n] for n in kept))
    missing = "checkpointMetadata" if 0 not in kept else ["protocol", "metaData"][len(kept) - 1]
    assert_read_without(spark, table, checkpoint, f"has no {missing}")
    (log / f"{0:020d}.json").unlink()
    with pytest.raises(MalformedLogFileError, match=f"{checkpoint.name} has no {missing}"):
        load_snapshot(spark, str(table))


def assert_read_without(spark: SparkSession, table: Path, checkpoint: Path, problem: str) -> None:
    """From the commits, saying so."""
    snapshot = load_snapshot(spark, str(table))
    assert paths(snapshot) == LIVE
    assert problem in snapshot.log.broken[checkpoint.name]
    assert not verify(spark, str(table)).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "parquet", "classic"])
def test_a_checkpoint_is_none_where_the_log_says_the_same(
    spark: SparkSession, table: Path, log: Path, kind: str
) -> None:
    """PROTOCOL.md#checkpoints"""
    if kind == "classic":
        checkpoint = write_classic(table, 2, STATE.checkpoint())
    else:
        checkpoint = sidecars(kind == "json", table)
    checkpoint.write_bytes(b"")
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is None
    assert paths(snapshot) == LIVE
    found = verify(spark, str(table)).findings.filter("check = 'log'").collect()
    assert [tuple(row) for row in found] == [("log", checkpoint.name, "has no bytes")]
    (log / f"{0:020d}.json").unlink()
    with pytest.raises(TruncatedTransactionLogError):
        load_snapshot(spark, str(table))


def test_a_compaction(spark: SparkSession, table: Path, log: Path) -> None:
    """PROTOCOL.md#log-compaction-files"""
    file = write_compaction(table, 1, 2, compaction([COMMITS[1], COMMITS[2]]))
    assert len(load_snapshot(spark, str(table)).segment.deltas) == 2
    file.write_bytes(b"")
    snapshot = load_snapshot(spark, str(table))
    assert len(snapshot.segment.deltas) == 3
    assert paths(snapshot) == LIVE
    (log / f"{1:020d}.json").unlink()
    with pytest.raises(DeltaError):
        load_snapshot(spark, str(table))


def test_a_commit(spark: SparkSession, table: Path, log: Path) -> None:
    """PROTOCOL.md#delta-log-entries-1"""
    snapshot = load_snapshot(spark, str(table))
    write_commit(table, 3, "")
    for query in (snapshot.refresh, lambda: load_snapshot(spark, str(table))):
        with pytest.raises(MalformedLogFileError, match=f"{3:020d}.json has no bytes"):
            query()
    assert load_snapshot(spark, str(table), version=2).version == 2
    assert not verify(spark, str(table)).is_clean
    write_classic(table, 3, STATE.checkpoint())  # which says what the commit said
    assert paths(load_snapshot(spark, str(table))) == LIVE
