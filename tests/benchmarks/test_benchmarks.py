"""The harness itself: its numbers, and that every suite runs."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.growth_chart import chart, points_of
from tests.benchmarks.measurement import (
    Comparison,
    NotMeasured,
    Pairs,
    Stopwatch,
    Target,
    as_table,
    at_most,
    faster,
)
from tests.benchmarks.planning import PARTS
from tests.benchmarks.row_changes import ROW_CHANGE_PARTS
from tests.benchmarks.suites import SUITES
from tests.support.peak_memory import peak_memory

ROOT = Path(__file__).parents[2]
_SVG = "{http://www.w3.org/2000/svg}"
OTHER_PROCESSES = (
    "low-memory",
    "delta-spark",
    "delta-spark-large",
    "delta-spark-checkpoint",
    "delta-spark-commits",
    "delta-spark-rows",
    "delta-spark-vectors",
    "delta-spark-rewrite",
    "delta-spark-first-changes",
    "reads-after",
    "memory",
    "delta-spark-change-feed",
    "delta-spark-stream-sink",
    "delta-spark-stream-latency",
    "delta-spark-restore",
    "delta-spark-log-only",
    "delta-spark-row-tracking",
    "delta-spark-clone",
    "delta-spark-checkpoint-job",
    "delta-spark-small-table",
    "delta-spark-counts",
    "first-calls",
)


def _comparison(*seconds: float, target: Target | None = None) -> Comparison:
    floor = (1.0,) * len(seconds)
    return Comparison("suite", "name", "floor", target, 1, floor, seconds)


def test_a_ratio_is_the_median_of_the_pairs() -> None:
    result = Comparison("suite", "name", "floor", at_most(2), 1, (1.0, 2.0, 4.0), (3.0, 2.0, 6.0))
    assert result.ratios == [3.0, 1.0, 1.5]
    assert result.ratio == 1.5
    assert result.is_met
    assert result.as_dict()["ratio"] == {"median": 1.5, "min": 1.0, "max": 3.0}


def test_a_missed_target_is_said() -> None:
    met, missed = _comparison(1.0, target=at_most(1.05)), _comparison(1.1, target=at_most(1.05))
    table = as_table([met, missed, _comparison(1.1)])
    assert [line.split("|")[-2].strip() for line in table.splitlines()[2:]] == [
        "<= 1.05x: met", "<= 1.05x: MISSED", "",
    ]  # fmt: skip


def test_being_faster_is_a_target_too() -> None:
    met, missed = _comparison(0.25, target=faster(4)), _comparison(0.26, target=faster(4))
    assert (met.is_met, missed.is_met) == (True, False)
    assert "| >= 4x faster: met |" in as_table([met])


def test_failed_measurements_are_reported() -> None:
    missing = NotMeasured("suite", "another engine", "Traceback:\n  ...\nit is not here")
    assert as_table([_comparison(1.0), missing]).endswith("- suite: another engine: it is not here")


def test_growth_is_drawn() -> None:
    name, floor = "RESTORE, 10,000,000 files, driver of 2g", "1,000,000 files"
    found = Comparison("growth", name, floor, at_most(3), None, (10.0,), (20.0,))
    lines = points_of([found.as_dict(), _comparison(1.0).as_dict()])
    assert lines == {"RESTORE": {1_000_000: 10.0, 10_000_000: 20.0}}
    drawn = chart({**lines, "a & b": {1_000_000: 1.0, 10_000_000: 90.0}})
    root = ET.fromstring(drawn)
    places = [line.attrib["points"].split() for line in root.iter(f"{_SVG}polyline")]
    assert [len(points) for points in places] == [2, 2]
    heights = [[float(point.split(",")[1]) for point in points] for points in places]
    assert all(begin > end for begin, end in heights)
    assert {"RESTORE", "a & b", "1M files", "10M files", "100 s"} <= {*root.itertext()}


@pytest.mark.parametrize(("seconds", "pairs"), [(1.2, 15), (1.4, 5)])
def test_close_ratios_are_measured_longer(seconds: float, pairs: int) -> None:
    stopwatch = Stopwatch(None, Pairs(first=5, close=15), "suite")  # type: ignore[arg-type] # unused
    assert stopwatch._wanted([], []) == 5
    assert stopwatch._wanted([seconds] * 5, [1.0] * 5) == pairs


def test_peak_memory_is_that_of_processes_that_have_ended_too() -> None:
    with peak_memory() as before:
        pass
    with peak_memory() as after:
        code = "import time; block = b'x' * 50_000_000; time.sleep(1)"
        subprocess.run([sys.executable, "-c", code], check=True)
    assert after["driver Python"] > before["driver Python"] + 50_000_000


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_runs(suite: str, tmp_path: Path) -> None:
    run = _run(tmp_path, suite, *(f"--without={part}" for part in OTHER_PROCESSES))
    assert len(run["comparisons"]) == run["printed"] > 0
    # Other engines may be missing.
    assert suite == "peers" or not run["not_measured"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "part"),
    [
        ("planning", "low-memory"),
        ("planning", "delta-spark"),
        ("planning", "delta-spark-large"),
        ("row changes", "reads-after"),
        ("row changes", "memory"),
    ],
)
def test_parts_run_in_other_processes(suite: str, part: str, tmp_path: Path) -> None:
    parts = PARTS if suite == "planning" else ROW_CHANGE_PARTS
    run = _run(tmp_path, suite, *(f"--without={other}" for other in parts if other != part))
    # delta-spark's JARs may be missing.
    assert [one["name"] for one in run["not_measured"]] in ([], ["delta-spark"])
    assert run["comparisons"] or run["not_measured"]


def _run(tmp_path: Path, suite: str, *arguments: str) -> dict[str, Any]:
    """The report of a suite, and how many lines its table has."""
    report = tmp_path / "report.json"
    options = ["--scale=small", "--pairs=1", "--close-pairs=1", f"--only={suite}"]
    places = [f"--json={report}", f"--scratch={tmp_path / 'not' / 'there'}"]
    command = [sys.executable, "-m", "tests.benchmarks", *options, *places, *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    printed = sum(line.startswith(f"| {suite}:") for line in run.stdout.splitlines())
    return {**json.loads(report.read_text(encoding="utf-8")), "printed": printed}
