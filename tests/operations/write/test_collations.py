"""Tables that support collations: the schema keeps them.

protocol_rfcs/collated-string-type.md
"""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, optimize, read_delta, write_delta
from sparkdelta.exceptions import UnsupportedColumnChangeError
from tests.operations.write.test_write import commit, rows
from tests.support.errors import raises

KEY = "__COLLATIONS"
SUPPORTED = {"delta.feature.collations": "supported", "delta.columnMapping.mode": "name"}


def collations(path: str, version: int) -> dict[str, dict[str, str]]:
    [metadata] = commit(path, version)["metaData"]
    fields = json.loads(metadata["schemaString"])["fields"]
    return {f["name"]: f["metadata"][KEY] for f in fields if KEY in f["metadata"]}


@pytest.mark.full
def test_collations_are_kept(spark: SparkSession, table_path: str) -> None:
    frame = spark.sql("SELECT 'B' COLLATE UTF8_LCASE AS c, array('x' COLLATE de) AS l, 1 AS n")
    with raises("DELTA_UNSUPPORTED_DATA_TYPES"):
        write_delta(frame, table_path)
    write_delta(frame, table_path, properties=SUPPORTED)
    assert {"collations", "domainMetadata"} <= set(
        load_snapshot(spark, table_path).protocol.writer_features or ()
    )
    wanted = {"c": {"c": "spark.UTF8_LCASE"}, "l": {"l.element": "icu.de"}}
    assert collations(table_path, 0) == wanted
    write_delta(spark.sql("SELECT 'a' AS c, array('y') AS l"), table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path)
    table.update("c = 'b'", {"n": "2"})  # rows are plain texts
    assert load_snapshot(spark, table_path).version == 1
    table.update("c = 'B'", {"n": "3"})
    optimize(spark, table_path)
    [add] = commit(table_path, 3)["add"]
    assert next(iter(json.loads(add["stats"])["maxValues"].values())) == "a"
    assert sorted(rows(spark, table_path)) == [("B", ["x"], 3), ("a", ["y"], None)]
    assert read_delta(spark, table_path, where="c > 'B'").count() == 1


def test_statements_change_collations(spark: SparkSession, table_path: str) -> None:
    frame = spark.sql("SELECT 'B' COLLATE UTF8_LCASE AS c, 'x' AS p, 'y' AS q")
    write_delta(frame, table_path, properties=SUPPORTED)
    table = alter_table(spark, table_path)
    table.rename_column("c", "d").add_column("e", "STRING COLLATE UTF8_LCASE")
    assert collations(table_path, 2) == {
        "d": {"d": "spark.UTF8_LCASE"}, "e": {"e": "spark.UTF8_LCASE"},
    }  # fmt: skip
    table.change_column("p", data_type="STRING COLLATE de").change_column("d", data_type="STRING")
    assert collations(table_path, 4) == {"p": {"p": "icu.de"}, "e": {"e": "spark.UTF8_LCASE"}}
    table.add_constraint("of_q", "q <> 'z'")
    with raises("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"):
        table.change_column("q", data_type="STRING COLLATE UTF8_LCASE")
    with pytest.raises(UnsupportedColumnChangeError):
        table.change_column("p", data_type="VARCHAR(9)")
    plain = f"{table_path}-plain"
    write_delta(frame.select("p"), plain)
    for statement in (
        lambda: alter_table(spark, plain).change_column("p", data_type="STRING COLLATE de"),
        lambda: alter_table(spark, plain).add_column("e", "STRING COLLATE de"),
        lambda: write_delta(frame, plain, mode="append", merge_schema=True),
    ):
        with raises("DELTA_UNSUPPORTED_DATA_TYPES"):
            statement()
    assert load_snapshot(spark, plain).version == 0
    assert rows(spark, table_path) == [("B", "x", "y", None)]
