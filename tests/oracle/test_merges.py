"""Random merges by delta-spark and by sparkdelta, one after another into copies of a table."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_delta, verify, write_delta
from sparkdelta.operations.merge.merge_clauses import Clause
from tests.golden.expected import comparable
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle

MERGES = 6
COUNTS = (
    "numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted",
    "numTargetRowsMatchedUpdated", "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceDeleted",
)  # fmt: skip
PROPERTIES = [
    {},
    {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
    {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
    {"delta.enableTypeWidening": "true"},
]
CONDITIONS = {
    "WHEN MATCHED": ["s.a > t.a", "t.b IS NULL", "s.st.x = 1", "t.p = 0 AND s.a < 5"],
    "WHEN NOT MATCHED": ["a > 3", "s.b IS NOT NULL", "s.id % 2 = 0"],
    "WHEN NOT MATCHED BY SOURCE": ["a < 4", "t.p = 1", "t.b > 'b'"],
}
OF_TARGET = {"a": ["t.a + 1", "'7'", "NULL"], "b": ["upper(t.b)", "t.id"], "p": ["1 - t.p"]}
OF_SOURCE = {
    "a": ["s.a", "s.id * 2", "length(s.b)"],
    "b": ["s.b", "s.a", "concat(s.b, '!')"],
    "st": ["s.st", "NULL"],
}
OF_BOTH = {"a": ["t.a + s.a"], "b": ["coalesce(t.b, s.b)"], "st.x": ["s.a"], "st": ["s.st"]}


def merge(spark: SparkSession, table: str, text: str, expected: str) -> dict[str, Any]:
    """Merge, write the rows to a file, and return the metrics or the error; runs in the process of
    delta-spark.
    """
    try:
        spark.sql(text)
    except Exception as error:  # noqa: BLE001 - compared with whether we raise one
        return {"error": str(error)[:2000]}
    rows = spark.read.format("delta").load(table)
    pq.write_table(comparable(rows).toArrow(), expected, store_schema=False)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()
    return dict(history[0]["operationMetrics"]) | {"operation": history[0]["operation"]}


def values_of(rng: random.Random, kind: Clause) -> dict[str, str] | None:
    if kind.action == "DELETE":
        return None
    if kind.is_not_matched_by_source:
        pool = OF_TARGET
    elif rng.random() < 0.5:
        return None
    elif kind.is_not_matched:
        pool = OF_SOURCE | {"id": ["s.id"], "p": ["s.id % 2", "0"]}
    else:
        pool = OF_TARGET | OF_BOTH
    names = rng.sample(sorted(pool), rng.randint(1, min(3, len(pool))))
    if {"st", "st.x"} <= set(names):
        names.remove("st")
    given = {name: rng.choice(pool[name]) for name in names}
    if not kind.is_not_matched_by_source and rng.random() < 0.3:
        given["c"] = "s.c"
    return given


def random_clauses(
    rng: random.Random,
) -> list[tuple[Clause, str | None, dict[str, str] | None]]:
    order = list(CONDITIONS)  # the grammar's
    chosen = sorted(
        (rng.choice(list(Clause)) for _ in range(rng.randint(1, 5))),
        key=lambda kind: order.index(kind.rows),
    )
    clauses = []
    for index, kind in enumerate(chosen):
        is_last = kind.rows not in [other.rows for other in chosen[index + 1 :]]
        needs_none = is_last and rng.random() < 0.6
        condition = None if needs_none else rng.choice(CONDITIONS[kind.rows])
        clauses.append((kind, condition, values_of(rng, kind)))
    return clauses


def random_source(rng: random.Random) -> str:
    ids = rng.sample(range(30), rng.randint(0, 12)) + ([None] if rng.random() < 0.5 else [])
    ids += ids[:1] if rng.random() < 0.1 else []
    structs = "named_struct('y', a, 'x', 1)"
    if rng.random() < 0.25:
        structs = "IF(a = 2, NULL, named_struct('x', a, 'z', 'z'))"
    rows = ", ".join(
        f"({'CAST(NULL AS INT)' if key is None else key}, {rng.randint(0, 9)}, "
        f"{rng.choice(['NULL', 'a', 'bb'])!r})".replace("'NULL'", "CAST(NULL AS STRING)")
        for key in ids
    )
    rows = rows or "(0, 0, 'a')"
    where = "" if ids else " WHERE false"
    columns = f"id, a, b, id % 2 AS p, {structs} AS st, a * 10 AS c"
    return f"SELECT {columns} FROM VALUES {rows} AS q(id, a, b){where}"


def sql_text(path: str, source: str, on: str, clauses: list[Any], *, evolves: bool) -> str:
    text = f"MERGE {'WITH SCHEMA EVOLUTION ' * evolves}INTO delta.`{path}` t USING ({source}) s"
    text += f" ON {on}"
    for kind, condition, values in clauses:
        text += f" {kind.rows}{'' if condition is None else f' AND {condition}'} THEN "
        if kind.action == "DELETE":
            text += "DELETE"
        elif kind.action == "UPDATE":
            given = values and ", ".join(f"{name} = {value}" for name, value in values.items())
            text += f"UPDATE SET {given or '*'}"
        else:
            given = values and f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
            text += f"INSERT {given or '*'}"
    return text


def merge_ours(
    spark: SparkSession, path: str, source: str, on: str, clauses: list[Any], *, evolves: bool
) -> None:
    builder = DeltaTable.forPath(spark, path).alias("t").merge(spark.sql(source).alias("s"), on)
    builder = builder.withSchemaEvolution() if evolves else builder
    for kind, condition, values in clauses:
        rows = kind.rows.title().replace(" ", "").replace("When", "when")
        is_star = values is None and kind.action != "DELETE"
        method = getattr(builder, f"{rows}{kind.action.title()}{'All' * is_star}")
        builder = method(condition) if values is None else method(condition, values)
    builder.execute()


def test_random_merges(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"merges {seed}")
    ours, theirs, expected = (tmp_path / name for name in ("ours", "theirs", "expected.parquet"))
    rows = spark.range(0, 20, 1, 3).selectExpr(
        "CAST(IF(id = 7, NULL, id % 17) AS INT) AS id",
        "CAST(id % 6 AS INT) AS a",
        "IF(id % 4 = 0, NULL, chr(97 + id % 3)) AS b",
        "CAST(id % 2 AS INT) AS p",
        "IF(id % 5 = 0, NULL, named_struct('x', CAST(id AS INT), 'y', 1)) AS st",
    )
    partition_by = rng.choice([None, ["p"]])
    write_delta(rows, str(ours), properties=rng.choice(PROPERTIES), partition_by=partition_by)
    shutil.copytree(ours, theirs)
    for _ in range(MERGES):
        source, clauses, evolves = random_source(rng), random_clauses(rng), rng.random() < 0.5
        on = rng.choice(["t.id = s.id", "t.id = s.id AND t.p = s.p", "t.id <=> s.id"])
        text = sql_text(str(theirs), source, on, clauses, evolves=evolves)
        told = delta_spark.run(
            "tests.oracle.test_merges:merge", table=str(theirs), text=text, expected=str(expected)
        )
        if "error" in told:
            with pytest.raises(Exception):  # noqa: B017 - any refusal is one
                merge_ours(spark, str(ours), source, on, clauses, evolves=evolves)
            continue
        merge_ours(spark, str(ours), source, on, clauses, evolves=evolves)
        assert_same_rows(comparable(read_delta(spark, str(ours))).toArrow(), parquet_rows(expected))
        if any(told.get(name, "0") != "0" for name in COUNTS[1:]):  # else only they may commit
            last = DeltaTable.forPath(spark, str(ours)).history(1).collect()[0]
            found = {name: last["operationMetrics"].get(name) for name in COUNTS}
            assert found == {name: told[name] for name in COUNTS}, text
    assert verify(spark, str(ours), footers=True).is_clean
