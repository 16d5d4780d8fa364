"""Tests of what follows a commit: checksum, checkpoint, cleanup and compaction; none of it takes it
back.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta, write_checkpoint, write_delta
from sparkdelta.base.protocol.table_properties import CHECKPOINT_IN_BACKGROUND
from sparkdelta.operations.upkeep import commit_hooks
from tests.support.checksums import assert_checksums
from tests.support.spark_jobs import counted_jobs


def append(spark: SparkSession, path: str, **options: object) -> int | None:
    frame = spark.range(3).coalesce(1)
    return write_delta(frame, path, mode="append", **options).version  # type: ignore[arg-type]


def log(path: str, suffix: str) -> list[int]:
    """The versions that have a file of this kind."""
    return sorted(int(p.name[:20]) for p in Path(path, "_delta_log").glob(f"*{suffix}"))


def crc(path: str, version: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        Path(path, "_delta_log", f"{version:020d}.crc").read_text()
    )
    return found


def test_every_commit_has_its_checksum(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#version-checksum-file: as replay of the whole log would say."""
    for number in range(3):
        append(spark, table_path, txn_app_id="app", txn_version=number)
    write_delta(spark.range(1), table_path, mode="overwrite")
    assert assert_checksums(table_path) == [0, 1, 2, 3]
    last = crc(table_path, 2)
    assert last["numFiles"] == 3
    assert last["setTransactions"][0]["version"] == 2  # type: ignore[index]
    assert crc(table_path, 3)["numFiles"] == 1


@pytest.mark.classic("counts Spark's jobs")
def test_an_append_takes_few_jobs(spark: SparkSession, table_path: str) -> None:
    """One Spark job, that of the rows themselves."""
    properties = {"delta.checkpointInterval": "4"}
    append(spark, table_path, properties=properties)
    for _ in range(3):
        with counted_jobs(spark) as jobs:
            append(spark, table_path)
        assert jobs.count == 1
    append(spark, table_path)
    assert log(table_path, ".checkpoint.parquet") == [4]
    with counted_jobs(spark) as jobs:
        append(spark, table_path)
    assert jobs.count == 1


@pytest.mark.full
def test_checksums_that_others_did_not_write(spark: SparkSession, table_path: str) -> None:
    """The last one is found, and the commits since are added; a table without any gets one with its
    next checkpoint.
    """
    for _ in range(4):
        append(spark, table_path)
    for version in (1, 2, 3):
        Path(table_path, "_delta_log", f"{version:020d}.crc").unlink()
    append(spark, table_path)
    assert log(table_path, ".crc") == [0, 4]
    write_checkpoint(spark, table_path)
    for version in range(5):
        Path(table_path, "_delta_log", f"{version:020d}.json").unlink()
    for version in (0, 4):
        Path(table_path, "_delta_log", f"{version:020d}.crc").unlink()
    for _ in range(6):
        append(spark, table_path)
    assert log(table_path, ".crc") == [10]
    assert log(table_path, ".checkpoint.parquet") == [4, 10]
    assert crc(table_path, 10)["numFiles"] == 11


@pytest.mark.full
def test_cleanup_follows_a_checkpoint(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#metadata-cleanup"""
    append(spark, table_path, properties={"delta.checkpointInterval": "1"})
    append(spark, table_path)
    long_ago = time.time() - 40 * 24 * 3600
    for version in range(2):
        os.utime(Path(table_path, "_delta_log", f"{version:020d}.json"), (long_ago, long_ago))
    append(spark, table_path)
    assert log(table_path, "[0-9].json") == [1, 2]
    assert read_delta(spark, table_path).count() == 9


def test_no_cleanup_where_the_table_wants_none(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#metadata-cleanup, as `delta.enableExpiredLogCleanup` says."""
    properties = {"delta.checkpointInterval": "1", "delta.enableExpiredLogCleanup": "False"}
    append(spark, table_path, properties=properties)
    steps = []
    for name in ("checkpoint_table", "clean_metadata"):
        monkeypatch.setattr(commit_hooks, name, lambda *_, called=name, **__: steps.append(called))
    append(spark, table_path)
    assert steps == ["checkpoint_table"]


@pytest.mark.full
def test_compaction_if_the_table_asks_for_it(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#log-compaction-files"""
    append(spark, table_path, properties={"sparkdelta.logCompactionInterval": "2"})
    for _ in range(3):
        append(spark, table_path)
    names = sorted(p.name for p in Path(table_path, "_delta_log").glob("*compacted*"))
    assert names == [f"{a:020d}.{b:020d}.compacted.json" for a, b in ((0, 1), (2, 3))]
    assert read_delta(spark, table_path).count() == 12


def test_failures_after_a_commit_are_logged(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The commit stands, and the steps do not wait for each other."""
    append(spark, table_path, properties={"delta.checkpointInterval": "1"})

    def fail(*_: object, **__: object) -> None:
        raise ConnectionResetError("lost")

    with monkeypatch.context() as patched:
        patched.setattr(commit_hooks, "add_checksum_of_commit", fail)
        patched.setattr(commit_hooks, "checkpoint_table", fail)
        assert append(spark, table_path) == 1
    texts = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [text.partition(", but its ")[2] for text in texts] == [
        "version checksum failed: lost", "checkpoint failed: lost",
    ]  # fmt: skip
    assert all("Version 1" in text and "was committed" in text for text in texts)
    assert append(spark, table_path, user_metadata="next") == 2
    # On Spark Connect, 1 has its checksum by the request of its commit.
    assert {*log(table_path, ".crc")} - {1} == {0, 2}
    assert log(table_path, ".checkpoint.parquet") == [2]


def test_a_property_that_is_none(
    spark: SparkSession, table_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another engine may have written it; that is no reason not to append."""
    append(spark, table_path)
    commit = Path(table_path, "_delta_log", f"{0:020d}.json")
    text = commit.read_text().replace(
        '"configuration":{}', '"configuration":{"delta.checkpointInterval":"often"}'
    )
    commit.write_text(text)
    Path(table_path, "_delta_log", f"{0:020d}.crc").unlink()
    assert append(spark, table_path) == 1
    assert "delta.checkpointInterval" in caplog.text


def test_a_checkpoint_in_the_background(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """PROTOCOL.md#checkpoints: the writer does not wait; of several due ones the newest is
    written.
    """
    begun, free, written = Event(), Event(), commit_hooks.checkpoint_table

    def waits(*arguments: Any, **named: Any) -> Any:
        begun.set()
        assert free.wait(300)
        return written(*arguments, **named)

    monkeypatch.setattr(commit_hooks, "checkpoint_table", waits)
    properties = {"delta.checkpointInterval": "2", CHECKPOINT_IN_BACKGROUND: "true"}
    append(spark, table_path, properties=properties)
    for _ in range(2):
        append(spark, table_path)
    assert begun.wait(300)
    for _ in range(4):
        append(spark, table_path)
    assert log(table_path, ".checkpoint.parquet") == []
    free.set()
    commit_hooks.BACKGROUND.wait()
    assert log(table_path, ".checkpoint.parquet") == [2, 6]
    assert read_delta(spark, table_path).count() == 21

    def fails(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("no space left")

    monkeypatch.setattr(commit_hooks, "checkpoint_table", fails)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            append(spark, table_path)
        commit_hooks.BACKGROUND.wait()
    assert "its checkpoint in the background failed: no space left" in caplog.text
    assert assert_checksums(table_path) == [*range(9)]
