"""Parsing the text of the filters that Spark pushes to a scan."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Literal,
    Predicate,
    is_usable,
)
from sparkdelta.base.predicates.pushed_filters import parse_pushed


def _schema(*names: str) -> StructType:
    i, s, t, d, o, x, y = names
    nested = StructType([StructField(x, LongType()), StructField(y, LongType())])
    return StructType(
        [
            StructField(i, IntegerType()),
            StructField(s, StringType()),
            StructField(t, TimestampType()),
            StructField(d, DateType()),
            StructField(o, nested),
        ]
    )


STORED = _schema("i", "s", "t", "d", "o", "c-x", "c-y")
SCHEMA = _schema("Number", "s", "t", "d", "o", "x", "y")
ROWS = "`sparkdelta rows`"


def _parsed(text: str, *, has_user_functions: bool = False) -> Predicate:
    text = text.replace("$", ROWS)
    return parse_pushed(text, STORED, SCHEMA, has_user_functions=lambda: has_user_functions)


def test_columns_are_the_tables() -> None:
    found = _parsed("(($.i IS NOT NULL) AND (CAST($.i AS BIGINT) = 5L))")
    assert isinstance(found, And)
    wide = Cast(Column(("Number",)), "bigint")
    assert found.terms[1] == Comparison("=", wide, Literal(5, "bigint"))
    assert _parsed("($.o.`x` > 1L)") == Comparison(">", Column(("o", "x")), Literal(1, "bigint"))


def test_moments_are_in_utc() -> None:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    found = _parsed("($.t > TIMESTAMP '2024-01-01 00:00:00')")
    assert found == Comparison(">", Column(("t",)), Literal(moment, "timestamp"))


@pytest.mark.parametrize(
    "text",
    [
        "(CAST($.t AS DATE) = DATE '2024-01-01')", "(CAST($.d AS TIMESTAMP) = $.t)",
        "(CAST($.s AS INT) = 5)", "(CAST($.i AS TINYINT) = 5Y)", "(CAST($.i AS STRING) = '5')",
        "(TRY_CAST($.s AS INT) = 5)", "(($.i + 1) = 5)", "(hour($.t) = 5)", "(year($.d) = 2024)",
        "(date_format($.d, 'yyyy') = '2024')", "(upper($.s) = 'A')", "(length($.s) = 1)",
        "(CAST($.s AS TIMESTAMP) > $.t)", "(i = 5)", "(other.i = 5)", "(file_size > 5L)",
        "($.s = 'A' collate UTF8_LCASE)", "(collate($.s, UTF8_LCASE) = 'A' collate UTF8_LCASE)",
        "($.o.`c-x` = 1L)", "scalar-subquery#5", "",
        "($.t > CAST('2024-01-01 00:00:00' AS TIMESTAMP))",
        "($.t > CAST(DATE '2024-01-01' AS TIMESTAMP))",
    ],
)  # fmt: skip
def test_filters_that_may_depend_on_settings_are_unusable(text: str) -> None:
    found = _parsed(text)
    assert not is_usable(found)
    beside = _parsed(f"(($.i = 5) AND {text})") if text else None
    assert beside is None or not isinstance(beside, And) or is_usable(beside.terms[0])


def test_a_function_of_the_user_may_have_any_name() -> None:
    text = "startswith($.s, 'a')"
    assert _parsed(text).child == Call(  # type: ignore[union-attr]
        "startswith", (Column(("s",)), Literal("a", "string"))
    )
    assert not is_usable(_parsed(text, has_user_functions=True))
    assert not is_usable(_parsed("not($.s)", has_user_functions=True))


def test_a_name_of_two_nested_fields() -> None:
    """Spark's text may have the one or the other."""
    stored = _schema("i", "s", "t", "d", "o", "y", "x")
    text = f"({ROWS}.o.`x` = 1L)"
    found = parse_pushed(text, stored, SCHEMA, has_user_functions=lambda: False)
    assert not is_usable(found)
