"""dbt builds the project twice, with more orders, in one session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

PROJECT = str(Path(__file__).parent)
DAYS = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    directories = ("--project-dir", PROJECT, "--profiles-dir", PROJECT)
    for build in (1, 2):
        variables = json.dumps({"build": build})
        result = dbtRunner().invoke(["build", *directories, *DAYS, "--vars", variables])
        assert result.success
    return SparkSession.builder.getOrCreate()


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.sql(query).collect()))


def test_tables_and_views_have_the_latest_orders(spark: SparkSession) -> None:
    assert rows(spark, "SELECT id FROM shop.orders") == [(1,), (2,), (3,), (4,), (5,)]
    customers = rows(spark, "SELECT customer, orders FROM shop.customers")
    assert customers == [("ann", 2), ("bob", 1), ("eve", 2)]


@pytest.mark.parametrize("table", ["appended", "overwritten", "daily"])
def test_incremental_tables_have_each_order_once(spark: SparkSession, table: str) -> None:
    assert rows(spark, f"SELECT id FROM shop.{table}") == [(1,), (2,), (3,), (4,), (5,)]


def test_a_merge_updates_and_inserts_orders(spark: SparkSession) -> None:
    merged = rows(spark, "SELECT id, build FROM shop.merged")
    assert merged == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]


def test_a_snapshot_keeps_the_history(spark: SparkSession) -> None:
    history = rows(spark, "SELECT id, count(*) FROM shop.orders_history GROUP BY id")
    assert history == [(1, 2), (2, 1), (3, 1), (4, 1), (5, 1)]
