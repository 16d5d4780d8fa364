"""An alias of rows may precede the names in a condition."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, StructType

from sparkdelta.base.predicates.aliased_names import parse_aliased
from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import Predicate, conjuncts, is_usable

INNER = StructType().add("id", IntegerType()).add("only", IntegerType())
SCHEMA = StructType().add("id", LongType()).add("part", IntegerType()).add("s", INNER)


def parsed(text: str, alias: str | None) -> Predicate:
    return parse_aliased(lambda named: parse_condition(text, named, time_zone="UTC"), SCHEMA, alias)


@pytest.mark.parametrize(
    ("text", "alias", "plain"),
    [
        ("t.id < 4 AND T.s.id = 1", "t", "id < 4 AND s.id = 1"),
        ("`a b`.id IN (1, 2) OR part = 3", "a b", "id IN (1, 2) OR part = 3"),
        ("NOT (t.part = 1 OR t.id > 2)", "t", "part <> 1 AND id <= 2"),
        ("part.part = 1", "part", "part = 1"),
        ("s.id = 1", "s", "id = 1"),  # the alias goes before the column
    ],
)
def test_names_may_have_the_alias(text: str, alias: str, plain: str) -> None:
    expected = conjuncts(parsed(plain, None))
    assert conjuncts(parsed(text, alias)) == expected
    assert all(map(is_usable, expected))


@pytest.mark.parametrize("text", ["part = 1", "part IS NULL", "s.only = 1", "other.id = 1"])
def test_other_names_choose_nothing(text: str) -> None:
    alias = "s" if text.startswith("s.") else "part"
    assert not any(map(is_usable, conjuncts(parsed(text, alias))))
