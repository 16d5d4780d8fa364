"""Writers in processes of their own, see `spark_worker`."""

from __future__ import annotations

import time
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, read_stream, write_delta, write_stream
from sparkdelta.base.spark.classic_engine import ClassicEngine
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.snapshot.staging import Staging


def session(scratch: Path) -> SparkSession:
    """A small session."""
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )


def append(spark: SparkSession, path: str, first: int, commits: int) -> list[int | None]:
    """Append one row per commit, numbered from `first`."""
    return [
        write_delta(spark.range(n, n + 1).coalesce(1), path, mode="append").version
        for n in range(first, first + commits)
    ]


def append_together(spark: SparkSession, path: str, first: int, meeting: str, writers: int) -> None:
    """One commit, whose data files are written while those of all the others are."""
    write = ClassicEngine.write_parquet

    def overlapping(*arguments: object, **options: object) -> None:
        _meet(Path(meeting, "begin"), first, writers)
        write(*arguments, **options)  # type: ignore[arg-type]
        _meet(Path(meeting, "end"), first, writers)

    with patch.object(ClassicEngine, "write_parquet", overlapping):
        append(spark, path, first, 1)


def _meet(place: Path, number: int, writers: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / str(number)).touch()
    while len(list(place.iterdir())) < writers:
        time.sleep(0.01)


def stuck_in_data_files(spark: SparkSession, path: str, reached: str) -> None:
    """An append whose tasks never end; the file `reached` is there once some rows are written."""

    def slow(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            yield batch
            Path(reached).touch()
            time.sleep(600)

    rows = spark.range(0, 100_000, 1, 1).mapInPandas(slow, "id LONG")
    write_delta(rows, path, mode="append")


def stuck_in_update(spark: SparkSession, path: str, reached: str) -> None:
    """An UPDATE whose new rows are never all written."""

    @F.udf("long")
    def slow(number: int) -> int:
        Path(reached).touch()
        time.sleep(600)
        return number

    DeltaTable.forPath(spark, path).update("id = 1", {"id": slow("id")})


def stuck_before_commit(spark: SparkSession, path: str, reached: str) -> None:
    """A DELETE whose deletion vectors and data files are all written."""
    with patch.object(Transaction, "commit", lambda *_: _never(reached)):
        DeltaTable.forPath(spark, path).delete("id > 0")


def stuck_before_publishing(spark: SparkSession, path: str, reached: str) -> None:
    """A checkpoint whose files are all staged, and never get their names."""
    from sparkdelta import write_checkpoint

    with patch.object(Staging, "publish", lambda *_: _never(reached)):
        write_checkpoint(spark, path, kind="v2-json")


def _never(reached: str) -> None:
    Path(reached).touch()
    time.sleep(600)


def stream(spark: SparkSession, paths: list[str], stop: list[object] | None = None) -> int:
    """A query from one table to another, with a file in each batch, until all is read; the number
    of the last batch.

    Parameters
    ----------
    paths
        The source, the target and the checkpoint.
    stop
        The number of a batch, ``before`` or ``after``, and a file: at the commit of that batch the
        query comes to a halt, when it is about to be made or when it is done, and the file is made.
    """
    source, target, checkpoint = paths
    commit = Transaction.commit

    def halting(self: Transaction) -> object:
        batch = self.staged.transactions[0].version
        if stop is not None and stop[:2] == [batch, "before"]:
            _never(str(stop[2]))
        done = commit(self)
        if stop is not None and stop[:2] == [batch, "after"]:
            _never(str(stop[2]))
        return done

    with patch.object(Transaction, "commit", halting):
        rows = read_stream(spark, source, max_files_per_trigger=1)
        query = write_stream(rows, target, checkpoint, trigger={"availableNow": True})
        query.awaitTermination()
    return max((progress["batchId"] for progress in query.recentProgress), default=-1)
