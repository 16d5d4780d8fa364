"""The builders of `DeltaTable`: tables without rows, by delta-spark's names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta import DeltaTable, load_snapshot, write_delta
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.exceptions import (
    ArgumentTypeError,
    ColumnNotFoundError,
    DeltaWarning,
    InvalidArgumentError,
    InvalidColumnNameError,
    TableNotFoundError,
)
from tests.operations.write.test_write import commit, rows
from tests.operations.write.test_write_schemas import fields, mapping
from tests.support.errors import raises


def test_a_new_table(spark: SparkSession, table_path: str) -> None:
    builder = (
        DeltaTable.create(spark)
        .location(table_path)
        .comment("people")
        .addColumn("id", "BIGINT", nullable=False, comment="number")
        .addColumn("name", StringType())
        .addColumns(StructType([StructField("s", StructType([StructField("x", LongType())]))]))
        .partitionedBy("NAME")
        .property("delta.checkpointinterval", "5")
    )
    table = builder.execute()
    assert isinstance(table, DeltaTable)
    assert table.toDF().collect() == []
    found = commit(table_path, 0)
    assert set(found) == {"commitInfo", "protocol", "metaData"}
    [metadata], [info] = found["metaData"], found["commitInfo"]
    assert found["protocol"] == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    assert (metadata["description"], metadata["partitionColumns"]) == ("people", ["name"])
    assert metadata["configuration"] == {"delta.checkpointInterval": "5"}
    columns = fields(table_path, 0)
    assert columns["id"] == {
        "name": "id", "type": "long", "nullable": False, "metadata": {"comment": "number"},
    }  # fmt: skip
    assert list(columns) == ["id", "name", "s"]
    assert (info["operation"], info["isBlindAppend"]) == ("CREATE TABLE", False)
    assert info["operationParameters"] == {
        "isManaged": "false", "description": "people", "partitionBy": '["name"]',
        "clusterBy": "[]", "properties": '{"delta.checkpointInterval":"5"}',
    }  # fmt: skip
    with raises("DELTA_TABLE_ALREADY_EXISTS"):
        builder.execute()
    write_delta(spark.sql("SELECT 1L AS id, 'a' AS name"), table_path, mode="append")
    assert rows(spark, table_path) == [(1, "a", None)]
    DeltaTable.createIfNotExists(spark).location(table_path).addColumn("x", "INT").execute()
    assert load_snapshot(spark, table_path).version == 1


@pytest.mark.parametrize(
    ("nullable", "append_only", "features"),
    [
        (False, "false", {"writerFeatures": ["invariants"]}),
        (True, "TRUE", {"writerFeatures": ["appendOnly"]}),
        (False, "true", {}),  # as the legacy version implies both
    ],
)
def test_features_without_the_defaults(
    spark: SparkSession,
    table_path: str,
    nullable: bool,
    append_only: str,
    features: dict[str, list[str]],
) -> None:
    """Active Features: NOT NULL and append-only are carried out in a table that asks for lists."""
    builder = DeltaTable.create(spark).location(table_path)
    builder.addColumn("s", StructType([StructField("x", LongType(), nullable)]))
    builder.property("delta.minReaderVersion", "3").property("delta.minWriterVersion", "7")
    builder.property("delta.appendOnly", append_only).execute()
    wanted = {"minReaderVersion": 1, "minWriterVersion": 7 if features else 2, **features}
    assert commit(table_path, 0)["protocol"] == [wanted]


def test_a_table_in_the_place_of_another(spark: SparkSession, table_path: str) -> None:
    """Change Metadata: the id stays, and the protocol loses nothing."""
    replacing = DeltaTable.replace(spark).location(table_path).addColumn("b", "STRING")
    with pytest.raises(TableNotFoundError):
        replacing.execute()
    mapped = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    write_delta(spark.sql("SELECT 1 AS a, 2 AS b"), table_path, properties=mapped)
    assert replacing.execute().toDF().columns == ["b"]
    [before], [after] = (commit(table_path, version)["metaData"] for version in (0, 1))
    assert (after["id"], after["configuration"]) == (before["id"], {})
    found = commit(table_path, 1)
    assert "protocol" not in found
    assert len(found["remove"]) == 1
    assert found["commitInfo"][0]["operation"] == "REPLACE TABLE"
    again = DeltaTable.createOrReplace(spark).location(table_path).addColumn("c", "INT")
    again.property("delta.columnMapping.mode", "id").property("delta.enableTypeWidening", "true")
    again.execute()
    found = commit(table_path, 2)
    assert found["protocol"][0]["readerFeatures"] == [
        "columnMapping", "deletionVectors", "typeWidening",
    ]  # fmt: skip
    assert "remove" not in found
    assert found["commitInfo"][0]["operation"] == "CREATE OR REPLACE TABLE"
    assert rows(spark, table_path) == []
    assert load_snapshot(spark, table_path, version=0).scan().to_df().collect() == [(1, 2)]


def test_columns_of_another_table(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Column Mapping: ids and physical names are a table's own."""
    mapped = {"delta.columnMapping.mode": "name"}
    frame = spark.sql("SELECT 1 AS a, named_struct('x', 1) AS s")
    write_delta(frame, table_path, properties=mapped)
    other = f"{table_path}-other"
    builder = DeltaTable.create(spark).location(other)
    builder.addColumns(load_snapshot(spark, table_path).schema)
    builder.property("delta.columnMapping.mode", "name").execute()
    first, second = fields(table_path, 0), fields(other, 0)
    assert list(first) == list(second)
    assert not {mapping(f)[0] for f in first.values()} & {mapping(f)[0] for f in second.values()}


def test_a_replaced_table_keeps_row_id_columns_and_timestamps(
    spark: SparkSession, table_path: str
) -> None:
    """Since when there are in-commit timestamps; names of columns that keep row ids."""
    on = {"delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true"}
    write_delta(spark.range(1), table_path)
    for _ in range(2):
        builder = DeltaTable.replace(spark).location(table_path).addColumn("id", "BIGINT")
        for name, value in on.items():
            builder.property(name, value)
        builder.execute()
    [first], [second] = (commit(table_path, version)["metaData"] for version in (1, 2))
    assert first["configuration"] == second["configuration"]
    assert first["configuration"]["delta.inCommitTimestampEnablementVersion"] == "1"


def test_a_location_that_is_not_empty(spark: SparkSession, table_path: str) -> None:
    """Only a write of rows may begin a table beside other files, as in delta-spark."""
    spark.range(1).write.parquet(f"{table_path}/old")
    builders = (DeltaTable.create, DeltaTable.createIfNotExists, DeltaTable.createOrReplace)
    for make in builders:
        with raises("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"):
            make(spark).location(table_path).addColumn("a", "INT").execute()
    assert not DeltaTable.isDeltaTable(spark, table_path)
    with pytest.warns(DeltaWarning):
        write_delta(spark.range(1), table_path, mode="append")
    assert rows(spark, table_path) == [(0,)]
    builders[-1](spark).location(table_path).addColumn("a", "INT").execute()
    assert rows(spark, table_path) == []


def test_an_append_only_table_stays(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.range(1), table_path, properties={"delta.appendOnly": "true"})
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        DeltaTable.replace(spark).location(table_path).addColumn("a", "INT").execute()


def test_columns_that_compute_themselves(spark: SparkSession, table_path: str) -> None:
    """Generated Columns, Identity Columns, Default Columns"""
    default = StructField("d", LongType(), True, {"CURRENT_DEFAULT": "7"})
    (
        DeltaTable.create(spark)
        .location(table_path)
        .addColumn("i", "BIGINT", generatedAlwaysAs=IdentityGenerator(5, 2))
        .addColumn("j", "BIGINT", generatedByDefaultAs=IdentityGenerator())
        .addColumn("n", "INT")
        .addColumn("g", "INT", generatedAlwaysAs="n + 1")
        .addColumns([default])
        .addColumn("v", "VARCHAR(3)")
        .execute()
    )
    columns = {name: field["metadata"] for name, field in fields(table_path, 0).items()}
    assert columns == {
        "i": {"delta.identity.start": 5, "delta.identity.step": 2,
              "delta.identity.allowExplicitInsert": False},
        "j": {"delta.identity.start": 1, "delta.identity.step": 1,
              "delta.identity.allowExplicitInsert": True},
        "n": {}, "g": {"delta.generationExpression": "n + 1"}, "d": {"CURRENT_DEFAULT": "7"},
        "v": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"},
    }  # fmt: skip
    assert commit(table_path, 0)["protocol"][0]["writerFeatures"] == [
        "allowColumnDefaults", "appendOnly", "generatedColumns", "identityColumns", "invariants",
    ]  # fmt: skip
    write_delta(spark.sql("SELECT 1 AS n").coalesce(1), table_path, mode="append")
    assert rows(spark, table_path) == [(5, 1, 1, 2, 7, None)]
    with raises("DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        write_delta(spark.sql("SELECT 'four' AS v"), table_path, mode="append")


def test_identity_columns_of_a_table_that_maps_them(spark: SparkSession, table_path: str) -> None:
    """Identity Columns: the mark is looked up under the physical name."""
    builder = DeltaTable.create(spark).location(table_path)
    builder.property("delta.columnMapping.mode", "name")
    builder.property("delta.dataSkippingNumIndexedCols", "0")
    builder.addColumn("i d", "BIGINT", generatedAlwaysAs=IdentityGenerator()).addColumn("n", "INT")
    builder.execute()
    for number in (1, 2):
        frame = spark.sql(f"SELECT {number} AS n").coalesce(1)
        write_delta(frame, table_path, mode="append")
        assert (
            fields(table_path, number)["i d"]["metadata"]["delta.identity.highWaterMark"] == number
        )
    assert rows(spark, table_path) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_table_that_is_clustered(spark: SparkSession, table_path: str, mode: str) -> None:
    """Writer Requirements for Clustered Table: the domain has physical names, and every file has
    statistics of these columns.
    """
    builder = DeltaTable.create(spark).location(table_path).clusterBy(["B", "s.x"])
    builder.addColumn("a", "INT").addColumn("b", "INT").addColumn("s", "STRUCT<x: INT, y: INT>")
    builder.property("delta.columnMapping.mode", mode)
    builder.property("delta.dataSkippingNumIndexedCols", "0").execute()
    found = commit(table_path, 0)
    assert {"clustering", "domainMetadata"} <= set(found["protocol"][0]["writerFeatures"])
    [domain] = found["domainMetadata"]
    columns = fields(table_path, 0)
    wanted = [["b"], ["s", "x"]]
    if mode == "name":
        inner = columns["s"]["type"]["fields"][0]
        wanted = [[mapping(columns["b"])[0]], [mapping(columns["s"])[0], mapping(inner)[0]]]
    assert domain["domain"] == "delta.clustering"
    assert json.loads(domain["configuration"]) == {
        "clusteringColumns": wanted, "domainName": "delta.clustering",
    }  # fmt: skip
    frame = spark.sql("SELECT 1 AS a, 2 AS b, named_struct('x', 3, 'y', 4) AS s")
    write_delta(frame, table_path, mode="append")
    [add] = commit(table_path, 1)["add"]
    (first,), (outer, inside) = wanted
    assert json.loads(add["stats"])["minValues"] == {first: 2, outer: {inside: 3}}
    for other, partition_by in ((spark.sql("SELECT 1 AS a"), None), (frame, ["a"])):
        with pytest.raises(InvalidArgumentError):
            write_delta(
                other, table_path, mode="overwrite", overwrite_schema=True,
                partition_by=partition_by,
            )  # fmt: skip
    partitioned = DeltaTable.replace(spark).location(table_path).addColumn("a", "INT")
    with pytest.raises(InvalidArgumentError):
        partitioned.addColumn("b", "INT").partitionedBy("a").execute()
    DeltaTable.replace(spark).location(table_path).addColumn("z", "INT").execute()
    [domain] = commit(table_path, 2)["domainMetadata"]
    assert json.loads(domain["configuration"])["clusteringColumns"] == []
    write_delta(spark.sql("SELECT 1 AS z"), table_path, mode="append")
    assert rows(spark, table_path) == [(1,)]


NO_DEFAULT = [StructField("d", LongType(), True, {"CURRENT_DEFAULT": "nope("})]


def broken(builder: Any, how: str) -> Any:
    builder = builder.addColumn("a", "INT").addColumn("l", "BIGINT").addColumn("z", "BINARY")
    steps = {
        "no location": lambda b: b.location(None),
        "a name": lambda b: b.tableName("a..b"),
        "twice": lambda b: b.addColumn("A", "INT"),
        "a bad name": lambda b: b.addColumn("a b", "INT"),
        "a bad type": lambda b: b.addColumn("b", "ARRAY<INTERVAL DAY>"),
        "partition": lambda b: b.partitionedBy("b"),
        "property": lambda b: b.property("delta.appendOnli", "true"),
        "iceberg": lambda b: b.property("delta.feature.icebergWriterCompatV3", "supported"),
        "clustering": lambda b: b.property("delta.feature.clustering", "supported"),
        "no cluster column": lambda b: b.clusterBy("b"),
        "cluster twice": lambda b: b.clusterBy("a", "A"),
        "cluster type": lambda b: b.clusterBy("z"),
        "both": lambda b: b.clusterBy("a").partitionedBy("l"),
        "identity type": lambda b: b.addColumn("i", "INT", generatedAlwaysAs=IdentityGenerator()),
        "step": lambda b: b.addColumn("i", "BIGINT", generatedAlwaysAs=IdentityGenerator(1, 0)),
        "two ways": lambda b: b.addColumn("i", "BIGINT", True, "a", IdentityGenerator()),
        "expression type": lambda b: b.addColumn("g", "STRING", generatedAlwaysAs="a + 1"),
        "expression": lambda b: b.addColumn("g", "INT", generatedAlwaysAs="b + 1"),
        "no type": lambda b: b.addColumn("b", "NOTHING"),
        "a column for a type": lambda b: b.addColumn("b", "b INT"),
        "constraint": lambda b: b.property("delta.constraints.c", "a"),
        "default": lambda b: b.addColumns(NO_DEFAULT).property(
            "delta.feature.allowColumnDefaults", "supported"
        ),
    }
    return steps[how](builder)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("no location", ArgumentTypeError),
        ("a name", InvalidArgumentError),
        ("twice", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("a bad name", InvalidColumnNameError),
        ("a bad type", "DELTA_UNSUPPORTED_DATA_TYPES"),
        ("partition", "DELTA_INVALID_PARTITION_COLUMN"),
        ("property", "DELTA_UNKNOWN_CONFIGURATION"),
        ("iceberg", "DELTA_WRITE_NOT_IMPLEMENTED"),
        ("clustering", "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"),
        ("no cluster column", ColumnNotFoundError),
        ("cluster twice", InvalidArgumentError),
        ("cluster type", InvalidArgumentError),
        ("both", InvalidArgumentError),
        ("identity type", InvalidArgumentError),
        ("step", InvalidArgumentError),
        ("two ways", InvalidArgumentError),
        ("expression type", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("expression", AnalysisException),
        ("no type", ParseException),
        ("a column for a type", InvalidArgumentError),
        ("constraint", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("default", AnalysisException),
    ],
)
def test_invalid_definitions_create_no_table(  # type: ignore[no-untyped-def]
    spark: SparkSession, table_path: str, how: str, error
) -> None:
    with raises(error):
        broken(DeltaTable.create(spark).location(table_path), how).execute()
    assert not DeltaTable.isDeltaTable(spark, table_path)


def test_more_that_can_be_no_table(spark: SparkSession, table_path: str) -> None:
    with raises("DELTA_CANNOT_REPLACE_MISSING_TABLE", match="createOrReplace"):
        DeltaTable.replace(spark).location(table_path).addColumn("a", "INT").execute()
    with raises("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"):
        write_delta(spark.range(1), table_path, partition_by=["id"])
