"""A test that no row is in a file that data skipping leaves out, of every golden table.

It compares filtered reads with a filter over rows that were read without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from sparkdelta import load_snapshot
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.schema.table_schema import quoted_path
from tests.golden.cases import GoldenCase, golden_cases

_NOT_COMPARED = (ArrayType, MapType, VariantType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_NOT_SLOW = {"rs-types"}
_AT_ONCE = 60


def _parameters() -> list[Any]:
    """The tables whose latest version can be read."""
    found = []
    for case in golden_cases():
        if not case.reads[-1].expect_error:
            sooner = [pytest.mark.every_case, pytest.mark.full]
            marks = sooner if case.name in _NOT_SLOW else [pytest.mark.slow]
            found.append(pytest.param(case, id=case.name, marks=marks))
    return found


def _conditions(rows: DataFrame) -> list[Column]:
    """For each column or field: null, its least value, its greatest, more than the last but one.

    NaN is the greatest value.
    """
    fields = [
        (F.col(quoted_path(path)), kind)
        for path, kind in leaves(rows.schema)
        if not isinstance(kind, _NOT_COMPARED)
    ]
    found = rows.agg(*[_values(column, kind) for column, kind in fields]).collect()[0]
    conditions: list[Column] = []
    for (column, kind), values in zip(fields, found, strict=True):
        conditions.append(column.isNull())
        literals = [_literal(value, kind) for value in values]
        conditions += [column == literal for literal in [*literals[:1], *literals[1:][-1:]]]
        conditions += [column > literal for literal in literals[-2:][:1]]
    return conditions


def _values(column: Column, kind: DataType) -> Column:
    """The ordered values of a column; those of times as text, since Python may not have them."""
    values = F.array_sort(F.collect_set(column))
    is_time = isinstance(kind, _TIMES)
    return F.transform(values, lambda value: value.cast("string")) if is_time else values


def _literal(value: Any, kind: DataType) -> Column:
    return F.expr(f"{kind.simpleString()} '{value}'") if isinstance(kind, _TIMES) else F.lit(value)


def _counts(frames: Sequence[DataFrame]) -> list[int]:
    """The number of rows of each frame; one query of many frames takes less time than many."""
    found: dict[int, int] = {}
    for start in range(0, len(frames), _AT_ONCE):
        part = list(enumerate(frames))[start : start + _AT_ONCE]
        numbered = [frame.select(F.lit(number).alias("number")) for number, frame in part]
        rows: list[Row] = reduce(DataFrame.unionAll, numbered).groupBy("number").count().collect()
        found |= {row[0]: row[1] for row in rows}
    return [found.get(number, 0) for number in range(len(frames))]


@pytest.mark.slow
@pytest.mark.parametrize("case", _parameters())
def test_rows_of_filters(spark: SparkSession, case: GoldenCase) -> None:
    """PROTOCOL.md#per-file-statistics: no bound leaves out a value."""
    snapshot = load_snapshot(spark, str(case.table))
    table = snapshot.scan().to_df()
    rows = table.localCheckpoint()
    conditions = _conditions(rows)
    wanted = list(rows.agg(*map(F.count_if, conditions)).collect()[0])
    late = _counts([table.filter(condition) for condition in conditions])
    given = _counts([snapshot.scan(condition).to_df() for condition in conditions])
    wrong = [
        f"{condition}: {numbers}"
        for condition, *numbers in zip(conditions, wanted, late, given, strict=True)
        if len(set(numbers)) > 1
    ]
    assert not wrong, "\n".join(["all rows, a later filter, where:", *wrong])
