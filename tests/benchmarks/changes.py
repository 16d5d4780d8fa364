"""Changes of a range of commits against delta-spark's, and of two versions against exceptAll."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, clone, read_changes, read_delta
from tests.benchmarks.changed_table import COMMITS, OF_ONE_FILE, write_changed_table
from tests.benchmarks.data import STORED
from tests.benchmarks.measurement import Stopwatch, at_most
from tests.benchmarks.parts import Measured, against_delta_spark, make_once, run_parts
from tests.benchmarks.streams import (
    Sizes,
    small_batches,
    steady_rows,
    stream_latency,
    stream_sink,
    stream_source,
)
from tests.support.delta_spark import VERSION, DeltaSpark

_RIVAL_MEMORY = "2g"


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    tables: Path
    scratch: Path
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    @property
    def num_rows(self) -> int:
        return self.scale.data_files * self.scale.rows_per_file

    def table(self) -> Path:
        """The table whose changes are read."""
        path = self.tables / f"changed-{self.num_rows}"
        make_once(path, lambda: write_changed_table(self.spark, path, rows=self.num_rows))
        return path

    def tracked_table(self) -> Path:
        """A table of the same files that tracks rows. Its last two versions change one of them."""
        path = self.tables / f"tracked-{self.num_rows}"
        source = self.table()

        def make() -> None:
            properties = {"delta.enableRowTracking": "true"}
            clone(self.spark, str(source), str(path), version=0, properties=properties)
            table = DeltaTable.forPath(self.spark, str(path))
            table.delete("id < 1000 AND id % 2 = 0")
            table.update("id < 1000", {"note": "'new'"})

        make_once(path, make)
        return path


def changes_of_commits(bench: _Bench) -> Measured:
    """All changes of the commits, against delta-spark's change data feed."""
    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, partial(_change_feeds, bench))


def _change_feeds(bench: _Bench, rival: DeltaSpark) -> Measured:
    path = str(bench.table())
    yield bench.stopwatch.compare(
        f"changes of {COMMITS} commits with deletion vectors",
        lambda: _digest(read_changes(bench.spark, path, start_version=1)),
        lambda: rival.run(f"{__name__}:read_change_feed", path=path),
        floor_name=f"delta-spark {VERSION}",
        target=at_most(0.5),
    )


def read_change_feed(spark: SparkSession, path: str) -> list[object]:
    """Runs in the worker."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return _digest(reader.option("startingVersion", 1).load(path))


def _digest(changes: DataFrame) -> list[object]:
    hashed = F.xxhash64(*STORED, "_change_type", "_commit_version").cast("decimal(38, 0)")
    row = changes.agg(F.count("*"), F.sum(hashed)).first()
    return [str(value) for value in row or ()]


def net_changes(bench: _Bench) -> Measured:
    """The rows that differ between two versions, of which one file in a hundred differs. Their
    floor takes minutes, and is measured once.
    """
    for by, path, last in (
        ("values", str(bench.table()), OF_ONE_FILE),
        ("row id", str(bench.tracked_table()), 2),
    ):

        def net(path: str = path, last: int = last) -> int:
            changes = read_changes(bench.spark, path, start_version=1, end_version=last, net=True)
            return changes.filter("_change_type IN ('delete', 'update_preimage')").count()

        def difference(path: str = path, last: int = last) -> int:
            before, after = (read_delta(bench.spark, path, version=number) for number in (0, last))
            return before.exceptAll(after).count()

        yield bench.stopwatch.once(
            f"net changes of {bench.num_rows:,} rows, 1 of {COMMITS} files differs, by {by}",
            net,
            difference,
            floor_name="exceptAll of both versions",
            target=at_most(0.05),
        )


CHANGE_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "net-changes": net_changes,
    "stream-source": stream_source,
    "delta-spark-stream-sink": stream_sink,
    "delta-spark-change-feed": changes_of_commits,
    "delta-spark-stream-latency": stream_latency,
    "small-batches": small_batches,
    "steady-rows": steady_rows,
}


def changes(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """Run the parts of the suite, except those that `without` names."""
    with TemporaryDirectory(dir=scratch) as own:
        yield from run_parts(CHANGE_PARTS, _Bench(stopwatch, scratch, Path(own), scale), without)
