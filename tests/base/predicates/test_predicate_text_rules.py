"""Predicates as people read them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

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
    LiteralValue,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
)
from sparkdelta.base.predicates.predicate_text_rules import describe

NUMBER, TEXT = Column(("i",)), Column(("s",))
ONE = Literal(1, "int")
IS_ONE = Comparison("=", NUMBER, ONE)
IS_NULL = IsNull(TEXT)
LIKE = Truth(Call("like", (TEXT, Literal("a%", "string"))))

CASES: list[tuple[Predicate, str]] = [
    (IS_ONE, "i = 1"),
    (Comparison("<=>", ONE, Column(("st", "in ner"))), "1 <=> st.`in ner`"),
    (IS_NULL, "s IS NULL"),
    (Not(IS_NULL), "s IS NOT NULL"),
    (In(NUMBER, (ONE, Literal(None, "int"))), "i IN (1, NULL)"),
    (Not(In(NUMBER, (ONE,))), "i NOT IN (1)"),
    (
        In(NUMBER, tuple(Literal(n, "int") for n in range(100))),
        "i IN (0, 1, 2, 3, 4, ... 95 more)",
    ),
    (LIKE, "s LIKE 'a%'"),
    (Not(LIKE), "NOT (s LIKE 'a%')"),
    (Truth(Call("startswith", (TEXT, Literal("a", "string")))), "startswith(s, 'a')"),
    (Truth(Column(("flag",))), "flag"),
    (And((IS_ONE, IS_NULL)), "i = 1 AND s IS NULL"),
    (And((Or((IS_ONE, LIKE)), IS_NULL)), "(i = 1 OR s LIKE 'a%') AND s IS NULL"),
    (Or((And((IS_ONE, LIKE)), IS_NULL)), "(i = 1 AND s LIKE 'a%') OR s IS NULL"),
    (Or((And((IS_ONE,)), IS_NULL)), "i = 1 OR s IS NULL"),
    (And((IS_ONE, IS_NULL), implied=1), "i = 1 (implies s IS NULL)"),
    (Unusable("RAND() < 0.5", "no"), "RAND() < 0.5"),
    (Unusable("x" * 1000, "no"), "x" * 197 + "..."),
    (Or((Unusable("a OR b", "no"), IS_ONE)), "(a OR b) OR i = 1"),
]


@pytest.mark.parametrize(("predicate", "text"), CASES, ids=[text[:40] for _, text in CASES])
def test_predicates(predicate: Predicate, text: str) -> None:
    assert describe(predicate) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Cast(NUMBER, "string"), "CAST(i AS STRING)"),
        (Cast(NUMBER, "decimal(10,2)", is_try=True), "TRY_CAST(i AS DECIMAL(10,2))"),
        (Call("+", (NUMBER, ONE)), "(i + 1)"),
        (Call("*", (Call("+", (NUMBER, ONE)), Call("-", (NUMBER, ONE)))), "((i + 1) * (i - 1))"),
        (Call("abs", (Call("+", (NUMBER, ONE)),)), "abs(i + 1)"),
        (Call("negative", (NUMBER,)), "-i"),
        (Call("concat", (TEXT, TEXT)), "concat(s, s)"),
    ],
)
def test_expressions(expression: Expression, text: str) -> None:
    assert describe(Comparison("=", expression, ONE)) == f"{text} = 1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "-5"),
        (1.5, "1.5"),
        (Decimal("1.20"), "1.20"),
        ("it's \\", "'it\\'s \\\\'"),
        (b"\x01\xff", "X'01ff'"),
        (date(2024, 1, 2), "DATE'2024-01-02'"),
        (datetime(2024, 1, 2, 3), "TIMESTAMP_NTZ'2024-01-02 03:00:00'"),
        (
            datetime(2024, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            "TIMESTAMP'2024-01-02 01:00:00Z'",
        ),
    ],
)
def test_literals(value: LiteralValue, text: str) -> None:
    assert describe(Comparison("=", NUMBER, Literal(value, "any"))) == f"i = {text}"
