"""Spark Connect against classic Spark: the same calls on copies of one table, with as much memory.

A server, a client and a classic session, each in a process that has done nothing else, run at the
same time, and their calls take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from tests.benchmarks.copied_tables import Sizes
from tests.benchmarks.data import STORED, stored_rows
from tests.benchmarks.measurement import Comparison, Stopwatch, Target, at_most
from tests.benchmarks.parts import make_once
from tests.benchmarks.row_operations import RIVAL_MEMORY, RowBench
from tests.support.connect_server import connect_server
from tests.support.spark_worker import SparkWorker

_SESSIONS = "tests.benchmarks.session"
_FILES = 1_000


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of this module on a table, and its target."""

    name: str
    table: Path
    function: Callable[..., object]
    arguments: dict[str, Any]
    target: Target


def connect(stopwatch: Stopwatch, scale: Sizes, scratch: Path) -> Iterator[Comparison]:
    """Writes, a selective read and a MERGE."""
    bench = RowBench(stopwatch, scratch, scale)
    cores = stopwatch.spark.sparkContext.defaultParallelism
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": str(2 * cores)}
    calls = _calls(bench)
    with (
        TemporaryDirectory(prefix="connect-server-") as own,
        connect_server(
            Path(own),
            settings,
            environment={"SPARK_CONF_DIR": own},  # that of tests is for short runs
            master=f"local[{cores}]",
            memory=RIVAL_MEMORY,
        ) as remote,
        SparkWorker(f"{_SESSIONS}:connect_session", remote=remote) as client,
        SparkWorker(f"{_SESSIONS}:classic_session", cores=cores, memory=RIVAL_MEMORY) as classic,
    ):
        for call in calls:
            function = f"{__name__}:{call.function.__name__}"
            there, here = (partial(w.run, function, **call.arguments) for w in (client, classic))
            measured = bench.compare(
                call.name,
                call.table,
                lambda path, run=there: run(path=path),
                lambda path, run=here: run(path=path),
                call.target,
                partial(_contents, stopwatch.spark),
            )
            yield replace(measured, floor_name="classic Spark")


def _calls(bench: RowBench) -> list[_Call]:
    large, small = bench.table(has_vectors=True), bench.scratch / "small"
    written = bench.num_rows * 3 // 20
    make_once(small, lambda: write_rows(bench.spark, str(small), bench.num_files, "error"))
    many = bench.scratch / "many-files"
    make_once(many, lambda: write_delta(bench.spark.range(0, _FILES * 10, 1, _FILES), str(many)))
    changes = bench.num_rows // 200
    return [
        *(
            _Call(f"{mode} of {written:,} rows", small, write_rows,
                  {"rows": written, "mode": mode}, at_most(1.2))
            for mode in ("append", "overwrite")
        ),
        _Call(f"a row of {_FILES:,} files by where=", many, count_row, {"row": 7}, at_most(1.5)),
        _Call(f"MERGE of {changes:,} updates and {changes:,} inserts into {bench.num_rows:,} rows",
              large, merge_rows, {"rows": bench.num_rows, "changes": changes}, at_most(1.3)),
    ]  # fmt: skip


def write_rows(spark: SparkSession, path: str, rows: int, mode: str) -> None:
    """Write a number of rows, in four tasks."""
    write_delta(stored_rows(spark.range(0, rows, 1, 4)), path, mode=mode)


def count_row(spark: SparkSession, path: str, row: int) -> int:
    """Read one row by its id."""
    return read_delta(spark, path, where=f"id = {row}").count()


def merge_rows(spark: SparkSession, path: str, rows: int, changes: int) -> None:
    """Update every 200th row, and insert as many."""
    source = spark.range(0, 2 * changes, 1, 4).selectExpr(
        f"IF(id < {changes}, id * (({rows} - 3) DIV {changes}) + 3, id + {rows}) AS id"
    )
    values = {name: sql for name, (_, sql) in STORED.items()} | {"note": "'merged'"}
    source = source.selectExpr(*(f"{sql} AS {name}" for name, sql in values.items()))
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _contents(spark: SparkSession, table: Path) -> list[object]:
    """Return the version and the number of rows."""
    return [load_snapshot(spark, str(table)).version, read_delta(spark, str(table)).count()]
