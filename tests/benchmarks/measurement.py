"""Times that can be compared: a candidate and its floor take turns in one process."""

from __future__ import annotations

import gc
import sys
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
class Target:
    """A bound that a ratio should not exceed.

    Attributes
    ----------
    most
        The ratio not to be exceeded.
    text
        The same as a reader would say it.
    """

    most: float
    text: str


def at_most(ratio: float) -> Target:
    """The candidate takes no more than this many times what its floor takes."""
    return Target(ratio, f"<= {ratio:g}x")


def faster(times: float) -> Target:
    """The candidate is at least this many times faster than what it is compared to."""
    return Target(1 / times, f">= {times:g}x faster")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Numbers of pairs to measure.

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
        None where there is no aim.
    jobs
        Spark jobs that one run of the candidate starts; None where it runs in another process.
    """

    suite: str
    name: str
    floor_name: str
    target: Target | None
    jobs: int | None
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
        """True if the target is met; None without a target."""
        return None if self.target is None else self.ratio <= self.target.most

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        return (
            f"{self.suite}: {self.name}: {_digits(self.ratio)}x {self.floor_name} "
            f"({median(self.seconds):.3f} s)"
        )

    def as_dict(self) -> dict[str, Any]:
        """The comparison as it is written to the JSON file."""
        return {
            "suite": self.suite,
            "name": self.name,
            "floor": self.floor_name,
            "pairs": len(self.seconds),
            "jobs": self.jobs,
            "target": None if self.target is None else self.target.text,
            "is_met": self.is_met,
            "ratio": _spread(self.ratios),
            "seconds": _spread(self.seconds),
            "floor_seconds": _spread(self.floor_seconds),
            "all_seconds": [round(value, 4) for value in self.seconds],
            "all_floor_seconds": [round(value, 4) for value in self.floor_seconds],
        }


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A comparison that could not be measured here, and the reason."""

    suite: str
    name: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The missing comparison as it is written to the JSON file."""
        return {"suite": self.suite, "name": self.name, "why": self.why}

    @property
    def summary(self) -> str:
        """The outcome in one line; of a traceback, the last line says what happened."""
        return f"{self.suite}: {self.name}: {self.why.splitlines()[-1]}"


def _spread(values: Sequence[float]) -> dict[str, float]:
    numbers = {"median": median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{number:.5g}") for name, number in numbers.items()}


def _short(result: object) -> str:
    text = repr(result)
    return text if len(text) <= 500 else f"{text[:500]}... ({len(text):,} characters)"


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
        target: Target | None = None,
        same_result: bool = True,
        counts_jobs: bool = True,
    ) -> Comparison:
        """Run both in turns, after a warm run of each.

        Parameters
        ----------
        same_result
            Whether both must return the same.
        counts_jobs
            Whether the candidate's jobs are those of this session.

        Raises
        ------
        ValueError
            They do not.
        """
        expected, found = floor(), candidate()
        if same_result and expected != found:
            raise ValueError(f"{self.suite}, {name}: {_short(found)} instead of {_short(expected)}")
        jobs: list[int] | None = None
        if counts_jobs:
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
            jobs=None if jobs is None else len(jobs),
            floor_seconds=tuple(floor_seconds),
            seconds=tuple(seconds),
        )

    def once(
        self, name: str, candidate: Action, floor: Action, *, floor_name: str, target: Target
    ) -> Comparison:
        """Run the floor once and the candidate several times, after a warm run of it alone: for a
        floor that takes minutes and a target that noise does not decide.

        Raises
        ------
        ValueError
            They do not return the same.
        """
        found: list[object] = []
        floor_seconds = _seconds(lambda: found.append(floor()))
        with self._jobs() as jobs:
            found.append(candidate())
        if found[0] != found[1]:
            raise ValueError(f"{self.suite}, {name}: {_short(found[1])} instead of {found[0]}")
        pairs = self.pairs.first
        return Comparison(
            suite=self.suite,
            name=name,
            floor_name=floor_name,
            target=target,
            jobs=len(jobs),
            floor_seconds=(floor_seconds,) * pairs,
            seconds=tuple(_seconds(candidate) for _ in range(pairs)),
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


def say(text: str) -> None:
    """Tell the progress."""
    print(text, file=sys.stderr, flush=True)


def _seconds(action: Action) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def as_table(results: Sequence[Comparison | NotMeasured]) -> str:
    """The results as a Markdown table, and below it what could not be measured."""
    lines = [
        "| what | seconds | floor | ratio (min - max) | pairs | jobs | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        if isinstance(result, NotMeasured):
            continue
        ratios = result.ratios
        target = ""
        if result.target is not None:
            target = f"{result.target.text}: {'met' if result.is_met else 'MISSED'}"
        lines.append(
            f"| {result.suite}: {result.name} | {median(result.seconds):.3f} "
            f"| {median(result.floor_seconds):.3f} ({result.floor_name}) "
            f"| {_digits(result.ratio)} ({_digits(min(ratios))} - {_digits(max(ratios))}) "
            f"| {len(ratios)} | {'' if result.jobs is None else result.jobs} | {target} |"
        )
    missing = [result for result in results if isinstance(result, NotMeasured)]
    if missing:
        lines += ["", "Not measured:"]
        lines += [f"- {one.summary}" for one in missing]
    return "\n".join(lines)


def _digits(ratio: float) -> str:
    """Two decimals, and more of a small ratio."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
