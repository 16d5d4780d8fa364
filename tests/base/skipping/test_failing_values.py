"""Conditions that Spark and the planner could take differently: files are left out by the
planner's reading, and rows by Spark's.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
import operator
from decimal import Decimal
from functools import reduce

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.parquet.row_group_workers import RowGroupBound
from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import Predicate, conjuncts
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping, StoredFacts
from sparkdelta.base.skipping.failing_values import infallible_terms, is_infallible
from sparkdelta.base.skipping.row_group_bounds import row_group_bounds
from tests.support.settings import settings

SETTINGS: dict[str, dict[str, str]] = {
    "usual": {},
    "no ANSI": {"spark.sql.ansi.enabled": "false",
                "spark.sql.session.timeZone": "America/New_York"},
    "a variable": {"own.text": "a%c"},
}  # fmt: skip
CASES: dict[str, list[tuple[str, str | None, str]]] = {
    "usual": [
        ("BIGINT", "9007199254740992", "{} IN (9007199254740993, 0.5D)"),
        ("TINYINT", "-128", "{} = -128Y"),
        ("BIGINT", "-9223372036854775808", "{} = -9223372036854775808L"),
        ("DECIMAL(38,30)", "0.00000000000000000000000000001", "{} > 0"),
        ("DECIMAL(38,20)", "1.50000000000000000001", "{} = CAST(1.5 AS DECIMAL(38,10))"),
        ("STRING", "xyz", "{} NOT LIKE 'a%'"),
        ("STRING", "xyz", "{} NOT ILIKE 'A%'"),
        ("STRING", "abc", "NOT ({} NOT LIKE 'a%')"),
        ("STRING", "a%c", "like({}, 'a#%c', '#')"),
        ("STRING", "x", "nullif('x', {}) IS NULL"),
    ],
    "no ANSI": [
        ("TIMESTAMP", "2024-11-03 06:30:00Z", "{} IN ('2024-11-03 01:30:00')"),
        ("INT", "16777216", "{} IN (16777217, CAST(0.5 AS FLOAT))"),
        ("INT", "5", "{} NOT IN (concat('0', '5'))"),
        ("INT", "5", "{} NOT IN ('05')"),
        ("INT", "-1", "{} + -2147483648 > 0"),
        ("INT", None, "{} <=> 'y'"),
        ("FLOAT", "16777220", "{} <= 16777219"),
        ("DOUBLE", "0.0", "{} NOT IN (-0.0F, '5')"),
    ],
    "a variable": [("STRING", "a%c", "{} = '${{own.text}}'")],
}
"""The cases by settings: a type, the value of all rows of a file, and a condition that is true of
it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_no_file_is_left_out_that_spark_wants(spark: SparkSession, name: str) -> None:
    """The file is kept for each condition on data (d0, d1 ...) and on partition values (p0, p1
    ...), whether a commit or a checkpoint has it.
    """
    cases = list(enumerate(CASES[name]))
    values = {f"{kind}{n}": value for n, (_, value, _) in cases for kind in "dp"}
    fields = [f"{kind}{n} {data_type}" for n, (data_type, _, _) in cases for kind in "dp"]
    schema = spark.createDataFrame([], ", ".join(fields)).schema
    partitions = [(field.name, field) for field in schema if field.name.startswith("p")]
    statistics = statistics_schema(schema, [key for key, _ in partitions], ColumnMappingMode.NONE)
    conditions = [where.format(f"{kind}{n}") for n, (*_, where) in cases for kind in "dp"]
    with settings(spark, SETTINGS[name]):
        typed = {f.name: F.lit(values[f.name]).cast(f.dataType).alias(f.name) for f in schema}
        row = spark.range(1).select(*typed.values())
        assert row.filter(" AND ".join(f"({text})" for text in conditions)).count() == 1

        parsed = F.from_json(F.lit(_statistics(values)), statistics).alias("stats_parsed")
        add = spark.range(1).select(
            F.create_map(*(F.lit(x) for key, _ in partitions for x in (key, values[key]))).alias(
                "partitionValues"
            ),
            F.lit(_statistics(values)).alias("stats"),
            F.struct(*(typed[key] for key, _ in partitions)).alias("partitionValues_parsed"),
            parsed,
        )
        for stored in (NOTHING_STORED, StoredFacts({k: k for k, _ in partitions}, statistics)):
            for text in conditions:
                predicate = parse_condition(text, schema, time_zone=_zone(spark))
                skipping = DataSkipping.of(predicate, schema, [key for key, _ in partitions])
                kept = skipping.keep(add, stored)
                assert kept.count() == 1, text


FAILING = [
    "p + 1 >= 2147483648", "p - -1 > 0", "p * 2 > 0", "1 / (p - 2147483647) = 1", "-(p + 1) < 0",
    "1 % (p - 2147483647) = 0", "CAST(p AS TINYINT) = 1", "coalesce(p + 1, 0) = 5",
    "abs(p + 1) = 5", "(p + 1) IS NULL", "NOT (p + 1) IS NOT NULL", "p + 1 IN (1, 2)",
    "CAST(q AS INT) = 1", "CAST(q AS DATE) = DATE'2024-01-01'", "to_date(q) = DATE'2024-01-01'",
    "q = 1", "q IN (1, 2)", "p = 'x'", "year(q) = 2024", "q RLIKE '('", "i = 2147483647 + 1",
    "i > CAST('x' AS INT)", "i > 'x'", "i < p + 1", "2147483647 + 1 > 0",
]  # fmt: skip
TOTAL = [
    "p + 1 > 5", "p = '5'", "CAST(q AS DATE) = DATE'2024-01-01'", "q = '2'",
    "to_date(q) > DATE'2024-01-01'", "coalesce(q, 'y') = 'z'", "substring(q, 1, 1) = '3'",
    "p IN ('7', '8')",
]  # fmt: skip


def test_a_term_that_fails_in_spark_keeps_the_file(spark: SparkSession) -> None:
    """Another term may keep Spark from computing it; a file without a failure is left out."""
    schema = spark.createDataFrame([], "p INT, q STRING, i INT").schema
    stats = json.dumps(
        {"numRecords": 1, "minValues": {"i": 1}, "maxValues": {"i": 1}, "nullCount": {"i": 0}}
    )
    adds = spark.createDataFrame(
        [({"p": p, "q": q}, stats) for p, q in (("2147483647", "x"), ("1", "2023-01-01"))],
        "partitionValues MAP<STRING, STRING>, stats STRING",
    )
    columns = []
    for text in (*FAILING, *TOTAL):
        predicate = parse_condition(text, schema, time_zone="UTC")
        skipping = DataSkipping.of(predicate, schema, "pq")
        both = (skipping.by_partition(NOTHING_STORED), skipping.by_statistics(NOTHING_STORED))
        keeps = [F.coalesce(F.expr(one), F.lit(False)) for one in both if one is not None]
        columns.append(reduce(operator.and_, keeps, F.lit(True)))
    failing, good = (row[0] for row in adds.select(F.array(*columns)).collect())
    count = len(FAILING)
    assert [text for text, kept in zip(FAILING, failing, strict=False) if not kept] == []
    assert [text for text, kept in zip(TOTAL, good[count:], strict=True) if kept] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((text, []) for text in FAILING),
        ("i > 5 AND q = 'x' AND p IS NOT NULL", ["i > 5", "q = 'x'", "p IS NOT NULL"]),
        ("i > 5 AND CAST(q AS INT) > 5", ["i > 5"]),
        ("i > '5' OR NOT startswith(q, 'x')", ["i > '5' OR NOT startswith(q, 'x')"]),
        ("i > 5 OR q > 5", []),
        ("q", []),
        ("d = CAST(1.5 AS DECIMAL(38,10))", []),
        ("d IN (1.5, 2L)", []),
        ("i < p", ["i < p"]),
        ("lower(q) = 'x'", []),
    ],
)
def test_terms_that_fail_for_no_row(text: str, found: list[str]) -> None:
    """PROTOCOL.md#reader-requirements-for-deletion-vectors: only these are evaluated on all rows,
    with the functions that no user can replace.
    """
    fields = {"p": IntegerType(), "q": StringType(), "i": IntegerType(), "d": DecimalType(38, 20)}
    schema = StructType([StructField(name, data_type) for name, data_type in fields.items()])

    def parsed(text: str) -> Predicate:
        return parse_condition(text, schema, time_zone="UTC")

    terms = infallible_terms(parsed(text), schema)
    assert terms == tuple(map(parsed, found))
    assert is_infallible(parsed(text), schema) == (terms == conjuncts(parsed(text)))


def _zone(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.sql.session.timeZone"))


def _statistics(values: dict[str, str | None]) -> str:
    data = {name: value for name, value in values.items() if name.startswith("d")}
    known = {name: value for name, value in data.items() if value is not None}
    nulls = {name: int(value is None) for name, value in data.items()}
    bounds = {"minValues": known, "maxValues": known}
    return json.dumps({"numRecords": 1, **bounds, "nullCount": nulls})


@pytest.mark.parametrize(
    ("data_type", "text", "bound"),
    [
        (DecimalType(38, 20), "x = CAST(1.5 AS DECIMAL(38,10))", None),
        (DecimalType(38, 38), "x <= 0", None),
        (DecimalType(10, 2), "x = 1.5", Decimal("1.5")),
        (FloatType(), "x = 16777219", None),
        (FloatType(), "x IN (16777219, 1.5D)", None),
        (FloatType(), "x = CAST(1.5 AS DOUBLE)", 1.5),
        (LongType(), "x IN (9007199254740993, 0.5D)", None),
        (LongType(), "x IN (5, 5L)", 5),
    ],
)
def test_bounds_of_row_groups_are_exact(
    data_type: DataType, text: str, bound: Decimal | float | None
) -> None:
    """A Parquet reader compares values as they are, where Spark rounds one of two types."""
    schema = StructType([StructField("x", data_type)])
    predicate = parse_condition(text, schema, time_zone="UTC")
    found = row_group_bounds(predicate, schema, frozenset())
    assert found == (() if bound is None else (RowGroupBound(("x",), bound, bound),))
