"""The rows of a checkpoint: every rule of their content."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.action_schemas import ADD, DOMAIN_METADATA, REMOVE, TXN
from sparkdelta.base.schema.checkpoint_schema import CheckpointSchema
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.statistics_frames import parsed_statistics, statistics_text
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, StoredFacts
from sparkdelta.operations.checkpoint.checkpoint_row_frames import (
    add_rows,
    checkpoint_rows,
    domain_rows,
    remove_rows,
    transaction_rows,
)

COLUMNS = (
    StructType()
    .add("i", "integer")
    .add("s", "string")
    .add("d", "date")
    .add("t", "timestamp")
    .add("n", "timestamp_ntz")
    .add("m", "decimal(20,3)")
    .add("f", "double")
    .add("o", StructType().add("x", "long"))
    .add("p", "date")
)
STATISTICS = statistics_schema(COLUMNS, ("p",), ColumnMappingMode.NONE)
BOUNDS = {
    "i": 1, "s": "é", "d": "0001-01-01", "t": "2024-06-01T12:34:56.789123Z",
    "n": "1582-10-04T00:00:00.5", "m": 12345678901234567.125, "f": 1.5, "o": {"x": 7},
}  # fmt: skip
TEXT = json.dumps({"numRecords": 5, "minValues": BOUNDS, "nullCount": {"i": 0, "o": {"x": 2}}})
TEXT = TEXT.replace(json.dumps(BOUNDS["m"]), "12345678901234567.125")
SCHEMA = CheckpointSchema(STATISTICS, (("col-p", StructField("p", COLUMNS["p"].dataType)),))


def adds(spark: SparkSession, **fields: Any) -> DataFrame:
    row = {"path": "a", "partitionValues": {"col-p": "2024-01-31"}, "size": 1, "dataChange": True}
    values = {**row, **fields}
    return spark.createDataFrame([tuple(values.get(name) for name in ADD.names)], ADD)


def rows_of(frame: DataFrame, schema: CheckpointSchema = SCHEMA, **stored: Any) -> DataFrame:
    facts = StoredFacts(stored.get("values", {}), stored.get("statistics"))
    return add_rows(frame, schema=schema, stored=facts, time_zone="UTC")


def type_of(rows: DataFrame) -> str:
    return rows.schema["add"].dataType.simpleString()


def bound(statistics: Mapping[str, Any]) -> tuple[Any, ...]:
    low = statistics["minValues"]
    return (
        statistics["numRecords"], low["i"], low["s"], str(low["d"]), low["m"], low["f"],
        low["o"]["x"], statistics["nullCount"]["o"]["x"], statistics["nullCount"]["s"],
    )  # fmt: skip


WANTED = (5, 1, "é", "0001-01-01", Decimal("12345678901234567.125"), 1.5, 7, 2, None)


def test_json_statistics_become_a_struct_too(spark: SparkSession) -> None:
    """PROTOCOL.md#checkpoints-1"""
    (row,) = rows_of(adds(spark, stats=TEXT)).collect()
    assert row["add"]["stats"] == TEXT
    assert bound(row["add"]["stats_parsed"]) == WANTED
    assert str(row["add"]["partitionValues_parsed"]["col-p"]) == "2024-01-31"
    assert row["add"]["partitionValues"] == {"col-p": "2024-01-31"}
    assert row["add"]["dataChange"] is False


@pytest.mark.usefixtures("hostile")
def test_a_struct_becomes_text_exactly(spark: SparkSession) -> None:
    """The text has every microsecond, whatever the session's time zone and formats are."""
    values = {
        "i": "1", "s": "'é'", "d": "DATE'0001-01-01'", "m": "12345678901234567.125BD", "f": "1.5D",
        "t": "TIMESTAMP_LTZ'2024-06-01 12:34:56.789123Z'", "o": "named_struct('x', 7L)",
        "n": "TIMESTAMP_NTZ'1582-10-04 00:00:00.5'", "nothing": "CAST(NULL AS STRING)",
    }  # fmt: skip
    low = F.struct(*(F.expr(value).alias(name) for name, value in values.items()))
    both = F.struct(F.lit(5).alias("numRecords"), low.alias("minValues"))
    frame = spark.range(1).select(both.alias("s"))
    (column,) = frame.schema.fields
    assert isinstance(column.dataType, StructType)
    text = F.expr(statistics_text(column.name, statistics=column.dataType))
    (row,) = frame.select(text.alias("text")).collect()
    document = json.loads(row["text"], parse_float=str)
    again = {**BOUNDS, "m": "12345678901234567.125", "f": "1.5"}
    assert document == {"numRecords": 5, "minValues": again}


def test_statistics_in_one_form_are_converted_never_lost(spark: SparkSession) -> None:
    """PROTOCOL.md#checkpoints-1"""
    struct = adds(spark).withColumn(
        "stats_parsed", F.expr(parsed_statistics(text_literal(TEXT), statistics=STATISTICS))
    )
    only_json = replace(SCHEMA, with_struct=False)
    (row,) = rows_of(struct, only_json, statistics=STATISTICS).collect()
    assert set(row["add"].asDict()) == set(ADD.names)
    again = F.expr(parsed_statistics(text_literal(row["add"]["stats"]), statistics=STATISTICS))
    (parsed,) = spark.range(1).select(again.alias("s")).collect()
    assert bound(parsed["s"]) == WANTED
    only_struct = replace(SCHEMA, with_json=False)
    (row,) = rows_of(adds(spark, stats=TEXT), only_struct).collect()
    assert "stats" not in row["add"]
    assert bound(row["add"]["stats_parsed"]) == WANTED


def test_without_both_there_are_no_statistics(spark: SparkSession) -> None:
    schema = replace(SCHEMA, with_json=False, with_struct=False)
    assert set(schema.add.names) == set(ADD.names) - {"stats"}
    assert type_of(rows_of(adds(spark, stats=TEXT), schema)) == schema.add.simpleString()


def test_text_that_says_more_than_a_struct_wins(spark: SparkSession) -> None:
    """A struct of another writer has statistics of some columns only."""
    narrow = StructType.fromDDL("numRecords LONG, minValues STRUCT<i: INT>")
    stored = F.expr(
        parsed_statistics(text_literal('{"numRecords":5,"minValues":{"i":1}}'), statistics=narrow)
    )
    frame = adds(spark, stats=TEXT).withColumn("stats_parsed", stored)
    (row,) = rows_of(frame, replace(SCHEMA, with_json=False), statistics=narrow).collect()
    assert bound(row["add"]["stats_parsed"]) == WANTED
    frame = adds(spark).withColumn("stats_parsed", stored)
    (row,) = rows_of(frame, statistics=narrow).collect()
    assert row["add"]["stats_parsed"]["minValues"]["i"] == 1
    assert json.loads(row["add"]["stats"]) == {"numRecords": 5, "minValues": {"i": 1}}


def test_the_appendixs_null_counts(spark: SparkSession) -> None:
    """PROTOCOL.md#checkpoint-schema"""
    plural = StructType.fromDDL("numRecords LONG, nullCounts STRUCT<i: LONG>")
    stored = F.expr(
        parsed_statistics(text_literal('{"numRecords":5,"nullCounts":{"i":3}}'), statistics=plural)
    )
    frame = adds(spark).withColumn("stats_parsed", stored)
    (row,) = rows_of(frame, statistics=plural).collect()
    assert row["add"]["stats_parsed"]["nullCount"]["i"] == 3
    assert json.loads(row["add"]["stats"])["nullCount"]["i"] == 3


def test_no_statistics_stay_none(spark: SparkSession) -> None:
    (row,) = rows_of(adds(spark)).collect()
    assert row["add"]["stats"] is None
    assert row["add"]["stats_parsed"] is None


def test_typed_partition_values_of_the_last_checkpoint(spark: SparkSession) -> None:
    """Typed values that are there are not parsed again; those of a row that lacks them are."""
    values = "partitionValues_parsed"
    typed = F.struct(F.expr("DATE'2020-02-02'").alias("col-p")).alias(values)
    frame = adds(spark).select("*", typed).unionByName(adds(spark), allowMissingColumns=True)
    rows = rows_of(frame, values={"p": "col-p"}).collect()
    found = sorted(str(row["add"][values]["col-p"]) for row in rows)
    assert found == ["2020-02-02", "2024-01-31"]


def test_further_fields_of_an_add_are_kept(spark: SparkSession) -> None:
    """PROTOCOL.md#writer-requirements-for-row-tracking"""
    vector = ("u", "name", 1, 2, 3)
    carried = {
        "size": 9, "modificationTime": 8, "tags": {"k": "v"}, "baseRowId": 7,
        "defaultRowCommitVersion": 6, "clusteringProvider": "liquid",
    }  # fmt: skip
    (row,) = rows_of(adds(spark, deletionVector=vector, **carried)).collect()
    found = row["add"].asDict()
    assert {name: found[name] for name in carried} == carried
    assert tuple(found["deletionVector"]) == vector


@pytest.fixture
def removes(spark: SparkSession) -> Callable[..., DataFrame]:
    def make(*times: int | None) -> DataFrame:
        values = [
            {"path": f"{time}", "deletionTimestamp": time, "dataChange": True, "baseRowId": 1}
            for time in times
        ]
        return spark.createDataFrame(
            [tuple(v.get(n) for n in REMOVE.names) for v in values], REMOVE
        )

    return make


def test_expired_tombstones_are_dropped(removes: Callable[..., DataFrame]) -> None:
    """PROTOCOL.md#checkpoints"""
    rows = remove_rows(removes(99, 100, 101, None), expired_at_ms=100).collect()
    (row,) = rows
    assert row["remove"]["path"] == "101"
    assert row["remove"]["dataChange"] is False
    assert row["remove"]["baseRowId"] == 1
    assert not {"stats", "tags"} & set(row["remove"].asDict())


def test_expired_transactions_are_dropped(spark: SparkSession) -> None:
    """PROTOCOL.md#transaction-identifiers"""
    frame = spark.createDataFrame([("old", 1, 100), ("new", 2, 101), ("ever", 3, None)], TXN)
    rows = transaction_rows(frame, expired_at_ms=100).collect()
    assert sorted(row["txn"]["appId"] for row in rows) == ["ever", "new"]
    assert transaction_rows(frame, expired_at_ms=None).count() == 3


def test_rows_have_all_columns(spark: SparkSession, removes: Callable[..., DataFrame]) -> None:
    """PROTOCOL.md#checkpoint-schema"""
    domains = spark.createDataFrame([("d", "1", False)], DOMAIN_METADATA)
    rows = checkpoint_rows(
        rows_of(adds(spark)),
        remove_rows(removes(7), expired_at_ms=1),
        domain_rows(domains),
        columns=SCHEMA.v2_file,
    )
    assert rows.columns == SCHEMA.v2_file.names
    found = [[n for n, v in row.asDict().items() if v is not None] for row in rows.collect()]
    assert sorted(found) == [["add"], ["domainMetadata"], ["remove"]]


def test_nothing_stored_is_a_fact(spark: SparkSession) -> None:
    rows = add_rows(adds(spark), schema=SCHEMA, stored=NOTHING_STORED, time_zone="UTC")
    assert type_of(rows) == SCHEMA.add.simpleString()
