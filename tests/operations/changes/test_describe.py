"""history, detail and isDeltaTable: delta-spark's columns, and what is in them."""

from __future__ import annotations

import weakref
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable
from sparkdelta.exceptions import (
    InvalidArgumentError,
    MalformedLogFileError,
    TableNotFoundError,
)
from tests.support.log_writer import write_checkpoint, write_checksum, write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.table_builder import (
    add,
    create,
    field,
    ids,
    metadata,
    protocol,
    remove,
    struct_of,
    write_data,
)

HISTORY = {
    "version": "bigint", "timestamp": "timestamp", "userId": "string", "userName": "string",
    "operation": "string", "operationParameters": "map<string,string>",
    "job": "struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,"
           "triggerType:string>",
    "notebook": "struct<notebookId:string>", "clusterId": "string", "readVersion": "bigint",
    "isolationLevel": "string", "isBlindAppend": "boolean",
    "operationMetrics": "map<string,string>",
    "userMetadata": "string", "engineInfo": "string",
}  # fmt: skip
DETAIL = {
    "format": "string", "id": "string", "name": "string", "description": "string",
    "location": "string", "createdAt": "timestamp", "lastModified": "timestamp",
    "partitionColumns": "array<string>", "clusteringColumns": "array<string>",
    "numFiles": "bigint", "sizeInBytes": "bigint", "properties": "map<string,string>",
    "minReaderVersion": "int", "minWriterVersion": "int", "tableFeatures": "array<string>",
}  # fmt: skip
START = 1_700_000_000_000


def _info(**fields: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE", **fields}}


def _create(table: Path) -> None:
    write_commit(table, 0, [_info(operation="CREATE TABLE"), protocol(), metadata()], time_ms=START)
    info = _info(operationParameters={"mode": "Append"}, readVersion=0, isBlindAppend=True)
    write_commit(table, 1, [add("f", size=5), info], time_ms=START)
    write_commit(table, 2, [remove("f"), add("g", size=7)], time_ms=START - 500)


@pytest.mark.parametrize("group", [None, "time zone, no ANSI", "plans"])
def test_history(spark: SparkSession, table: Path, group: str | None) -> None:
    _create(table)
    with settings(spark, HOSTILE.get(group or "", {})):
        history = DeltaTable.forPath(spark, str(table)).history()
        assert dict(history.dtypes) == HISTORY
        assert history.columns == list(HISTORY)
        found = history.select(
            "version", F.unix_millis("timestamp"), "operation", "operationParameters.mode",
            "readVersion", "isBlindAppend",
        ).collect()  # fmt: skip
        assert list(map(tuple, found)) == [
            (2, START + 2, None, None, None, None),
            (1, START + 1, "WRITE", "Append", 0, True),
            (0, START, "CREATE TABLE", None, None, None),
        ]


@pytest.mark.full
def test_the_newest_of_the_history(spark: SparkSession, table: Path) -> None:
    _create(table)
    history = DeltaTable.forPath(spark, str(table)).history
    assert [row["version"] for row in history(2).collect()] == [2, 1]
    assert history(0).count() == 0
    assert history(99).count() == 3
    # Their times are as without a limit.
    assert history(1).select(F.unix_millis("timestamp")).collect() == [(START + 2,)]
    with pytest.raises(InvalidArgumentError):
        history(-1)


def test_histories_and_details_are_tables_in_notebooks(spark: SparkSession, table: Path) -> None:
    _create(table)
    described = DeltaTable.forPath(spark, str(table))
    history, detail = described.history(), described.detail()
    header, newest, *_ = ET.fromstring(history._repr_html_() or "")
    assert [cell.text for cell in header] == [
        "version", "timestamp", "operation", "operationParameters", "operationMetrics",
    ]  # fmt: skip
    assert newest[0].text == "2"
    facts = {name.text: value.text for name, value in ET.fromstring(detail._repr_html_() or "")}
    assert facts["location"] == f"file:{table}"
    found = weakref.ref(history)
    del history
    assert found() is None  # at once, and with it what Spark has of it


def test_detail(spark: SparkSession, table: Path) -> None:
    fields = [field("a", "long"), field("p", "string")]
    described = metadata(*fields, partitioned_by=["p"], configuration={"delta.x": "1"})
    described["metaData"].update(name="n", description="d")
    features = protocol(features=["deletionVectors", "domainMetadata"])
    write_commit(table, 0, [features, described, add("f", size=5), add("g", size=6)], time_ms=START)
    detail = DeltaTable.forPath(spark, str(table)).detail()
    assert dict(detail.dtypes) == DETAIL
    assert detail.columns == list(DETAIL)
    (row,) = detail.withColumn("lastModified", F.unix_millis("lastModified")).collect()
    assert (row["format"], row["id"], row["name"], row["description"]) == ("delta", "0", "n", "d")
    assert row["location"] == f"file:{table}"
    assert (row["partitionColumns"], row["properties"]) == (["p"], {"delta.x": "1"})
    assert (row["numFiles"], row["sizeInBytes"], row["lastModified"]) == (2, 11, START)
    assert (row["minReaderVersion"], row["minWriterVersion"]) == (3, 7)
    assert row["tableFeatures"] == ["deletionVectors", "domainMetadata"]


def test_totals_come_from_the_checksum_where_there_is_one(spark: SparkSession, table: Path) -> None:
    create(table, add("f", size=5))
    write_checksum(table, 0, {"numFiles": 70, "tableSizeBytes": 700})
    (row,) = DeltaTable.forPath(spark, str(table)).detail().collect()
    assert (row["numFiles"], row["sizeInBytes"]) == (70, 700)


def test_clustering_columns(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#clustered-table"""
    domain = {
        "domain": "delta.clustering", "configuration": '{"clusteringColumns":[["a"],["b","c"]]}',
        "removed": False,
    }  # fmt: skip
    features = protocol(features=["clustering", "domainMetadata"])
    write_commit(table, 0, [features, metadata(), {"domainMetadata": domain}])
    (row,) = DeltaTable.forPath(spark, str(table)).detail().collect()
    assert row["clusteringColumns"] == ["a", "b.c"]


def test_a_domain_that_is_no_json(spark: SparkSession, table: Path) -> None:
    domain = {"domain": "delta.clustering", "configuration": "{", "removed": False}
    features = protocol(features=["clustering", "domainMetadata"])
    write_commit(table, 0, [features, metadata(), {"domainMetadata": domain}])
    with pytest.raises(MalformedLogFileError):
        DeltaTable.forPath(spark, str(table)).detail()


def test_clustering_columns_have_logical_names(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#clustered-table, PROTOCOL.md#column-mapping"""

    def mapped(name: str, data_type: Any, number: int) -> dict[str, Any]:
        of_column = {"delta.columnMapping.id": number,
                     "delta.columnMapping.physicalName": f"col-{number}"}  # fmt: skip
        return field(name, data_type, metadata=of_column)

    domain = {
        "domain": "delta.clustering", "removed": False,
        "configuration": '{"clusteringColumns":[["col-1","col-2"]]}',
    }  # fmt: skip
    schema = metadata(
        mapped("s", struct_of(mapped("b", "long", 2)), 1),
        configuration={"delta.columnMapping.mode": "name"},
    )
    features = protocol(features=["clustering", "domainMetadata", "columnMapping"])
    write_commit(table, 0, [features, schema, {"domainMetadata": domain}])
    (row,) = DeltaTable.forPath(spark, str(table)).detail().collect()
    assert row["clusteringColumns"] == ["s.b"]


def test_a_history_of_what_is_left(spark: SparkSession, table: Path) -> None:
    _create(table)
    write_checkpoint(table, 1, [protocol(), metadata(), add("f")])
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    history = DeltaTable.forPath(spark, str(table)).history()
    assert [row["version"] for row in history.collect()] == [2, 1]


def test_is_delta_table(spark: SparkSession, table: Path) -> None:
    assert not DeltaTable.isDeltaTable(spark, str(table))
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, str(table))
    create(table)
    assert DeltaTable.isDeltaTable(spark, str(table))


def test_an_alias_names_the_rows(spark: SparkSession, table: Path) -> None:
    create(table, write_data(table, "f", ids(0, 2)))
    named = DeltaTable.forPath(spark, str(table)).alias("t")
    assert named.toDF().select("t.id").count() == 2
