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
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkdelta.frames.data_skipping import NOTHING_STORED, DataSkipping, StoredFacts
from sparkdelta.predicates.sql_text import parse_condition
from sparkdelta.protocol.predicates import without_not
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.statistics_schema import statistics_schema

SCHEMA = StructType(
    [
        StructField("i", LongType()),
        StructField("f", DoubleType()),
        StructField("s", StringType()),
        StructField("d", DateType()),
        StructField("ts", TimestampType()),
        StructField("p", StringType()),
    ]
)
NAMES = SCHEMA.names
STATISTICS = statistics_schema(SCHEMA, ("p",), ColumnMappingMode.NONE)
FILES, PREDICATES = 60, 60
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)

Row = dict[str, Any]


def random_row(random: Random, center: int, partition: str | None) -> Row:
    def or_null(value: Any) -> Any:
        return None if random.random() < 0.25 else value

    number = center + random.randint(-1, 1)
    return {
        "i": or_null(number),
        "f": or_null(random.choice([number / 2, number / 2, math.nan, 0.0, -0.0])),
        "s": or_null(random.choice("abé\U0001f600") * random.choice([1, 2, 40])),
        "d": or_null(dt.date(2024, 1, 10) + dt.timedelta(days=number)),
        "ts": or_null(EPOCH + dt.timedelta(microseconds=number * 700)),
        "p": partition,
    }


def stats(rows: Sequence[Row], random: Random) -> str | None:
    """As writers make them: cut texts and timestamps, without NaN, at times not at all."""
    if random.random() < 0.1:
        return None
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in ("i", "f", "s", "d", "ts"):
        values = [row[name] for row in rows if row[name] is not None]
        nulls[name] = len(rows) - len(values)
        if name == "f":
            values = [value for value in values if not math.isnan(value)]
        if values and random.random() < 0.9:
            order: Callable[[Any], Any] = (lambda v: v.encode()) if name == "s" else lambda v: v
            low[name] = _cut(min(values, key=order), upper=False)
            high[name] = _cut(max(values, key=order), upper=True)
    return json.dumps(
        {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}
    )


def _cut(value: Any, *, upper: bool) -> Any:
    if isinstance(value, str):
        tie_breaker = "\U0010ffff" if upper else ""
        return value if len(value) <= 32 else value[:32] + tie_breaker
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return value.isoformat() if isinstance(value, dt.date) else value


def random_condition(random: Random, depth: int, columns: Sequence[str]) -> str:
    if depth and random.random() < 0.6:
        left, right = (random_condition(random, depth - 1, columns) for _ in range(2))
        joined = f"({left} {random.choice(['AND', 'OR'])} {right})"
        return f"NOT {joined}" if random.random() < 0.3 else joined
    name = random.choice(columns)
    kind = random.random()
    if kind < 0.15:
        return f"{name} IS {random.choice(['', 'NOT '])}NULL"
    if kind < 0.3:
        values = [_literal(random, name) for _ in range(random.choice([1, 3, 12]))]
        return f"{name} {random.choice(['', 'NOT '])}IN ({', '.join(values)})"
    if kind < 0.4 and name == "s":
        return f"s LIKE '{random.choice(['a', 'aa', 'é', 'b'])}%'"
    if kind < 0.5:
        return f"{name} BETWEEN {_literal(random, name)} AND {_literal(random, name)}"
    operator = random.choice(["=", "<=>", "<>", "<", "<=", ">", ">="])
    if random.random() < 0.2:
        return f"{_literal(random, name)} {operator} {name}"
    return f"{name} {operator} {_literal(random, name)}"


def _literal(random: Random, name: str) -> str:
    number = random.randint(-3, 12)
    if name == "i":
        return random.choice([str(number), f"{number}L", f"{number}.5"])
    if name == "f":
        return random.choice([f"{number / 2}D", str(number), "-0.0D", "CAST('NaN' AS DOUBLE)"])
    if name == "s":
        return "'" + random.choice("abé\U0001f600") * random.choice([1, 2, 40]) + "'"
    if name == "d":
        return f"DATE'{dt.date(2024, 1, 10) + dt.timedelta(days=number)}'"
    if name == "ts":
        moment = EPOCH + dt.timedelta(microseconds=number * 700)
        return f"TIMESTAMP'{moment.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return random.choice(["'x'", "'y'", "'z'"])


def _keeps(text: str, stored: StoredFacts) -> Column:
    skipping = DataSkipping(
        predicate=without_not(parse_condition(text, SCHEMA, time_zone="UTC")),
        schema=SCHEMA,
        partition_keys=[("p", SCHEMA["p"])],
        column_mapping=ColumnMappingMode.NONE,
        statistics=STATISTICS,
        time_zone="UTC",
    )
    keeps = F.lit(True)
    for condition in (
        skipping.pushed(stored),
        skipping.by_partition(stored),
        skipping.by_statistics(stored),
    ):
        if condition is not None:
            keeps = keeps & F.coalesce(F.expr(condition), F.lit(False))
    return keeps


@pytest.mark.parametrize("seed", range(2))
def test_no_matching_row_is_lost(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    rows, files = [], []
    for number in range(FILES):
        center, partition = random.randint(-2, 10), random.choice(["x", "y", "", None])
        # An empty text is null as a partition value.
        of_file = [random_row(random, center, partition or None) for _ in range(4)]
        rows += [(number, *(row[name] for name in NAMES)) for row in of_file]
        files.append((number, {"p": partition}, stats(of_file, random)))
    conditions = [random_condition(random, 2, NAMES) for _ in range(PREDICATES)]
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
        F.struct(F.nullif(F.try_element_at("partitionValues", F.lit("p")), F.lit("")).alias("p")),
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
