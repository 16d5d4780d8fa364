"""Random files and predicates: no file that holds a matching row is left out, and for conditions on
whole numbers and partitions no file is kept that the rules allow to leave out.

Many predicates are columns of one query, over many files: a Spark job costs more than all of them.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping, StoredFacts
from tests.support.settings import settings

SCHEMA = StructType(
    [
        StructField("i", LongType()),
        StructField("f", DoubleType()),
        StructField("r", FloatType()),
        StructField("c", DecimalType(38, 30)),
        StructField("s", StringType()),
        StructField("d", DateType()),
        StructField("ts", TimestampType()),
        StructField("p", StringType()),
    ]
)
NAMES = SCHEMA.names
STATISTICS = statistics_schema(SCHEMA, ("p",), ColumnMappingMode.NONE)
FILES, PREDICATES = 60, 60
_QUOTED_NUMBER = re.compile('"#([^"]*)"')
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)

Row = dict[str, Any]


def random_row(random: Random, center: int, partition: str | None) -> Row:
    def or_null(value: Any) -> Any:
        return None if random.random() < 0.25 else value

    number = center + random.randint(-1, 1)
    return {
        "i": or_null(number),
        "f": or_null(random.choice([number / 2, number / 2, math.nan, 0.0, -0.0])),
        "r": or_null(float((1 << 24) + 2 * number)),
        "c": or_null(_decimal(number)),
        "s": or_null(random.choice("abé\U0001f600") * random.choice([1, 2, 40])),
        "d": or_null(dt.date(2024, 1, 10) + dt.timedelta(days=number)),
        "ts": or_null(EPOCH + dt.timedelta(microseconds=number * 700)),
        "p": partition,
    }


def _decimal(number: int) -> Decimal:
    """A little more than a whole number, in more digits than Python's arithmetic keeps."""
    return Decimal(f"{number}.{abs(number):029}")


def stats(rows: Sequence[Row], random: Random) -> str | None:
    """Statistics as writers make them: cut texts and timestamps, without NaN, at times none."""
    if random.random() < 0.1:
        return None
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in ("i", "f", "r", "c", "s", "d", "ts"):
        values = [row[name] for row in rows if row[name] is not None]
        nulls[name] = len(rows) - len(values)
        if name == "f":
            values = [value for value in values if not math.isnan(value)]
        if values and random.random() < 0.9:
            order: Callable[[Any], Any] = (lambda v: v.encode()) if name == "s" else lambda v: v
            low[name] = _cut(min(values, key=order), upper=False)
            high[name] = _cut(max(values, key=order), upper=True)
    document = {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}
    return _QUOTED_NUMBER.sub(r"\1", json.dumps(document))


def _cut(value: Any, *, upper: bool) -> Any:
    if isinstance(value, Decimal):
        return f"#{value:f}"  # JSON has more digits than Python's floats
    if isinstance(value, str):
        tie_breaker = "\U0010ffff" if upper else ""
        return value if len(value) <= 32 else value[:32] + tie_breaker
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return value.isoformat() if isinstance(value, dt.date) else value


def random_condition(
    random: Random, depth: int, columns: Sequence[str], *, is_mixed: bool = False
) -> str:
    """A condition of columns and constants of their own types, or also of others that Spark
    converts.
    """
    if depth and random.random() < 0.6:
        left, right = (
            random_condition(random, depth - 1, columns, is_mixed=is_mixed) for _ in range(2)
        )
        joined = f"({left} {random.choice(['AND', 'OR'])} {right})"
        return f"NOT {joined}" if random.random() < 0.3 else joined
    name = random.choice(columns)

    def literal() -> str:
        others = MIXED.get(name, ()) if is_mixed and random.random() < 0.4 else ()
        return random.choice(others) if others else _literal(random, name)

    kind, negated = random.random(), random.choice(["", "NOT "])
    if kind < 0.15:
        return f"{name} IS {negated}NULL"
    if kind < 0.35:
        values = [literal() for _ in range(random.choice([1, 3, 12]))]
        return f"{name} {negated}IN ({', '.join(values)})"
    if kind < 0.45 and name in ("s", "p"):
        pattern = random.choice(["a%", "aa%", "é%", "b%", "b", "x%", "A%", "_%"])
        return f"{name} {negated}{random.choice(['LIKE', 'LIKE', 'ILIKE'])} '{pattern}'"
    if kind < 0.55:
        return f"{name} {negated}BETWEEN {literal()} AND {literal()}"
    operator = random.choice(["=", "<=>", "<>", "<", "<=", ">", ">="])
    if random.random() < 0.2:
        return f"{literal()} {operator} {name}"
    return f"{name} {operator} {literal()}"


MIXED = {
    "i": ["'5'", "'05'", "'x'", "CAST(5 AS FLOAT)", "5.5D", "concat('0', '5')", "-128Y", "1.50"],
    "f": ["'1.5'", "1.5F", "2L", "concat('1', '.5')"],
    "r": ["16777217", "16777219L", "16777219D", "'16777220'", "16777219.5"],
    "c": ["0", "5Y", "CAST(5 AS DECIMAL(38,10))", "5.000000000000000000000000000050", "5D", "'5'"],
    "s": ["5", "1.5D", "concat('a', 'a')", "NULL"],
    "d": ["'2024-01-12'", "'2024-1-12'", "TIMESTAMP'2024-01-12 00:00:00Z'", "'x'"],
    "ts": ["'2024-01-01 00:00:00.0007'", "DATE'2024-01-01'", "'2024-01-01T00:00:00Z'",
           "TIMESTAMP_NTZ'2024-01-01 00:00:00.0014'"],
    "p": ["concat('', 'x')", "5", "NULL"],
}  # fmt: skip
"""Constants that Spark brings to the type of a column, or the column to theirs."""


def _literal(random: Random, name: str) -> str:
    number = random.randint(-3, 12)
    if name == "i":
        return random.choice([str(number), f"{number}L", f"{number}.5"])
    if name == "f":
        return random.choice([f"{number / 2}D", str(number), "-0.0D", "CAST('NaN' AS DOUBLE)"])
    if name == "r":
        return f"{(1 << 24) + number}F"
    if name == "c":
        return f"CAST('{_decimal(number):f}' AS DECIMAL(38,30))"
    if name == "s":
        return "'" + random.choice("abé\U0001f600") * random.choice([1, 2, 40]) + "'"
    if name == "d":
        return f"DATE'{dt.date(2024, 1, 10) + dt.timedelta(days=number)}'"
    if name == "ts":
        moment = EPOCH + dt.timedelta(microseconds=number * 700)
        return f"TIMESTAMP'{moment.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return random.choice(["'x'", "'y'", "'z'"])


def _keeps(text: str, stored: StoredFacts) -> Column:
    skipping = DataSkipping.of(parse_condition(text, SCHEMA, time_zone="UTC"), SCHEMA, ["p"])
    keeps = F.lit(True)
    for condition in (
        skipping.pushed(stored),
        skipping.by_partition(stored),
        skipping.by_statistics(stored),
    ):
        if condition is not None:
            keeps = keeps & F.coalesce(F.expr(condition), F.lit(False))
    return keeps


@pytest.mark.full
@pytest.mark.parametrize(("seed", "is_mixed"), [(0, False), (1, True)])
def test_no_matching_row_is_lost(spark: SparkSession, seed: int, is_mixed: bool) -> None:
    """Under ANSI rules and without; those fail where one constant cannot be converted."""
    with settings(spark, {"spark.sql.ansi.enabled": str(not is_mixed).lower()}):
        _check_no_row_is_lost(spark, Random(seed), is_mixed=is_mixed)


def _check_no_row_is_lost(spark: SparkSession, random: Random, *, is_mixed: bool) -> None:
    rows, files = [], []
    for number in range(FILES):
        center, partition = random.randint(-2, 10), random.choice(["x", "y", "", None])
        # An empty text is null as a partition value.
        of_file = [random_row(random, center, partition or None) for _ in range(4)]
        rows += [(number, *(row[name] for name in NAMES)) for row in of_file]
        files.append((number, {"p": partition}, stats(of_file, random)))
    conditions = [random_condition(random, 2, NAMES, is_mixed=is_mixed) for _ in range(PREDICATES)]
    frame = spark.createDataFrame(
        rows, StructType([StructField("file", LongType()), *SCHEMA.fields])
    )
    matched = frame.groupBy("file").agg(
        F.array(*[F.max(F.coalesce(F.expr(text), F.lit(False))) for text in conditions])
    )
    matching = dict(map(tuple, matched.collect()))
    adds = spark.createDataFrame(
        files, "file LONG, partitionValues MAP<STRING, STRING>, stats STRING"
    )
    typed = adds.withColumn("stats_parsed", F.from_json("stats", STATISTICS)).withColumn(
        "partitionValues_parsed",
        F.struct(F.try_element_at("partitionValues", F.lit("p")).alias("p")),  # '' stays
    )
    for stored in (NOTHING_STORED, StoredFacts({"p": "p"}, STATISTICS)):
        columns = [_keeps(text, stored) for text in conditions]
        kept = dict(map(tuple, typed.select("file", F.array(*columns)).collect()))
        lost = [
            (text, rows[number * 4 : number * 4 + 4], files[number])
            for number in range(FILES)
            for text, matches, keeps in zip(conditions, matching[number], kept[number], strict=True)
            if matches and not keeps
        ]
        assert lost == []
        dropped = sum(not keeps for row in kept.values() for keeps in row)
        assert dropped > FILES * PREDICATES / 20, "hardly anything is left out"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_kept_that_bounds_exclude(spark: SparkSession, seed: int) -> None:
    """A file of every number between its bounds matches if and only if it is kept."""
    random = Random(seed)
    files, contents = [], []
    for number in range(FILES):
        low = random.randint(-2, 10)
        high, nulls = low + random.randint(0, 3), random.choice([0, 2])
        partition = random.choice(["x", "y", None])
        document = {
            "numRecords": high - low + 1 + nulls,
            "minValues": {"i": low},
            "maxValues": {"i": high},
            "nullCount": {"i": nulls},
        }
        files.append((number, {"p": partition}, json.dumps(document)))
        values = [*range(low, high + 1), *[None] * nulls]
        contents += [(number, value, partition) for value in values]
    atoms = [random_condition(random, 0, random.choice([["i"], ["p"]])) for _ in range(PREDICATES)]
    # An alternative is exact too; a conjunction of conditions on one column is not.
    conditions = [
        f"({one}) OR ({other})" if random.random() < 0.3 else one
        for one, other in zip(atoms, reversed(atoms), strict=True)
    ]
    conditions = [text for text in conditions if ".5" not in text and "BETWEEN" not in text]
    frame = spark.createDataFrame(contents, "file LONG, i LONG, p STRING")
    matched = frame.groupBy("file").agg(
        F.array(*[F.max(F.coalesce(F.expr(text), F.lit(False))) for text in conditions])
    )
    matching = dict(map(tuple, matched.collect()))
    adds = spark.createDataFrame(
        files, "file LONG, partitionValues MAP<STRING, STRING>, stats STRING"
    )
    columns = [_keeps(text, NOTHING_STORED) for text in conditions]
    kept = dict(map(tuple, adds.select("file", F.array(*columns)).collect()))
    different = [
        (text, files[number])
        for number in range(FILES)
        for text, matches, keeps in zip(conditions, matching[number], kept[number], strict=True)
        if matches != keeps and not _is_a_gap(text)
    ]
    assert different == []


def _is_a_gap(text: str) -> bool:
    """NOT IN a list that covers all of a range: bounds alone exclude single values only."""
    return "NOT IN" in text or "NOT (" in text
