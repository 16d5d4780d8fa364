""" "Per-file Statistics": which columns have them."""

import pytest
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, VariantType

from sparkdelta.base.schema.statistics_columns import (
    check_statistics_columns,
    found_column,
    statistics_columns,
)
from sparkdelta.exceptions import ColumnNotFoundError

INNER = StructType([StructField("x y", LongType()), StructField("z", ArrayType(LongType()))])
SCHEMA = StructType(
    [
        StructField("p", LongType()),
        StructField("s", INNER),
        StructField("v", VariantType()),
        StructField("a", LongType()),
    ]
)


def test_the_first_leaves():
    for count, wanted in ((2, [("s", "x y"), ("s", "z")]), (0, [])):
        found = statistics_columns(SCHEMA, ["P"], {"delta.dataSkippingNumIndexedCols": str(count)})
        assert list(found) == wanted
    everything = (("s", "x y"), ("s", "z"), ("a",))
    assert (
        statistics_columns(SCHEMA, ["p"], {"delta.dataSkippingNumIndexedCols": "-1"}) == everything
    )
    assert statistics_columns(SCHEMA, ["p"], {}) == everything


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A", [("a",)]),
        ("a, S.`x Y`", [("s", "x y"), ("a",)]),
        ("s", [("s", "x y"), ("s", "z")]),
        ("gone", []),
        ("p", []),
    ],
)
def test_columns_that_the_table_names(text, wanted):
    properties = {
        "delta.dataSkippingStatsColumns": text,
        "delta.dataSkippingNumIndexedCols": "0",  # does not count beside it
    }
    assert list(statistics_columns(SCHEMA, ["p"], properties)) == wanted


def test_a_new_table_has_the_columns_that_it_names():
    check_statistics_columns(SCHEMA, {})
    check_statistics_columns(SCHEMA, {"delta.dataSkippingStatsColumns": "a,s.z"})
    for text in ("b", "s.w", "a.x"):
        with pytest.raises(ColumnNotFoundError):
            check_statistics_columns(SCHEMA, {"delta.dataSkippingStatsColumns": text})
    assert found_column(SCHEMA, ("S", "X Y")) == ("s", "x y")
