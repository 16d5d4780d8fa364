"""Tables with `materializePartitionColumns`: what their data files hold.

protocol_rfcs/materialize-partition-columns.md
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_delta,
    reorg,
    write_delta,
)
from tests.operations.write.test_write import commit, rows

ON = {"delta.enableMaterializePartitionColumnsFeature": "true"}
ROWS = "SELECT IF(id = 3, NULL, concat('p ', id % 2)) AS p, id AS n FROM range(0, 4, 1, 1)"


def stored(path: str) -> list[list[str]]:
    """The columns of the files that the latest commit added; none has statistics of `p`."""
    log = sorted(Path(path, "_delta_log").glob("*.json"))
    adds: list[dict[str, Any]] = commit(path, len(log) - 1).get("add", [])
    assert not any("p" in json.loads(add["stats"])["minValues"] for add in adds)
    return [pq.read_schema(Path(path, unquote(add["path"]))).names for add in adds]


def test_files_hold_partition_columns(spark: SparkSession, table_path: str) -> None:
    """After the data columns, until the feature is dropped; readers take the values of the log."""
    write_delta(spark.sql(ROWS), table_path, partition_by=["p"], properties=ON)
    features = load_snapshot(spark, table_path).protocol.writer_features or ()
    assert "materializePartitionColumns" in features
    assert stored(table_path) == [["n", "p"]] * 3
    write_delta(spark.sql("SELECT 'p 0' AS p, 4L AS n"), table_path, mode="append")
    assert stored(table_path) == [["n", "p"]]
    optimize(spark, table_path)
    assert stored(table_path) == [["n", "p"]]
    DeltaTable.forPath(spark, table_path).dropFeatureSupport("materializePartitionColumns")
    assert not ON.keys() & load_snapshot(spark, table_path).properties.keys()
    write_delta(spark.sql("SELECT 'p 1' AS p, 5L AS n"), table_path, mode="append")
    assert stored(table_path) == [["n"]]
    assert read_delta(spark, table_path, where="p = 'p 1' AND n < 6").count() == 2
    assert sorted(rows(spark, table_path), key=str) == [
        ("p 0", 0), ("p 0", 2), ("p 0", 4), ("p 1", 1), ("p 1", 5), (None, 3),
    ]  # fmt: skip


def test_a_property_asks_for_them(spark: SparkSession, table_path: str) -> None:
    """delta.writePartitionColumnsToParquet, which needs no table feature."""
    write_delta(spark.sql(ROWS), table_path, partition_by=["p"])
    assert stored(table_path) == [["n"]] * 3
    table = alter_table(spark, table_path)
    table.set_properties({"delta.writePartitionColumnsToParquet": "true"})
    assert load_snapshot(spark, table_path).protocol.writer_features is None
    write_delta(spark.sql(ROWS), table_path, mode="overwrite")
    assert stored(table_path) == [["n", "p"]] * 3
    assert read_delta(spark, table_path).count() == 4


@pytest.mark.full
@pytest.mark.parametrize("mapping", ["none", "id"])
def test_every_way_to_write(spark: SparkSession, table_path: str, mapping: str) -> None:
    """Updates, merges, overwrites, and change files; once the feature is there."""
    properties = {"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"}
    write_delta(spark.sql(ROWS), table_path, partition_by=["p"], properties=properties)
    assert len(stored(table_path)[0]) == 1
    alter_table(spark, table_path).set_properties(ON)
    table = DeltaTable.forPath(spark, table_path)
    table.update("n = 0", {"p": "'new'"})
    assert [len(columns) for columns in stored(table_path)] == [2, 2]
    source = spark.sql("SELECT 'p 1' AS p, 9L AS n").alias("s")
    table.alias("t").merge(source, "t.n = s.n").whenNotMatchedInsertAll().execute()
    assert [len(columns) for columns in stored(table_path)] == [2]
    table.delete("n = 2")
    write_delta(spark.sql("SELECT 'new' AS p, 7L AS n"), table_path, mode="overwrite",
                partition_overwrite_mode="dynamic")  # fmt: skip
    assert [len(columns) for columns in stored(table_path)] == [2]
    assert sorted(rows(spark, table_path), key=str) == [
        ("new", 7), ("p 1", 1), ("p 1", 9), (None, 3),
    ]  # fmt: skip
    before = load_snapshot(spark, table_path).version
    reorg(spark, table_path)  # no column is one that the table does not have
    assert load_snapshot(spark, table_path).version == before
