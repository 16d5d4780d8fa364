"""Values that UPDATE and MERGE assign to columns, and their conversion to the columns' types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from sparkdelta.base.schema.table_constraints import Identity, RowRules
from sparkdelta.exceptions import ColumnNotFoundError, DeltaError, from_message
from sparkdelta.table.rows.assigned_row_frames import (
    Assigned,
    Assignments,
    Origin,
    assigned_rows,
    expressions_of,
)
from sparkdelta.table.rows.assignments import check_expressions, update_assignments
from sparkdelta.table.rows.conformed_row_frames import WrittenColumn, conformed_rows
from tests.support.errors import is_error, raises
from tests.support.settings import settings

SCHEMA = StructType(
    [
        StructField("id", IntegerType()),
        StructField("s", StructType().add("a", IntegerType()).add("b", StringType())),
        StructField("l", ArrayType(StructType().add("x", IntegerType()))),
        StructField("d.d", IntegerType()),
    ]
)
NO_ANSI = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/New_York"}
NONE = RowRules()


def test_names_of_columns_and_fields() -> None:
    values = update_assignments(
        SCHEMA, {"T.ID": "1", "S.`B`": "2", "`d.d`": " default "}, NONE, alias="t"
    )
    assert values["id"] == Assigned("1")
    assert dict(values["s"].fields) == {"b": Assigned("2")}  # type: ignore[union-attr]
    assert (values["l"], values["d.d"]) == (Origin.KEPT, Origin.FILLED)
    rules = RowRules(generated={"id": "1"})
    assert update_assignments(SCHEMA, {}, rules)["id"] is Origin.FILLED


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"nowhere": "1"}, ColumnNotFoundError),
        ({"`": "1"}, ColumnNotFoundError),
        ({"s.c": "1"}, "DELTA_MISSING_SET_COLUMN"),
        ({"l.x": "1"}, "DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT"),
        ({"id": "1", "ID": "2"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"s.a": "1", "s": "null"}, "DELTA_CONFLICT_SET_COLUMN"),
    ],
)
def test_names_that_are_refused(given: Mapping[str, str], error: str | type[DeltaError]) -> None:
    with raises(error):
        update_assignments(SCHEMA, given, NONE)


def test_identity_columns_are_not_updated() -> None:
    """PROTOCOL.md#identity-columns."""
    rules = RowRules(identities={"id": Identity(1, 1, None, allows_explicit_values=True)})
    with raises("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        update_assignments(SCHEMA, {"id": "1"}, rules)


def declared(ddl: str) -> StructType:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema


def updated(
    rows: DataFrame, given: Mapping[str, str | Column], ddl: str | None = None, **options: Any
) -> DataFrame:
    schema = rows.schema if ddl is None else declared(ddl)
    values = update_assignments(schema, given, NONE, alias="t")
    return assigned(rows.alias("t"), schema, [values], **options)


def assigned(
    rows: DataFrame, schema: StructType, clauses: list[Assignments], **options: Any
) -> DataFrame:
    """The assigned values, converted by the session that they were evaluated in."""
    check_expressions(rows, [pair for each in clauses for pair in expressions_of(each)])
    assigned = assigned_rows(rows, schema, clauses, **options)
    return assigned.evaluated.selectExpr(*assigned.columns)


TEXTS = {"i": "' 12 '", "t": "'2024-01-01 00:00:00'", "b": "'true'", "y": "'2024-02-29'"}


@pytest.mark.parametrize("session", [{}, NO_ANSI], ids=["usual", "no ANSI"])
def test_values_are_converted_in_any_session(
    spark: SparkSession, session: Mapping[str, str]
) -> None:
    """A timestamp without a zone is in that of the session, as the user wrote it."""
    ddl = (
        "a INT, b BOOLEAN, i INT, t TIMESTAMP, y DATE, s STRUCT<a: INT, b: STRING>, "
        "n STRUCT<p: INT, q: INT>"
    )
    with settings(spark, session):
        rows = spark.range(1).selectExpr(
            "1 AS a", "true AS b", "2 AS i", "current_timestamp() AS t", "current_date() AS y",
            "named_struct('a', 1, 'b', 'x') AS s", "named_struct('p', 1, 'q', 2) AS n",
            "7L AS keep",
        )  # fmt: skip
        given: dict[str, str | Column] = {
            **TEXTS,
            "a": F.col("t.i") + F.col("a"),
            "s": "transform(array(uuid()), u -> named_struct('B', u, 'A', null))[0]",
            "n.q": "t.n.p + 10",
        }
        row = updated(rows, given, ddl, kept=["keep"]).withColumn("t", F.unix_seconds("t")).first()
    assert row is not None
    hours = 5 if session else 0
    assert (row["a"], row["i"], row["b"], row["t"]) == (3, 12, True, 1704067200 + hours * 3600)
    assert (str(row["y"]), tuple(row["n"]), row["keep"]) == ("2024-02-29", (1, 11), 7)
    assert row["s"]["a"] is None
    assert len(row["s"]["b"]) == 36


@pytest.mark.parametrize("session", [{}, NO_ANSI], ids=["usual", "no ANSI"])
def test_values_that_do_not_fit_fail(spark: SparkSession, session: Mapping[str, str]) -> None:
    with settings(spark, session):
        rows = spark.range(1).selectExpr("1 AS i", "date'2024-01-01' AS y")
        for given, error in (
            ({"i": "5000000000"}, "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
            ({"i": "'x'"}, "DELTA_CAST_INVALID_INPUT"),
            ({"y": "'x'"}, "DELTA_CAST_INVALID_INPUT"),
        ):
            with pytest.raises(PySparkException) as raised:
                updated(rows, given).collect()
            assert is_error(from_message(str(raised.value)), error)


def test_expressions_that_are_refused(spark: SparkSession) -> None:
    rows = spark.range(1).selectExpr("1 AS i", "named_struct('a', 1) AS s", "array(1) AS l")
    for given, error in (
        ({"i": "date'2024-01-01'"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"l": "1"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"s": "named_struct('a', 1, 'b', 2)"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"i": "nowhere"}, ColumnNotFoundError),
        ({"i": "1 +"}, "DELTA_INVALID_ASSIGNMENT"),
        ({"i": "max(i)"}, "DELTA_INVALID_ASSIGNMENT"),
        ({"i": "row_number() OVER (ORDER BY i)"}, "DELTA_INVALID_ASSIGNMENT"),
        ({"i": "explode(l)"}, "DELTA_INVALID_ASSIGNMENT"),
    ):
        with raises(error):
            updated(rows, given)
    with raises("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
        updated(rows, {"s": "named_struct('a', 1)"}, "s STRUCT<a: INT, b: INT>")


def test_each_clause_has_its_values_and_gaps_are_filled(spark: SparkSession) -> None:
    """PROTOCOL.md#default-columns, PROTOCOL.md#generated-columns, PROTOCOL.md#identity-columns."""
    schema = declared("id LONG, v INT, d INT, g INT, s STRUCT<a: INT, b: INT, c: INT>")
    old = "struct<a: int, b: int>"
    identity = Identity(100, 1, None, allows_explicit_values=False)
    rules = RowRules(defaults={"d": "5"}, generated={"g": "v * 2"}, identities={"id": identity})
    star = Assigned("source_s", keeps_fields=True)
    clauses: list[Assignments] = [
        update_assignments(schema, {"v": "IF(c = 0, 7, raise_error('another row'))"}, rules),
        {"id": Origin.KEPT, "v": Origin.KEPT, "d": Assigned("9"), "g": Assigned("4"), "s": star},
        {**dict.fromkeys(schema.names, Origin.FILLED), "v": Assigned("3L")},
    ]
    rows = spark.sql(
        f"""SELECT c, 1L AS id, 2 AS v, 3 AS d, 4 AS g, CAST((1, 2) AS {old}) AS s,
            IF(x, NULL, named_struct('c', 8)) AS source_s
            FROM VALUES (0, true), (1, true), (1, false), (2, false) AS t(c, x)"""
    ).coalesce(1)
    new = assigned(rows, schema, clauses, clause_column="c", adds_fields=True)
    filled = {"id": "c = 2", "d": "c = 2", "g": "c IN (0, 2)", "s": "c = 2"}
    columns = [WrittenColumn(f, f.name, filled.get(f.name)) for f in schema.fields]
    done = conformed_rows(
        new, columns, rules, partition_columns=(), max_partitions=1, path="t"
    ).collect()
    assert [tuple(row) for row in done] == [
        (1, 7, 3, 14, (1, 2, None)),
        (1, 2, 9, 4, (1, 2, None)),
        (1, 2, 9, 4, (1, 2, 8)),
        (100, 3, 5, 6, None),
    ]
