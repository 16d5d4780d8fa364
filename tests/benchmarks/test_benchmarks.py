"""The harness itself: its numbers, and that every suite runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.measurement import Comparison, Pairs, Stopwatch, as_table
from tests.benchmarks.suites import SUITES

ROOT = Path(__file__).parents[2]


def _comparison(*seconds: float, target: float | None = None) -> Comparison:
    floor = (1.0,) * len(seconds)
    return Comparison("suite", "name", "floor", target, 1, floor, seconds)


def test_a_ratio_is_the_median_of_the_pairs() -> None:
    result = Comparison("suite", "name", "floor", 2.0, 1, (1.0, 2.0, 4.0), (3.0, 2.0, 6.0))
    assert result.ratios == [3.0, 1.0, 1.5]
    assert result.ratio == 1.5
    assert result.is_met
    assert result.as_dict()["ratio"] == {"median": 1.5, "min": 1.0, "max": 3.0}


def test_a_missed_target_is_said() -> None:
    met, missed = _comparison(1.0, target=1.05), _comparison(1.1, target=1.05)
    table = as_table([met, missed, _comparison(1.1)])
    assert [line.split("|")[-2].strip() for line in table.splitlines()[2:]] == [
        "<= 1.05x: met", "<= 1.05x: MISSED", "",
    ]  # fmt: skip


@pytest.mark.parametrize(("seconds", "pairs"), [(1.2, 15), (1.4, 5)])
def test_close_ratios_are_measured_longer(seconds: float, pairs: int) -> None:
    stopwatch = Stopwatch(None, Pairs(first=5, close=15), "suite")  # type: ignore[arg-type] # unused
    assert stopwatch._wanted([], []) == 5
    assert stopwatch._wanted([seconds] * 5, [1.0] * 5) == pairs


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_runs(suite: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    arguments = ["--scale", "small", "--pairs", "1", "--close-pairs", "1", "--only", suite]
    command = [sys.executable, "-m", "tests.benchmarks", *arguments, "--json", str(report)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    comparisons = json.loads(report.read_text(encoding="utf-8"))["comparisons"]
    assert len(comparisons) == sum(
        line.startswith(f"| {suite}:") for line in run.stdout.splitlines()
    )
    assert comparisons
