"""Files ruled out by their partition values: values (`base.predicates.partition_matching_rules`)
and rows (`base.skipping.skipping_frames`).
"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, IntegerType, LongType, StringType, StructField, StructType

from sparkdelta.base.predicates.partition_matching_rules import may_match
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Unusable,
)
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from tests.support.drawn import drawn

SCHEMA = StructType(
    [
        StructField("i", IntegerType()),
        StructField("s", StringType()),
        StructField("d", DateType()),
        StructField("v", LongType()),
    ]
)
TYPES = {"i": ("i", "integer"), "s": ("s", "string"), "d": ("d", "date")}
VALUES: dict[str, list[str | None]] = {
    "i": [None, "", "-1", "0", "1", "02"],
    "s": [None, "", "a", "b", "é", "😀", "￿"],
    "d": [None, "1582-10-15", "2024-02-29", "2024-03-01"],
}
LITERALS = {
    "i": [Literal(n, "int") for n in (-1, 0, 1, 2)],
    "s": [Literal(text, "string") for text in ("a", "b", "é", "😀", "￿")],
    "d": [Literal(dt.date(2024, 2, 29), "date"), Literal(dt.date(1582, 10, 15), "date")],
}
NULL = Literal(None, "void")
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


def _of_column(name: str) -> st.SearchStrategy[Predicate]:
    column = Column((name,))
    literals = st.sampled_from([*LITERALS[name], NULL])
    return (
        st.builds(Comparison, OPERATORS, st.just(column), literals)
        | st.builds(Comparison, OPERATORS, literals, st.just(column))
        | st.builds(In, st.just(column), st.lists(literals, min_size=1, max_size=3).map(tuple))
        | st.just(IsNull(column))
    )


def _combined(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    terms = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(And, terms) | st.builds(Or, terms)


ABOUT_PARTITIONS: st.SearchStrategy[Predicate] = st.recursive(
    st.sampled_from("isd").flatmap(_of_column), _combined, max_leaves=5
)
ABOUT_ALL: st.SearchStrategy[Predicate] = st.recursive(
    st.sampled_from("isd").flatmap(_of_column)
    | st.just(Comparison("=", Column(("v",)), Literal(1, "int")))
    | st.just(Unusable("rand() < 0.5", "not deterministic")),
    _combined,
    max_leaves=5,
)
PARTITIONS = st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in VALUES})


def _condition(predicate: Predicate) -> str:
    skipping = DataSkipping.of(predicate, SCHEMA, tuple(TYPES))
    parts = skipping.by_partition(NOTHING_STORED), skipping.by_statistics(NOTHING_STORED)
    return " AND ".join(f"coalesce({part}, FALSE)" for part in parts if part) or "TRUE"


@pytest.mark.full
def test_the_same_files_may_match(spark: SparkSession) -> None:
    """PROTOCOL.md#partition-value-serialization: of a file without statistics."""
    exact, more = drawn(ABOUT_PARTITIONS, 60), drawn(ABOUT_ALL, 40)
    files = drawn(PARTITIONS, 40)
    frame = spark.createDataFrame(
        [(n, values, None) for n, values in enumerate(files)],
        "n INT, partitionValues MAP<STRING, STRING>, stats STRING",
    )
    conditions = ", ".join(map(_condition, [*exact, *more]))
    kept = {row[0]: row[1] for row in frame.selectExpr("n", f"array({conditions})").collect()}
    for n, values in enumerate(files):
        for predicate, keeps in zip([*exact, *more], kept[n], strict=True):
            assert keeps == may_match(predicate, values, TYPES), (predicate, values)
