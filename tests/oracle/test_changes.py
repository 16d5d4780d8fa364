"""Random histories by delta-spark and sparkdelta in turn; both read the changes of random ranges.

PROTOCOL.md#change-data-files
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_changes, write_delta
from tests.golden.expected import comparable
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle

STEPS = 5
PROPERTIES = [
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true"},
    {},
]
CONDITIONS = ["id % 4 = 1", "a IS NULL", "p = 1", "id < 10 AND p = 0", "b > 'b'", "id > 25"]
VALUES = {"a": ["a + 1", "NULL"], "b": ["upper(b)", "'x'"], "p": ["1 - p"]}


def execute(spark: SparkSession, text: str) -> None:
    """Execute a statement; runs in the process of delta-spark."""
    spark.sql(text)


def changes(spark: SparkSession, table: str, options: dict[str, str], expected: str) -> None:
    """Write the rows of delta-spark's change data feed to a file; runs in its process."""
    reader = spark.read.format("delta").option("readChangeFeed", "true").options(**options)
    pq.write_table(comparable(reader.load(table)).toArrow(), expected, store_schema=False)


def change(
    spark: SparkSession, delta_spark: DeltaSpark, path: str, rng: random.Random, version: int
) -> None:
    """One random operation, by one of the two."""
    name, condition = rng.choice(sorted(VALUES)), rng.choice(CONDITIONS)
    value, table = rng.choice(VALUES[name]), DeltaTable.forPath(spark, path)
    rows = f"SELECT id + {version * 100} AS id, id AS a, 'new' AS b, id % 2 AS p FROM range(3)"
    source = f"SELECT id * 2 AS id, id AS a, 'm' AS b, id % 2 AS p FROM range({version * 3})"
    theirs = {
        "delete": f"DELETE FROM delta.`{path}` WHERE {condition}",
        "update": f"UPDATE delta.`{path}` SET {name} = {value} WHERE {condition}",
        "append": f"INSERT INTO delta.`{path}` {rows}",
        "merge": f"MERGE INTO delta.`{path}` t USING ({source}) s ON t.id = s.id WHEN MATCHED AND "
        "t.p = 0 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "restore": f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {rng.randint(0, version)}",
    }
    operation = rng.choice(sorted(theirs))
    if operation == "restore" or rng.random() < 0.5:
        delta_spark.run("tests.oracle.test_changes:execute", text=theirs[operation])
    elif operation == "delete":
        table.delete(condition)
    elif operation == "update":
        table.update(condition, {name: value})
    elif operation == "append":
        write_delta(spark.sql(rows), path, mode="append")
    else:
        merge = table.alias("t").merge(spark.sql(source).alias("s"), "t.id = s.id")
        merge = merge.whenMatchedUpdateAll("t.p = 0").whenMatchedDelete()
        merge.whenNotMatchedInsertAll().execute()


def test_random_ranges(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"changes {seed}")
    path, expected = str(tmp_path / "table"), tmp_path / "expected.parquet"
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id) AS a", "chr(97 + id % 3) AS b", "id % 2 AS p"
    )
    properties = {"delta.enableChangeDataFeed": "true", **rng.choice(PROPERTIES)}
    write_delta(rows, path, properties=properties, partition_by=rng.choice([None, ["p"]]))
    version = 0
    for _ in range(STEPS):
        change(spark, delta_spark, path, rng, version)
        version = len([*Path(path, "_delta_log").glob("0*.json")]) - 1
    later = rng.randint(1, version)
    for start, end in ((0, version), (later, rng.randint(later, version))):
        options: dict[str, Any] = {"startingVersion": str(start), "endingVersion": str(end)}
        delta_spark.run(
            "tests.oracle.test_changes:changes",
            table=path,
            options=options,
            expected=str(expected),
        )
        bound = rng.choice([100_000, 0])
        found = read_changes(
            spark, path, start_version=start, end_version=end, max_driver_files=bound
        )
        assert_same_rows(comparable(found).toArrow(), parquet_rows(expected))
