"""Partition values as values (`base.protocol.partition_values`) and as columns
(`base.schema.partition_value_frames`), under any settings.
"""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, TimestampType, _parse_datatype_json_string

from sparkdelta.base.protocol.partition_values import parse_partition_value
from sparkdelta.base.schema.partition_value_frames import (
    typed_partition_value,
    typed_partition_values,
)
from sparkdelta.exceptions import InvalidPartitionValueError, from_message
from tests.support.settings import settings

VALUES: dict[str, list[str]] = {
    "string": ["a", " a ", "é€😀", "null", "__HIVE_DEFAULT_PARTITION__", "a=b/c%20d", "1"],
    "byte": ["0", "-128", "127", "+5", "007"],
    "short": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "long": ["-9223372036854775808", "9223372036854775807"],
    "float": ["1.5", "-0.0", "NaN", "Infinity", "-Infinity", "1.0E-5", "3.4028235E38", "1e39"],
    "double": ["1.5", "-0.0", "NaN", "Infinity", "-Infinity", "4.9E-324", "1.0E10", "7"],
    "decimal(10,2)": ["1.00", "-99999999.99", "0", "1E+3", "1.5", "1.005"],
    "decimal(38,18)": ["12345678901234567890.123456789012345678", "-1E-18"],
    "boolean": ["true", "false", "TRUE"],
    "date": ["2024-02-29", "1582-10-04", "1582-10-15", "0001-01-01", "9999-12-31", "2024-1-5"],
    "timestamp": [
        "2024-06-01 12:34:56", "2024-06-01 12:34:56.789", "2024-06-01 12:34:56.123456",
        "2024-06-01T12:34:56.123456Z", "2024-06-01 12:34:56Z", "2024-06-01T12:34:56+02:00",
        "2024-06-01T12:34:56.5-05:30", "1900-01-01 00:00:00", "1582-10-04 00:00:00",
        "2024-03-10 02:30:00", "2024-06-01", "1970-01-01 00:00:00.1",
    ],
    "timestamp_ntz": [
        "2024-06-01 12:34:56.123456", "2024-06-01 12:34:56", "2024-03-10 02:30:00",
        "2024-06-01T12:34:56", "1582-10-04 00:00:00", "2024-06-01",
    ],
    "binary": ["abc", "é", "\\u0001\\u00FF", "\\u0001x", "\\u00ff", "\\u0100", "NaN"],
}  # fmt: skip
WRONG = {
    "byte": ["128", "1.5", "x", "1L"],
    "integer": ["2147483648", "1.0", "0x10"],
    "long": ["9223372036854775808"],
    "double": ["one"],
    "decimal(4,2)": ["100.00", "abc"],
    "boolean": ["yes", "1", "t"],
    "date": ["2024-02-30", "yesterday", "20240101", "2024-13-01"],
    "timestamp": ["2024-02-30 00:00:00", "noon", "12:00:00"],
    "timestamp_ntz": ["2024-02-30 00:00:00", "x"],
}


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


def _field(data_type: str) -> StructField:
    return StructField("p", _parse_datatype_json_string(json.dumps(data_type)))


@pytest.mark.full
@pytest.mark.usefixtures("hostile")
def test_values_of_every_type(spark: SparkSession) -> None:
    """PROTOCOL.md#partition-value-serialization"""
    _assert_as_the_oracle(spark, "UTC")


@pytest.mark.slow
def test_the_callers_zone(spark: SparkSession) -> None:
    """Timestamps that are written without a time zone are in the caller's."""
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        _assert_as_the_oracle(spark, "America/New_York")


def _assert_as_the_oracle(spark: SparkSession, time_zone: str) -> None:
    frame = spark.createDataFrame(
        [(name, text) for name, texts in VALUES.items() for text in texts],
        "type STRING, text STRING",
    )
    typed = []
    for name in VALUES:
        mine = f"if(type = '{name}', text, NULL)"
        value = F.expr(typed_partition_value(mine, _field(name), time_zone=time_zone))
        # A moment and not a local time: how it is shown depends on the session's zone.
        is_moment = name == "timestamp"
        typed.append((F.unix_micros(value) if is_moment else value).alias(name))
    found = {
        (row["type"], row["text"]): _comparable(
            bytes(row[row["type"]]) if row["type"] == "binary" else row[row["type"]]
        )
        for row in frame.select("type", "text", *typed).collect()
    }
    expected = {}
    for name, texts in VALUES.items():
        for text in texts:
            value: Any = parse_partition_value(text, name, time_zone=time_zone)
            if name == "timestamp":
                value = _micros(value)
            expected[name, text] = _comparable(value)
    assert found == expected


def _micros(value: datetime) -> int:
    delta = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.full
def test_malformed_partition_values_are_errors(spark: SparkSession, ansi: str) -> None:
    """Never a null: that would be a value. Never a value that depends on the day it is read."""
    accepted = []
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        last = None if ansi == "true" else 1
        for name, text in ((name, text) for name, texts in WRONG.items() for text in texts[:last]):
            with pytest.raises(InvalidPartitionValueError):
                parse_partition_value(text, name)
            frame = spark.createDataFrame([(text,)], "text STRING")
            column = typed_partition_value("text", _field(name), time_zone="UTC")
            try:
                accepted.append((name, text, frame.selectExpr(column).collect()))
            except PySparkException as error:
                if not isinstance(from_message(str(error)), InvalidPartitionValueError):
                    raise
    assert not accepted


def test_null_and_the_empty_text_are_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,), ("",)], "text STRING")
    columns = [typed_partition_value("text", _field(name), time_zone="UTC") for name in VALUES]
    assert all(value is None for row in frame.selectExpr(*columns).collect() for value in row)


def test_a_missing_key_is_null_and_names_are_the_tables(spark: SparkSession) -> None:
    frame = spark.createDataFrame([({"physical": "1"},)], "v MAP<STRING, STRING>")
    fields = [("physical", _field("integer")), ("absent", StructField("q", TimestampType()))]
    found = frame.selectExpr(
        f"inline(array({typed_partition_values('v', fields, time_zone='UTC')}))"
    )
    assert found.columns == ["p", "q"]
    assert found.collect() == [(1, None)]
