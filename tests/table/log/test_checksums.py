"""Version checksums that are left of commits that were taken back by hand.

PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, sql, verify, write_delta, write_version_checksum
from tests.support.checksums import assert_checksums
from tests.support.log_writer import write_checkpoint, write_checksum, write_commit
from tests.support.table_builder import add, metadata, protocol

ICT = {"delta.enableInCommitTimestamps": "true"}


def checksum(**fields: Any) -> dict[str, Any]:
    return {
        "tableSizeBytes": 1, "numFiles": 77, "numMetadata": 1, "numProtocol": 1,
        "metadata": metadata(table_id="taken back")["metaData"],
        "protocol": protocol()["protocol"], **fields,
    }  # fmt: skip


def info(**fields: Any) -> dict[str, Any]:
    return {"commitInfo": {"operation": "WRITE", **fields}}


def test_an_append_replaces_the_checksum_of_a_commit_that_was_taken_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_delta(spark.range(3), path)
    sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMNS (bad STRING)")
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    write_delta(spark.range(3, 5), path, mode="append")
    assert assert_checksums(path) == [0, 1]
    assert load_snapshot(spark, path).schema.names == ["id"]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("commit", "left", "is_used"),
    [
        ({"txnId": "b"}, {"txnId": "a"}, False),
        ({}, {"txnId": "a"}, False),
        ({"txnId": "b"}, {}, True),
        ({"txnId": "b"}, {"txnId": "b"}, True),
        ({"inCommitTimestamp": 2}, {"inCommitTimestampOpt": 1}, False),
        ({"inCommitTimestamp": 2}, {"inCommitTimestampOpt": 2}, True),
    ],
)
def test_readers_use_only_the_checksum_of_the_commit(
    spark: SparkSession,
    table: Path,
    commit: dict[str, Any],
    left: dict[str, Any],
    is_used: bool,
) -> None:
    write_commit(table, 0, [protocol(), metadata(), info(**commit), add("a")])
    write_checksum(table, 0, checksum(**left))
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.metadata.id == ("taken back" if is_used else "0")
    assert (snapshot.version_checksum is not None) == is_used
    assert snapshot.state.num_files == (77 if is_used else None)


def test_the_checksum_beside_a_checkpoint_is_compared_with_the_commit(
    spark: SparkSession, table: Path
) -> None:
    """No commit is replayed then."""
    actions = [protocol(), metadata(), add("a")]
    write_commit(table, 0, [*actions, info(txnId="b")])
    write_checkpoint(table, 0, actions)
    write_checksum(table, 0, checksum(txnId="a"))
    assert load_snapshot(spark, str(table)).metadata.id == "0"


def test_a_refreshed_snapshot_ignores_the_checksum_of_another_commit(
    spark: SparkSession, table: Path
) -> None:
    write_commit(table, 0, [protocol(), metadata(), add("a")])
    snapshot = load_snapshot(spark, str(table))
    write_commit(table, 1, [info(txnId="b"), add("b")])
    write_checksum(table, 1, checksum(txnId="a"))
    assert snapshot.refresh().metadata.id == "0"


def test_the_checksum_of_another_commit_is_written_again(spark: SparkSession, table: Path) -> None:
    write_commit(table, 0, [protocol(), metadata(), info(txnId="b"), add("a", size=5)])
    file = write_checksum(table, 0, checksum(txnId="a"))
    [finding] = [c for c in verify(spark, str(table)).checks if c.name == "version checksum"]
    assert finding.num_findings
    assert write_version_checksum(spark, str(table)).written
    written = json.loads(file.read_text())
    assert (written["txnId"], written["tableSizeBytes"], written["numFiles"]) == ("b", 5, 1)
    assert not write_version_checksum(spark, str(table)).written


def test_the_next_checksum_is_not_derived_from_that_of_another_commit(
    spark: SparkSession, table: Path
) -> None:
    write_commit(table, 0, [protocol(), metadata(), info(txnId="b"), add("a", size=5)])
    write_commit(table, 1, [info(txnId="c"), add("b", size=7)])
    write_version_checksum(spark, str(table), version=0)
    of_first = table / "_delta_log" / f"{0:020d}.crc"
    stale = json.loads(of_first.read_text()) | {"txnId": "a", "numFiles": 70}
    of_first.write_text(json.dumps(stale))
    assert not write_version_checksum(spark, str(table)).incremental
    written = json.loads((table / "_delta_log" / f"{1:020d}.crc").read_text())
    assert (written["numFiles"], written["metadata"]["id"]) == (2, "0")


def test_timestamps_are_not_those_of_a_commit_that_was_taken_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_delta(spark.range(3), path, properties=ICT)
    write_delta(spark.range(3), path, mode="append")
    left = tmp_path / "_delta_log" / f"{1:020d}.crc"
    stale = json.loads(left.read_text()) | {"txnId": "a", "inCommitTimestampOpt": 1}
    left.write_text(json.dumps(stale))
    first, last = (load_snapshot(spark, path, version=v).timestamp_ms for v in (0, 1))
    assert first is not None
    assert last is not None
    assert first < last
