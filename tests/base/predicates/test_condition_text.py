"""SQL text to the predicate tree: every node, and every text that is left to Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
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
        StructField("a", LongType()),
        StructField("s", StringType()),
        StructField("d", DateType()),
        StructField("ts", TimestampType()),
        StructField("flag", BooleanType()),
        StructField("odd name", IntegerType()),
        StructField("dot.ted", IntegerType()),
        StructField("tick`ed", IntegerType()),
        StructField("st", StructType().add("Inner", StructType().add("x y", IntegerType()))),
    ]
)
A, S, D, TS = (Column((name,)) for name in ("a", "s", "d", "ts"))

FIVE, LONG, ONE = Literal(5, "int"), Literal(5, "bigint"), Literal(1.0, "double")


def parsed(text: str, time_zone: str = "UTC") -> Predicate:
    return parse_condition(text, SCHEMA, time_zone=time_zone)


def number(value: int) -> Literal:
    return Literal(value, "int")


@pytest.mark.parametrize("operator", ["=", "<=>", "<", "<=", ">", ">="])
def test_comparisons(operator: str) -> None:
    assert parsed(f"a {operator} 5") == Comparison(operator, A, number(5))
    assert parsed(f"5 {operator} a") == Comparison(operator, number(5), A)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a == 5", Comparison("=", A, number(5))),
        ("a <> 5", Comparison("<>", A, number(5))),
        ("a != 5", Comparison("<>", A, number(5))),
        ("a IS DISTINCT FROM 5", Not(Comparison("<=>", A, number(5)))),
        ("a IS NULL", IsNull(A)),
        ("a IS NOT NULL", Not(IsNull(A))),
        ("isnull(a) AND isnotnull(s)", And((IsNull(A), Not(IsNull(S))))),
        ("flag", Truth(Column(("flag",)))),
        ("NOT flag", Not(Truth(Column(("flag",))))),
        (
            "flag IS TRUE",
            Comparison("<=>", Column(("flag",)), Literal(True, "boolean")),
        ),
        ("a IN (1, NULL)", In(A, (number(1), Literal(None, "void")))),
        ("a NOT IN (1)", Not(In(A, (number(1),)))),
        (
            "a BETWEEN 1 AND 2",
            And((Comparison(">=", A, number(1)), Comparison("<=", A, number(2)))),
        ),
        (
            "NOT a BETWEEN 1 AND 2",
            Not(And((Comparison(">=", A, number(1)), Comparison("<=", A, number(2))))),
        ),
        ("s LIKE 'ab%'", Truth(Call("like", (S, Literal("ab%", "string"))))),
        ("startswith(s, 'ab')", Truth(Call("startswith", (S, Literal("ab", "string"))))),
        ("year(d) = 2024", Comparison("=", Call("year", (D,)), number(2024))),
        ("CAST(ts AS DATE) = d", Comparison("=", Cast(TS, "date"), D)),
        ("ts::DATE = d", Comparison("=", Cast(TS, "date"), D)),
        ("try_cast(s AS INT) = 1", Comparison("=", Cast(S, "int", is_try=True), number(1))),
        ("a + 1 > -2", Comparison(">", Call("+", (A, number(1))), number(-2))),
        ("a = 1 OR a = 2 OR a = 3", Or(tuple(Comparison("=", A, number(n)) for n in (1, 2, 3)))),
        ("a = 1 -- AND a = 2", Comparison("=", A, number(1))),
    ],
)
def test_nodes(text: str, predicate: Predicate) -> None:
    assert parsed(text) == predicate


def test_precedence() -> None:
    one, two, three = (Comparison("=", A, number(n)) for n in (1, 2, 3))
    assert parsed("a = 1 OR a = 2 AND NOT a = 3") == Or((one, And((two, Not(three)))))
    assert parsed("(a = 1 OR a = 2) AND a = 3") == And((Or((one, two)), three))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("A", ("a",)),
        ("`a`", ("a",)),
        ("`odd name`", ("odd name",)),
        ("`Odd Name`", ("odd name",)),
        ("`dot.ted`", ("dot.ted",)),
        ("`tick``ed`", ("tick`ed",)),
        ("st.inner.`X Y`", ("st", "Inner", "x y")),
        ("`ST`.`Inner`.`x y`", ("st", "Inner", "x y")),
    ],
)
def test_names_are_those_of_the_schema(name: str, path: tuple[str, ...]) -> None:
    assert parsed(f"{name} = 5") == Comparison("=", Column(path), number(5))


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("2147483647", Literal(2147483647, "int")),
        ("2147483648", Literal(2147483648, "bigint")),
        ("9223372036854775808", Literal(Decimal("9223372036854775808"), "decimal(19,0)")),
        ("7L", Literal(7, "bigint")),
        ("7S", Literal(7, "smallint")),
        ("CAST(7 AS BYTE)", Literal(7, "tinyint")),
        ("CAST(7 AS DECIMAL(3, 2))", Literal(Decimal(7), "decimal(3,2)")),
        ("CAST(77 AS DECIMAL(3, 2))", Cast(number(77), "decimal(3,2)")),
        ("CAST(TRUE AS INT)", Cast(Literal(True, "boolean"), "int")),
        ("X'41fF'", Literal(b"A\xff", "binary")),
        ("X'123'", Literal(b"\x01\x23", "binary")),
        ("1.50", Literal(Decimal("1.50"), "decimal(3,2)")),
        ("0.001", Literal(Decimal("0.001"), "decimal(3,3)")),
        (f"-({'9' * 38})", Literal(Decimal("-" + "9" * 38), "decimal(38,0)")),
        (f"-(0.{'1' * 38})", Literal(Decimal("-0." + "1" * 38), "decimal(38,38)")),
        (f"- -0.{'1' * 38}", Literal(Decimal("0." + "1" * 38), "decimal(38,38)")),
        ("1.5D", Literal(1.5, "double")),
        ("1e3", Literal(1000.0, "double")),
        ("'it is'", Literal("it is", "string")),
        ('"it is"', Literal("it is", "string")),
        ("DATE'2024-02-29'", Literal(date(2024, 2, 29), "date")),
        ("DATE '1500-01-01'", Literal(date(1500, 1, 1), "date")),
        (
            "TIMESTAMP'2024-01-01 12:00:00.000001+02:00'",
            Literal(datetime(2024, 1, 1, 10, 0, 0, 1, tzinfo=timezone.utc), "timestamp"),
        ),
        (
            "TIMESTAMP_NTZ'2024-01-01 12:00:00'",
            Literal(datetime(2024, 1, 1, 12), "timestamp_ntz"),
        ),
        ("TRUE", Literal(True, "boolean")),
        ("NULL", Literal(None, "void")),
    ],
)
def test_literals(text: str, literal: Expression) -> None:
    found = parsed(f"s = {text}")
    assert isinstance(found, Comparison)
    assert found.right == literal


def test_a_timestamp_without_a_zone_is_in_the_sessions() -> None:
    found = parsed("ts = TIMESTAMP'2024-07-01 12:00:00'", "America/New_York")
    assert isinstance(found, Comparison)
    moment = datetime(2024, 7, 1, 16, tzinfo=timezone.utc)
    assert found.right == Literal(moment, "timestamp")


@pytest.mark.parametrize(
    "text",
    [
        "s = 'back\\\\slash'",
        's = "d"',  # a column, where double quotes make identifiers
        "s = 'ab' 'cd'",
        "s LIKE 'a!%' ESCAPE '!'",
        "a BETWEEN SYMMETRIC 2 AND 1",
        "a IN (SELECT 1)",
        "exists(array(1), x -> x > a)",
        "d >= current_date()",
        "rand() < 0.5",
        "my_function(a) = 1",
        "unknown = 1",
        "st.inner.nothing = 1",
        "a.b = 1",
        "CASE WHEN a = 1 THEN TRUE END",
        "a = 1; SELECT 1",
        "a = ",
        "",
        "((((",
    ],
)
def test_ambiguous_conditions_are_left_to_spark(text: str) -> None:
    found = parsed(text)
    assert isinstance(found, Unusable)
    assert found.reason


def test_a_part_that_is_left_to_spark_leaves_the_rest() -> None:
    found = parsed("a = 1 AND rand() < 0.5")
    assert isinstance(found, And)
    assert found.terms[0] == Comparison("=", A, number(1))
    assert isinstance(found.terms[1], Unusable)


def test_a_condition_of_ten_thousand_terms() -> None:
    found = parsed(" OR ".join(f"a = {n}" for n in range(10_000)))
    assert isinstance(found, Or | Unusable)
    values = parsed(f"a IN ({', '.join(str(n) for n in range(10_000))})")
    assert isinstance(values, In)
    assert len(values.values) == 10_000


def test_deep_nesting_is_left_to_spark_or_understood() -> None:
    assert parsed("(" * 2_000 + "a = 1" + ")" * 2_000) is not None


@pytest.mark.parametrize(
    "text",
    [
        "0xAB IS NULL",  # a name in Spark, bytes in sqlglot
        "st.0xAB = 1",
        "5a = 1",
        "é = 1",
        "s = 'a' 'b'",
        "s = 'O''Brien'",
        "a = 1 /* /* */ OR a = 2 */",
        "a = 1 -- \\\n OR a = 2",
        "s = 'x' LIKE 'tr%'",
        "a < 2 = flag",
        "flag = a < 2",
        "a = 1 IN (true)",
        "a IS NULL = flag",
        "s LIKE 'a' IS NULL",
        "a BETWEEN 1 AND 2 = flag",
        "a <=> 1 = flag",
        "a IS DISTINCT FROM 1 = flag",
        "a + 1 || 'x' = s",
        "a & 1 = 1",
        "~a = 1",
        "- 1::STRING = s",
    ],
)
def test_ambiguous_names_are_unusable(text: str) -> None:
    columns = [StructField(name, IntegerType()) for name in ("0xAB", "5a", "é")]
    schema = StructType([*SCHEMA.fields, *columns])
    assert isinstance(parse_condition(text, schema, time_zone="UTC"), Unusable)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("NOT a = 5", Not(Comparison("=", A, number(5)))),
        ("! a = 5", Not(Comparison("=", A, number(5)))),
        ("NOT a IS NULL", Not(IsNull(A))),
        ("- a * 2 = 1", Comparison("=", Call("*", (Call("negative", (A,)), number(2))), number(1))),
        ("a - 1 - 2 = 5", Comparison("=", Call("-", (Call("-", (A, number(1))), number(2))), FIVE)),
        ("a = 1e0D AND a = 5L", And((Comparison("=", A, ONE), Comparison("=", A, LONG)))),
    ],
)
def test_operators_that_bind_alike(text: str, predicate: Predicate) -> None:
    assert parsed(text) == predicate
