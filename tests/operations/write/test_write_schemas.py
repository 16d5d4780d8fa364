"""`write_delta` into tables whose schema changes, and whose columns are mapped."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
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
    read_delta,
    sql,
    write_delta,
    write_stream,
)
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.exceptions import InvalidArgumentError
from tests.operations.write.test_write import commit, rows
from tests.support.errors import raises
from tests.support.settings import settings

MAPPED = """SELECT * FROM VALUES (1, 'x y', 'p 1', named_struct('in side', 5L, 'list',
  array(named_struct('k;', 1)))), (2, null, null, null) AS t(n, `a b`, `p,q`, s)"""


def fields(path: str, version: int) -> dict[str, Any]:
    [metadata] = commit(path, version)["metaData"]
    return {f["name"]: f for f in json.loads(metadata["schemaString"])["fields"]}


def mapping(field: dict[str, Any]) -> tuple[str, int]:
    metadata = field["metadata"]
    return metadata["delta.columnMapping.physicalName"], metadata["delta.columnMapping.id"]


@pytest.mark.full
@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_are_mapped(spark: SparkSession, table_path: str, mode: str) -> None:
    """Writer Requirements for Column Mapping: physical names and ids in data files, statistics and
    partition values; a name may have any characters.
    """
    frame = spark.sql(MAPPED)
    hostile = {"spark.sql.parquet.fieldId.write.enabled": "false"}
    with settings(spark, hostile):
        write_delta(
            frame.coalesce(1), table_path, partition_by=["p,q"],
            properties={"delta.columnMapping.mode": mode},
        )  # fmt: skip
    found = commit(table_path, 0)
    assert found["protocol"] == [{"minReaderVersion": 2, "minWriterVersion": 5}]
    [metadata] = found["metaData"]
    assert metadata["partitionColumns"] == ["p,q"]
    assert metadata["configuration"] == {
        "delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "7",
    }  # fmt: skip
    columns = fields(table_path, 0)
    physical = {name: mapping(field)[0] for name, field in columns.items()}
    assert all(name.startswith("col-") for name in physical.values())
    inside = columns["s"]["type"]["fields"][0]
    for add in found["add"]:
        assert set(add["partitionValues"]) == {physical["p,q"]}
        schema = pq.read_schema(Path(table_path, unquote(add["path"])))
        assert set(schema.names) == {physical[name] for name in ("n", "a b", "s")}
        for name in ("n", "a b", "s"):
            field = schema.field(physical[name])
            assert int(field.metadata[b"PARQUET:field_id"]) == mapping(columns[name])[1]
        leaf = schema.field(physical["s"]).type.field(mapping(inside)[0])
        assert int(leaf.metadata[b"PARQUET:field_id"]) == mapping(inside)[1]
    values = [json.loads(add["stats"])["minValues"] for add in found["add"]]
    assert {physical["n"]: 1, physical["a b"]: "x y",
            physical["s"]: {mapping(inside)[0]: 5}} in values  # fmt: skip
    write_delta(frame, table_path, mode="append")
    assert rows(spark, table_path) == sorted(map(tuple, [*frame.collect()] * 2), key=str)
    snapshot = load_snapshot(spark, table_path)
    assert snapshot.scan("`p,q` = 'p 1'").files().count() == 2
    assert snapshot.scan("n = 1").files().count() == 2
    one, two = frame.filter("n = 1"), frame.filter("n = 2")
    write_delta(one, table_path, mode="overwrite", partition_overwrite_mode="dynamic")
    write_delta(two, table_path, mode="overwrite", replace_where="n = 2")
    write_delta(one, table_path, mode="overwrite", replace_where="`p,q` = 'p 1'")
    assert rows(spark, table_path) == sorted(map(tuple, frame.collect()), key=str)


def test_new_columns_of_a_table_that_maps_them(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Column Mapping: ids are never given twice, those there are stay."""
    mapped = {"delta.columnMapping.mode": "id"}
    write_delta(
        spark.sql("SELECT 1 AS a, named_struct('x', 1) AS s"), table_path, properties=mapped
    )
    before = fields(table_path, 0)
    more = spark.sql("SELECT named_struct('x', 2, 'y z', 3) AS s, 2 AS a, 4 AS `b c`")
    write_delta(more, table_path, mode="append", merge_schema=True)
    after = fields(table_path, 1)
    assert after["a"] == before["a"]
    assert mapping(after["s"]) == mapping(before["s"])
    inner = {f["name"]: mapping(f)[1] for f in after["s"]["type"]["fields"]}
    assert inner == {"x": 3, "y z": 4}
    assert mapping(after["b c"])[1] == 5
    [metadata] = commit(table_path, 1)["metaData"]
    assert metadata["configuration"]["delta.columnMapping.maxColumnId"] == "5"
    assert rows(spark, table_path) == [(1, (1, None), None), (2, (2, 3), 4)]
    # Overwritten, a column of the same name and type is the same column; another never is.
    write_delta(
        spark.sql("SELECT 'x' AS a, 1 AS `b c`"),
        table_path,
        mode="overwrite",
        overwrite_schema=True,
    )
    last = fields(table_path, 2)
    assert mapping(last["b c"]) == mapping(after["b c"])
    assert mapping(last["a"])[1] == 6
    assert rows(spark, table_path) == [("x", 1)]
    assert read_delta(spark, table_path, version=1).count() == 2


@pytest.mark.full
def test_a_schema_that_is_overwritten(spark: SparkSession, table_path: str) -> None:
    write_delta(
        spark.sql("SELECT 1 AS a, 'x' AS p"), table_path, partition_by=["p"],
        properties={"mine": "1"},
    )  # fmt: skip
    frame = spark.sql("SELECT 'text' AS a, 2 AS q, named_struct('x', 1) AS s")
    with raises("DELTA_METADATA_MISMATCH"):
        write_delta(frame, table_path, mode="overwrite")
    write_delta(frame, table_path, mode="overwrite", overwrite_schema=True, partition_by=["q"])
    [before], [after] = (commit(table_path, version)["metaData"] for version in (0, 1))
    assert after["partitionColumns"] == ["q"]
    assert list(fields(table_path, 1)) == ["a", "q", "s"]
    assert (after["id"], after["configuration"]) == (before["id"], before["configuration"])
    assert rows(spark, table_path) == [("text", 2, (1,))]
    assert rows(spark, table_path) == rows(spark, table_path)
    write_delta(frame, table_path, mode="overwrite", overwrite_schema=True)
    assert commit(table_path, 2)["metaData"][0]["partitionColumns"] == []
    write_delta(frame, table_path, mode="overwrite", overwrite_schema=True)
    assert "metaData" not in commit(table_path, 3)  # nothing changed
    for options, error in (
        ({"mode": "append"}, InvalidArgumentError),
        ({"replace_where": "a = 'text'"}, InvalidArgumentError),
        (
            {"partition_overwrite_mode": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
    ):
        with raises(error):
            write_delta(
                frame, table_path, **{"mode": "overwrite", "overwrite_schema": True} | options
            )
    assert read_delta(spark, table_path, version=0).collect() == [(1, "x")]


def test_columns_that_a_constraint_names(spark: SparkSession, table_path: str) -> None:
    constraint = {"delta.constraints.positive": "b > 0"}
    write_delta(spark.sql("SELECT 1 AS a, 2 AS b"), table_path, properties=constraint)
    for gone in ("SELECT 1 AS a", "SELECT 1 AS a, array(1) AS b"):
        with raises("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE") as raised:
            write_delta(spark.sql(gone), table_path, mode="overwrite", overwrite_schema=True)
        assert (raised.value.name, raised.value.expression) == ("positive", "b > 0")
    write_delta(spark.sql("SELECT 2 AS b"), table_path, mode="overwrite", overwrite_schema=True)
    assert rows(spark, table_path) == [(2,)]


def test_types_that_are_widened(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Type Widening: the change is recorded, old files stay."""
    narrow = "SELECT 1Y AS a, CAST(1.5 AS FLOAT) AS f, array(1) AS l, 1.25BD AS d, 5 AS same"
    wide = "SELECT 300S AS a, 2.5D AS f, array(5000000000L) AS l, 12345.125BD AS d, 6Y AS same"
    write_delta(spark.sql(narrow), table_path, properties={"delta.enableTypeWidening": "true"})
    assert commit(table_path, 0)["protocol"][0]["readerFeatures"] == ["typeWidening"]
    with raises("DELTA_FAILED_TO_MERGE_FIELDS"):
        write_delta(spark.sql("SELECT 'x' AS a"), table_path, mode="append", merge_schema=True)
    write_delta(spark.sql(wide), table_path, mode="append", merge_schema=True)
    after = fields(table_path, 1)
    assert {name: field["type"] for name, field in after.items() if name != "l"} == {
        "a": "short", "f": "double", "d": "decimal(8,3)", "same": "integer",
    }  # fmt: skip
    assert after["l"]["metadata"] == {
        "delta.typeChanges": [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    }
    assert after["d"]["metadata"] == {
        "delta.typeChanges": [{"fromType": "decimal(3,2)", "toType": "decimal(8,3)"}]
    }
    assert "protocol" not in commit(table_path, 1)
    found = read_delta(spark, table_path).orderBy("a").collect()
    assert [(r["a"], r["f"], r["l"], str(r["d"]), r["same"]) for r in found] == [
        (1, 1.5, [1], "1.250", 5), (300, 2.5, [5000000000], "12345.125", 6),
    ]  # fmt: skip
    snapshot = load_snapshot(spark, table_path)
    assert snapshot.scan("a = 300").files().count() == 1
    # Bounds of FLOAT may be texts such as 0.1, which is another number as DOUBLE.
    assert snapshot.scan("f BETWEEN 100 AND 200").files().count() == 2


NUMBERS = {
    "reading": ("1", "17.75D", "double", 17.75),
    "tiny": ("1Y", "300.5D", "double", 300.5),
    "price": ("1", "CAST(17.75 AS DECIMAL(12,2))", "decimal(12,2)", Decimal("17.75")),
    "short_price": ("1", "17.75BD", "decimal(12,2)", Decimal("17.75")),
    "big": ("1L", "17.75BD", "decimal(22,2)", Decimal("17.75")),
    "day": ("DATE'2020-01-01'", "TIMESTAMP_NTZ'2020-01-02 03:04:05'", "timestamp_ntz",
            dt.datetime(2020, 1, 2, 3, 4, 5)),
    "kept": ("1.25BD", "7", "decimal(3,2)", Decimal("7.00")),
}  # fmt: skip
"""By column: a value of the table, one of new rows, the type afterwards and the value read."""


@pytest.mark.full
def test_append_with_merge_schema_keeps_fractions_of_wider_rows(
    spark: SparkSession, table_path: str
) -> None:
    """Type Widening: integers become DOUBLE and DECIMAL, also inside of nested columns and of
    partition values.
    """
    narrow = ", ".join(f"{old} AS {name}" for name, (old, _, _, _) in NUMBERS.items())
    wide = ", ".join(f"{new} AS {name}" for name, (_, new, _, _) in NUMBERS.items())
    write_delta(
        spark.sql(f"SELECT {narrow}, 1 AS p, named_struct('l', array(map(1, 1))) AS s"), table_path,
        partition_by=["p"], properties={"delta.enableTypeWidening": "true"},
    )  # fmt: skip
    rows = spark.sql(f"SELECT {wide}, 2.5D AS p, named_struct('l', array(map(2.5D, 17.75BD))) AS s")
    write_delta(rows, table_path, mode="append", merge_schema=True)
    after = fields(table_path, 1)
    assert {name: after[name]["type"] for name in NUMBERS} == {
        name: data_type for name, (_, _, data_type, _) in NUMBERS.items()
    }
    assert after["p"]["metadata"] == {
        "delta.typeChanges": [{"fromType": "integer", "toType": "double"}]
    }
    [inner] = after["s"]["type"]["fields"]
    assert inner["metadata"]["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "double", "fieldPath": "element.key"},
        {"fromType": "integer", "toType": "decimal(12,2)", "fieldPath": "element.value"},
    ]
    frame = read_delta(spark, table_path).orderBy("p")
    old, new = (row.asDict(recursive=True) for row in frame.collect())
    assert {name: new[name] for name in NUMBERS} == {
        name: value for name, (_, _, _, value) in NUMBERS.items()
    }
    assert (old["reading"], old["price"], old["p"]) == (1.0, Decimal("1.00"), 1.0)
    assert old["s"] == {"l": [{1.0: Decimal("1.00")}]}
    assert new["s"] == {"l": [{2.5: Decimal("17.75")}]}
    assert [row["p"] for row in read_delta(spark, table_path, where="p > 2").collect()] == [2.5]
    assert read_delta(spark, table_path, where="reading = 1 AND price < 2").count() == 1


@pytest.mark.full
def test_merge_insert_and_streams_with_schema_evolution_widen_to_fractions(
    spark: SparkSession, table_path: str, tmp_path: Path
) -> None:
    """Type Widening: by each way that rows with a wider type come into a table."""
    narrow = spark.sql("SELECT 1 AS k, 1 AS reading")
    wide = spark.sql("SELECT explode(array(1, 2)) AS k, 17.75D AS reading")
    source = str(tmp_path / "source")
    wide.write.parquet(source)

    def merge(path: str) -> None:
        builder = DeltaTable.forPath(spark, path).alias("t").merge(wide.alias("s"), "t.k = s.k")
        builder = builder.withSchemaEvolution().whenMatchedUpdate(set={"reading": "s.reading"})
        builder.whenNotMatchedInsertAll().execute()

    def insert(path: str) -> None:
        text = f"INSERT WITH SCHEMA EVOLUTION INTO delta.`{path}` SELECT 2 AS k, 17.75D AS reading"
        sql(spark, text)

    def stream(path: str) -> None:
        stream = spark.readStream.schema(wide.schema).parquet(source)
        write_stream(
            stream, path, f"{path}-checkpoint", trigger={"availableNow": True}, merge_schema=True
        ).awaitTermination()

    for number, write in enumerate((merge, insert, stream)):
        path = f"{table_path}{number}"
        write_delta(narrow, path, properties={"delta.enableTypeWidening": "true"})
        write(path)
        assert fields(path, 1)["reading"]["type"] == "double"
        found = read_delta(spark, path, where="k = 2").collect()
        assert [row["reading"] for row in found] == [17.75]


@pytest.mark.full
def test_identity_column_is_not_widened(spark: SparkSession, table_path: str) -> None:
    """Identity Columns: they are of type LONG."""
    builder = DeltaTable.create(spark).location(table_path).addColumn("a", "INT")
    builder = builder.addColumn("n", "BIGINT", generatedByDefaultAs=IdentityGenerator())
    builder.property("delta.enableTypeWidening", "true").execute()
    rows = spark.sql("SELECT 1 AS a, CAST(5 AS DECIMAL(20,0)) AS n")
    with raises("DELTA_WRITE_NOT_IMPLEMENTED"):
        write_delta(rows, table_path, mode="append", merge_schema=True)
    write_delta(rows, table_path, mode="append")
    assert [row["n"] for row in read_delta(spark, table_path).collect()] == [5]


def test_a_column_that_an_expression_names_is_not_widened(
    spark: SparkSession, table_path: str
) -> None:
    """Type Widening: what a constraint says of the rows that are there must stay true."""
    write_delta(
        spark.sql("SELECT 1Y AS a, 1Y AS b"), table_path,
        properties={"delta.enableTypeWidening": "true", "delta.constraints.c": "A > 0"},
    )  # fmt: skip
    with raises("DELTA_CONSTRAINT_DATA_TYPE_MISMATCH") as raised:
        write_delta(spark.sql("SELECT 1 AS a"), table_path, mode="append", merge_schema=True)
    fields = {"column": "a", "column_type": "tinyint", "data_type": "int"}
    assert raised.value.message_parameters == {**fields, "constraints": "c -> A > 0"}
    generated = f"{table_path}-generated"
    builder = DeltaTable.create(spark).location(generated).addColumn("A", "TINYINT")
    builder = builder.addColumn("g", "INT", generatedAlwaysAs="CAST(a AS INT) + 1")
    builder.property("delta.enableTypeWidening", "true").execute()
    with raises("DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH") as raised:
        write_delta(spark.sql("SELECT 1 AS a"), generated, mode="append", merge_schema=True)
    users = "g -> CAST(a AS INT) + 1"
    assert raised.value.message_parameters == {**fields, "column": "A", "generated_columns": users}
    write_delta(spark.sql("SELECT 1Y AS a, 300 AS b"), table_path, mode="append", merge_schema=True)
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        write_delta(spark.sql("SELECT -1Y AS a"), table_path, mode="append")
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):  # of a new table, too
        write_delta(
            spark.sql("SELECT 1 AS a"), f"{table_path}-new",
            properties={"delta.constraints.c": "a > 1"},
        )  # fmt: skip


def test_partitions_that_are_widened(spark: SparkSession, table_path: str) -> None:
    """Type Widening: the texts that stand for partition values must mean the same."""
    write_delta(
        spark.sql("SELECT 1 AS a, CAST(0.1 AS FLOAT) AS f, 1Y AS n"), table_path,
        partition_by=["f", "n"], properties={"delta.enableTypeWidening": "true"},
    )  # fmt: skip
    options = {"mode": "append", "merge_schema": True}
    with raises("DELTA_WRITE_NOT_IMPLEMENTED"):
        write_delta(spark.sql("SELECT 1 AS a, 0.5D AS f"), table_path, **options)
    write_delta(
        spark.sql("SELECT 2 AS a, CAST(null AS FLOAT) AS f, 300 AS n"), table_path, **options
    )
    assert [r["n"] for r in read_delta(spark, table_path).orderBy("a").collect()] == [1, 300]


def test_a_type_that_needs_another_protocol(spark: SparkSession, table_path: str) -> None:
    """Table Features for New and Existing Tables: what the old version implied is listed."""
    write_delta(spark.sql("SELECT 1 AS a"), table_path)
    frame = spark.sql("SELECT 2 AS a, TIMESTAMP_NTZ'2024-01-01 00:00:00' AS t")
    write_delta(frame, table_path, mode="append", merge_schema=True)
    assert commit(table_path, 1)["protocol"] == [
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz"],
            "writerFeatures": ["appendOnly", "invariants", "timestampNtz"],
        }
    ]
    assert read_delta(spark, table_path, where="t IS NOT NULL").collect() == frame.collect()


@pytest.mark.full
def test_variants(spark: SparkSession, table_path: str) -> None:
    """Variant Data Type: written unshredded; they have no bounds."""
    frame = spark.sql(
        "SELECT id, parse_json('{\"a\": ' || id || '}') AS v, "
        "named_struct('w', parse_json('[1]')) AS s FROM range(2)"
    )
    for mode in ("none", "name"):
        path = f"{table_path}-{mode}"
        write_delta(frame.coalesce(1), path, properties={"delta.columnMapping.mode": mode})
        [protocol] = commit(path, 0)["protocol"]
        assert "variantType" in protocol["readerFeatures"]
        [add] = commit(path, 0)["add"]
        assert len(json.loads(add["stats"])["minValues"]) == 1
        found = read_delta(spark, path).selectExpr("id", "to_json(v)", "to_json(s.w)")
        assert sorted(map(tuple, found.collect())) == [
            (0, '{"a":0}', "[1]"), (1, '{"a":1}', "[1]"),
        ]  # fmt: skip


@pytest.mark.full
def test_rows_that_are_tracked(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Row Tracking"""
    frame = spark.range(3).coalesce(1)
    write_delta(frame, table_path, properties={"delta.enableRowTracking": "true"})
    found = commit(table_path, 0)
    assert found["protocol"][0]["writerFeatures"] == [
        "appendOnly", "domainMetadata", "invariants", "rowTracking",
    ]  # fmt: skip
    assert set(found["metaData"][0]["configuration"]) == {
        "delta.enableRowTracking", "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    }  # fmt: skip
    write_delta(frame, table_path, mode="append", txn_app_id="a", txn_version=1)
    for version, base in ((0, 0), (1, 3)):
        found = commit(table_path, version)
        [add], [domain] = found["add"], found["domainMetadata"]
        assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (base, version)
        assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": base + 2}
    ids = read_delta(spark, table_path, columns=["_metadata.row_id"]).collect()
    assert sorted(row["row_id"] for row in ids) == list(range(6))
    write_delta(frame, table_path, mode="overwrite")
    found = commit(table_path, 2)
    assert {(r["baseRowId"], r["defaultRowCommitVersion"]) for r in found["remove"]} == {
        (0, 0), (3, 1),
    }  # fmt: skip
    assert [add["baseRowId"] for add in found["add"]] == [6]
    assert found["commitInfo"][0]["tags"] == {"delta.rowTracking.preserved": "true"}


def test_statistics_of_the_columns_that_a_table_names(spark: SparkSession, table_path: str) -> None:
    """ "Per-file Statistics" """
    properties = {
        "delta.dataSkippingStatsColumns": "C,s.y",
        "delta.columnMapping.mode": "name",
        "delta.parquet.compression.codec": "ZSTD",
    }
    frame = spark.sql("SELECT 1 AS a, 2 AS c, named_struct('x', 1, 'y', 2) AS s")
    write_delta(frame, table_path, properties=properties)
    columns = fields(table_path, 0)
    [add] = commit(table_path, 0)["add"]
    assert add["path"].endswith(".zstd.parquet")
    inner = mapping(columns["s"]["type"]["fields"][1])[0]
    assert json.loads(add["stats"])["maxValues"] == {
        mapping(columns["c"])[0]: 2, mapping(columns["s"])[0]: {inner: 2},
    }  # fmt: skip


def test_directories_are_never_named_as_a_column(spark: SparkSession, table_path: str) -> None:
    frame = spark.sql("SELECT 1 AS p0, 'x' AS `.p`")
    write_delta(frame, table_path, partition_by=[".p"])
    assert rows(spark, table_path) == [(1, "x")]


@pytest.mark.parametrize(
    "write",
    [
        {"mode": "overwrite", "overwrite_schema": True},
        {"mode": "append", "merge_schema": True},
        None,  # a new table
    ],
    ids=["overwrite", "append", "new"],
)
def test_columns_of_the_change_data_feed(
    spark: SparkSession, table_path: str, write: dict[str, Any] | None
) -> None:
    """PROTOCOL.md#change-data-files: their names are taken, once the table has the feed."""
    feed = {"delta.enableChangeDataFeed": "true"}
    rows = spark.sql("SELECT 1 AS id, 'x' AS _Change_Type")
    options = {"properties": feed} if write is None else write
    if write is not None:
        write_delta(spark.sql("SELECT 1 AS id"), table_path, properties=feed)
    with raises("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"):
        write_delta(rows, table_path, **options)
    assert len(list(Path(table_path).glob("**/*.parquet"))) == (write is not None)
    write_delta(rows, f"{table_path}-without")
    with raises("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"):
        alter_table(spark, f"{table_path}-without").set_properties(feed)
