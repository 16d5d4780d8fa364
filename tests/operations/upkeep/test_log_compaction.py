"""Log compaction files that are written, and what readers make of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import compact_log, load_snapshot
from sparkdelta.exceptions import InvalidArgumentError, VersionsNotContiguousError
from sparkdelta.table.listing import line_reader as log_text
from tests.support.errors import raises
from tests.support.log_writer import (
    Action,
    write_checkpoint,
    write_commit,
    write_compaction,
)
from tests.support.reference_model import compaction, replay
from tests.support.settings import HOSTILE, settings
from tests.support.snapshots import expected, replayed
from tests.support.spark_jobs import counted_jobs
from tests.support.table_builder import metadata, protocol
from tests.table.log.histories import COMMITS, write_history


def lines(table: Path, start: int, end: int) -> list[Action]:
    """The actions of a compaction file, in an order of their own."""
    file = table / f"_delta_log/{start:020d}.{end:020d}.compacted.json"
    return ordered([json.loads(line) for line in file.read_text().splitlines()])


def ordered(actions: list[Action]) -> list[Action]:
    return sorted(actions, key=lambda action: json.dumps(action, sort_keys=True))


def log_names(table: Path) -> set[str]:
    return {file.name for file in (table / "_delta_log").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(("start", "end"), [(0, 6), (1, 5), (2, 3)])
def test_a_range_gives_the_same_state(
    spark: SparkSession, table: Path, start: int, end: int
) -> None:
    """The range holds tombstones whose retention ended long ago, and a removed domain.

    PROTOCOL.md#log-compaction-files
    """
    write_history(table)
    before = log_names(table)
    result = compact_log(spark, str(table), start=start, end=end)
    assert result.written
    assert log_names(table) - before == {result.name}
    assert lines(table, start, end) == ordered(
        compaction([COMMITS[v] for v in range(start, end + 1)])
    )
    for version in range(end, 7):
        snapshot = load_snapshot(spark, str(table), version=version)
        assert result.name in {file.name for file in snapshot.segment.deltas}
        assert replayed(snapshot) == expected(replay(COMMITS, until=version))


def test_by_default_from_the_checkpoint_to_the_latest(spark: SparkSession, table: Path) -> None:
    write_history(table)
    write_checkpoint(table, 2, replay(COMMITS, until=2).checkpoint())
    result = compact_log(spark, str(table))
    assert (result.start, result.end, result.written) == (3, 6, True)
    again = compact_log(spark, str(table))
    assert (again.name, again.written) == (result.name, False)
    write_checkpoint(table, 6, replay(COMMITS).checkpoint())
    assert compact_log(spark, str(table)).name is None


@pytest.mark.classic("counts Spark's jobs")
@pytest.mark.full
def test_one_job_writes_it_whatever_the_session_says(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job writes a compaction, also where executors read the commits."""
    monkeypatch.setattr(log_text, "DRIVER_LOG_BYTES", 0)
    write_history(table)
    hostile = {key: value for group in HOSTILE.values() for key, value in group.items()}
    with settings(spark, {**hostile, "spark.sql.files.maxRecordsPerFile": "1"}):
        compact_log(spark, str(table), start=1, end=5)
    assert lines(table, 1, 5) == ordered(compaction([COMMITS[v] for v in range(1, 6)]))
    monkeypatch.undo()
    with counted_jobs(spark) as opened:
        load_snapshot(spark, str(table))
    (table / "_delta_log" / f"{1:020d}.{5:020d}.compacted.json").unlink()
    with counted_jobs(spark) as jobs:
        compact_log(spark, str(table), start=1, end=5)
    assert jobs.count - opened.count <= 2  # the repartition to one file is a stage of the other


def test_a_range_may_have_nothing_to_keep(spark: SparkSession, table: Path) -> None:
    write_history(table)
    for version in (7, 8):
        write_commit(table, version, [{"commitInfo": {"operation": "WRITE"}}])
    assert compact_log(spark, str(table), start=7).written
    assert lines(table, 7, 8) == []
    assert replayed(load_snapshot(spark, str(table))) == expected(replay(COMMITS))


def test_it_is_never_overwritten(spark: SparkSession, table: Path) -> None:
    write_history(table)
    file = write_compaction(table, 1, 5, [])
    assert not compact_log(spark, str(table), start=1, end=5).written
    assert file.read_text() == ""


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 2), (-1, 2), (6, None)])
def test_the_range_must_have_two_versions(
    spark: SparkSession, table: Path, start: int, end: int | None
) -> None:
    write_history(table)
    with pytest.raises(InvalidArgumentError):
        compact_log(spark, str(table), start=start, end=end)


def test_all_commits_must_be_there(spark: SparkSession, table: Path) -> None:
    write_history(table)
    write_checkpoint(table, 4, replay(COMMITS, until=4).checkpoint())
    (table / f"_delta_log/{2:020d}.json").unlink()
    before = log_names(table)
    with pytest.raises(VersionsNotContiguousError):
        compact_log(spark, str(table), start=1, end=5)
    assert log_names(table) == before


def test_an_unknown_writer_feature_is_refused(spark: SparkSession, table: Path) -> None:
    unknown = protocol(features=["domainMetadata"])
    unknown["protocol"]["writerFeatures"].append("futureFeature")
    write_commit(table, 0, [unknown, metadata()])
    write_commit(table, 1, [])
    before = log_names(table)
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        compact_log(spark, str(table))
    assert log_names(table) == before
