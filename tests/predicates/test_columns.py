"""Columns to the predicate tree, as classic sessions and clients of Spark Connect hold them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as classic
from pyspark.sql.connect import functions as connect
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.predicates.classic_columns import parse_classic_filter
from sparkdelta.predicates.connect_columns import parse_connect_column
from sparkdelta.protocol.predicates import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
)

SCHEMA = StructType(
    [
        StructField("i", IntegerType()),
        StructField("a", LongType()),
        StructField("f", DoubleType()),
        StructField("s", StringType()),
        StructField("d", DateType()),
        StructField("ts", TimestampType()),
        StructField("ntz", TimestampNTZType()),
        StructField("m", DecimalType(10, 2)),
        StructField("flag", BooleanType()),
        StructField("dot.ted", IntegerType()),
        StructField("st", StructType().add("Inner", StructType().add("x y", IntegerType()))),
    ]
)
INT, S, D, TS = (Column((name,)) for name in ("i", "s", "d", "ts"))
UTC = dt.timezone.utc


def number(value: int) -> Literal:
    return Literal(value, "int")


CASES = {
    "=": (lambda F: F.col("i") == 5, Comparison("=", INT, number(5))),
    "any case": (lambda F: F.col("I") == 5, Comparison("=", INT, number(5))),
    "!=": (lambda F: F.col("i") != 5, Not(Comparison("=", INT, number(5)))),
    "<=>": (lambda F: F.col("i").eqNullSafe(5), Comparison("<=>", INT, number(5))),
    "flipped": (lambda F: F.lit(5) < F.col("i"), Comparison("<", number(5), INT)),
    "and, or, not": (
        lambda F: ((F.col("i") == 1) & ~(F.col("i") == 2)) | (F.col("i") == 3),
        Or(
            (
                And((Comparison("=", INT, number(1)), Not(Comparison("=", INT, number(2))))),
                Comparison("=", INT, number(3)),
            )
        ),
    ),
    "between": (
        lambda F: F.col("i").between(1, 2),
        And((Comparison(">=", INT, number(1)), Comparison("<=", INT, number(2)))),
    ),
    "in": (lambda F: F.col("i").isin(1, 2), In(INT, (number(1), number(2)))),
    "null": (lambda F: F.col("i").isNull(), IsNull(INT)),
    "not null": (lambda F: F.col("i").isNotNull(), Not(IsNull(INT))),
    "like": (lambda F: F.col("s").like("a%"), Truth(Call("like", (S, Literal("a%", "string"))))),
    "startswith": (
        lambda F: F.col("s").startswith("a"),
        Truth(Call("startswith", (S, Literal("a", "string")))),
    ),
    "boolean": (lambda F: F.col("flag"), Truth(Column(("flag",)))),
    "function": (
        lambda F: F.year("d") == 2024,
        Comparison("=", Call("year", (D,)), number(2024)),
    ),
    "cast": (
        lambda F: F.col("ts").cast("date") == F.col("d"),
        Comparison("=", Cast(TS, "date"), D),
    ),
    "a dot in the name": (
        lambda F: F.col("`dot.ted`") == 5,
        Comparison("=", Column(("dot.ted",)), number(5)),
    ),
    "nested": (
        lambda F: F.col("st")["Inner"]["x y"] == 5,
        Comparison("=", Column(("st", "Inner", "x y")), number(5)),
    ),
    "nested by name": (
        lambda F: F.col("ST.inner.`X y`") == 5,
        Comparison("=", Column(("st", "Inner", "x y")), number(5)),
    ),
    "date": (
        lambda F: F.col("d") == F.lit(dt.date(1500, 1, 1)),
        Comparison("=", D, Literal(dt.date(1500, 1, 1), "date")),
    ),
    "timestamp": (
        lambda F: F.col("ts") == F.timestamp_micros(F.lit(1)),
        Unusable,
    ),
    "decimal": (
        lambda F: F.col("m") == F.lit(Decimal("12345678.90")),
        Comparison("=", Column(("m",)), Literal(Decimal("12345678.90"), "decimal(10,2)")),
    ),
    "rand": (lambda F: F.rand() < F.lit(0.5), Unusable),
    "text": (lambda F: F.expr("i = 5"), Comparison("=", INT, number(5))),
}  # type: ignore[var-annotated]


def of_classic(spark: SparkSession, condition: Any) -> Predicate:
    filtered = spark.createDataFrame([], SCHEMA).filter(condition)
    return parse_classic_filter(filtered, SCHEMA, time_zone="Asia/Tokyo")


@pytest.mark.parametrize("name", CASES)
def test_classic_columns(spark: SparkSession, name: str) -> None:
    make, expected = CASES[name]
    found = of_classic(spark, make(classic))
    assert isinstance(found, Unusable) if expected is Unusable else found == expected


@pytest.mark.parametrize("name", CASES)
def test_connect_columns(name: str) -> None:
    make, expected = CASES[name]
    found = parse_connect_column(make(connect), SCHEMA, time_zone="UTC")
    assert isinstance(found, Unusable) if expected is Unusable else found == expected


@pytest.mark.parametrize("text", ["try_add(i, 1) > 0", "try_divide(1, i) > 0", "like(s, 'a', '#')"])
def test_what_no_operator_says(spark: SparkSession, text: str) -> None:
    """Null where the operator fails; a pattern with an escape character of its own."""
    assert isinstance(of_classic(spark, classic.expr(text)), Unusable)


@pytest.mark.parametrize("name", ["2024", "null", "true", "a-b", "a.`b c`", "`a``b`"])
def test_names_of_connect_are_no_sql(name: str) -> None:
    inner = StructType([StructField("b c", LongType())])
    odd = [StructField(one, LongType()) for one in ("2024", "null", "true", "a-b", "a`b")]
    schema = StructType([*odd, StructField("a", inner)])
    found = parse_connect_column(connect.col(name) < 5, schema, time_zone="UTC")
    path = {"a.`b c`": ("a", "b c"), "`a``b`": ("a`b",)}.get(name, (name,))
    assert found == Comparison("<", Column(path), number(5))


@pytest.mark.parametrize("name", ["a.", "", "a..b", "`a`b", "`a", "x"])
def test_what_is_no_name_is_left_to_spark(name: str) -> None:
    found = parse_connect_column(connect.col(name) < 5, SCHEMA, time_zone="UTC")
    assert isinstance(found, Unusable)


def test_moments_are_those_of_the_plan(spark: SparkSession) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    at_utc = f"TIMESTAMP'{moment.isoformat(sep=' ')}Z'"
    wanted = Comparison(">", TS, Literal(moment.replace(tzinfo=UTC), "timestamp"))
    assert of_classic(spark, classic.expr(f"ts > {at_utc}")) == wanted
    found = parse_connect_column(connect.expr(f"ts > {at_utc}"), SCHEMA, time_zone="Asia/Tokyo")
    assert found == wanted
    naive = of_classic(spark, classic.expr(f"ntz > TIMESTAMP_NTZ'{moment.isoformat(sep=' ')}'"))
    assert naive == Comparison(">", Column(("ntz",)), Literal(moment, "timestamp_ntz"))


def test_a_long_list_of_values(spark: SparkSession) -> None:
    found = of_classic(spark, classic.col("i").isin(list(range(100))))
    assert found == In(INT, tuple(number(n) for n in range(100)))


@pytest.mark.parametrize(
    ("name", "value", "literal"),
    [
        ("a", 5, Literal(5, "bigint")),
        ("f", 5, Literal(5.0, "double")),
        ("f", 2**60 + 1, None),
        ("d", "2024-01-31", Literal(dt.date(2024, 1, 31), "date")),
        (
            "ts",
            "2024-01-31",
            Literal(dt.datetime(2024, 1, 30, 15, tzinfo=UTC), "timestamp"),
        ),
        ("ntz", "2024-01-31", Literal(dt.datetime(2024, 1, 31), "timestamp_ntz")),
        ("ts", "soon", None),
    ],
)
def test_constants_are_of_the_columns_type(
    spark: SparkSession, name: str, value: object, literal: Literal | None
) -> None:
    """Casts that Spark inserts are done, where what they give is certain."""
    column = classic.col(name)
    found = of_classic(spark, column == value)
    assert isinstance(found, Comparison)
    assert found.left == Column((name,))
    assert found.right == literal if literal is not None else isinstance(found.right, Cast)
    listed = of_classic(spark, column.isin([value] * 20))
    assert isinstance(listed, In)
    assert listed.literals == (None if literal is None else (literal,) * 20)


def test_spark_inserts_casts_where_types_differ(spark: SparkSession) -> None:
    found = of_classic(spark, classic.col("i") > classic.lit(5).cast("bigint"))
    assert isinstance(found, Comparison)
    assert found.left == Cast(INT, "bigint")
