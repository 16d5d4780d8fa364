"""The parts of a suite, and what they have in common."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from pyspark.sql import SparkSession

from tests.benchmarks.measurement import Comparison, NotMeasured, Pairs, Stopwatch, say
from tests.benchmarks.planning_tables import Planning
from tests.support.delta_spark import DELTA_SETTINGS, DeltaSpark, DeltaSparkUnavailable

SESSION = "tests.benchmarks.session:local_session"
"""The session of a process of its own."""

Measured: TypeAlias = Iterator[Comparison | NotMeasured]
Bench = TypeVar("Bench")

_SLOW = 2  # pairs, of what takes minutes


@dataclass(frozen=True, slots=True)
class LogBench:
    """The stopwatch, sizes and directory of the parts that measure large logs."""

    stopwatch: Stopwatch
    planning: Planning
    scratch: Path

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    @property
    def far(self) -> Stopwatch:
        """The stopwatch for ratios that noise does not decide."""
        return self._with_pairs(self.stopwatch.pairs.first)

    @property
    def slow(self) -> Stopwatch:
        return self._with_pairs(min(_SLOW, self.stopwatch.pairs.first))

    def not_measured(self, name: str, why: object) -> NotMeasured:
        return NotMeasured(self.stopwatch.suite, name, str(why).strip())

    def _with_pairs(self, pairs: int) -> Stopwatch:
        return replace(self.stopwatch, pairs=Pairs(first=pairs, close=pairs))


def run_parts(
    parts: Mapping[str, Callable[[Bench], Measured]], bench: Bench, without: Collection[str]
) -> Measured:
    """Run the parts, except those that `without` names."""
    for name, part in parts.items():
        if name not in without:
            yield from part(bench)


def make_once(table: Path, make: Callable[[], None]) -> None:
    """Make a table unless a run that had the same directory has made it."""
    done = table.with_name(f"{table.name}.made")
    if done.exists():
        return
    shutil.rmtree(table, ignore_errors=True)
    say(f"making {table.name}")
    make()
    done.touch()


def against_delta_spark(
    stopwatch: Stopwatch, memory: str, measure: Callable[[DeltaSpark], Measured]
) -> Measured:
    """Measure against delta-spark in a JVM of its own, or say that it is not available."""
    rival = DeltaSpark(
        session=SESSION,
        cores=stopwatch.spark.sparkContext.defaultParallelism,
        memory=memory,
        settings=DELTA_SETTINGS,
    )
    try:
        rival.start()
    except DeltaSparkUnavailable as error:
        yield NotMeasured(stopwatch.suite, "delta-spark", str(error).strip())
        return
    try:
        yield from measure(rival)
    finally:
        rival.stop()


def linked(source: str, target: str) -> None:
    """Copies a file of a log for `copytree`: a link will do for all but the hint, which alone is
    ever replaced.
    """
    if Path(source).name == "_last_checkpoint":
        shutil.copy(source, target)
    else:
        Path(target).hardlink_to(source)
