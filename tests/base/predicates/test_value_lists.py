"""Many comparisons of one column as a list of values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql.types import StructType

from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import Predicate, without_not
from sparkdelta.base.predicates.value_lists import with_value_lists

SCHEMA = StructType().add("i", "integer").add("s", "string").add("d", "double")
MANY = range(9)


def lists(text: str) -> Predicate:
    return with_value_lists(parsed(text), SCHEMA)


def parsed(text: str) -> Predicate:
    return without_not(parse_condition(text, SCHEMA, time_zone="UTC"))


def any_of(form: str, numbers: Sequence[int] = MANY, by: str = " OR ") -> str:
    return by.join(form.format(n) for n in numbers)


LISTED = f"i IN ({any_of('{}', by=', ')})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (any_of("i = {}"), LISTED),
        (any_of("{} = i"), LISTED),
        (f"s = 'a' AND ({any_of('i = {}')})", f"s = 'a' AND {LISTED}"),
        (f"s = 'a' OR ({any_of('i = {}')})", f"s = 'a' OR {LISTED}"),
        (f"i IN (0, 1, 2, 3) OR ({any_of('i = {}', MANY[4:])})", LISTED),
        (any_of("i <> {}", by=" AND "), f"NOT {LISTED}"),
        (f"NOT ({any_of('i = {}')})", f"NOT {LISTED}"),
        (f"i NOT IN (0, 1) AND {any_of('i <> {}', MANY[2:], by=' AND ')}", f"NOT {LISTED}"),
    ],
)
def test_comparisons_become_a_list(text: str, expected: str) -> None:
    assert lists(text) == parsed(expected)


@pytest.mark.parametrize(
    "text",
    [
        any_of("i = {}", MANY[1:]),
        any_of("i = {}", by=" AND "),
        any_of("i <> {}"),
        any_of("i < {}"),
        any_of("i <=> {}"),
        f"{any_of('i = {}', MANY[1:])} OR i = NULL",
        f"{any_of('i = {}', MANY[1:])} OR s = '0'",
        f"i NOT IN (0, 1) OR {any_of('i = {}', MANY[2:])}",
        any_of("s = {}"),  # IN compares texts, `=` numbers
        any_of("i = '{}'"),
        f"{any_of('d = {}', MANY[1:])} OR d = 0D",
    ],
)
def test_comparisons_that_a_list_would_change_stay(text: str) -> None:
    assert lists(text) == parsed(text)
