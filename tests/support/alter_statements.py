"""Statements of ALTER TABLE, as functions of a session and the path of a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, sql
from sparkdelta.operations.alter.drop_feature import drop_feature
from sparkdelta.operations.upkeep.metadata_cleanup_rules import DAY_MS

Statement = Callable[[SparkSession, str], object]


def altered(method: str, *values: Any, **options: Any) -> Statement:
    """A method of `alter_table`."""

    def statement(spark: SparkSession, path: str) -> object:
        return getattr(alter_table(spark, path), method)(*values, **options)

    return statement


def of_table(method: str, *values: Any) -> Statement:
    """A method of `DeltaTable`."""

    def statement(spark: SparkSession, path: str) -> object:
        return getattr(DeltaTable.forPath(spark, path), method)(*values)

    return statement


def by_sql(text: str) -> Statement:
    """A SQL text, in which `{}` stands for the table."""

    def statement(spark: SparkSession, path: str) -> object:
        return sql(spark, text.format(f"delta.`{path}`"))

    return statement


def dropped_with_history(feature: str) -> Statement:
    """A drop with `truncateHistory`, two days later: earlier versions have expired by then."""

    def statement(spark: SparkSession, path: str) -> object:
        later = time.time_ns() // 1_000_000 + 2 * DAY_MS
        return drop_feature(spark, path, feature, truncates_history=True, now_ms=later)

    return statement
