"""Tests that generated logs are valid tables with the files that they should have."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot
from tests.benchmarks.file_actions import COLUMNS, ROWS, Statistics, day_of
from tests.benchmarks.logs import CheckpointedLog, Layout, write_commits
from tests.benchmarks.planners import by_delta_rs

pytestmark = pytest.mark.full
FILES, REPLACED = 2_000, 100


def _log(layout: Layout, statistics: Statistics) -> CheckpointedLog:
    return CheckpointedLog(
        layout=layout,
        statistics=statistics,
        files=FILES,
        sidecars=3,
        tail_commits=2,
        actions_per_commit=REPLACED // 2,
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the tests of this file make their tables, each once."""
    return tmp_path_factory.mktemp("logs")


SHAPES = pytest.mark.parametrize(
    ("layout", "statistics"),
    [("hash", "json"), ("hash", "struct"), ("classic", "both"), ("sorted", "struct")],
)


def _replayed(log: CheckpointedLog, root: Path) -> set[str]:
    """The live paths, by reading the log's files one after the other."""
    live: set[str] = set()
    for file in log.checkpoint_files(root):
        adds = pq.ParquetFile(file).read(columns=["add.path"])["add"].to_pylist()
        live |= {add["path"] for add in adds if add is not None}
    assert len(live) == FILES
    for commit in sorted((root / "_delta_log").glob("*.json")):
        if "checkpoint" in commit.name:
            continue
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        adds = {action["add"]["path"] for action in actions if "add" in action}
        removes = {action["remove"]["path"] for action in actions if "remove" in action}
        assert len(adds) == len(removes) == REPLACED // 2
        assert removes <= live
        live = (live - removes) | adds
    return live


@SHAPES
def test_a_generated_table_has_its_files(
    spark: SparkSession, tables: Path, layout: Layout, statistics: Statistics
) -> None:
    log = _log(layout, statistics)
    root = log.write_once(spark, tables)
    snapshot = load_snapshot(spark, str(root))
    assert snapshot.version == 12
    assert len(log.checkpoint_files(root)) == (1 if layout == "classic" else 3)
    rows = snapshot.add_files().collect()
    live = {row.path: row for row in rows}
    assert len(rows) == FILES
    assert set(live) == _replayed(log, root)
    for path, row in live.items():
        assert path.startswith(f"date={row.partitionValues_parsed.date}/part-")
        least, greatest = row.stats_parsed.minValues, row.stats_parsed.maxValues
        assert set(least.asDict()) == set(greatest.asDict()) == set(COLUMNS)
        assert all(least[name] is not None and least[name] <= greatest[name] for name in COLUMNS)
        assert day_of(least.id // ROWS) == row.partitionValues_parsed.date
        assert row.stats_parsed.nullCount.asDict() == dict.fromkeys(COLUMNS, 0)
    assert {row.stats_parsed.minValues.id for row in rows} == set(range(0, FILES * ROWS, ROWS))


@SHAPES
def test_the_answer_is_known(
    spark: SparkSession, tables: Path, layout: Layout, statistics: Statistics
) -> None:
    log = _log(layout, statistics)
    root = log.write_once(spark, tables)
    added = load_snapshot(spark, str(root)).add_files().collect()
    bounds = []
    for row in added:
        parsed = row.stats_parsed
        day = row.partitionValues_parsed.date
        bounds.append((row.path, day, parsed.minValues.id, parsed.maxValues.id))
    for day in (day_of(0), day_of(140)):
        for first, last in ((0, FILES * ROWS), (140_500, 874_000), (141_000, 506_999)):
            expected = sorted(
                path
                for path, its_day, least, greatest in bounds
                if its_day == day and greatest >= first and least <= last
            )
            assert log.live_paths(day=day, least=first, greatest=last) == expected


def test_an_answer_has_replaced_files() -> None:
    log = _log("classic", "both")
    everything = {
        path
        for number in range(367)
        for path in log.live_paths(
            day=date(2024, 1, 1) + timedelta(days=number), least=0, greatest=FILES * ROWS
        )
    }
    assert len(everything) == FILES


@SHAPES
def test_delta_rs_reads_the_same_files(
    spark: SparkSession, tables: Path, layout: Layout, statistics: Statistics
) -> None:
    log = _log(layout, statistics)
    root = log.write_once(spark, tables)
    assert len(DeltaTable(root).file_uris()) == FILES
    bounds = [(0, FILES * ROWS)]
    if statistics != "struct":  # of which delta-rs makes no use
        bounds.append((140_500, 874_000))
    for least, greatest in bounds:
        where = f"date = DATE'{day_of(140)}' AND id BETWEEN {least} AND {greatest}"
        expected = log.live_paths(day=day_of(140), least=least, greatest=greatest)
        assert by_delta_rs(str(root), where) == expected


def test_sorted_sidecars_are_sorted(spark: SparkSession, tables: Path) -> None:
    log = _log("sorted", "struct")
    sidecars = []
    for file in log.checkpoint_files(log.write_once(spark, tables)):
        adds = pq.read_table(file)["add"].to_pylist()
        keys = [
            (add["partitionValues_parsed"]["date"], add["stats_parsed"]["minValues"]["id"])
            for add in adds
        ]
        assert keys == sorted(keys)
        sidecars.append((keys[0], keys[-1]))
    bounds = [key for ends in sorted(sidecars) for key in ends]
    assert bounds == sorted(bounds)


def test_a_table_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    root = _log("hash", "json").write_once(spark, tmp_path)
    (root / "mark").touch()
    assert (_log("hash", "json").write_once(spark, tmp_path) / "mark").exists()
    assert _log("hash", "struct").write_once(spark, tmp_path) != root


def test_commits_alone_are_a_table_too(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_commits(spark, tmp_path / "commits", commits=3, files_per_commit=5)
    assert len(paths) == 3
    files = load_snapshot(spark, str(tmp_path / "commits")).add_files()
    assert files.select("path").distinct().count() == 15
