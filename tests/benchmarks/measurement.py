"""Times that can be compared: a candidate and its floor take turns in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

NOISE = 1.3
"""Below this ratio a few pairs say nothing: more are measured."""

Action = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Pairs:
    """How many pairs to measure.

    Attributes
    ----------
    first
        Measured in any case.
    close
        Measured in all where the ratio of the first ones is below `NOISE`.
    """

    first: int
    close: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds of a candidate and of its floor, pair by pair.

    Attributes
    ----------
    target
        The ratio not to be exceeded, or None where there is no aim.
    jobs
        Spark jobs that one run of the candidate starts.
    """

    suite: str
    name: str
    floor_name: str
    target: float | None
    jobs: int
    floor_seconds: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [one / floor for one, floor in zip(self.seconds, self.floor_seconds, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the pairs' ratios."""
        return median(self.ratios)

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        return None if self.target is None else self.ratio <= self.target

    def as_dict(self) -> dict[str, Any]:
        """What is written to the JSON file."""
        return {
            "suite": self.suite,
            "name": self.name,
            "floor": self.floor_name,
            "pairs": len(self.seconds),
            "jobs": self.jobs,
            "target": self.target,
            "is_met": self.is_met,
            "ratio": _spread(self.ratios),
            "seconds": _spread(self.seconds),
            "floor_seconds": _spread(self.floor_seconds),
            "all_seconds": [round(value, 4) for value in self.seconds],
            "all_floor_seconds": [round(value, 4) for value in self.floor_seconds],
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Measures candidates against floors in one session."""

    spark: SparkSession
    pairs: Pairs
    suite: str

    def compare(
        self,
        name: str,
        candidate: Action,
        floor: Action,
        *,
        floor_name: str,
        target: float | None = None,
        same_result: bool = True,
    ) -> Comparison:
        """Run both in turns, after a warm run of each.

        Parameters
        ----------
        same_result
            Whether both must return the same.

        Raises
        ------
        ValueError
            They do not.
        """
        expected, found = floor(), candidate()
        if same_result and expected != found:
            raise ValueError(f"{self.suite}, {name}: {found!r} instead of {expected!r}")
        with self._jobs() as jobs:
            candidate()
        floor_seconds: list[float] = []
        seconds: list[float] = []
        while len(seconds) < self._wanted(seconds, floor_seconds):
            turns = [(floor, floor_seconds), (candidate, seconds)]
            for action, times in turns if len(seconds) % 2 == 0 else reversed(turns):
                times.append(_seconds(action))
        return Comparison(
            suite=self.suite,
            name=name,
            floor_name=floor_name,
            target=target,
            jobs=len(jobs),
            floor_seconds=tuple(floor_seconds),
            seconds=tuple(seconds),
        )

    def _wanted(self, seconds: Sequence[float], floor_seconds: Sequence[float]) -> int:
        if len(seconds) < self.pairs.first:
            return self.pairs.first
        ratio = median(one / floor for one, floor in zip(seconds, floor_seconds, strict=True))
        return max(self.pairs.first, self.pairs.close) if ratio < NOISE else self.pairs.first

    @contextmanager
    def _jobs(self) -> Iterator[list[int]]:
        """The ids of the jobs that start inside, once it is left."""
        context = self.spark.sparkContext
        group = f"benchmark {time.monotonic_ns()}"
        started: list[int] = []
        context.setJobGroup(group, "benchmark")
        try:
            yield started
        finally:
            started += context.statusTracker().getJobIdsForGroup(group)
            context.setLocalProperty("spark.jobGroup.id", None)


def _seconds(action: Action) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def as_table(comparisons: Sequence[Comparison]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| what | seconds | floor | ratio (min - max) | pairs | jobs | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in comparisons:
        ratios = result.ratios
        target = "" if result.target is None else f"<= {result.target}x"
        if result.is_met is not None:
            target += ": met" if result.is_met else ": MISSED"
        lines.append(
            f"| {result.suite}: {result.name} | {median(result.seconds):.3f} "
            f"| {median(result.floor_seconds):.3f} ({result.floor_name}) "
            f"| {result.ratio:.2f} ({min(ratios):.2f} - {max(ratios):.2f}) "
            f"| {len(ratios)} | {result.jobs} | {target} |"
        )
    return "\n".join(lines)
