"""NOT NULL columns in the DataFrames of enabled sessions, and data files with nulls in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

import sparkdelta
from sparkdelta import DeltaTable, read_delta
from sparkdelta.table.scan import not_null_columns
from tests.support.errors import raises
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.spark_jobs import counted_jobs, files_read, no_jobs
from tests.support.table_builder import (
    array_of,
    field,
    inline_vector,
    metadata,
    protocol,
    struct_of,
    write_data,
)

CONDITION = "DELTA_NULLS_IN_NOT_NULL_COLUMN"
INNER = struct_of(field("a", "integer", nullable=False), field("b", "integer"))
FIELDS = (
    field("id", "integer", nullable=False), field("s", INNER), field("o", INNER, nullable=False),
    field("l", array_of(INNER)), field("x", "double", nullable=False),
    field("p", "integer", nullable=False),
)  # fmt: skip


def _file(table: Path, name: str, *ids: int | None, stats: bool = True) -> dict[str, Any]:
    action = write_data(table, name, pa.table({"id": pa.array(ids, pa.int32())}))
    known = [value for value in ids if value is not None]
    of_file = {
        "numRecords": len(ids),
        "minValues": {"id": min(known)},
        "maxValues": {"id": max(known)},
        "nullCount": {"id": len(ids) - len(known)},
    }
    action["add"] |= {"stats": json.dumps(of_file)} if stats else {}
    return action


def _create(table: Path, *actions: dict[str, Any], vectors: bool = False) -> str:
    id_field = field("id", "integer", nullable=False)
    opening = protocol(features=["deletionVectors"]) if vectors else protocol()
    write_commit(table, 0, [opening, metadata(id_field), *actions])
    return str(table)


def _nullable(schema: StructType) -> list[object]:
    return [
        (f.name, f.nullable, _nullable(f.dataType))
        if isinstance(f.dataType, StructType)
        else (f.name, f.nullable)
        for f in schema.fields
    ]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_schemas_say_not_null_as_the_table_does(
    enabled: SparkSession, table_path: str, mode: str
) -> None:
    enabled.sql(
        f"CREATE TABLE delta.`{table_path}` (id INT NOT NULL, "
        "s STRUCT<a: INT NOT NULL, b: INT>, o STRUCT<a: INT NOT NULL, b: INT> NOT NULL, "
        "x DOUBLE NOT NULL, l ARRAY<INT>, p INT NOT NULL) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    inner = [("a", False), ("b", True)]
    expected = [
        ("id", False), ("s", True, inner), ("o", False, inner), ("x", False), ("l", True),
        ("p", False),
    ]  # fmt: skip
    row = "1, named_struct('a', 1, 'b', 2), named_struct('a', 1, 'b', NULL), 0.5D, array(1), 7"
    enabled.sql(f"INSERT INTO delta.`{table_path}` VALUES ({row})")
    frames = [
        enabled.table(f"delta.`{table_path}`"),
        enabled.read.format("delta").load(table_path),
        enabled.read.format("delta").option("versionAsOf", 0).load(table_path),
        DeltaTable.forPath(enabled, table_path).toDF(),
    ]
    assert [_nullable(frame.schema) for frame in frames] == [expected] * 4
    assert [frame.count() for frame in frames] == [1, 1, 0, 1]
    (found,) = frames[0].where("id = 1 AND s.a = 1 AND o.b IS NULL AND x > 0 AND p = 7").collect()
    assert (found["id"], found["s"], found["o"], found["x"]) == (1, (1, 2), (1, None), 0.5)


def test_queries_keep_not_null_columns(enabled: SparkSession, table_path: str) -> None:
    enabled.sql(f"CREATE TABLE delta.`{table_path}` (id INT NOT NULL, s STRING) USING delta")
    frame = enabled.sql(f"SELECT * FROM delta.`{table_path}`")
    for schema in (frame.schema, frame.select("*").schema):
        assert _nullable(schema) == [("id", False), ("s", True)]


def test_a_table_of_the_catalog_api_is_not_null(enabled: SparkSession) -> None:
    schema = StructType([StructField("id", IntegerType(), False)])
    try:
        made = enabled.catalog.createTable("not_null", source="delta", schema=schema)
        assert made.schema == schema
    finally:
        enabled.sql("DROP TABLE IF EXISTS not_null")


@pytest.mark.classic("looks into plans")
def test_filters_choose_files_of_a_not_null_column(enabled: SparkSession, table: Path) -> None:
    files = [_file(table, f"f{number}", number, number + 10) for number in range(4)]
    path = _create(table, *files)
    enabled.read.format("delta").load(path)
    with no_jobs(enabled):  # the version is checked once
        rows = enabled.read.format("delta").load(path)
    late = rows.where("id > 12")
    assert [row[0] for row in late.collect()] == [13]
    assert files_read(late) == [1]
    assert "PushedFilters: [GreaterThan(id,12)]" in late._jdf.queryExecution().toString()


@pytest.mark.parametrize("stats", [True, False], ids=["counted", "uncounted"])
@pytest.mark.parametrize("stored", ["commits", "checkpoint"])
def test_nulls_of_another_writer_are_an_error(
    enabled: SparkSession, table: Path, stored: str, stats: bool
) -> None:
    actions = [_file(table, "good", 1, 2), _file(table, "bad", 5, None, stats=stats)]
    path = _create(table, *actions)
    if stored == "checkpoint":
        id_field = field("id", "integer", nullable=False)
        write_checkpoint(table, 0, [protocol(), metadata(id_field), *actions])
    for query in (
        lambda: enabled.read.format("delta").load(path),
        lambda: enabled.sql(f"SELECT id IS NULL FROM delta.`{path}`"),
        lambda: DeltaTable.forPath(enabled, path).toDF(),
    ):
        with raises(CONDITION) as raised:
            query()
        parameters = raised.value.getMessageParameters()
        assert parameters["column"] == "id"
        assert parameters["file"].endswith("/bad")
    enabled.sql(f"DELETE FROM delta.`{path}` WHERE id IS NULL")
    rows = enabled.read.format("delta").load(path)
    assert sorted(row[0] for row in rows.collect()) == [1, 2, 5]
    assert not rows.schema["id"].nullable


def test_a_column_with_nulls_can_be_made_nullable(enabled: SparkSession, table: Path) -> None:
    path = _create(table, _file(table, "bad", 5, None))
    enabled.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id DROP NOT NULL")
    rows = enabled.read.format("delta").load(path)
    assert rows.schema["id"].nullable
    assert rows.where("id IS NULL").count() == 1


def test_nulls_that_came_after_the_frame_are_an_error(enabled: SparkSession, table: Path) -> None:
    path = _create(table, _file(table, "good", 1, 2))
    rows = enabled.read.format("delta").load(path)
    assert rows.count() == 2
    write_commit(table, 1, [_file(table, "more", 3)])
    assert rows.select(F.sum("id")).collect()[0][0] == 6
    write_commit(table, 2, [_file(table, "bad", 5, None, stats=False)])
    for query in rows, rows.where("id > 4"), rows.groupBy().count():
        with pytest.raises(PySparkException, match=f"{CONDITION}.*/bad .*id"):
            query.collect()


def test_nulls_in_deleted_rows_are_no_error(enabled: SparkSession, table: Path) -> None:
    bad = _file(table, "bad", 5, None)
    bad["add"] |= {"deletionVector": inline_vector([1])}
    path = _create(table, _file(table, "good", 1, 2), bad, vectors=True)
    rows = enabled.read.format("delta").load(path)
    assert sorted(row[0] for row in rows.collect()) == [1, 2, 5]
    assert not rows.schema["id"].nullable


def test_nulls_in_structs_and_partition_values_are_found(
    enabled: SparkSession, table: Path
) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.int32())])

    def commit(version: int, s: Any, o: Any, p: str | None) -> None:
        rows = pa.table(
            {
                "id": pa.array([version], pa.int32()),
                "s": pa.array([s], inner),
                "o": pa.array([o], inner),
                "l": pa.array([[{"a": None, "b": None}]], pa.list_(inner)),
                "x": pa.array([0.5]),
            }
        )
        file = write_data(table, f"f{version}", rows, {"p": p})
        opening = [protocol(), metadata(*FIELDS, partitioned_by=["p"])] if version == 0 else []
        write_commit(table, version, [*opening, file])

    whole = {"a": 1, "b": None}
    commit(0, None, whole, "7")
    rows = enabled.read.format("delta").load(str(table))
    assert rows.select("s.a", "o.a", "p").collect() == [(None, 1, 7)]
    cases = {"s.a": ({"a": None}, whole, "7"), "o": (whole, None, "7"), "p": (whole, whole, None)}
    for column, values in cases.items():
        commit(1, *values)
        with raises(CONDITION) as raised:
            enabled.read.format("delta").load(str(table))
        assert raised.value.getMessageParameters()["column"] == column
        (table / "_delta_log" / f"{1:020}.json").unlink()


@pytest.mark.classic("counts Spark's jobs")
def test_a_file_without_null_counts_is_searched_once(enabled: SparkSession, table: Path) -> None:
    path = _create(table, _file(table, "f", 1, 2, stats=False))
    with counted_jobs(enabled) as first:
        enabled.read.format("delta").load(path)
    write_commit(table, 1, [_file(table, "g", 3)])
    with counted_jobs(enabled) as second:
        rows = enabled.read.format("delta").load(path)
    assert (first.count, second.count) == (1, 0)  # a search
    assert not rows.schema["id"].nullable


@pytest.mark.classic("counts Spark's jobs")
def test_null_counts_of_later_commits_cost_no_job(enabled: SparkSession, table_path: str) -> None:
    def load() -> DataFrame:
        return enabled.read.format("delta").load(table_path)

    enabled.sql(f"CREATE TABLE delta.`{table_path}` (id INT NOT NULL) USING delta")
    enabled.sql(f"INSERT INTO delta.`{table_path}` VALUES (1)")
    with no_jobs(enabled):
        load()
    sparkdelta.write_checkpoint(enabled, table_path)
    enabled.sql(f"INSERT INTO delta.`{table_path}` VALUES (2)")
    with counted_jobs(enabled) as listing:
        load()
    assert listing.count > 0  # the checkpoint's files are read
    enabled.sql(f"INSERT INTO delta.`{table_path}` VALUES (3)")
    with no_jobs(enabled):
        rows = load()
    assert not rows.schema["id"].nullable
    assert sorted(row.id for row in rows.collect()) == [1, 2, 3]


@pytest.mark.parametrize("stats", [True, False], ids=["counted", "uncounted"])
def test_nulls_in_later_commits_are_an_error(
    enabled: SparkSession, table: Path, stats: bool
) -> None:
    path = _create(table, _file(table, "a.parquet", 1))
    enabled.read.format("delta").load(path)
    write_commit(table, 1, [_file(table, "b.parquet", 2, None, stats=stats)])
    with raises(CONDITION):
        enabled.read.format("delta").load(path)
    write_commit(table, 2, [_file(table, "c.parquet", 3)])
    with raises(CONDITION):
        enabled.read.format("delta").load(path)
    write_commit(table, 3, [{"remove": {"path": "b.parquet", "dataChange": True}}])
    assert enabled.read.format("delta").load(path).count() == 2


def test_columns_of_many_files_without_null_counts_stay_nullable(
    enabled: SparkSession, table: Path
) -> None:
    path = _create(table, _file(table, "f", 1), _file(table, "g", 2, None, stats=False))
    with patch.object(not_null_columns, "MAX_SEARCHED_FILES", 0):
        rows = enabled.read.format("delta").load(path)
    assert rows.schema["id"].nullable
    assert rows.where("id IS NULL").count() == 1


def test_frames_of_sessions_that_are_not_enabled_are_nullable(
    spark: SparkSession, table: Path
) -> None:
    rows = read_delta(spark, _create(table, _file(table, "bad", 5, None)))
    assert rows.schema["id"].nullable
    assert rows.where("id IS NULL").count() == 1
