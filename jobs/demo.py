"""Replay the logs of two real tables and explain each step: `make demo`.

The tables are written by delta-rs, which shares no code with sparkdelta; everything after that
uses only sparkdelta. `spark-submit jobs/demo.py` does the same on any cluster whose driver and
workers share a disk.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable as RsTable
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta import Snapshot

PEOPLE = [("Alice", 47), ("Bob", 23), ("Carol", 51)]
DAYS = ["2024-05-01", "2024-05-02", "2024-05-03"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Create the tables, then read them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--tables", help="directory for the tables (default: a temporary directory)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sparkdelta-demo-") as scratch, _spark() as spark:
        tables = Path(options.tables or scratch)
        people, visits = str(tables / "people"), str(tables / "visits")
        write_people(people)
        write_visits(visits)
        show_people(spark, people)
        show_visits(spark, visits)
        say("Done", "Next: notebooks/01_quickstart.ipynb, and README.md for the rest.")


def write_people(path: str) -> None:
    """A small table with no checkpoint: three appends."""
    for name, age in PEOPLE:
        write_deltalake(path, pa.table({"name": [name], "age": [age]}), mode="append")


def write_visits(path: str) -> None:
    """A partitioned table with many commits: appends, a checkpoint, a delete, an overwrite."""
    for number in range(12):
        day = DAYS[number % len(DAYS)]
        visits = pa.table(
            {"day": [day] * 3, "visitor": [name for name, _ in PEOPLE], "page": [number] * 3}
        )
        write_deltalake(path, visits, mode="append", partition_by=["day"])
    RsTable(path).create_checkpoint()
    RsTable(path).delete("visitor = 'Bob' AND day = '2024-05-02'")
    replacement = pa.table({"day": ["2024-05-03"], "visitor": ["Dora"], "page": [99]})
    write_deltalake(path, replacement, mode="overwrite", predicate="day = '2024-05-03'")


def show_people(spark: SparkSession, path: str) -> None:
    """The simplest case: the log is three JSON files."""
    say("1. A small table", "Three commits by delta-rs, read back by sparkdelta.")
    sparkdelta.read_delta(spark, path).orderBy("name").show()
    say("", "The same table as of version 1, before Carol came:")
    sparkdelta.read_delta(spark, path, version=1).orderBy("name").show()


def show_visits(spark: SparkSession, path: str) -> None:
    """Every step from the log's files to rows."""
    snapshot = sparkdelta.load_snapshot(spark, path)
    say("2. From files to a log segment", describe_segment(snapshot))
    say("3. The actions", "The commits after the checkpoint, a row per action, with their version:")
    actions = snapshot.log.commits.actions("add", "remove")
    actions.selectExpr(
        "version",
        "IF(add IS NULL, 'remove', 'add') AS action",
        "coalesce(add.path, remove.path) AS path",
    ).where("path IS NOT NULL").orderBy("version", "action").show(truncate=60)
    say(
        "4. The reconciled state",
        "The newest action of each file wins. The checkpoint's files are kept unless a commit\n"
        "after it speaks of them (an anti join; the checkpoint is never grouped). Live files:",
    )
    files = snapshot.add_files()
    files.select(
        "partitionValues_parsed.day",
        "stats_parsed.numRecords",
        "stats_parsed.minValues.page",
        "size",
    ).orderBy("day", "page").show()
    print(
        f"   {snapshot.remove_files().count()} tombstones are left for readers of older versions."
    )
    say("5. History", "")
    table = sparkdelta.DeltaTable.forPath(spark, path)
    table.history(4).select("version", "timestamp", "operation", "engineInfo").show(truncate=40)
    say(
        "6. Time travel",
        "Rows by day, now and as of version 11, before the delete and the overwrite:",
    )
    now = table.toDF().groupBy("day").count().withColumnRenamed("count", "now")
    then = sparkdelta.read_delta(spark, path, version=11).groupBy("day").count()
    now.join(then.withColumnRenamed("count", "version 11"), "day").orderBy("day").show()
    say("7. Rows", "A selective read:")
    sparkdelta.read_delta(
        spark, path, where="visitor = 'Alice' AND page >= 6", columns=["day", "page"]
    ).orderBy("page").show()


def describe_segment(snapshot: Snapshot) -> str:
    """Describe a log segment."""
    segment = snapshot.segment
    lines = [f"The table is at version {snapshot.version}. To know its state, it is enough to read"]
    if segment.checkpoint is not None:
        names = ", ".join(file.name for file in segment.checkpoint.files)
        lines.append(f"  the checkpoint of version {segment.checkpoint.version}: {names}")
    lines += [f"  the commit {file.name} ({file.size_bytes} bytes)" for file in segment.deltas]
    lines.append(f"Of {snapshot.version + 1} commits, that leaves {len(segment.deltas)} to parse.")
    return "\n".join(lines)


def say(title: str, text: str) -> None:
    """Print a heading and a paragraph."""
    if title:
        print(f"\n=== {title} " + "=" * max(0, 76 - len(title)))
    if text:
        print("   " + text.replace("\n", "\n   ") + "\n")


@contextmanager
def _spark() -> Iterator[SparkSession]:
    """Return the session of spark-submit, or a local one with little logging."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    print("Starting Spark, which takes some seconds; it logs a few lines of its own.", flush=True)
    builder = SparkSession.builder.appName("sparkdelta demo")
    if SparkSession.getActiveSession() is None and "SPARK_ENV_LOADED" not in os.environ:
        builder = (
            builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
