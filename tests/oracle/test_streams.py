"""One streaming query, run by delta-spark and by sparkdelta in turn from one checkpoint."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import (
    DeltaTable,
    optimize,
    read_changes,
    read_delta,
    read_stream,
    write_delta,
    write_stream,
)
from tests.golden.expected import comparable
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.oracle

STEPS = 5


def stream(
    spark: SparkSession, source: str, target: str, checkpoint: str, options: dict[str, str]
) -> None:
    """Stream the rows of a table to another one; runs in the process of delta-spark."""
    rows = spark.readStream.format("delta").options(**options).load(source)
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start(target).awaitTermination(120)


def execute(spark: SparkSession, text: str) -> None:
    """Execute a statement; runs in the process of delta-spark."""
    spark.sql(text)


def append(spark: SparkSession, delta_spark: DeltaSpark, path: str, rng: random.Random) -> None:
    """One commit or two, of several files, by one of the two."""
    first = rng.randint(0, 1000)
    if rng.random() < 0.5:
        rows = spark.range(first, first + 6, 1, rng.randint(1, 3)).selectExpr("id", "id % 2 AS p")
        write_delta(rows, path, mode="append")
    else:
        text = f"INSERT INTO delta.`{path}` SELECT id, id % 2 FROM range({first}, {first + 4})"
        delta_spark.run("tests.oracle.test_streams:execute", text=text)
    if rng.random() < 0.2:
        optimize(spark, path)


def go_on(
    spark: SparkSession,
    delta_spark: DeltaSpark,
    paths: list[str],
    rng: random.Random,
    **options: Any,
) -> None:
    """Run the query on what there is, by one of the two."""
    files = rng.randint(1, 4)
    source, target, checkpoint = paths
    if rng.random() < 0.5:
        rows = read_stream(spark, source, max_files_per_trigger=files, **options)
        query = write_stream(rows, target, checkpoint, trigger={"availableNow": True})
        assert query.awaitTermination(120)
        return
    theirs = {"maxFilesPerTrigger": str(files)}
    theirs |= {"readChangeFeed": "true"} if options else {}
    delta_spark.run(
        "tests.oracle.test_streams:stream", source=source, target=target, checkpoint=checkpoint,
        options=theirs,
    )  # fmt: skip


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / name) for name in ("source", "target", "checkpoint")]


def test_a_query_moves_between_engines(
    spark: SparkSession, delta_spark: DeltaSpark, paths: list[str], seed: int
) -> None:
    """Each row once, whoever reads and writes it: offsets and transactions are the same."""
    rng = random.Random(f"streams {seed}")
    rows = spark.range(0, 9, 1, 5).selectExpr("id", "id % 2 AS p")
    properties: dict[str, str] = rng.choice(
        [{}, {"delta.enableInCommitTimestamps": "true"}, {"delta.columnMapping.mode": "name"}]
    )
    write_delta(rows, paths[0], properties=properties, partition_by=rng.choice([None, ["p"]]))
    for _ in range(STEPS):
        go_on(spark, delta_spark, paths, rng)
        append(spark, delta_spark, paths[0], rng)
    go_on(spark, delta_spark, paths, rng)
    found, expected = (
        comparable(read_delta(spark, path)).toArrow() for path in reversed(paths[:2])
    )
    assert_same_rows(found, expected)


@pytest.mark.slow
def test_a_query_of_changes_moves_between_engines(
    spark: SparkSession, delta_spark: DeltaSpark, paths: list[str], seed: int
) -> None:
    """The changes of each commit once, with the same versions and times."""
    rng = random.Random(f"streams of changes {seed}")
    rows = spark.range(0, 12, 1, 3).selectExpr("id", "id % 2 AS p")
    properties = {"delta.enableChangeDataFeed": "true"}
    if rng.random() < 0.7:
        properties["delta.enableDeletionVectors"] = "true"
    write_delta(rows, paths[0], properties=properties)
    for step in range(STEPS):
        go_on(spark, delta_spark, paths, rng, read_change_feed=True)
        if rng.random() < 0.6:
            DeltaTable.forPath(spark, paths[0]).update(f"id % 5 = {step}", {"p": "p + 10"})
        else:
            DeltaTable.forPath(spark, paths[0]).delete(f"id % 7 = {step}")
        append(spark, delta_spark, paths[0], rng)
    go_on(spark, delta_spark, paths, rng, read_change_feed=True)
    expected = comparable(read_changes(spark, paths[0], start_version=0)).toArrow()
    assert_same_rows(comparable(read_delta(spark, paths[1])).toArrow(), expected)


def totals_stream(spark: SparkSession, source: str, target: str, checkpoint: str) -> None:
    """Stream totals to a table in complete mode; runs in the process of delta-spark."""
    rows = totals(spark.readStream.format("delta").option("maxFilesPerTrigger", "2").load(source))
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer = writer.outputMode("complete").trigger(availableNow=True)
    assert writer.start(target).awaitTermination(120)


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("p").agg(F.count("*").alias("n"), F.sum("id").alias("sum"))


def forget_last_commit(checkpoint: str) -> None:
    """Make a checkpoint as it is when the query ends between its write and the end of its batch."""
    last = max(int(p.name) for p in Path(checkpoint, "commits").iterdir() if p.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        Path(checkpoint, "commits", name).unlink(missing_ok=True)


@pytest.mark.slow
def test_totals_in_complete_mode_move_between_engines(
    spark: SparkSession, delta_spark: DeltaSpark, paths: list[str], seed: int
) -> None:
    rng = random.Random(f"totals {seed}")
    source, target, checkpoint = paths
    rows = spark.range(0, 9, 1, 3).selectExpr("id", "id % 2 AS p")
    write_delta(rows, source)
    for step in range(STEPS):
        if step % 2 == seed % 2:
            delta_spark.run(
                "tests.oracle.test_streams:totals_stream",
                source=source, target=target, checkpoint=checkpoint,
            )  # fmt: skip
        else:
            read = totals(read_stream(spark, source, max_files_per_trigger=2))
            query = write_stream(
                read, target, checkpoint, output_mode="complete", trigger={"availableNow": True}
            )
            assert query.awaitTermination(120)
        expected = totals(read_delta(spark, source)).collect()
        found = read_delta(spark, target).select("p", "n", "sum").collect()
        assert sorted(found) == sorted(expected)
        if rng.random() < 0.5:
            forget_last_commit(checkpoint)
        append(spark, delta_spark, source, rng)
