"""Predicates without `Not`, which data skipping takes."""

from __future__ import annotations

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Column,
    Comparison,
    IsNull,
    Literal,
    Not,
    Or,
    Truth,
    marked_conjuncts,
    without_not,
)

COLUMN, ONE = Column(("i",)), Literal(1, "int")
IS_ONE, IS_NULL = Comparison("=", COLUMN, ONE), IsNull(COLUMN)


def test_a_negation_reaches_the_comparisons() -> None:
    predicate = Not(Or((IS_ONE, Not(IS_NULL), And((Truth(COLUMN), Not(Not(IS_ONE)))))))
    differs = Comparison("<>", COLUMN, ONE)
    expected = And((differs, IS_NULL, Or((Not(Truth(COLUMN)), differs))))
    assert without_not(predicate) == expected
    assert without_not(expected) == expected


def test_implied_terms_stay_marked() -> None:
    given = without_not(And((Not(IS_ONE), IS_NULL), implied=1))
    assert [is_implied for _, is_implied in marked_conjuncts(given)] == [False, True]
