"""ALTER TABLE SET and UNSET TBLPROPERTIES, and table features."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import AlterTable, DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import (
    DeltaError,
    InvalidArgumentError,
    MetadataChangedException,
    TableNotFoundError,
)
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_properties import set_properties
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.snapshot.snapshot import Snapshot
from tests.operations.write.test_write import commit, rows
from tests.operations.write.test_write_schemas import fields, mapping
from tests.support.errors import raises
from tests.support.log_writer import write_commit

NESTED = "SELECT 1 AS a, named_struct('x y', 2) AS s, 'p' AS `P`"
MAPPED = {"delta.columnMapping.mode": "name"}


def versions(path: str) -> int:
    return len(list(Path(path, "_delta_log").glob("*.json")))


def test_properties_are_set_and_unset(spark: SparkSession, table_path: str) -> None:
    """Each statement is a commit of metaData alone, and one that changes nothing is none."""
    write_delta(spark.range(1), table_path)
    table = alter_table(spark, table_path)
    new = {"delta.APPENDonly": "true", "my `own`": "ü"}
    assert isinstance(table.set_properties(new).set_properties(new), AlterTable)
    found = commit(table_path, 1)
    assert set(found) == {"commitInfo", "metaData"}
    [metadata], [info] = found["metaData"], found["commitInfo"]
    assert metadata["configuration"] == {"delta.appendOnly": "true", "my `own`": "ü"}
    assert (info["operation"], info["isBlindAppend"]) == ("SET TBLPROPERTIES", True)
    shown = '{"delta.APPENDonly":"true","my `own`":"ü"}'
    assert info["operationParameters"] == {"properties": shown}
    with raises("DELTA_UNSET_NON_EXISTENT_PROPERTY"):
        table.unset_properties(["My `own`"])
    table.unset_properties(["DELTA.appendOnly", "gone"], if_exists=True)
    [metadata], [info] = (commit(table_path, 2)[name] for name in ("metaData", "commitInfo"))
    assert metadata["configuration"] == {"my `own`": "ü"}
    assert info["operationParameters"] == {
        "properties": '["DELTA.appendOnly","gone"]', "ifExists": True,
    }  # fmt: skip
    table.set_properties({"Comment": "it's", "a": "b"}).unset_properties(["comment"])
    [metadata], [after] = (commit(table_path, version)["metaData"] for version in (3, 4))
    assert (metadata["description"], metadata["configuration"]["a"]) == ("it's", "b")
    assert "description" not in after
    [info] = commit(table_path, 4)["commitInfo"]
    assert info["operationParameters"] == {"properties": '["comment"]', "ifExists": True}
    assert versions(table_path) == 5


def test_features_by_property(spark: SparkSession, table_path: str) -> None:
    """Table Features for New and Existing Tables: what a legacy version implies is listed."""
    write_delta(spark.range(1), table_path)
    table = alter_table(spark, table_path)
    table.set_properties({"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"})
    assert commit(table_path, 1)["protocol"] == [
        {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors", "v2Checkpoint"],
            "writerFeatures": ["appendOnly", "deletionVectors", "invariants", "v2Checkpoint"],
        }
    ]  # fmt: skip
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    found = commit(table_path, 2)
    configuration = found["metaData"][0]["configuration"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert "inCommitTimestamp" in found["commitInfo"][0]
    with pytest.raises(InvalidArgumentError):
        table.unset_properties(["delta.inCommitTimestampEnablementVersion"])
    write_delta(spark.range(1, 2), table_path, mode="append")
    assert rows(spark, table_path) == [(0,), (1,)]


def test_column_mapping_on_a_table_with_rows(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Column Mapping: files keep their names, new columns get new ones."""
    write_delta(spark.sql(NESTED.replace("x y", "xy")), table_path, partition_by=["P"])
    table = alter_table(spark, table_path).set_properties(MAPPED)
    found = fields(table_path, 1)
    assert [mapping(field) for field in found.values()] == [("a", 1), ("s", 2), ("P", 4)]
    assert mapping(found["s"]["type"]["fields"][0]) == ("xy", 3)
    [metadata] = commit(table_path, 1)["metaData"]
    assert metadata["configuration"]["delta.columnMapping.maxColumnId"] == "4"
    write_delta(spark.sql(f"{NESTED}, 5 AS `n,n`"), table_path, mode="append", merge_schema=True)
    name, number = mapping(fields(table_path, 2)["n,n"])
    assert name.startswith("col-")
    assert number > 4
    read = read_delta(spark, table_path, where="P = 'p' AND s.xy = 2").collect()
    assert [tuple(row) for row in read] == [(1, (2, None), "p", None)]
    with raises("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
        table.set_properties({"delta.columnMapping.mode": "id"})
    with raises("DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"):
        table.unset_properties(["delta.columnMapping.mode"])


@pytest.mark.full
@pytest.mark.parametrize("unsets", [False, True])
def test_column_mapping_is_removed(spark: SparkSession, table_path: str, unsets: bool) -> None:
    """Column Mapping: all files are written again, then comes the rest of the statement."""
    write_delta(spark.sql(NESTED.replace("x y", "xy")), table_path, partition_by=["P"])
    table = alter_table(spark, table_path).set_properties({**MAPPED, "own": "x"})
    table.rename_column("s" if unsets else "P", "q")
    before = rows(spark, table_path)
    if unsets:
        table.unset_properties(["delta.columnMapping.mode", "own"])
    else:
        table.set_properties({"delta.columnMapping.mode": "none", "own": "y"})
    assert rows(spark, table_path) == before
    found = load_snapshot(spark, table_path)
    own = {} if unsets else {"delta.columnMapping.mode": "none", "own": "y"}
    assert (dict(found.properties), "columnMapping" in str(found.schema.json())) == (own, False)
    assert [c["operation"] for v in (3, 4) for c in commit(table_path, v)["commitInfo"]] == [
        "REMOVE COLUMN MAPPING", f"{'UNSET' if unsets else 'SET'} TBLPROPERTIES",
    ]  # fmt: skip
    write_delta(read_delta(spark, table_path), table_path, mode="append")


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({}, InvalidArgumentError),
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.columnMapping.maxColumnId": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        (
            {"delta.feature.clustering": "supported"},
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        ({"delta.feature.icebergWriterCompatV1": "supported"}, "DELTA_WRITE_NOT_IMPLEMENTED"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.enableChangeDataFeed": "true"}, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"),
        ({"delta.enableIcebergCompatV2": "true"}, "DELTA_ICEBERG_COMPAT_VIOLATION"),
        (
            {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"},
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
        ),
        ({"delta.deletedFileRetentionDuration": "interval 60 days"}, InvalidArgumentError),
        ({"delta.minReaderVersion": "3"}, InvalidArgumentError),
        ({"delta.dataSkippingStatsColumns": "nope"}, DeltaError),
    ],
)
def test_refused_properties(
    refusing: str, spark: SparkSession, properties: dict[str, str], error: str | type[DeltaError]
) -> None:
    with raises(error):
        alter_table(spark, refusing).set_properties(properties)
    assert versions(refusing) == 1


@pytest.fixture(scope="module")
def refusing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that every statement of a test leaves as it is."""
    path = str(tmp_path_factory.mktemp("refusing") / "table")
    write_delta(spark.sql("SELECT 1 AS id, 2 AS _Change_Type"), path)
    return path


def test_retention_is_compared_with_the_tables(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.range(1), table_path)
    table = alter_table(spark, table_path)
    table.set_properties({"delta.logRetentionDuration": "interval 90 days"})
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 60 days"})
    with pytest.raises(InvalidArgumentError):
        table.unset_properties(["delta.logRetentionDuration"])


def test_row_tracking_of_files_with_row_ids(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Row Tracking: it is enabled where each file has row ids."""
    DeltaTable.create(spark).location(table_path).addColumn("id", "BIGINT").execute()
    DeltaTable.forPath(spark, table_path).addFeatureSupport("rowTracking")
    write_delta(spark.range(2).coalesce(1), table_path, mode="append")
    alter_table(spark, table_path).set_properties({"delta.enableRowTracking": "true"})
    read = read_delta(spark, table_path, columns=["id", "_metadata.row_id"])
    assert sorted(map(tuple, read.collect())) == [(0, 0), (1, 1)]


def test_the_protocol_of_delta_table(spark: SparkSession, table_path: str) -> None:
    """delta-spark's methods change the protocol as SET TBLPROPERTIES does."""
    DeltaTable.create(spark).location(table_path).addColumn("id", "BIGINT").execute()
    table = DeltaTable.forPath(spark, table_path)
    table.upgradeTableProtocol(1, 3)
    table.upgradeTableProtocol(1, 2)
    table.addFeatureSupport("deletionVectors")
    first, second = (commit(table_path, version) for version in (1, 2))
    assert first["protocol"] == [{"minReaderVersion": 1, "minWriterVersion": 3}]
    assert second["protocol"][0]["writerFeatures"] == [
        "appendOnly", "checkConstraints", "deletionVectors", "invariants",
    ]  # fmt: skip
    assert second["commitInfo"][0]["operationParameters"] == {
        "properties": '{"delta.feature.deletionVectors":"supported"}'
    }
    assert versions(table_path) == 3
    for name in ("nope", "clustering"):
        with pytest.raises(DeltaError):
            table.addFeatureSupport(name)
    with pytest.raises(TableNotFoundError):
        alter_table(spark, f"{table_path}-gone").set_properties({"a": "b"})


def test_append_only_is_a_feature(spark: SparkSession, table_path: str) -> None:
    """Append-only Tables: without the feature, the property would have no effect."""
    column = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    metadata = {
        "id": "x", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
        "schemaString": json.dumps({"type": "struct", "fields": [column]}), "configuration": {},
    }  # fmt: skip
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}
    write_commit(Path(table_path), 0, [{"protocol": protocol}, {"metaData": metadata}])
    alter_table(spark, table_path).set_properties({"delta.appendOnly": "true"})
    assert commit(table_path, 1)["protocol"][0]["writerFeatures"] == [
        "appendOnly", "domainMetadata",
    ]  # fmt: skip


def test_features_are_dropped(spark: SparkSession, table_path: str) -> None:
    """Features for writers alone are dropped, with the properties that go with them."""
    on = {"delta.enableInCommitTimestamps": "true", "delta.constraints.c": "id >= 0"}
    DeltaTable.create(spark).location(table_path).addColumn("id", "BIGINT").execute()
    statements, table = alter_table(spark, table_path), DeltaTable.forPath(spark, table_path)
    statements.set_properties({"delta.enableInCommitTimestamps": "true"})
    statements.add_constraint("c", "id >= 0")
    assert load_snapshot(spark, table_path).properties.items() >= on.items()
    table.dropFeatureSupport("inCommitTimestamp")
    found = commit(table_path, 3)
    assert found["metaData"][0]["configuration"] == {"delta.constraints.c": "id >= 0"}
    assert "inCommitTimestamp" not in found["commitInfo"][0]
    assert found["commitInfo"][0]["operationParameters"] == {
        "featureName": "inCommitTimestamp", "truncateHistory": False,
    }  # fmt: skip
    statements.drop_constraint("C")
    table.dropFeatureSupport("checkConstraints")
    assert commit(table_path, 5)["protocol"] == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    write_delta(spark.range(-1, 0), table_path, mode="append")
    assert rows(spark, table_path) == [(-1,)]


def test_statements_that_meet(spark: SparkSession, table_path: str) -> None:
    """An append in between does not matter; another statement does, as in delta-spark."""
    write_delta(spark.range(1), table_path)

    def met(meanwhile: Callable[[], object]) -> None:
        def statement(snapshot: Snapshot) -> Alteration:
            meanwhile()
            return set_properties(snapshot, {"b": str(snapshot.version)})

        alter(spark, table_path, statement)

    met(lambda: write_delta(spark.range(1, 2), table_path, mode="append"))
    assert load_snapshot(spark, table_path).properties == {"b": "0"}
    assert rows(spark, table_path) == [(0,), (1,)]
    with pytest.raises(MetadataChangedException):
        met(lambda: alter_table(spark, table_path).unset_properties(["b"]))
