"""MERGE through `DeltaTable.merge`: stars, schema evolution, casts, rules of the table, refusals.

What rows are expected is what delta-spark 4.4 gives. PROTOCOL.md#change-metadata,
PROTOCOL.md#default-columns, PROTOCOL.md#generated-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from sparkdelta.api.delta_table import DeltaMergeBuilder, IdentityGenerator
from sparkdelta.exceptions import ColumnNotFoundError, InvalidArgumentError, InvalidConditionError
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings

Clauses = Callable[[DeltaMergeBuilder], DeltaMergeBuilder]


def upsert(builder: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return builder.whenMatchedUpdateAll().whenNotMatchedInsertAll()


def merged(spark: SparkSession, path: str, source: str, clauses: Clauses) -> list[Any]:
    """Merge the rows of a query and return those of the table."""
    table = DeltaTable.forPath(spark, path).alias("t")
    clauses(table.merge(spark.sql(source).alias("s"), "t.id = s.id")).execute()
    return read_delta(spark, path).orderBy("id").collect()


NUMBERS = "SELECT * FROM VALUES (1, 1, 1), (2, 2, 2) AS q(id, a, b)"
TEXTS = "SELECT * FROM VALUES (1, 9, 'x'), (3, 3, 'y') AS q(id, a, c)"
STRUCTS = "SELECT * FROM VALUES (1, struct(1 AS x, 1 AS y)), (2, NULL) AS q(id, st)"
ARRAYS = "SELECT 1 AS id, array(struct(1 AS x, 1 AS y)) AS l"

CASES: list[tuple[str, str, bool, Clauses, list[tuple[Any, ...]]]] = [
    (
        NUMBERS,
        "SELECT * FROM VALUES (1, '9', 9L, 9), (3, '3', 3L, 3) AS q(ID, A, b, c)",
        False,
        upsert,
        [(1, 9, 9), (2, 2, 2), (3, 3, 3)],
    ),
    (NUMBERS, TEXTS, True, upsert, [(1, 9, 1, "x"), (2, 2, 2, None), (3, 3, None, "y")]),
    (
        NUMBERS,
        TEXTS,
        True,
        lambda builder: (
            builder.whenMatchedUpdate(F.col("s.a") > 100, {"a": "1"})
            .whenMatchedUpdate(set={"c": "5"})
            .whenNotMatchedInsert(values={"id": "id", "C": F.col("c")})
            .whenNotMatchedBySourceUpdate("a = 2", {"a": "a + 5", "b": "DEFAULT"})
        ),
        [(1, 1, 1, "5"), (2, 7, None, None), (3, None, None, "y")],
    ),
    (
        NUMBERS,
        "SELECT * FROM VALUES (1, 5), (3, 6) AS q(id, c)",
        True,
        lambda builder: builder.whenMatchedUpdate(set={"t.a": "c"}).whenNotMatchedInsertAll(),
        [(1, 5, 1, None), (2, 2, 2, None), (3, None, None, 6)],
    ),
    (
        STRUCTS,
        "SELECT id, struct(id AS z, 9 AS x) AS st FROM VALUES (1), (2), (3) AS q(id)",
        True,
        upsert,
        [(1, Row(x=9, y=1, z=1)), (2, Row(x=9, y=None, z=2)), (3, Row(x=9, y=None, z=3))],
    ),
    (
        STRUCTS,
        "SELECT id, IF(id < 3, NULL, struct(9 AS x)) AS st FROM VALUES (1), (2), (3) AS q(id)",
        True,
        upsert,
        [(1, Row(x=None, y=1)), (2, None), (3, Row(x=9, y=None))],
    ),
    (
        STRUCTS,
        "SELECT 1 AS id, struct(9 AS z, 9 AS x) AS st",
        True,
        lambda builder: builder.whenMatchedUpdate(set={"st": "s.st"}),
        [(1, Row(x=9, y=None, z=9)), (2, None)],
    ),
    (
        STRUCTS,
        "SELECT 1 AS id, struct(9 AS z, 9 AS w) AS st",
        True,
        lambda builder: builder.whenMatchedUpdate(set={"st.z": "s.st.z"}),
        [(1, Row(x=1, y=1, z=9)), (2, None)],
    ),
    (
        ARRAYS,
        "SELECT id, array(struct(9 AS z, 9 AS x)) AS l FROM VALUES (1), (3) AS q(id)",
        True,
        upsert,
        [(1, [Row(x=9, y=None, z=9)]), (3, [Row(x=9, y=None, z=9)])],
    ),
]


@pytest.mark.parametrize(("target", "source", "evolves", "clauses", "expected"), CASES)
def test_clauses(
    spark: SparkSession,
    table_path: str,
    target: str,
    source: str,
    evolves: bool,
    clauses: Clauses,
    expected: list[tuple[Any, ...]],
) -> None:
    """New columns have an id in a table with column mapping."""
    mapping = {"delta.columnMapping.mode": "name"} if evolves else {}
    write_delta(spark.sql(target), table_path, properties=mapping)

    def all_of(builder: DeltaMergeBuilder) -> DeltaMergeBuilder:
        return clauses(builder.withSchemaEvolution() if evolves else builder)

    with settings(spark, HOSTILE["time zone, no ANSI"]):
        assert merged(spark, table_path, source, all_of) == expected


@pytest.mark.full
def test_rules_of_the_table(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#generated-columns, PROTOCOL.md#identity-columns, PROTOCOL.md#default-columns"""
    table = (
        DeltaTable.create(spark)
        .location(table_path)
        .addColumn("id", "INT")
        .addColumn("a", "INT")
        .addColumn("twice", "INT", generatedAlwaysAs="a * 2")
        .addColumn("k", "LONG", generatedAlwaysAs=IdentityGenerator())
        .property("delta.constraints.low", "a < 100")
        .execute()
    )
    first = spark.sql("SELECT * FROM VALUES (1, 1), (2, 2) AS q(id, a)").coalesce(1)
    write_delta(first, table_path, mode="append")
    source = "SELECT * FROM VALUES (1, 9), (3, 3) AS q(id, a)"
    found = merged(spark, table_path, source, lambda b: upsert(b.withSchemaEvolution()))
    assert [row[:3] for row in found] == [(1, 9, 18), (2, 2, 4), (3, 3, 6)]
    assert [row["k"] for row in found][:2] == [1, 2]
    assert len({row["k"] for row in found}) == 3
    builder = table.merge(spark.sql(source).alias("s"), "s.id = -1").whenNotMatchedInsert
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        builder(values={"id": "s.id", "a": "1000"}).execute()
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        builder(values={"id": "s.id", "a": "1", "twice": "3"}).execute()
    assert load_snapshot(spark, table_path).version == 2


@pytest.mark.full
def test_refusals(spark: SparkSession, table_path: str) -> None:
    """Nothing runs and nothing is written if an expression is not what its clause can use."""
    write_delta(spark.sql(NUMBERS), table_path)
    table = DeltaTable.forPath(spark, table_path).alias("t")
    source = spark.sql("SELECT 1 AS id, 'x' AS a, struct(1 AS x) AS b, 5 AS own").alias("s")
    on = "t.id = s.id"
    wrong: list[tuple[str | type[Exception], str, Clauses]] = [
        ("DELTA_MERGE_MISSING_WHEN", on, lambda b: b),
        ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "t.id = s.zz", lambda b: b.whenMatchedDelete()),
        (InvalidConditionError, "id = 1", lambda b: b.whenMatchedDelete()),
        (InvalidConditionError, "t.id + s.id", lambda b: b.whenMatchedDelete()),
        (
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            "t.id = rand()",
            lambda b: b.whenMatchedDelete(),
        ),
        ("DELTA_AGGREGATION_NOT_SUPPORTED", "t.id = max(s.id)", lambda b: b.whenMatchedDelete()),
        ("DELTA_UNSUPPORTED_SUBQUERY", "t.id = (SELECT 1)", lambda b: b.whenMatchedDelete()),
        ("DELTA_MERGE_UNRESOLVED_EXPRESSION", on, lambda b: b.whenMatchedDelete("zz = 1")),
        (InvalidConditionError, on, lambda b: b.whenMatchedDelete("a = '1'")),
        (InvalidConditionError, on, lambda b: b.whenMatchedDelete("t.a")),
        (InvalidConditionError, on, lambda b: b.whenMatchedDelete("t.a = = 1")),
        (
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            on,
            lambda b: b.whenMatchedDelete("rand() < 1"),
        ),
        ("DELTA_AGGREGATION_NOT_SUPPORTED", on, lambda b: b.whenMatchedDelete("max(t.a) = 1")),
        ("DELTA_UNSUPPORTED_SUBQUERY", on, lambda b: b.whenMatchedDelete("t.a IN (SELECT 1)")),
        (
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            on,
            lambda b: b.whenNotMatchedInsertAll("t.a = 1"),
        ),
        (
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            on,
            lambda b: b.whenNotMatchedInsert(values={"id": "t.a"}),
        ),
        (
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            on,
            lambda b: b.whenNotMatchedBySourceDelete("own = 5"),
        ),
        (
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            on,
            lambda b: b.whenNotMatchedBySourceUpdate(set={"a": F.col("s.own")}),
        ),
        (ColumnNotFoundError, on, lambda b: b.whenMatchedUpdate(set={"zz": "1"})),
        ("DELTA_INVALID_ASSIGNMENT", on, lambda b: b.whenMatchedUpdate(set={"a": "max(t.a)"})),
        (
            "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            on,
            lambda b: b.whenMatchedUpdate(set={"a": "s.b"}),
        ),
        ("DELTA_CAST_INVALID_INPUT", on, lambda b: b.whenMatchedUpdate(set={"a": "s.a"})),
        ("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", on, upsert),
    ]
    for error, condition, clauses in wrong:
        with raises(error):
            clauses(table.merge(source, condition)).execute()
    assert load_snapshot(spark, table_path).version == 0


def test_arguments(spark: SparkSession, table_path: str) -> None:
    """Arguments are refused as in delta-spark: TypeError for one of another type, ValueError for
    none.
    """
    write_delta(spark.sql(NUMBERS), table_path)
    table, source = DeltaTable.forPath(spark, table_path), spark.sql(NUMBERS)
    builder = table.merge(source, "true")
    calls: list[tuple[str | type[Exception], Callable[[], Any]]] = [
        (TypeError, lambda: table.merge("source", "true")),  # type: ignore[arg-type]
        (TypeError, lambda: table.merge(source, 1)),  # type: ignore[arg-type]
        (ValueError, lambda: table.merge(source, None)),  # type: ignore[arg-type]
        (TypeError, lambda: builder.whenMatchedDelete(1)),  # type: ignore[arg-type]
        (ValueError, lambda: builder.whenMatchedUpdate(set=None)),
        (InvalidArgumentError, lambda: builder.whenNotMatchedInsert("true")),
        (TypeError, lambda: builder.whenMatchedUpdate(set="a")),  # type: ignore[arg-type]
        (TypeError, lambda: builder.whenNotMatchedInsert(values={"a": 1})),  # type: ignore[dict-item]
        (TypeError, lambda: builder.whenNotMatchedBySourceUpdate(set={1: "a"})),  # type: ignore[dict-item]
    ]
    for error, call in calls:
        with raises(error):
            call()
