"""Conditions as Spark's parser shows them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.predicates.parsed_terms import parsed_terms

TERMS = [
    "part = 'a'",
    "Part <=> 1",
    "s.part >= 10",
    "part <> 'a b' OR other < 2 OR 3 > third",
    "NOT (part != 'a' OR (other <= 2 AND third = 'c'))",
    "part IN (1, 2)",
    "part NOT IN ('a')",
    "part IS NULL",
    "part IS NOT NULL",
    "NOT (part IS NULL)",
]


@pytest.mark.every_case
@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_as_spark_shows_it(term: str, classic_session: SparkSession) -> None:
    parser = classic_session._jsparkSession.sessionState().sqlParser()
    assert parsed_terms(term) == [parser.parseExpression(term).toString()]


def test_terms_of_a_conjunction_are_apart() -> None:
    terms = parsed_terms("part = 'a' AND (other = 2 AND third IS NULL)")
    assert terms == ["('part = a)", "('other = 2)", "isnull('third)"]


@pytest.mark.parametrize(
    "condition",
    [
        "part LIKE 'a%'",
        "a = 1 OR b = 2 OR c = 3 OR d = 4",
        "`a b` = 1",
        "part = 'a\\\\b'",
        'part = "a"',
        "part = DATE'2024-01-01'",
        "part = 0x1F AND",
    ],
)
def test_other_conditions_stay_as_they_are(condition: str) -> None:
    assert parsed_terms(condition) == [condition]
