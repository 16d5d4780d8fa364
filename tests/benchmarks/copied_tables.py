"""Operations of sparkdelta and of delta-spark on copies of one table."""

from __future__ import annotations

import operator
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import SparkSession

from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, Target
from tests.benchmarks.parts import Measured, linked
from tests.support.delta_spark import VERSION
from tests.support.spark_worker import SparkWorkerError


class Sizes(Protocol):
    """The sizes that this module takes from the benchmark's scale."""

    @property
    def checkpoint_files(self) -> int: ...
    @property
    def data_files(self) -> int: ...
    @property
    def rows_per_file(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Bench:
    """A suite: its stopwatch, its directory for tables, and its sizes."""

    stopwatch: Stopwatch
    scratch: Path
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    def copy(self, table: Path) -> Path:
        """A copy whose files are links."""
        copy = self.scratch / f"copy-{uuid4()}"
        shutil.copytree(table, copy, copy_function=linked)
        return copy

    def compare(
        self,
        name: str,
        table: Path,
        candidate: Callable[[str], object],
        floor: Callable[[str], object],
        target: Target,
        check: Callable[[Path], object],
        agrees: Callable[[Any, Any], bool] = operator.eq,
        *,
        is_long: bool = False,
    ) -> Comparison:
        """Run both in turns, each on a copy of a table whose files are links; the first pair is not
        counted. To copy takes no part of the time.

        Parameters
        ----------
        check
            Returns a value of the changed copy.
        agrees
            Returns True if the values of sparkdelta and of delta-spark, in this order, agree.
        is_long
            True to run each once, and to count it: it takes many minutes, which neither a warm
            process nor noise changes much.
        """
        times: dict[Callable[[str], object], list[float]] = {candidate: [], floor: []}
        warm, counted = (0, 1) if is_long else (1, self.stopwatch.pairs.first)
        for _ in range(warm + counted):
            found = []
            for run, seconds in times.items():
                copy = self.copy(table)
                start = time.perf_counter()
                run(str(copy))
                seconds.append(time.perf_counter() - start)
                found.append(check(copy))
                shutil.rmtree(copy)
            if not agrees(*found):
                raise ValueError(f"{name}: {found[0]} instead of {found[1]}")
        return Comparison(
            suite=self.stopwatch.suite,
            name=name,
            floor_name=f"delta-spark {VERSION}",
            target=target,
            jobs=None,
            floor_seconds=tuple(times[floor][warm:]),
            seconds=tuple(times[candidate][warm:]),
        )

    def tried(self, measure: Callable[[], Comparison]) -> Measured:
        """A comparison, or what a worker failed of."""
        try:
            yield measure()
        except SparkWorkerError as error:
            yield NotMeasured(self.stopwatch.suite, "delta-spark", str(error))
