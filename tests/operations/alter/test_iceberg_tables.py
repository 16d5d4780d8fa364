"""Tables with Iceberg compatibility: what is in their data files, and what they refuse."""

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
from sparkdelta.base.parquet.parquet_schema_workers import Node, file_schema
from sparkdelta.table.rows import file_descriptions
from tests.operations.write.test_write import commit, rows
from tests.operations.write.test_write_schemas import fields, mapping
from tests.support.errors import raises
from tests.support.spark_jobs import counted_jobs

V1, V2, V3 = (f"delta.enableIcebergCompatV{version}" for version in (1, 2, 3))
NESTED = "delta.columnMapping.nested.ids"
FLAT = (
    "SELECT 1 AS p, 'a' AS s, named_struct('x', 2) AS t, TIMESTAMP'2024-01-01 00:00:00Z' AS `at p`"
)
DEEP = (
    "SELECT id AS n, array(int(id), null) AS l, map('k', array(int(id))) AS m,"
    " array(named_struct('x', array(int(id)))) AS s, string(id % 2) AS p FROM range(4)"
)


def columns_of(path: str, version: int) -> list[tuple[dict[str, Any], Node]]:
    """The add actions of a version, with the columns of their files."""
    return [
        (add, file_schema(pq.ParquetFile(Path(path, unquote(add["path"])))))
        for add in commit(path, version)["add"]
    ]


def nested_ids(node: Node) -> list[int | None]:
    """The ids of elements, keys and values at any depth, and of fields in between."""
    return [i for child in node.children for i in (child.field_id, *nested_ids(child))]


@pytest.mark.full
@pytest.mark.parametrize("version", [1, 2])
def test_partition_columns_are_in_the_files(
    spark: SparkSession, table_path: str, version: int
) -> None:
    """Writer Requirements for IcebergCompatV1, V2: after the data columns; timestamps as INT64."""
    name = f"delta.enableIcebergCompatV{version}"
    write_delta(spark.sql(FLAT), table_path, partition_by=["at p", "p"], properties={name: "true"})
    found = commit(table_path, 0)
    assert found["protocol"] == [
        {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": sorted(
            ["appendOnly", "columnMapping", f"icebergCompatV{version}", "invariants"])}
    ]  # fmt: skip
    [metadata] = found["metaData"]
    assert metadata["configuration"] == {
        name: "true", "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "5",
    }  # fmt: skip
    schema = fields(table_path, 0)
    write_delta(spark.sql(FLAT), table_path, mode="append", target_file_size=1_000)
    for number in (0, 1):
        [(add, file)] = columns_of(table_path, number)
        assert [(c.name, c.field_id) for c in file.children] == [
            mapping(schema[column]) for column in ("s", "t", "p", "at p")
        ]
        assert str(file.children[3].leaf) == "INT64 (TIMESTAMP)"
        assert add["partitionValues"] == {
            mapping(schema["p"])[0]: "1",
            mapping(schema["at p"])[0]: "2024-01-01T00:00:00.000000Z",
        }
        assert json.loads(add["stats"])["numRecords"] == 1
    assert rows(spark, table_path) == [tuple(row) for row in spark.sql(FLAT).collect()] * 2
    assert read_delta(spark, table_path, where="p = 1 AND s = 'a'").count() == 2
    # The rows of a table that is read by executors alone.
    few = load_snapshot(spark, table_path).scan(max_driver_files=0).to_df()
    assert sorted(few.collect()) == sorted(read_delta(spark, table_path).collect())


@pytest.mark.full
@pytest.mark.parametrize("mode", ["name", "id"])
def test_elements_keys_and_values_have_ids(spark: SparkSession, table_path: str, mode: str) -> None:
    """Writer Requirements for IcebergCompatV2: in the schema, and in the footers."""
    properties = {V2: "true", "delta.columnMapping.mode": mode}
    write_delta(spark.sql(DEEP), table_path, partition_by=["p"], properties=properties)
    schema = fields(table_path, 0)
    known = {
        "l": ["element"], "m": ["key", "value", "value.element"], "s": ["element"],
        "n": [], "p": [],
    }  # fmt: skip
    for column, keys in known.items():
        physical = mapping(schema[column])[0]
        assert list(schema[column]["metadata"][NESTED]) == [f"{physical}.{key}" for key in keys]
    inner = schema["s"]["type"]["elementType"]["fields"][0]
    assert list(inner["metadata"][NESTED]) == [f"{mapping(inner)[0]}.element"]
    ids = {c: list(schema[c]["metadata"][NESTED].values()) for c in known}
    [inside] = inner["metadata"][NESTED].values()
    every = [number for numbers in ids.values() for number in numbers]
    every += [inside, *(mapping(field)[1] for field in (*schema.values(), inner))]
    [metadata] = commit(table_path, 0)["metaData"]
    highest = metadata["configuration"]["delta.columnMapping.maxColumnId"]
    assert sorted(every) == list(range(1, 13))
    assert highest == "12"
    files = columns_of(table_path, 0)
    assert len(files) >= 2
    for add, file in files:
        columns = dict(zip(("n", "l", "m", "s", "p"), file.children, strict=True))
        assert [c.field_id for c in file.children] == [mapping(schema[c])[1] for c in columns]
        assert nested_ids(columns["l"]) == ids["l"]
        assert nested_ids(columns["m"]) == ids["m"]
        assert nested_ids(columns["s"]) == [*ids["s"], mapping(inner)[1], inside]
        assert Path(table_path, add["path"]).stat().st_size == add["size"]
        assert mapping(schema["n"])[0] in json.loads(add["stats"])["minValues"]
    wanted = sorted(map(str, spark.sql(DEEP).collect()))
    assert sorted(map(str, read_delta(spark, table_path).collect())) == wanted
    few = load_snapshot(spark, table_path).scan(max_driver_files=0).to_df()
    assert sorted(map(str, few.collect())) == wanted
    # Nothing is left of what Spark's writer wrote, and nobody else's files are there.
    assert {p.relative_to(table_path).as_posix() for p in Path(table_path).rglob("*.parquet")} == {
        add["path"] for add, _ in files
    }
    # A column that comes later, and rows that are replaced.
    more = spark.sql("SELECT 9L AS n, '1' AS p, array(1) AS z")
    write_delta(more, table_path, mode="append", merge_schema=True)
    later = fields(table_path, 1)["z"]
    assert (mapping(later)[1], list(later["metadata"][NESTED].values())) == (13, [14])
    assert {c: f for c, f in fields(table_path, 1).items() if c != "z"} == schema
    write_delta(
        spark.sql("SELECT 3L AS n, '1' AS p"), table_path, mode="overwrite", replace_where="n = 3"
    )
    assert sorted(row[0] for row in rows(spark, table_path)) == [0, 1, 2, 3, 9]


@pytest.mark.classic("counts Spark's jobs")
@pytest.mark.full
def test_many_files_with_nested_ids(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are copied once, however many they are."""
    monkeypatch.setattr(file_descriptions, "MAX_NEW_FILES", 2)
    with counted_jobs(spark) as jobs:
        write_delta(
            spark.sql(DEEP).repartition(4), table_path, properties={V2: "true"},
            max_records_per_file=1,
        )  # fmt: skip
    assert len(columns_of(table_path, 0)) == 4
    assert jobs.count <= 8
    assert len(list(Path(table_path).rglob("*.parquet"))) == 4
    assert read_delta(spark, table_path).count() == 4


@pytest.mark.parametrize(
    ("sql", "properties", "violation"),
    [
        ("SELECT array(1) AS a", {V1: "true"}, "UNSUPPORTED_DATA_TYPE"),
        ("SELECT named_struct('m', map(1, 2)) AS a", {V1: "true"}, "UNSUPPORTED_DATA_TYPE"),
        ("SELECT parse_json('1') AS a", {V2: "true"}, "UNSUPPORTED_DATA_TYPE"),
        ("SELECT 1 AS a", {V3: "true", "delta.enableRowTracking": "false"},
         "WRONG_REQUIRED_TABLE_PROPERTY"),
        ("SELECT 1 AS a", {V1: "true", V2: "true"}, "VERSION_MUTUAL_EXCLUSIVE"),
        ("SELECT 1 AS a", {V2: "true", "delta.columnMapping.mode": "none"},
         "WRONG_REQUIRED_TABLE_PROPERTY"),
        ("SELECT 1 AS a", {V1: "true", "delta.feature.deletionVectors": "supported"},
         "INCOMPATIBLE_TABLE_FEATURE"),
        ("SELECT 1 AS a", {V2: "true", "delta.enableDeletionVectors": "true"},
         "DELETION_VECTORS_SHOULD_BE_DISABLED"),
    ],
)  # fmt: skip
def test_incompatible_tables_are_not_created(  # type: ignore[no-untyped-def]
    spark, table_path, sql, properties, violation
) -> None:
    """Writer Requirements for IcebergCompatV1, V2"""
    frame = spark.sql(sql)
    builder = DeltaTable.create(spark).location(table_path).addColumns(frame.schema)
    for name, value in properties.items():
        builder.property(name, value)
    for made in (lambda: write_delta(frame, table_path, properties=properties), builder.execute):
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            made()
        assert raised.value.violation == violation
        assert raised.value.getCondition() == "DELTA_ICEBERG_COMPAT_VIOLATION"
    assert not Path(table_path).exists()


@pytest.mark.full
def test_version_3(spark: SparkSession, table_path: str) -> None:
    """protocol_rfcs/iceberg-compat-v3.md: rows are tracked, in columns with ids of their own;
    variants and deletion vectors are allowed."""
    frame = spark.sql(
        "SELECT id AS n, array(int(id)) AS l, parse_json('1') AS v, 'x' AS p FROM range(0, 4, 1, 1)"
    )
    properties = {V3: "true", "delta.enableDeletionVectors": "true"}
    write_delta(frame, table_path, partition_by=["p"], properties=properties)
    features = load_snapshot(spark, table_path).protocol.writer_features or ()
    assert {"icebergCompatV3", "rowTracking", "columnMapping", "domainMetadata"} <= set(features)
    table = DeltaTable.forPath(spark, table_path)
    table.delete("n = 0")
    assert commit(table_path, 1)["add"][0]["deletionVector"]
    optimize(spark, table_path)
    [(add, file)] = columns_of(table_path, 2)
    tracking = load_snapshot(spark, table_path).configuration.row_tracking
    ids = {child.name: child.field_id for child in file.children}
    assert ids[tracking.row_id_column or ""] == 2147483540
    assert ids[tracking.row_commit_version_column or ""] == 2147483539
    schema = fields(table_path, 0)
    assert [ids[mapping(schema[c])[0]] for c in schema] == [mapping(schema[c])[1] for c in schema]
    [stored] = [c for c in file.children if c.name == mapping(schema["l"])[0]]
    assert nested_ids(stored) == list(schema["l"]["metadata"][NESTED].values())
    assert json.loads(add["stats"])["numRecords"] == 3
    read = read_delta(spark, table_path, columns=["n", "l", "p", "_metadata.row_id"])
    assert sorted(map(tuple, read.collect())) == [(n, [n], "x", n) for n in (1, 2, 3)]
    # It stays so, and defaults are literals.
    altered = alter_table(spark, table_path)
    for statement, violation in (
        (lambda: altered.set_properties({V3: "false"}), "CANNOT_BE_DISABLED"),
        (lambda: altered.unset_properties([V3]), "CANNOT_BE_DISABLED"),
        (lambda: altered.set_properties({"delta.enableRowTracking": "false"}),
         "WRONG_REQUIRED_TABLE_PROPERTY"),
        (lambda: altered.change_column("n", default="length('a')"), "UNSUPPORTED_DEFAULT"),
        (lambda: write_delta(frame, table_path, mode="overwrite", overwrite_schema=True),
         "REPLACE_TABLE_CHANGE_PARTITION_NAMES"),
    ):  # fmt: skip
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            statement()
        assert raised.value.violation == violation
    altered.change_column("n", default="-1")
    assert load_snapshot(spark, table_path).version == 3


@pytest.mark.full
def test_it_is_enabled_on_a_table_with_files(spark: SparkSession, table_path: str) -> None:
    """New files have what it requires; row tracking, which V3 requires, comes with it."""
    mapped = {"delta.columnMapping.mode": "name"}
    write_delta(spark.sql(DEEP), table_path, properties=mapped)
    altered = alter_table(spark, table_path).set_properties({V2: "true"})
    optimize(spark, table_path)
    ids = fields(table_path, 1)["l"]["metadata"][NESTED].values()
    [(_, file)] = columns_of(table_path, 2)
    assert nested_ids(file.children[1]) == list(ids)
    altered.set_properties({V2: "false", V3: "true"})
    found = load_snapshot(spark, table_path)
    assert found.properties["delta.enableRowTracking"] == "true"
    assert not found.add_files().filter("baseRowId IS NULL").count()
    wanted = sorted(map(str, spark.sql(DEEP).collect()))
    assert sorted(map(str, read_delta(spark, table_path).collect())) == wanted


@pytest.mark.full
def test_it_cannot_be_enabled_yet(spark: SparkSession, tmp_path: Path) -> None:
    """The violation of each kind of table; most name what to do first."""
    mapped = {"delta.columnMapping.mode": "name"}
    vectors = {**mapped, "delta.enableDeletionVectors": "true"}
    tracked = {**mapped, "delta.enableRowTracking": "true"}
    cases = [
        ({}, V2, "WRONG_REQUIRED_TABLE_PROPERTY"),
        (mapped, V1, "UNSUPPORTED_DATA_TYPE"),
        (vectors, V2, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (tracked, V3, "CHANGE_VERSION_NEED_REWRITE"),
    ]
    for number, (properties, name, violation) in enumerate(cases):
        path = str(tmp_path / str(number))
        write_delta(spark.sql(DEEP), path, properties=properties)
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            alter_table(spark, path).set_properties({name: "true"})
        assert raised.value.violation == violation
        assert load_snapshot(spark, path).version == 0
    path = str(tmp_path / "2")
    DeltaTable.forPath(spark, path).delete("n = 1")
    table = alter_table(spark, path).set_properties({"delta.enableDeletionVectors": "false"})
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
        table.set_properties({V2: "true"})
    assert raised.value.violation == "DELETION_VECTORS_NOT_PURGED"
    reorg(spark, path)
    table.set_properties({V2: "true"})
    path = str(tmp_path / "partitioned")
    write_delta(spark.sql(FLAT), path, partition_by=["p"], properties=mapped)
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
        alter_table(spark, path).set_properties({V1: "true"})
    assert raised.value.violation == "CHANGE_VERSION_NEED_REWRITE"
    alter_table(spark, path).set_properties({V2: "true"})


def test_incompatible_changes_are_refused(spark: SparkSession, table_path: str) -> None:
    """No column of another type comes to it, and no other partition columns."""
    frame = spark.sql("SELECT 1 AS a, 1.25 AS d, 2 AS p")
    builder = DeltaTable.create(spark).location(table_path).addColumns(frame.schema)
    builder.property(V1, "true").property("delta.enableTypeWidening", "true")
    builder.partitionedBy("p").execute()
    write_delta(frame, table_path, mode="append")

    def violation(sql: str, **options: Any) -> str:
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            write_delta(spark.sql(sql), table_path, **options)
        return raised.value.violation

    merging = {"mode": "append", "merge_schema": True}
    assert violation("SELECT 1 AS a, 2 AS p, array(1) AS b", **merging) == "UNSUPPORTED_DATA_TYPE"
    assert violation("SELECT 1.2345 AS d, 2 AS p", **merging) == "UNSUPPORTED_TYPE_WIDENING"
    replacing = {"mode": "overwrite", "overwrite_schema": True}
    for partition_by in ([], ["a"]):
        assert violation("SELECT 1 AS a, 2 AS p", partition_by=partition_by, **replacing) == (
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES"
        )
    other = (
        DeltaTable.replace(spark).location(table_path).addColumn("a", "INT").property(V2, "true")
    )
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION"):
        other.execute()
    assert load_snapshot(spark, table_path).version == 1
    write_delta(spark.sql("SELECT 1L AS a, 1.25 AS d, 2 AS p"), table_path, **merging)
    write_delta(spark.sql("SELECT 'x' AS p, 1 AS b"), table_path, partition_by=["p"], **replacing)
    [(_, file)] = columns_of(table_path, 3)
    assert [c.name for c in file.children] == [
        mapping(fields(table_path, 3)[column])[0] for column in ("b", "p")
    ]
    assert rows(spark, table_path) == [("x", 1)]
