"""Changes of a range of commits against delta-spark's, and of two versions against exceptAll."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, read_changes, read_delta, write_delta
from tests.benchmarks.data import STORED
from tests.benchmarks.measurement import Stopwatch, at_most
from tests.benchmarks.parts import Measured, against_delta_spark, run_parts
from tests.benchmarks.streams import Sizes, small_batches, stream_sink, stream_source
from tests.support.delta_spark import VERSION, DeltaSpark

_RIVAL_MEMORY = "2g"
_COMMITS = 100


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    scratch: Path
    scale: Sizes

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    def table(self, *, tracks_rows: bool) -> str:
        """100 versions of a table with deletion vectors, each of which changes rows of one of 100
        files; the last 99 change rows of the same.
        """
        path = self.scratch / ("tracked" if tracks_rows else "changed")
        if path.exists():
            return str(path)
        num_rows = self.scale.data_files * self.scale.rows_per_file
        rows = self.spark.range(0, num_rows, 1, _COMMITS)
        properties = {
            "delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true",
            "delta.enableRowTracking": str(tracks_rows).lower(), "delta.checkpointInterval": "1000",
        }  # fmt: skip
        columns = (f"{sql} AS {name}" for name, (_, sql) in STORED.items())
        write_delta(rows.selectExpr(*columns), str(path), properties=properties)
        table = DeltaTable.forPath(self.spark, str(path))
        for number in range(_COMMITS):
            if number % 2:
                table.delete(f"id = {number * 5}")
            else:
                table.update(f"id BETWEEN {number * 5} AND {number * 5 + 3}", {"note": "'new'"})
        return str(path)


def changes_of_commits(bench: _Bench) -> Measured:
    """All changes of the commits, against delta-spark's change data feed."""
    return against_delta_spark(bench.stopwatch, _RIVAL_MEMORY, partial(_change_feeds, bench))


def _change_feeds(bench: _Bench, rival: DeltaSpark) -> Measured:
    path = bench.table(tracks_rows=False)
    yield bench.stopwatch.compare(
        f"changes of {_COMMITS} commits with deletion vectors",
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
    """What differs between two versions, of which one file in a hundred differs."""
    for tracks_rows in (False, True):
        path = bench.table(tracks_rows=tracks_rows)

        def net(path: str = path) -> int:
            changes = read_changes(bench.spark, path, start_version=1, net=True)
            return changes.filter("_change_type IN ('delete', 'update_preimage')").count()

        def difference(path: str = path) -> int:
            before, after = (
                read_delta(bench.spark, path, version=version) for version in (0, _COMMITS)
            )
            return before.exceptAll(after).count()

        yield bench.stopwatch.compare(
            f"net changes of 1 of {_COMMITS} files, by {'row id' if tracks_rows else 'values'}",
            net,
            difference,
            floor_name="exceptAll of both versions",
            target=at_most(0.05),
        )


CHANGE_PARTS: dict[str, Callable[[_Bench], Measured]] = {
    "net-changes": net_changes,
    "delta-spark-change-feed": changes_of_commits,
    "stream-source": stream_source,
    "small-batches": small_batches,
    "delta-spark-stream-sink": stream_sink,
}


def changes(
    stopwatch: Stopwatch, scale: Sizes, scratch: Path, without: tuple[str, ...]
) -> Measured:
    """All of it; `without` names parts that are left out."""
    return run_parts(CHANGE_PARTS, _Bench(stopwatch, scratch, scale), without)
