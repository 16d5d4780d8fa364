"""The tables that planning is measured on, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

from tests.benchmarks.file_actions import DAYS, ROWS, Statistics, day_of
from tests.benchmarks.logs import CheckpointedLog, Layout

_LAYOUTS: dict[Layout, str] = {
    "classic": "one classic file",
    "hash": "hash sidecars",
    "sorted": "sorted sidecars",
}
_STATISTICS: dict[Statistics, str] = {
    "json": "JSON statistics",
    "struct": "struct statistics",
    "both": "JSON and struct statistics",
}


@dataclass(frozen=True, slots=True)
class Size:
    """A table's files and the sidecars of its checkpoint."""

    files: int
    sidecars: int

    def __str__(self) -> str:
        if self.files % 1_000_000 == 0:
            return f"{self.files // 1_000_000}M files"
        return f"{self.files // 1000}k files"


@dataclass(frozen=True, slots=True)
class Planning:
    """The sizes of the tables and processes that the suite measures.

    Attributes
    ----------
    lists
        Numbers of files that a scan reads.
    low_memory
        A driver's memory that must do for the largest table.
    rival_memory
        The memory of delta-spark.
    most_files
        Larger tables are left out.
    without
        Names of `PARTS` to leave out.
    """

    small: Size
    middle: Size
    large: Size
    tail_commits: int
    actions_per_commit: int
    lists: tuple[int, ...]
    low_memory: str
    rival_memory: str
    most_files: int | None = None
    without: tuple[str, ...] = ()

    def table(
        self, spark: SparkSession, directory: Path, size: Size, layout: Layout, stats: Statistics
    ) -> Table:
        """A table below the directory, made unless it is there."""
        log = CheckpointedLog(
            layout=layout,
            statistics=stats,
            files=size.files,
            sidecars=size.sidecars,
            tail_commits=self.tail_commits,
            actions_per_commit=self.actions_per_commit,
        )
        name = f"{size}, {_LAYOUTS[layout]}, {_STATISTICS[stats]}"
        return Table(name, log, log.write_once(spark, directory))

    def has(self, size: Size) -> bool:
        return self.most_files is None or size.files <= self.most_files


SMALL = Planning(
    small=Size(4_000, 2),
    middle=Size(8_000, 2),
    large=Size(16_000, 3),
    tail_commits=2,
    actions_per_commit=100,
    lists=(50,),
    low_memory="600m",
    rival_memory="1g",
)
FULL = Planning(
    small=Size(100_000, 2),
    middle=Size(1_000_000, 8),
    large=Size(10_000_000, 32),
    tail_commits=10,
    actions_per_commit=1_000,
    lists=(1_000, 10_000, 100_000),
    low_memory="1g",
    rival_memory="12g",
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table, and the question that is asked of it: a tenth of all ids on one day."""

    name: str
    log: CheckpointedLog
    path: Path

    @property
    def root(self) -> str:
        return str(self.path)

    @property
    def where(self) -> str:
        day, least, greatest = self._bounds
        return f"date = DATE'{day}' AND id BETWEEN {least} AND {greatest}"

    def check(self, files: list[str]) -> None:
        """Refuse to measure what does not give the right files."""
        day, least, greatest = self._bounds
        expected = self.log.live_paths(day=day, least=least, greatest=greatest)
        assert expected
        if files != expected:
            difference = sorted(set(files) ^ set(expected))[:3]
            raise ValueError(
                f"{self.name}: {len(files):,} files instead of {len(expected):,}: {difference}"
            )

    @property
    def _bounds(self) -> tuple[date, int, int]:
        ids = self.log.files * ROWS
        least = ids // 20 * 9
        return day_of(DAYS // 2), least, least + ids // 10 - 1
