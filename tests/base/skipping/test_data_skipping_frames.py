"""Tests of the files that a predicate leaves, rule by rule, with statistics as JSON, as a struct or
both.

PROTOCOL.md#per-file-statistics, PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping, StoredFacts
from tests.support.settings import HOSTILE, settings

SCHEMA = StructType(
    [
        StructField("i", LongType()),
        StructField("f", DoubleType()),
        StructField("s", StringType()),
        StructField("c", StringType("UNICODE_CI")),
        StructField("d", DateType()),
        StructField("ts", TimestampType()),
        StructField("ntz", TimestampNTZType()),
        StructField("m", DecimalType(10, 2)),
        StructField("b", BooleanType()),
        StructField("st", StructType().add("x", LongType())),
        StructField("p", StringType()),
        StructField("day", DateType()),
        StructField("at", TimestampType()),
        StructField("k", StringType("UTF8_LCASE")),
        StructField("w", DecimalType(22, 2)),
        StructField("tags", ArrayType(LongType())),
    ]
)
PARTITIONS = ("p", "day", "at", "k")


def stats(low: Mapping[str, Any], high: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"numRecords": 10, "minValues": low, "maxValues": high, **more})


def one(column: str, low: Any, high: Any, nulls: int | None = 0, **more: Any) -> str:
    counts = {} if nulls is None else {"nullCount": {column: nulls}}
    return stats({column: low}, {column: high}, **counts, **more)


SMILES, BOTTOM = "\U0001f600" * 3, "a" * 32
FILES: Mapping[str, tuple[Mapping[str, str | None], str | None]] = {
    # name: (partitionValues, stats)
    "1-5": ({"p": "a", "day": "2024-01-01", "at": "2024-01-01 00:00:00"}, one("i", 1, 5)),
    "5-5": ({"p": "b", "day": "2024-01-02", "at": "2024-01-02T00:00:00Z"}, one("i", 5, 5)),
    "6-9 and nulls": ({"p": None, "day": None, "at": None}, one("i", 6, 9, nulls=3)),
    "nulls": ({"p": "", "day": "1500-01-01", "at": None}, one("i", None, None, nulls=10)),
    "unknown": ({"p": "a", "day": "2024-01-01", "at": None}, None),
    "torn": ({"p": "a", "day": "2024-01-01", "at": None}, '{"numRecords": 10, "minV'),
    "wide": ({"p": "a"}, one("i", 1, 5, nulls=4, tightBounds=False)),
    "f 1-2": ({"p": "a"}, one("f", 1.0, 2.0)),
    "f -0": ({"p": "a"}, one("f", -0.0, -0.0)),
    "f nan": ({"p": "a"}, one("f", "NaN", "NaN")),
    "f 1-nan": ({"p": "a"}, one("f", 1.0, "NaN")),
    "s b-d": ({"p": "a"}, one("s", "b", "d")),
    "s long": ({"p": "a"}, one("s", BOTTOM, BOTTOM + "\U0010ffff")),
    "s smile": ({"p": "a"}, one("s", SMILES, SMILES)),
    "s cut": ({"p": "a"}, one("s", BOTTOM, BOTTOM + "\ufffd")),
    "s cut early": ({"p": "a"}, one("s", "aa", "aa\ufffd")),
    "s cut early in half": ({"p": "a"}, one("s", "aa", "aa?\ufffd")),
    "s cut in half": ({"p": "a"}, one("s", BOTTOM[1:], BOTTOM[1:] + "?\ufffd")),
    "c a-b": ({"p": "a"}, one("c", "a", "b")),
    "d 1500": ({"p": "a"}, one("d", "1500-01-01", "1500-12-31")),
    "d 2024": ({"p": "a"}, one("d", "2024-01-01", "2024-12-31")),
    "ts .001": ({"p": "a"}, one("ts", "2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00.001Z")),
    "ntz .001": ({"p": "a"}, one("ntz", "2024-01-01T00:00:00.001", "2024-01-01T00:00:00.001")),
    "m": ({"p": "a"}, one("m", 99999999.98, 99999999.98)),
    "b": ({"p": "a"}, stats({}, {}, nullCount={"b": 10})),
    "st": (
        {"p": "a"},
        stats({"st": {"x": 1}}, {"st": {"x": 3}}, nullCount={"st": {"x": 2}}),
    ),
    "k A": ({"k": "A"}, None),
}
OF_I = {"1-5", "5-5", "6-9 and nulls", "nulls", "unknown", "torn", "wide"}
ALWAYS = {"unknown", "torn"}
OF_CUT = {"s cut", "s cut in half"}
OF_CUT_EARLY = {"s cut early", "s cut early in half"}
OF_F = {"f 1-2", "f -0", "f nan", "f 1-nan"}
FLOATS_WITH_NAN = {"f nan", "f 1-nan"}

# For each predicate the files that it keeps among those named; others are not looked at.
CASES: list[tuple[str, set[str], set[str]]] = [
    # minimum and maximum: a value outside of them is not in the file
    ("i = 5", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    ("i = 6", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("5 = i", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    ("i < 5", OF_I, {"1-5", "wide"} | ALWAYS),
    ("i <= 5", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    ("i > 5", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("5 < i", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("i >= 6", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("i <> 5", OF_I, {"1-5", "6-9 and nulls", "wide"} | ALWAYS),
    ("NOT i = 5", OF_I, {"1-5", "6-9 and nulls", "wide"} | ALWAYS),
    ("NOT (i > 5 OR i < 2)", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    ("NOT (i > 5 AND i < 8)", OF_I, OF_I - {"nulls"}),
    ("i BETWEEN 6 AND 7", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("i = 1 OR i = 9", OF_I, OF_I - {"5-5", "nulls"}),
    ("i = 5 OR rand() < 2", OF_I, OF_I),
    ("i = 6 AND rand() < 2", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("i = 5.5", OF_I, ALWAYS),
    ("i < 5.5D AND i > 4.5BD", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    ("CAST(i AS DOUBLE) > 5.5", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("CAST(i AS STRING) > '6'", OF_I, OF_I),
    ("i + 1 = 7", OF_I, OF_I),
    ("i = NULL", OF_I, ALWAYS),
    ("1 = 0", OF_I, set()),
    ("i = 5 AND 1 = 1", OF_I, {"1-5", "5-5", "wide"} | ALWAYS),
    # delta-spark before 3.3 cut maxima with U+FFFD, below characters outside the BMP
    (f"s = '{BOTTOM}\U0001f600'", OF_CUT, OF_CUT),
    (f"s > '{BOTTOM}\U0001f600'", OF_CUT, OF_CUT),
    (f"s >= '{BOTTOM[1:]}z'", OF_CUT, {"s cut in half"}),
    (f"s LIKE '{BOTTOM[1:]}\U0001f600%'", OF_CUT, {"s cut in half"}),
    (f"s IN ('x', '{BOTTOM}\U0001f600')", OF_CUT, OF_CUT),
    (f"s IN ({', '.join(repr(t) for t in 'nopqrstuvwxyz')}, '{BOTTOM}\U0001f600')", OF_CUT, OF_CUT),
    ("s > 'b'", OF_CUT | OF_CUT_EARLY, set()),
    ("s = 'aa\U0001f600'", OF_CUT_EARLY, OF_CUT_EARLY),
    ("s > 'aa\uffffz'", OF_CUT_EARLY, OF_CUT_EARLY),
    ("s LIKE 'aa\U0001f600%'", OF_CUT_EARLY, OF_CUT_EARLY),
    ("s IN ('x', 'aa\U0001f600')", OF_CUT_EARLY, OF_CUT_EARLY),
    (
        f"s IN ({', '.join(repr(t) for t in 'nopqrstuvwxyz')}, 'aa\U0001f600')",
        OF_CUT_EARLY,
        OF_CUT_EARLY,
    ),
    (f"s IN ({', '.join(repr(t) for t in 'nopqrstuvwxyz')})", OF_CUT_EARLY, set()),
    (
        "s >= concat('aa', p, p) AND s >= 'aa\uffff'",
        {"s cut early", "s b-d"},
        {"s cut early", "s b-d"},
    ),
    ("s = 'b\U0001f600'", OF_CUT_EARLY, set()),
    # IN
    ("i IN (7, 100)", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("i IN (NULL)", OF_I, set()),
    ("i NOT IN (5)", OF_I, {"1-5", "6-9 and nulls", "wide"} | ALWAYS),
    (f"i IN ({', '.join(map(str, range(10, 50)))}, 5)", OF_I, {"1-5", "5-5", "wide", *ALWAYS}),
    (f"i IN (0, {', '.join(map(str, range(10, 50)))})", OF_I, ALWAYS),
    (
        f"i NOT IN ({', '.join(map(str, range(2, 50)))})",
        OF_I,
        OF_I - {"5-5", "nulls"},
    ),
    # null counts; with wide bounds only none or all is certain
    ("i IS NULL", OF_I, {"6-9 and nulls", "nulls", "wide"} | ALWAYS),
    ("i IS NOT NULL", OF_I, OF_I - {"nulls"}),
    ("i <=> NULL", OF_I, {"6-9 and nulls", "nulls", "wide"} | ALWAYS),
    ("i <=> 6", OF_I, {"6-9 and nulls"} | ALWAYS),
    ("NOT i <=> 6", OF_I, OF_I),
    ("b IS NOT NULL", {"b", "1-5"}, {"1-5"}),
    # NaN is greater than all numbers, and a finite maximum does not prove its absence
    ("f > 5", OF_F, OF_F),
    ("f >= 5", OF_F, OF_F),
    ("f <> 1", OF_F, OF_F),
    ("f = double('NaN')", OF_F, OF_F),
    ("f = CAST('NaN' AS DOUBLE)", OF_F, OF_F),
    ("f > 5 AND f < 9", OF_F, FLOATS_WITH_NAN),
    ("f BETWEEN 1.5 AND 9", OF_F, {"f 1-2", *FLOATS_WITH_NAN}),
    ("f = 5", OF_F, FLOATS_WITH_NAN),
    ("f < 0.5", OF_F, {"f -0", "f nan"}),
    ("f < 0.5 OR f > 5", OF_F, OF_F),
    # signed zero
    ("f = 0.0D", OF_F, {"f -0", "f nan"}),
    ("f = -0.0D", OF_F, {"f -0", "f nan"}),
    # strings: in the order of UTF-8, cut with an upper bound after what was cut off
    ("s = 'c'", {"s b-d", "s long"}, {"s b-d"}),
    ("s LIKE 'c%'", {"s b-d", "s long"}, {"s b-d"}),
    ("s LIKE 'e%'", {"s b-d", "s long"}, set()),
    ("s LIKE 'c_x%'", {"s b-d", "s long"}, {"s b-d"}),
    ("s LIKE '%c'", {"s b-d", "s long"}, {"s b-d", "s long"}),
    ("s LIKE 'b'", {"s b-d", "s long"}, {"s b-d"}),
    ("s NOT LIKE 'b%'", {"s b-d"}, {"s b-d"}),
    ("NOT startswith(s, 'a')", {"s b-d", "s long"}, {"s b-d"}),
    ("startswith(s, 'aa')", {"s b-d", "s long"}, {"s long"}),
    (f"s = '{BOTTOM}zzz'", {"s b-d", "s long"}, {"s long"}),
    (f"s > '{BOTTOM}'", {"s b-d", "s long"}, {"s b-d", "s long"}),
    ("s > '\uffff'", {"s b-d", "s smile"}, {"s smile"}),
    (f"s LIKE '{SMILES}%'", {"s b-d", "s smile"}, {"s smile"}),
    ("s = 5", {"s b-d"}, {"s b-d"}),
    # numbers and dates are no texts, whose order is another
    ("i LIKE '1%'", OF_I, OF_I),
    ("i NOT LIKE '5%'", OF_I, OF_I),
    ("startswith(i, '1')", OF_I, OF_I),
    ("d LIKE '2024-1%'", {"d 2024"}, {"d 2024"}),
    ("i IN ('2', '10', '3', '4', '5', '6', '7', '8', '9')", OF_I, OF_I),
    ("i NOT IN ('05')", {"5-5"}, {"5-5"}),
    # a collation has another order than the bounds
    ("c = 'B'", {"c a-b"}, {"c a-b"}),
    ("c IS NULL", {"c a-b"}, set()),
    # dates before 1582 are proleptic Gregorian
    ("d = DATE'1500-06-01'", {"d 1500", "d 2024"}, {"d 1500"}),
    ("d > '2024-06-01'", {"d 1500", "d 2024"}, {"d 2024"}),
    ("d >= TIMESTAMP'2024-06-01 00:00:00'", {"d 1500", "d 2024"}, {"d 2024"}),
    # timestamps are cut to milliseconds
    ("ts = TIMESTAMP'2024-01-01 00:00:00.001999Z'", {"ts .001"}, {"ts .001"}),
    ("ts > TIMESTAMP'2024-01-01 00:00:00.001998Z'", {"ts .001"}, {"ts .001"}),
    ("ts > TIMESTAMP'2024-01-01 00:00:00.001999Z'", {"ts .001"}, set()),
    ("ts >= TIMESTAMP'2024-01-01 00:00:00.002Z'", {"ts .001"}, set()),
    ("ts < TIMESTAMP'2024-01-01 00:00:00.001Z'", {"ts .001"}, set()),
    ("ts <> TIMESTAMP'2024-01-01 00:00:00.001Z'", {"ts .001"}, {"ts .001"}),
    ("ts = TIMESTAMP'2024-01-01 09:00:00.0015+09:00'", {"ts .001"}, {"ts .001"}),
    ("date(ts) = DATE'2024-01-01'", {"ts .001"}, {"ts .001"}),
    ("CAST(ts AS DATE) = DATE'2024-01-05'", {"ts .001"}, set()),
    ("ntz = TIMESTAMP_NTZ'2024-01-01 00:00:00.0015'", {"ntz .001"}, {"ntz .001"}),
    ("ntz > TIMESTAMP_NTZ'2024-01-01 00:00:00.002'", {"ntz .001"}, set()),
    ("ntz > TIMESTAMP'2030-01-01 00:00:00Z'", {"ntz .001"}, {"ntz .001"}),
    # decimals keep their digits
    ("m > 99999999.98", {"m"}, set()),
    ("m >= 99999999.98", {"m"}, {"m"}),
    # fields of structs
    ("st.x = 2", {"st", "1-5"}, {"st", "1-5"}),
    ("st.x = 4", {"st", "1-5"}, {"1-5"}),
    ("st.x IS NULL", {"st"}, {"st"}),
    ("st IS NULL", {"st"}, {"st"}),
    # partition values are exact
    ("p = 'a'", {"1-5", "5-5", "6-9 and nulls", "nulls"}, {"1-5"}),
    ("p <> 'a'", {"1-5", "5-5", "6-9 and nulls", "nulls"}, {"5-5"}),
    ("p IS NULL", {"1-5", "5-5", "6-9 and nulls", "nulls"}, {"6-9 and nulls", "nulls"}),
    ("p <=> NULL", {"1-5", "6-9 and nulls"}, {"6-9 and nulls"}),
    ("upper(p) LIKE 'B'", {"1-5", "5-5"}, {"5-5"}),
    ("p IN ('b', 'z')", {"1-5", "5-5", "nulls"}, {"5-5"}),
    ("year(day) = 2024 AND day(day) = 2", {"1-5", "5-5", "nulls"}, {"5-5"}),
    ("day < DATE'1582-10-15'", {"1-5", "nulls"}, {"nulls"}),
    ("at = TIMESTAMP'2024-01-02 00:00:00Z'", {"1-5", "5-5", "nulls"}, {"5-5"}),
    ("k <> 'a'", {"k A", "1-5"}, {"k A"}),  # rows are read without the collation
    ("k = 'a'", {"k A"}, set()),
    ("p = 'a' AND i = 5", {"1-5", "5-5", "6-9 and nulls"}, {"1-5"}),
    ("p = 'a' OR i = 6", {"1-5", "5-5", "6-9 and nulls"}, {"1-5", "6-9 and nulls"}),
    # a data column against a partition column, which is one value for the file
    ("d = day", {"d 2024"}, set()),
    ("d >= DATE'2025-01-01' OR p = 'a'", {"d 2024"}, {"d 2024"}),
]


def skipping(text: str) -> DataSkipping:
    return DataSkipping.of(parse_condition(text, SCHEMA, time_zone="UTC"), SCHEMA, PARTITIONS)


STATISTICS = statistics_schema(SCHEMA, PARTITIONS, ColumnMappingMode.NONE)
STORED_PARTITIONS = StructType([SCHEMA["p"], SCHEMA["day"]])
STRUCTS = StoredFacts({"p": "p", "day": "day"}, STATISTICS)
SOURCES = {"json": NOTHING_STORED, "struct": STRUCTS}


def adds(spark: SparkSession, source: str) -> DataFrame:
    rows = [(name, dict(values), text) for name, (values, text) in FILES.items()]
    frame = spark.createDataFrame(
        rows, "name STRING, partitionValues MAP<STRING, STRING>, stats STRING"
    )
    if source == "json":
        return frame
    struct = F.from_json("stats", STATISTICS)
    values = F.struct(
        F.try_element_at("partitionValues", F.lit("p")).alias("p"),  # '' stays, as in delta-spark
        F.try_element_at("partitionValues", F.lit("day")).cast("date").alias("day"),
    )
    return frame.select(
        "name",
        "partitionValues",
        F.lit("{}").alias("stats"),
        struct.alias("stats_parsed"),
        values.alias("partitionValues_parsed"),
    )


def kept_by(spark: SparkSession, source: str) -> dict[str, set[str]]:
    """The files that are kept in each case, found by one Spark job."""
    stored = SOURCES[source]
    columns = [_keeps(skipping(text), stored) for text, _, _ in CASES]
    rows = adds(spark, source).select("name", F.array(*columns).alias("kept")).collect()
    return {
        text: {row["name"] for row in rows if row["kept"][number]}
        for number, (text, _, _) in enumerate(CASES)
    }


def _keeps(rules: DataSkipping, stored: StoredFacts) -> Column:
    conditions = [rules.pushed(stored), rules.by_partition(stored), rules.by_statistics(stored)]
    keeps = F.lit(True)
    for condition in conditions:
        if condition is not None:
            keeps = keeps & F.coalesce(F.expr(condition), F.lit(False))
    return keeps


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("group", ["as is", "time zone, no ANSI", "plans"])
def test_rules(spark: SparkSession, source: str, group: str) -> None:
    with settings(spark, HOSTILE.get(group, {})):
        kept = kept_by(spark, source)
    wrong = {
        text: kept[text] & names
        for text, names, expected in CASES
        if kept[text] & names != expected
    }
    assert wrong == {}


def test_every_file_is_in_a_case() -> None:
    assert {name for _, names, _ in CASES for name in names} == set(FILES)


# For each term what it is compared with, or the reason why nothing.
USES = {
    "i = 5": {"statistics"},
    "i IS NULL": {"statistics"},
    "p = 'a'": {"partition values"},
    "1 = 0": {"partition values"},
    "p = 'a' OR i = 6": {"partition values", "statistics"},
    "d = day": {"partition values", "statistics"},
    "i + 1 = 7": "no minimum, maximum or null count tells",
    "c = 'B' OR c = 'C'": "no minimum, maximum or null count tells",
    "st IS NULL": "no minimum, maximum or null count tells",
    "i = 5 OR rand() < 2": "RAND() is not supported",
}


@pytest.mark.usefixtures("spark")
def test_uses() -> None:
    assert {text: _use(text) for text in USES} == USES
    both = skipping(" AND ".join(f"({text})" for text in USES)).uses()
    assert [use.reason for use in both] == [
        None if isinstance(use, set) else use for use in USES.values()
    ]


def _use(text: str) -> set[str] | str:
    (use,) = skipping(text).uses()
    assert not use.is_implied
    if use.reason is not None:
        return use.reason
    named = {"partition values": use.by_partition_values, "statistics": use.by_statistics}
    return {name for name, is_used in named.items() if is_used}


ROUNDED = 1.2345678901234567e19  # of 12345678901234567890.12
FOUND = Decimal("12345678901234567890.12")
OTHERS = ", ".join(f"{number}.5" for number in range(20))
OF_DELTA_RS = [
    # of a file with this value alone, the condition, whether the file is kept
    (one("w", ROUNDED, ROUNDED), f"w = {FOUND}", True),
    (one("w", ROUNDED, ROUNDED), f"w >= {FOUND}", True),
    (one("w", ROUNDED, ROUNDED), f"w > {FOUND - 1}", True),
    (one("w", ROUNDED, ROUNDED), f"w <> {ROUNDED:.0f}", True),
    (one("w", ROUNDED, ROUNDED), f"w IN ({OTHERS}, {FOUND})", True),
    (one("w", ROUNDED, ROUNDED), f"w NOT IN ({OTHERS}, {ROUNDED:.0f})", True),
    (one("w", ROUNDED, ROUNDED), f"w IN ({OTHERS})", False),
    (one("w", ROUNDED, ROUNDED), "w = 12345678901234500000", False),
    (one("w", ROUNDED, ROUNDED), f"w < CAST('{FOUND}' AS DECIMAL(22, 2))", True),
    (one("w", ROUNDED, ROUNDED), "w < CAST('5.5' AS DECIMAL(22, 2))", False),
    (one("w", ROUNDED, ROUNDED), "w < try_cast('NaN' AS DECIMAL(22, 2))", True),
    (one("w", -ROUNDED, -ROUNDED), f"w <= -{FOUND}", True),
    (one("w", -ROUNDED, -ROUNDED), "w > 0", False),
    (one("w", 1, 2**63 - 1), f"w = {FOUND}", True),  # limited to BIGINT
    (one("w", -(2**63), 1), f"w < -{FOUND}", True),
    (
        one("w", 1, 1e19),
        "w = 50000000000000000000",
        True,
    ),  # the greatest of a limited bound and another
    (one("w", 1, 2**62), f"w = {FOUND}", False),
    (stats({}, {}, nullCount={"tags": 20}), "tags IS NOT NULL", True),  # of elements
    (stats({}, {}, nullCount={"tags": 0}), "tags IS NULL", True),
]


@pytest.mark.parametrize("source", SOURCES)
def test_bounds_of_delta_rs(spark: SparkSession, source: str) -> None:
    """PROTOCOL.md#per-file-statistics: DECIMAL is rounded to DOUBLE, or limited to BIGINT, and null
    counts of arrays are those of their elements.
    """
    rows = [(number, {}, text) for number, (text, _, _) in enumerate(OF_DELTA_RS)]
    files = spark.createDataFrame(
        rows, "number INT, partitionValues MAP<STRING, STRING>, stats STRING"
    )
    files = files.withColumn("stats_parsed", F.from_json("stats", STATISTICS))
    files = files.withColumn("partitionValues_parsed", F.struct(F.lit(None).alias("p")))
    columns = [_keeps(skipping(condition), SOURCES[source]) for _, condition, _ in OF_DELTA_RS]
    kept = dict(map(tuple, files.select("number", F.array(*columns)).collect()))
    for number, (text, condition, is_kept) in enumerate(OF_DELTA_RS):
        assert bool(kept[number][number]) == is_kept, (condition, text)
