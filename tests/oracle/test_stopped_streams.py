"""Streaming queries that stop within their snapshot or a commit, and that the other engine goes on
with, under every option of the source.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, read_delta, read_stream, write_delta
from sparkdelta.sql.statements.options import READ_STREAM, arguments
from tests.golden.expected import comparable
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.oracle

RUNS, MANY = 4, 1000
STOP = "enough batches"
CONSUME = "tests.oracle.test_stopped_streams:consume_by_delta_spark"
VECTORS = {"delta.enableDeletionVectors": "true"}

Change = Callable[[DeltaTable, random.Random], object]


def delete_partition(table: DeltaTable, rng: random.Random) -> object:
    return table.delete(f"p = {rng.randint(0, 1)}")


def update(table: DeltaTable, rng: random.Random) -> object:
    return table.update(f"id % 7 = {rng.randint(0, 6)}", {"id": "id + 1"})


def nothing(table: DeltaTable, rng: random.Random) -> object:
    return None


OPTIONS: dict[str, tuple[dict[str, str], Change]] = {
    "rows": ({}, nothing),
    "changes": ({"readChangeFeed": "true"}, update),
    "startingVersion": ({"startingVersion": "1"}, nothing),
    "startingTimestamp": ({"startingTimestamp": "2001-01-01"}, nothing),
    "ignoreDeletes": ({"ignoreDeletes": "true"}, delete_partition),
    "ignoreChanges": ({"ignoreChanges": "true"}, update),
    "skipChangeCommits": ({"skipChangeCommits": "true"}, update),
    "excludeRegex": ({"excludeRegex": "p=1"}, nothing),
    "changes from a version": ({"readChangeFeed": "true", "startingVersion": "0"}, update),
    "failOnDataLoss": ({"failOnDataLoss": "false"}, nothing),
}
"""Options of delta-spark, and what changes the source besides appends."""


def consume(rows: DataFrame, out: str, checkpoint: str, batches: int) -> None:
    """Write some batches of a query to a directory each, and stop before the next one."""
    done: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        if len(done) == batches:
            raise RuntimeError(STOP)
        batch.write.mode("overwrite").parquet(f"{out}/batch={number}")
        done.append(number)

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    try:
        assert writer.trigger(availableNow=True).start().awaitTermination(600)
    except StreamingQueryException as stopped:
        if STOP not in str(stopped):
            raise


def consume_by_delta_spark(
    spark: SparkSession, source: str, options: dict[str, str], **arguments: object
) -> None:
    """Consume a stream of delta-spark's source; runs in its process."""
    consume(spark.readStream.format("delta").options(**options).load(source), **arguments)  # type: ignore[arg-type]


CASES = [
    "rows",
    *(pytest.param(name, marks=pytest.mark.slow) for name in OPTIONS if name != "rows"),
]


@pytest.mark.every_case
@pytest.mark.parametrize("name", CASES)
def test_a_stopped_query_goes_on_elsewhere(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str, seed: int
) -> None:
    """Each row once, whichever engine runs it, and wherever the other one stopped."""
    rng = random.Random(f"stopped streams, {name} {seed}")
    options, change = OPTIONS[name]
    source, out, checkpoint = (str(tmp_path / each) for each in ("source", "out", "checkpoint"))
    properties = {"delta.enableChangeDataFeed": str("readChangeFeed" in options).lower()}
    properties |= rng.choice([{}, VECTORS])

    def append(**arguments: Any) -> None:
        first = rng.randint(0, 1000)
        rows = spark.range(first, first + 6, 1, 3).selectExpr("id", "id % 2 AS p")
        write_delta(rows, source, mode="append", **arguments)

    append(partition_by=["p"], properties=properties)
    append()
    turn = rng.random() < 0.5
    for number in range(RUNS):
        turn = not turn
        size = str(rng.randint(1, 2))
        limit = {rng.choice(["maxFilesPerTrigger", "maxBytesPerTrigger"]): size}
        batches = rng.randint(1, 4) if number else 1
        run(spark, delta_spark if turn else None, source, {**options, **limit}, out, checkpoint,
            batches)  # fmt: skip
        append()
        if number:
            change(DeltaTable.forPath(spark, source), rng)
    run(spark, None if turn else delta_spark, source, options, out, checkpoint, MANY)
    found = spark.read.parquet(out).drop("batch")
    # delta-spark alone, from the version after the snapshot that the query began with.
    has_start = any(option.startswith("starting") for option in options)
    begin = {} if has_start else {"startingVersion": "2"}
    other = str(tmp_path / "other")
    delta_spark.run(
        CONSUME, source=source, options={**options, **begin}, out=other,
        checkpoint=f"{other} checkpoint", batches=MANY,
    )  # fmt: skip
    expected = spark.read.parquet(other).drop("batch")
    if not has_start:
        snapshot = read_delta(spark, source, version=1)
        if "excludeRegex" in options:
            snapshot = snapshot.filter("p = 0")
        if "readChangeFeed" in options:
            inserted = found.filter("_commit_version = 1").select("_commit_timestamp").first()
            assert inserted is not None
            snapshot = snapshot.withColumns(
                {
                    "_change_type": F.lit("insert"),
                    "_commit_version": F.lit(1).cast("long"),
                    "_commit_timestamp": F.lit(inserted[0]),
                }
            )
        expected = expected.unionByName(snapshot)
    assert_same_rows(comparable(found).toArrow(), comparable(expected).toArrow())


def run(
    spark: SparkSession,
    delta_spark: DeltaSpark | None,
    source: str,
    options: dict[str, str],
    out: str,
    checkpoint: str,
    batches: int,
) -> None:
    """Go on with the query for some batches, by delta-spark or by sparkdelta."""
    if delta_spark is None:
        found = arguments(options, READ_STREAM, function="readStream")
        consume(read_stream(spark, source, **found), out, checkpoint, batches)
        return
    delta_spark.run(
        CONSUME, source=source, options=options, out=out, checkpoint=checkpoint, batches=batches
    )
