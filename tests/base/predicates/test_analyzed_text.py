"""Columns to the predicate tree, as classic sessions and clients of Spark Connect hold them."""

from __future__ import annotations

import datetime as dt
import operator
from decimal import Decimal
from functools import partial, reduce
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

from sparkdelta.base.predicates.analyzed_text import parse_analyzed, qualifier_of
from sparkdelta.base.predicates.connect_columns import parse_connect_column
from sparkdelta.base.predicates.predicate_rules import (
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
    is_usable,
)
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.classic_conditions import parse_classic_filter
from tests.support.settings import settings
from tests.support.spark_jobs import jvm_calls

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
A, F, M, INNER = (Column(path) for path in (("a",), ("f",), ("m",), ("st", "Inner", "x y")))
FLAG = Truth(Column(("flag",)))
SMALL, BIG = Literal(Decimal("1E-7"), "decimal(15,7)"), Literal(1e300, "double")
BETWEEN = ((">=", -1), ("<=", 2))


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
    filtered = spark.createDataFrame([], SCHEMA).alias(qualifier_of(SCHEMA)).filter(condition)
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
def test_expressions_without_an_operator_are_unusable(spark: SparkSession, text: str) -> None:
    """Null where the operator fails; a pattern with an escape character of its own."""
    assert isinstance(of_classic(spark, classic.expr(text)), Unusable)


ODD_NAMES = (
    "0xAB", "1e5", "1L", "12", "date", "a.b", "a`b", "null", "true", "interval", "Straße", "and",
    "current_date", "x y", "'", "sparkdelta rows",
)  # fmt: skip


def test_names_that_look_like_something_else(spark: SparkSession) -> None:
    """Spark says which text is a column: all of them in one condition."""
    schema = StructType([StructField(name, IntegerType()) for name in ODD_NAMES])
    texts = [f"`{name.replace('`', '``')}` = 1" for name in ODD_NAMES]
    texts += ["0xAB IS NULL", "DATE > 1e5", "interval = 1L"]
    filtered = spark.createDataFrame([], schema).alias(qualifier_of(schema))
    found = parse_classic_filter(filtered.filter(" AND ".join(texts)), schema, time_zone="UTC")
    assert isinstance(found, And)
    equal, (hexadecimal, date, interval) = found.terms[:-3], found.terms[-3:]
    assert equal == tuple(Comparison("=", Column((name,)), number(1)) for name in ODD_NAMES)
    assert hexadecimal == IsNull(Column(("0xAB",)))
    assert isinstance(date, Comparison)
    assert (date.left, date.right) == (
        Cast(Column(("date",)), "double"),
        Literal(1e5, "double"),
    )
    assert interval == Comparison("=", Cast(Column(("interval",)), "bigint"), Literal(1, "bigint"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"s = 'a\\n\\\\'", Comparison("=", S, Literal("a\\n\\\\", "string"))),
        ('s = "O\'Brien (1)"', Comparison("=", S, Literal("O'Brien (1)", "string"))),
        ("s = 'x' LIKE 'tr%'", None),
        ("i < 2 = flag", None),
        ("(i = 1) = flag", None),
        ("i = 1 IS NULL", None),
        ("NOT i = 1 AND ! flag", And((Not(Comparison("=", INT, number(1))), Not(FLAG)))),
        (
            "(s LIKE 'a%') = true",
            Comparison("=", Call("like", (S, Literal("a%", "string"))), Literal(True, "boolean")),
        ),
        ("i between -1 and 2", And(tuple(Comparison(o, INT, number(n)) for o, n in BETWEEN))),
        ("i - -1 > - i", Comparison(">", Call("-", (INT, number(-1))), Call("negative", (INT,)))),
        ("a = -9223372036854775808L", Comparison("=", A, Literal(-(2**63), "bigint"))),
        ("a IN ('5', 6)", In(A, tuple(Literal(n, "bigint") for n in (5, 6)))),
        ("m = 1e-7BD", Comparison("=", Cast(M, "decimal(15,7)"), SMALL)),
        ("d = DATE'12024-01-01'", None),
        ("st.Inner.`x y` IS NULL OR f = 1e300", Or((IsNull(INNER), Comparison("=", F, BIG)))),
        ("CASE WHEN i = 1 THEN - 1 ELSE i END = 2", None),
        ("exists(array(1), x -> x = i)", None),
        ("ts BETWEEN '2024-11-03' AND current_timestamp()", And),
    ],
)
def test_sparks_reading_of_a_text(
    spark: SparkSession, text: str, expected: Predicate | type | None
) -> None:
    found = of_classic(spark, text)
    if expected is None or isinstance(expected, type):
        assert isinstance(found, expected or Unusable)
    else:
        assert found == expected


def test_a_moment_that_clocks_show_twice_is_not_looked_into(spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        filtered = spark.createDataFrame([], SCHEMA).alias(qualifier_of(SCHEMA))
        for text, is_usable in (("2024-11-03 06:30:00Z", False), ("2024-11-03 07:30:00Z", True)):
            found = parse_classic_filter(
                filtered.filter(f"ts = TIMESTAMP'{text}'"), SCHEMA, time_zone="America/New_York"
            )
            assert isinstance(found, Comparison if is_usable else Unusable)


def test_a_function_of_the_user_is_not_sparks(spark: SparkSession) -> None:
    """A function that Python calls may have the name of one that SQL has."""

    def lower(text: str) -> str:
        return text

    ours = classic.udf(lower, "string")
    assert isinstance(of_classic(spark, ours("s") == "x"), Unusable)
    assert isinstance(of_classic(spark, ours(classic.lit("a")) == classic.col("s")), Unusable)
    assert isinstance(of_classic(spark, "lower(s) = 'x'"), Comparison)


@pytest.mark.parametrize("name", ["2024", "null", "true", "a-b", "a.`b c`", "`a``b`"])
def test_names_of_connect_are_no_sql(name: str) -> None:
    inner = StructType([StructField("b c", LongType())])
    odd = [StructField(one, LongType()) for one in ("2024", "null", "true", "a-b", "a`b")]
    schema = StructType([*odd, StructField("a", inner)])
    found = parse_connect_column(connect.col(name) < 5, schema, time_zone="UTC")
    path = {"a.`b c`": ("a", "b c"), "`a``b`": ("a`b",)}.get(name, (name,))
    assert found == Comparison("<", Column(path), number(5))


@pytest.mark.parametrize("name", ["a.", "", "a..b", "`a`b", "`a", "x"])
def test_odd_column_names_are_left_to_spark(name: str) -> None:
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


@pytest.mark.full
def test_a_long_condition_is_understood_in_few_calls(spark: SparkSession) -> None:
    """The number of calls of the JVM does not grow with the values or comparisons, however deeply
    Spark nests them.
    """
    rows = spark.createDataFrame([], SCHEMA).alias(qualifier_of(SCHEMA))
    numbers = [number(n) for n in range(5000)]
    equal = tuple(Comparison("=", INT, n) for n in numbers)
    is_one = classic.col("i") == 1
    for condition, expected in (
        (classic.col("i").isin(list(range(5000))), In(INT, tuple(numbers))),
        (" OR ".join(f"i = {n}" for n in range(2000)), Or(equal[:2000])),
        (reduce(operator.or_, (classic.col("i") == n for n in range(100))), Or(equal[:100])),
        (reduce(lambda inner, _: ~inner, range(101), is_one), Not(equal[1])),
    ):
        read = partial(parse_classic_filter, rows.filter(condition), SCHEMA, time_zone="UTC")
        assert read() == expected
        assert jvm_calls(spark, read) <= 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{'(NOT ' * 5001}(rows.i = 1){')' * 5001}", Not(Comparison("=", INT, number(1)))),
        (
            f"{'(' * 5000}(rows.i = 1){' OR (rows.i = 1))' * 5000}",
            Or((Comparison("=", INT, number(1)),) * 5001),
        ),
        (
            f"((rows.i = 1) AND {'(rows.flag OR (rows.flag AND ' * 5000}rows.flag{'))' * 5000})",
            And,
        ),
        (f"((rows.i = 1) AND ({'(' * 5000}rows.i{' + 1)' * 5000} = 1))", And),
    ],
)
def test_depth_has_no_limit(text: str, expected: Predicate | type) -> None:
    """Text of any depth is parsed; a part that alternates too deeply chooses no files, and only
    this part.
    """
    text = text.replace("rows.", f"{quoted(qualifier_of(SCHEMA))}.")
    found = parse_analyzed(text, SCHEMA, time_zone="UTC")
    if expected is not And:
        assert found == expected
    else:
        assert isinstance(found, And)
        assert found.terms[0] == Comparison("=", INT, number(1))
        assert not is_usable(found)


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
