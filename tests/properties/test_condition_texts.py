"""Random conditions over names, constants and operators that two readers of SQL could take
differently: no file is left out that holds a row which Spark wants.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import datetime as dt
import json
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import Predicate, is_usable, without_not
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from sparkdelta.base.spark.classic_conditions import parse_classic_filter
from tests.support.settings import settings

TYPES = {
    "0xAB": "int", "1e5": "int", "1L": "bigint", "date": "date", "a.b": "int", "a`b": "string",
    "null": "int", "true": "boolean", "interval": "string", "straße": "int", "Case": "int",
    "current_date": "date", "like": "string",
}  # fmt: skip
PARTITIONS = ("1e5", "interval")
NUMBERS = ["1", "0x1", "1L", "1e0", "1Y", "1.0", ".5", "2.", "-1", "- 1", "1BD", "1e5", "null"]
CONSTANTS = {
    "int": [*NUMBERS, "'1'", "'x'"],
    "bigint": NUMBERS,
    "string": ["'t'", '"t"', "'tr'", "r'tr'", "'t' 'r'", "'''t'", "'1'", "null", r"'\\t'"],
    "boolean": ["true", "false", "'true'", "null"],
    "date": ["DATE'2024-01-02'", "'2024-01-02'", "date '2024-1-3'", "date", "null"],
}
FILES, CONDITIONS = 12, 40


@pytest.mark.full
def test_no_file_is_left_out_that_spark_wants(spark: SparkSession) -> None:
    """Files with matching rows are kept, by the condition in the plan of a classic session and by
    its text as a client reads it.
    """
    random = Random(7)
    fields = ", ".join(f"{quoted(name)} {kind}" for name, kind in TYPES.items())
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        schema = spark.createDataFrame([], fields).schema
        rows, adds = [], []
        for number in range(FILES):
            row = {name: _value(random, kind) for name, kind in TYPES.items()}
            other = {n: row[n] if n in PARTITIONS else _value(random, TYPES[n]) for n in TYPES}
            rows += [(number, *each.values()) for each in (row, other)]
            partition = {name: _json(row[name]) for name in PARTITIONS}
            adds.append((number, partition, _statistics(row, other)))
        data = spark.createDataFrame(
            rows, StructType([StructField("number of file", LongType()), *schema.fields])
        )
        known = _conditions(random, spark.createDataFrame([], schema), schema)
        matched = data.groupBy("`number of file`").agg(
            F.array(*(F.max(F.coalesce(F.expr(text), F.lit(False))) for text, _ in known))
        )
        files = spark.createDataFrame(
            adds, "file LONG, partitionValues MAP<STRING, STRING>, stats STRING"
        )
        kept = files.select(
            "file", F.array(*(_keeps(tree, schema) for _, trees in known for tree in trees))
        )
        matching, keeps = (dict(map(tuple, frame.collect())) for frame in (matched, kept))
    lost = {
        (text, tree)
        for number in range(FILES)
        for at, (text, trees) in enumerate(known)
        for tree, is_kept in zip(trees, keeps[number][2 * at : 2 * at + 2], strict=True)
        if matching[number][at] and not is_kept
    }
    assert lost == set()
    for reader in (0, 1):
        assert sum(is_usable(trees[reader]) for _, trees in known) > CONDITIONS / 4
        dropped = sum(not is_kept for each in keeps.values() for is_kept in each[reader::2])
        assert dropped > FILES * CONDITIONS / 20, "hardly anything is left out"


def _value(random: Random, kind: str) -> Any:
    if random.random() < 0.25:
        return None
    if kind == "string":
        return random.choice(["t", "tr", "1", "'t", "\\t", "true"])
    if kind == "date":
        return dt.date(2024, 1, random.randint(1, 4))
    return random.random() < 0.5 if kind == "boolean" else random.randint(-1, 2)


def _json(value: Any) -> Any:
    if isinstance(value, bool | None):
        return value
    return str(value)


def _statistics(*rows: dict[str, Any]) -> str:
    bounds: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in TYPES:
        values = [row[name] for row in rows if row[name] is not None]
        bounds["nullCount"][name] = len(rows) - len(values)
        if values and TYPES[name] != "boolean":
            for kind, of in (("minValues", min), ("maxValues", max)):
                value = of(values)
                bounds[kind][name] = value if isinstance(value, int) else str(value)
    return json.dumps({"numRecords": len(rows), **bounds})


def _conditions(
    random: Random, empty: DataFrame, schema: StructType
) -> list[tuple[str, tuple[Predicate, Predicate]]]:
    """Texts that Spark takes for conditions, and both readings of each."""
    found: list[tuple[str, tuple[Predicate, Predicate]]] = []
    rows = empty.alias(qualifier_of(schema))
    while len(found) < CONDITIONS:
        text = _condition(random, 2)
        try:
            planned = parse_classic_filter(rows.filter(text), schema, time_zone="UTC")
        except AnalysisException:
            continue
        read = parse_condition(text, schema, time_zone="UTC")
        found.append((text, (without_not(planned), without_not(read))))
    return found


def _condition(random: Random, depth: int) -> str:
    if depth and random.random() < 0.5:
        one, other = (_condition(random, depth - 1) for _ in range(2))
        text = f"{one} {random.choice(['AND', 'OR'])} {other}"
        return random.choice([text, f"({text})", f"NOT ({text})"])
    name, kind = random.choice(list(TYPES.items()))
    column = random.choice([quoted(name), name, quoted(name.upper())])
    first, second = (random.choice(CONSTANTS[kind]) for _ in range(2))
    operator = random.choice(["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="])
    compared = f"{column} {operator} {first}"
    negated = random.choice(["", "NOT "])
    return random.choice(
        [
            compared,
            f"{first} {operator} {column}",
            f"{column} IS {negated}NULL",
            f"{column} {negated}IN ({first}, {second})",
            f"{column} {negated}BETWEEN {first} AND {second}",
            f"{column} IS {negated}DISTINCT FROM {first}",
            f"{negated}{compared}",
            f"! {compared}",
            f"{compared} IS {negated}NULL",
            f"{compared} {negated}LIKE 't%'",
            f"{compared} {operator} true",
            f"{column} LIKE 't%' IS NULL",
            f"- {column} + 1 {operator} {first}",
            f"{column} || 't' {negated}LIKE {first}",
        ]
    )


def _keeps(predicate: Predicate, schema: StructType) -> Column:
    skipping = DataSkipping.of(predicate, schema, PARTITIONS)
    keeps = F.lit(True)
    for condition in (
        skipping.by_partition(NOTHING_STORED),
        skipping.by_statistics(NOTHING_STORED),
    ):
        if condition is not None:
            keeps = keeps & F.coalesce(F.expr(condition), F.lit(False))
    return keeps
