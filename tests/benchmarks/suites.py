"""The suites: comparisons, each with its floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta import Snapshot, load_snapshot, read_delta, write_delta
from sparkdelta.table.scan import native_scan
from sparkdelta.table.scan import scan as table_scan
from tests.benchmarks.alterations import alterations
from tests.benchmarks.changes import changes
from tests.benchmarks.checkpoints import checkpoints
from tests.benchmarks.connect import connect
from tests.benchmarks.data import (
    PARTITION,
    STORED,
    write_data_files,
    write_deletion_vectors,
    write_mixed_table,
    write_partitioned_table,
    write_table,
)
from tests.benchmarks.fixed_costs import fixed_costs
from tests.benchmarks.growth import growth
from tests.benchmarks.logs import CheckpointedLog, Layout, write_commits
from tests.benchmarks.maintenance import maintenance
from tests.benchmarks.measurement import Comparison, NotMeasured, Stopwatch, Target, at_most
from tests.benchmarks.parts import Measured, against_delta_spark
from tests.benchmarks.peers import peers
from tests.benchmarks.planning import planning
from tests.benchmarks.planning_tables import FULL, SMALL, Planning
from tests.benchmarks.row_change_costs import READ_BY_DELTA_SPARK, read_columns
from tests.benchmarks.row_changes import row_changes
from tests.benchmarks.row_operations import RIVAL_MEMORY
from tests.benchmarks.statements import statements
from tests.benchmarks.writes import writes
from tests.support.delta_spark import VERSION, DeltaSpark
from tests.support.distributed import distributed_scans


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of what is generated."""

    commits: tuple[int, ...]
    batches: int
    checkpoint_files: int
    sidecars: int
    tail_commits: int
    actions_per_commit: int
    data_files: int
    rows_per_file: int
    directories: int
    planning: Planning
    deleted: tuple[float, ...] = (0.001, 0.1, 0.5)


SCALES = {
    "small": Scale(
        commits=(10, 50),
        batches=60,
        checkpoint_files=10_000,
        sidecars=2,
        tail_commits=3,
        actions_per_commit=50,
        data_files=4,
        rows_per_file=100_000,
        directories=2,
        planning=SMALL,
    ),
    "full": Scale(
        commits=(10, 1_000),
        batches=1_000,
        checkpoint_files=1_000_000,
        sidecars=8,
        tail_commits=10,
        actions_per_commit=1_000,
        data_files=20,
        rows_per_file=1_000_000,
        directories=5,
        planning=FULL,
    ),
}

Suite = Callable[[Stopwatch, Scale, Path], Iterator[Comparison | NotMeasured]]


def loading(stopwatch: Stopwatch, scale: Scale, scratch: Path) -> Iterator[Comparison]:
    """A snapshot of a table without a checkpoint, and its live files, cold each time."""
    spark = stopwatch.spark
    for count in scale.commits:
        root = scratch / f"commits-{count}"
        paths = write_commits(spark, root, commits=count)
        text = f"spark.read.text of {count} commits, counted"

        def lines(paths: list[str] = paths) -> int:
            return spark.read.text(paths).count()

        def load(root: Path = root) -> int:
            return load_snapshot(spark, str(root)).version

        def count_files(root: Path = root) -> int:
            return load_snapshot(spark, str(root)).add_files().count()

        for name, candidate in (("load_snapshot", load), ("and add_files().count()", count_files)):
            yield stopwatch.compare(
                f"{count} commits, {name}", candidate, lines, floor_name=text, same_result=False
            )


def replay(stopwatch: Stopwatch, scale: Scale, scratch: Path) -> Iterator[Comparison]:
    """The paths of the live files: checkpoint and tail, against the checkpoint's column alone."""
    spark = stopwatch.spark
    layouts: dict[Layout, str] = {
        "classic": "one classic file",
        "hash": f"{scale.sidecars} sidecars",
    }
    for layout, said in layouts.items():
        log = CheckpointedLog(
            layout=layout,
            statistics="both",
            files=scale.checkpoint_files,
            sidecars=scale.sidecars,
            tail_commits=scale.tail_commits,
            actions_per_commit=scale.actions_per_commit,
        )
        root = log.write_once(spark, scratch)
        files = log.checkpoint_files(root)
        snapshot = load_snapshot(spark, str(root))

        def floor(files: list[str] = files) -> object:
            return _paths(spark.read.parquet(*files).select("add.path"))

        def live(snapshot: Snapshot = snapshot) -> object:
            return _paths(snapshot.add_files())

        def cold(root: Path = root) -> object:
            return _paths(load_snapshot(spark, str(root)).add_files())

        size = f"{scale.checkpoint_files:,} files, {said}"
        yield stopwatch.compare(
            f"{size}, snapshot at hand",
            live,
            floor,
            floor_name="add.path of it",
            target=at_most(2.5),
        )
        yield stopwatch.compare(
            f"{size}, load_snapshot included", cold, floor, floor_name="add.path of it"
        )


def _paths(frame: DataFrame) -> object:
    # Paths have one length, and as many are added as removed: equal for floor and candidate.
    return frame.agg(F.count("path"), F.sum(F.length("path"))).collect()


def scans(stopwatch: Stopwatch, scale: Scale, scratch: Path) -> Iterator[Comparison]:
    """All rows without deletion vectors, against `spark.read.parquet` on the same files."""
    spark = stopwatch.spark
    rows = scale.rows_per_file
    plain, partitioned = scratch / "plain", scratch / "partitioned"
    files = write_data_files(spark, plain, files=scale.data_files, rows_per_file=rows)
    write_table(files, plain, rows_per_file=rows)
    write_partitioned_table(files, partitioned, rows_per_file=rows, directories=scale.directories)
    names = list(STORED)
    yield from _scans(
        stopwatch,
        "unpartitioned",
        read_delta(spark, str(plain)),
        spark.read.parquet(*map(str, files)),
        names,
        at_most(1.05),
    )
    half = len(files) // 2
    condition = f"id < {half * rows}"
    yield from _scans(
        stopwatch,
        "half of the files, by a filter given late",
        read_delta(spark, str(plain)).filter(condition),
        spark.read.parquet(*map(str, files[:half])).filter(condition),
        names,
        at_most(1.05),
    )
    with_partition = [*names[1:], PARTITION]
    discovered = spark.read.parquet(str(partitioned))
    yield from _scans(
        stopwatch,
        "partitioned by directory",
        read_delta(spark, str(partitioned)),
        discovered,
        with_partition,
        at_most(1.05),
    )
    mixed = scratch / "mixed"
    write_mixed_table(files, mixed, rows_per_file=rows, tuples=scale.directories)
    yield from _scans(
        stopwatch,
        "several partitions in a directory",
        read_delta(spark, str(mixed)),
        discovered,
        with_partition,
        at_most(1.15),
    )
    with patch.object(native_scan, "MAX_PARTITION_LAYERS", 0):
        joined = read_delta(spark, str(mixed), where="TRUE")  # listed at once
    yield from _scans(
        stopwatch, "partition values joined", joined, discovered, with_partition, None
    )
    tracked = scratch / "tracked"
    properties = {"delta.enableRowTracking": "true"}
    write_delta(spark.read.parquet(*map(str, files)), str(tracked), properties=properties)
    for columns in (["amount"], names):
        wanted = [*columns, "_metadata.row_id"]
        with patch.object(table_scan, "MAX_FILES_WITH_ROW_IDS", 0):
            joined = read_delta(spark, str(tracked), columns=wanted)
        late = read_delta(spark, str(tracked), columns=wanted)
        yield stopwatch.compare(
            f"row ids and {len(columns)} of {len(names)} columns",
            partial(_all, late),
            partial(_all, joined),
            floor_name="row ids joined",
        )
    yield stopwatch.compare(
        "unpartitioned, one column, read_delta included",
        lambda: _total(read_delta(spark, str(plain))),
        lambda: _total(spark.read.parquet(*map(str, files))),
        floor_name="spark.read.parquet included",
    )


def deletion_vectors(stopwatch: Stopwatch, scale: Scale, scratch: Path) -> Measured:
    """Rows that deletion vectors leave, against `spark.read.parquet` of all rows, and against
    delta-spark.
    """
    spark = stopwatch.spark
    rows, root = scale.rows_per_file, scratch / "vectors"
    files = write_data_files(spark, root, files=scale.data_files, rows_per_file=rows)
    write_table(files, root, rows_per_file=rows)
    left = write_deletion_vectors(files, root, rows_per_file=rows, fractions=scale.deleted)
    plain = spark.read.parquet(*map(str, files))
    for version, (fraction, expected) in enumerate(zip(scale.deleted, left, strict=True), start=1):
        table = read_delta(spark, str(root), version=version)
        found = table.count()
        if found != expected:
            raise ValueError(f"{found} rows are left at version {version} instead of {expected}")
        name = f"{fraction:.1%} deleted"
        yield from _scans(stopwatch, name, table, plain, list(STORED), None, same_result=False)

    def measure(rival: DeltaSpark) -> Measured:
        for version, fraction in enumerate(scale.deleted, start=1):
            for columns, target in ((["amount"], at_most(0.6)), (list(STORED), at_most(0.8))):
                read = {"path": str(root), "columns": columns, "version": version}
                yield stopwatch.compare(
                    f"{fraction:.1%} deleted, {len(columns)} of {len(STORED)} columns",
                    partial(read_columns, spark, **read),
                    partial(rival.run, READ_BY_DELTA_SPARK, **read),
                    floor_name=f"delta-spark {VERSION}",
                    target=target,
                )

    yield from against_delta_spark(stopwatch, RIVAL_MEMORY, measure)


def distributed_scan(stopwatch: Stopwatch, scale: Scale, scratch: Path) -> Iterator[Comparison]:
    """Rows read by executors from a DataFrame of files, against the scan of a list of files."""
    spark = stopwatch.spark
    rows, root = scale.rows_per_file, scratch / "distributed"
    files = write_data_files(spark, root, files=scale.data_files, rows_per_file=rows)
    write_table(files, root, rows_per_file=rows)
    write_deletion_vectors(files, root, rows_per_file=rows, fractions=[0.1])
    one = ["amount"]
    for version, name in ((0, "without deletion vectors"), (1, "10% deleted")):
        native = read_delta(spark, str(root), version=version)

        with distributed_scans(one):
            narrow = read_delta(spark, str(root), version=version, columns=one)
        with distributed_scans():
            wide = read_delta(spark, str(root), version=version)
        yield stopwatch.compare(
            f"{name}, one column",
            lambda ours=narrow: _total(ours),
            lambda theirs=native: _total(theirs),
            floor_name="read_delta",
        )
        yield stopwatch.compare(
            f"{name}, eight columns",
            lambda ours=wide: _all(ours),
            lambda theirs=native: _all(theirs),
            floor_name="read_delta",
            target=at_most(3.0),
        )


def _scans(
    stopwatch: Stopwatch,
    name: str,
    table: DataFrame,
    plain: DataFrame,
    columns: list[str],
    target: Target | None,
    *,
    same_result: bool = True,
) -> Iterator[Comparison]:
    floor_name = "spark.read.parquet"
    yield stopwatch.compare(
        f"{name}, one column",
        lambda: _total(table),
        lambda: _total(plain),
        floor_name=floor_name,
        target=target,
        same_result=same_result,
    )
    yield stopwatch.compare(
        f"{name}, eight columns",
        lambda: _all(table.select(*columns)),
        lambda: _all(plain.select(*columns)),
        floor_name=floor_name,
        target=target,
    )


def _total(frame: DataFrame) -> object:
    (row,) = frame.agg(F.count("*"), F.sum("amount")).collect()
    return row[0], _rounded(row[1])


def _rounded(number: float) -> float:
    """Without the digits in which sums of doubles differ by their order."""
    return round(number, 6 - math.floor(math.log10(abs(number)))) if number else number


def _all(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


SUITES: dict[str, Suite] = {
    "loading": loading,
    "replay": replay,
    "scans": scans,
    "deletion vectors": deletion_vectors,
    "distributed scan": distributed_scan,
    "checkpoints": lambda stopwatch, scale, scratch: checkpoints(
        stopwatch, scale.planning, scratch
    ),
    "writes": lambda stopwatch, scale, scratch: writes(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "row changes": lambda stopwatch, scale, scratch: row_changes(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "changes": lambda stopwatch, scale, scratch: changes(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "alterations": lambda stopwatch, scale, scratch: alterations(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "maintenance": lambda stopwatch, scale, scratch: maintenance(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "fixed costs": lambda stopwatch, scale, scratch: fixed_costs(
        stopwatch, scale, scratch, scale.planning.without
    ),
    "sql": statements,
    "connect": connect,
    "peers": peers,
    "growth": lambda stopwatch, scale, scratch: growth(stopwatch, scale.planning, scratch),
    "planning": lambda stopwatch, scale, scratch: planning(stopwatch, scale.planning, scratch),
}
