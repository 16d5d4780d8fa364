"""great_expectations checks DataFrames of Delta tables, and directories of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import great_expectations as gx
import pytest
from great_expectations import expectations as e
from pyspark.sql import SparkSession


@pytest.fixture
def spark() -> SparkSession:
    return SparkSession.builder.master("local[2]").getOrCreate()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "tables" / "orders")
    rows = [(1, "ann", 10.5), (2, "bob", 20.0), (3, None, 30.25)]
    frame = spark.createDataFrame(rows, "id BIGINT, customer STRING, amount DOUBLE")
    frame.write.format("delta").save(path)
    frame.where("id = 3").selectExpr("4L id", "customer", "amount").write.format("delta").mode(
        "append"
    ).save(path)
    return path


def validated(batch: Any) -> dict[str, tuple[bool, Any]]:
    suite = gx.ExpectationSuite(
        name="orders",
        expectations=[
            e.ExpectTableRowCountToEqual(value=4),
            e.ExpectColumnValuesToBeUnique(column="id"),
            e.ExpectColumnValuesToNotBeNull(column="customer"),
            e.ExpectColumnMaxToBeBetween(column="amount", max_value=20),
            e.ExpectTableColumnsToMatchOrderedList(column_list=["id", "customer", "amount"]),
        ],
    )
    return {
        each.expectation_config.type: (
            each.success,
            each.result.get("observed_value", each.result.get("unexpected_count")),
        )
        for each in batch.validate(suite).results
    }


EXPECTED = {
    "expect_table_row_count_to_equal": (True, 4),
    "expect_column_values_to_be_unique": (True, 0),
    "expect_column_values_to_not_be_null": (False, 2),
    "expect_column_max_to_be_between": (False, 30.25),
    "expect_table_columns_to_match_ordered_list": (True, ["id", "customer", "amount"]),
}


def test_a_frame_of_a_table_is_validated(spark: SparkSession, table: str) -> None:
    source = gx.get_context(mode="ephemeral").data_sources.add_spark("spark")
    asset = source.add_dataframe_asset("orders")
    definition = asset.add_batch_definition_whole_dataframe("all")
    frame = spark.read.format("delta").load(table)
    assert validated(definition.get_batch({"dataframe": frame})) == EXPECTED


def test_a_directory_of_a_table_is_validated(table: str) -> None:
    context = gx.get_context(mode="ephemeral")
    source = context.data_sources.add_spark_filesystem(
        "files", base_directory=str(Path(table).parent)
    )
    asset = source.add_directory_delta_asset("orders", data_directory="orders")
    definition = asset.add_batch_definition_whole_directory("all")
    assert validated(definition.get_batch()) == EXPECTED


def test_an_earlier_version_of_a_directory_is_validated(table: str) -> None:
    source = gx.get_context(mode="ephemeral").data_sources.add_spark_filesystem(
        "files", base_directory=str(Path(table).parent)
    )
    asset = source.add_directory_delta_asset("orders", data_directory="orders", version_as_of="0")
    batch = asset.add_batch_definition_whole_directory("all").get_batch()
    assert batch.validate(e.ExpectTableRowCountToEqual(value=3)).success
