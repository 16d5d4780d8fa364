"""The demonstration tells its story, and does not take long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.shown import shown_rows

ROOT = Path(__file__).parents[2]
BOUND_SECONDS = 60

pytestmark = pytest.mark.full


@dataclass(frozen=True, slots=True)
class Demo:
    printed: str
    seconds: float
    tables: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """One run, in a process and a Spark of its own."""
    tables = tmp_path_factory.mktemp("demo")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    start = time.monotonic()
    run = subprocess.run(
        [sys.executable, str(ROOT / "jobs" / "demo.py"), "--tables", str(tables)],
        cwd=tables,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * BOUND_SECONDS,
    )
    assert run.returncode == 0, run.stderr
    return Demo(run.stdout, time.monotonic() - start, tables)


def _chapter(demo: Demo, number: int) -> str:
    chapters = demo.printed.split("\n=== ")
    return next(text for text in chapters if text.startswith(f"{number}. "))


def test_it_reads_the_small_table_at_two_versions(demo: Demo) -> None:
    alice, bob, carol = ["Alice", "47"], ["Bob", "23"], ["Carol", "51"]
    assert shown_rows(_chapter(demo, 1)) == [alice, bob, carol, alice, bob]


def test_it_names_the_files_of_the_segment(demo: Demo) -> None:
    text = _chapter(demo, 2)
    assert "at version 13" in text
    assert "checkpoint of version 11: 00000000000000000011.checkpoint.parquet" in text
    assert "00000000000000000012.json" in text
    assert "00000000000000000013.json" in text
    assert "Of 14 commits, that leaves 2 to parse." in text


def test_it_shows_the_actions_after_the_checkpoint(demo: Demo) -> None:
    rows = shown_rows(_chapter(demo, 3))
    assert [row[:2] for row in rows] == [
        [version, action]
        for version in ("12", "13")
        for action in ("add", "remove", "remove", "remove", "remove")
    ]
    assert all(row[2].startswith("day=2024-05-0") for row in rows)


def test_it_shows_the_reconciled_state(demo: Demo) -> None:
    text = _chapter(demo, 4)
    assert [row[:3] for row in shown_rows(text)] == [
        ["2024-05-01", "3", "0"],
        ["2024-05-01", "3", "3"],
        ["2024-05-01", "3", "6"],
        ["2024-05-01", "3", "9"],
        ["2024-05-02", "8", "1"],
        ["2024-05-03", "1", "99"],
    ]
    assert "8 tombstones" in text


def test_it_shows_history_and_travels_in_time(demo: Demo) -> None:
    history = shown_rows(_chapter(demo, 5))
    assert [(row[0], row[2]) for row in history] == [
        ("13", "WRITE"), ("12", "DELETE"), ("11", "WRITE"), ("10", "WRITE"),
    ]  # fmt: skip
    assert shown_rows(_chapter(demo, 6)) == [
        ["2024-05-01", "12", "12"],
        ["2024-05-02", "8", "12"],
        ["2024-05-03", "1", "12"],
    ]


def test_it_selectsshown_rows(demo: Demo) -> None:
    assert shown_rows(_chapter(demo, 7)) == [
        ["2024-05-01", "6"],
        ["2024-05-02", "7"],
        ["2024-05-01", "9"],
        ["2024-05-02", "10"],
    ]


def test_it_leaves_the_tables_where_it_was_told_to(demo: Demo) -> None:
    assert sorted(path.name for path in demo.tables.iterdir()) == ["people", "visits"]


def test_it_takes_less_than_a_minute(demo: Demo) -> None:
    """A minute of a quiet machine; of a busy one, as much more as others wanted its cores."""
    crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert demo.seconds < BOUND_SECONDS * crowd
