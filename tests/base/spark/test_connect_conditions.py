"""Terms of a MERGE's condition about the target, as a Spark Connect client understands them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from sparkdelta.base.predicates.predicate_rules import Column, Comparison, Literal
from sparkdelta.base.spark.connect_conditions import parse_match_terms
from sparkdelta.base.spark.match_terms import MatchTerms

connect: Any = pytest.importorskip("pyspark.sql.connect.functions")

TARGET = StructType(
    [
        StructField("id", LongType()),
        StructField("s", StringType()),
        StructField("n", StructType([StructField("k", LongType())])),
        StructField("only", IntegerType()),
    ]
)
SOURCE = StructType(
    [StructField("key", LongType()), StructField("id", LongType()), StructField("s", LongType())]
)


def _terms(condition: Any, source_alias: str | None = "u") -> MatchTerms:
    if isinstance(condition, str):
        condition = connect.expr(condition)
    return parse_match_terms(
        condition, TARGET, SOURCE, alias="t", source_alias=source_alias, time_zone="UTC"
    )


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("t.id = u.id", [(("id",), 1)]),
        ("u.key = t.n.k AND t.id = u.id", [(("n", "k"), 0), (("id",), 1)]),
        ("t.id = key", [(("id",), 0)]),
        ("t.id = u.id OR t.id = u.key", []),
        ("t.only = u.id", []),  # of another type, so that Spark casts one of them
        ("id = key", []),  # of either side
        ("t.id + 1 = u.id", []),
        ("t.id <=> u.id", []),
    ],
)
def test_equal_columns_of_one_type_are_keys(condition: str, keys: list[Any]) -> None:
    terms = _terms(condition)
    assert [(key.target, key.source_column) for key in terms.keys] == [
        (Column(path), number) for path, number in keys
    ]


def test_terms_on_the_target_alone_lose_its_alias() -> None:
    terms = _terms("t.id = u.id AND t.only > 3 AND u.key > 5 AND rand() > 0.5")
    assert terms.target == (Comparison(">", Column(("only",)), Literal(3, "int")),)
    columns = (connect.col("t.id") == connect.col("u.id")) & (connect.col("only") < 4)
    terms = _terms(columns)
    assert terms.target == (Comparison("<", Column(("only",)), Literal(4, "int")),)
    assert [key.target for key in terms.keys] == [Column(("id",))]


def test_an_alias_goes_before_a_column_of_its_name() -> None:
    assert [key.source_column for key in _terms("t.id = s.key", "s").keys] == [0]
    assert _terms("s = 'x'", "s") == MatchTerms()
    assert _terms("t.id = t.key", "t") == MatchTerms()
