"""Of every golden table, a later filter reads the files that `where` does, and the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from sparkdelta import load_snapshot
from sparkdelta.table.scan.listing_rules import Listing
from tests.golden.cases import GoldenCase, golden_cases
from tests.support.rows import assert_same_rows, spark_rows
from tests.support.spark_jobs import files_read

_NOT_COMPARED = (ArrayType, MapType, StructType, VariantType)


def _conditions(rows: DataFrame) -> Iterator[Column]:
    names = [f.name for f in rows.schema if not isinstance(f.dataType, _NOT_COMPARED)]
    for name in names[:8]:
        column = F.col(f"`{name}`")
        values = [row[0] for row in rows.select(column).dropna().distinct().limit(2).collect()]
        yield column.isNull()
        if values:
            yield column == F.lit(values[0])
            yield column.isin(values) & column.isNotNull()
            yield column > F.lit(values[-1])


@pytest.mark.slow
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_files_and_rows(spark: SparkSession, case: GoldenCase) -> None:
    snapshot = load_snapshot(spark, str(case.table))
    if case.reads[-1].expect_error or snapshot.scan().listing is not Listing.LATE:
        pytest.skip("not read, or listed at once")
    table = snapshot.scan().to_df()
    for condition in _conditions(table):
        late, given = table.filter(condition), snapshot.scan(condition).to_df()
        late.collect()
        given.collect()
        # Fewer, where Spark evaluates a filter on partition columns that where= cannot.
        assert sum(files_read(late)) <= sum(files_read(given)), str(condition)
        assert_same_rows(spark_rows(late.select("*")), spark_rows(given.select("*")))
