"""A file is kept unless partition values rule it out; checked against all outcomes."""

import datetime as dt

import pytest

from sparkdelta.base.predicates.partition_matching_rules import may_match
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
    Truth,
    Unusable,
)

TYPES = {"p": ("col-1", "integer"), "s": ("col-2", "string"), "d": ("col-3", "date"),
         "f": ("col-4", "double")}  # fmt: skip
P, S, D, F = (Column((name,)) for name in "psdf")
ONE = Literal(1, "int")
UNKNOWN = Comparison("=", Column(("v",)), ONE)  # no partition column


def matches(predicate, p="1", s="x", d="2024-01-31", f="1.0"):
    values = {"col-1": p, "col-2": s, "col-3": d, "col-4": f}
    return may_match(predicate, values, TYPES)


@pytest.mark.parametrize(
    ("operator", "matching"),
    [("=", "1"), ("<>", "02"), ("<", "0"), ("<=", "01"), (">", "2"), (">=", "12"), ("<=>", "1")],
)
def test_comparisons(operator, matching):
    found = [p for p in "012" if matches(Comparison(operator, P, ONE), p)]
    assert found == list(matching)
    assert not matches(Comparison(operator, P, ONE), None)
    assert not matches(Comparison(operator, P, ONE), "")


def test_nulls():
    null = Literal(None, "void")
    assert matches(Comparison("<=>", P, null), None)
    assert not matches(Comparison("=", P, null), None)
    assert not matches(Not(Comparison("=", P, ONE)), None)
    assert matches(IsNull(P), None)
    assert not matches(IsNull(P))
    assert matches(Not(IsNull(P)))
    assert not matches(In(P, (null, ONE)), "2")
    assert not matches(Not(In(P, (null, ONE))), "2")
    assert matches(In(P, (null, ONE)))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (And((Comparison("=", P, ONE), UNKNOWN)), True),
        (And((Comparison("=", P, Literal(2, "int")), UNKNOWN)), False),
        (Or((Comparison("=", P, Literal(2, "int")), UNKNOWN)), True),
        (Or((Comparison("=", P, Literal(2, "int")), IsNull(P))), False),
        (Not(And((Comparison("=", P, ONE), UNKNOWN))), True),
        (Not(Or((Comparison("=", P, ONE), UNKNOWN))), False),
        (Not(Not(Comparison("=", P, Literal(2, "int")))), False),
        (Comparison("=", S, Literal("y", "string")), False),
        (Comparison("=", D, Literal(dt.date(2024, 1, 31), "date")), True),
        (Comparison(">", D, Literal(dt.date(2024, 1, 31), "date")), False),
        # Whatever is not understood keeps the file.
        (UNKNOWN, True),
        (Comparison("=", F, Literal(2.0, "double")), True),
        (Comparison("=", P, Literal("2", "string")), True),
        (Comparison("=", Cast(P, "string"), Literal("2", "string")), True),
        (Comparison("=", Call("year", (D,)), Literal(1, "int")), True),
        (Truth(Call("like", (S, Literal("z", "string")))), True),
        (Unusable("x", "y"), True),
        (Comparison("=", Column(("s", "t")), ONE), True),
    ],
)
def test_predicates(predicate, wanted):
    assert matches(predicate) == wanted


def test_many_terms_that_are_not_understood():
    assert matches(Or((UNKNOWN,) * 50))
    assert not matches(And((Comparison("=", P, Literal(2, "int")), *(UNKNOWN,) * 50)))


def test_a_value_that_is_none():
    assert matches(Comparison("=", P, ONE), "no number")
    assert may_match(Comparison("=", P, ONE), {}, TYPES)
