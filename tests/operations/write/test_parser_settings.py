"""Operations in sessions whose parser follows other rules."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_changes, read_delta, write_delta
from tests.support.settings import settings

PARSER = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
}


@pytest.mark.full
def test_rows_are_changed_where_keywords_are_reserved(spark: SparkSession, table_path: str) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    with settings(spark, PARSER):
        write_delta(spark.range(4).coalesce(1), table_path, properties=properties)
        table = DeltaTable.forPath(spark, table_path)
        table.delete("id = 1")
        table.update("id = 2", {"id": "20"})
        rows = read_delta(spark, table_path, where="id > 0").collect()
        table.restoreToVersion(1)
    assert sorted(row["id"] for row in rows) == [3, 20]
    assert read_delta(spark, table_path).count() == 3


def test_names_in_backticks_may_be_patterns(spark: SparkSession, table_path: str) -> None:
    """Columns whose names are patterns of themselves or of others keep their values."""
    values = {"id": 1, "a+b": 2, "a.b": 3, "axb": 4, "p?": 5}
    rows = spark.createDataFrame([tuple(values.values())], list(values))
    with settings(spark, {"spark.sql.parser.quotedRegexColumnNames": "true"}):
        write_delta(rows, table_path, partition_by=["p?"])
        [row] = read_delta(spark, table_path).collect()
    assert row.asDict() == values


@pytest.mark.full
def test_rows_are_changed_where_names_in_backticks_are_patterns(
    spark: SparkSession, table_path: str
) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    with settings(spark, {"spark.sql.parser.quotedRegexColumnNames": "true"}):
        write_delta(spark.range(4).coalesce(1), table_path, properties=properties)
        table = DeltaTable.forPath(spark, table_path)
        table.delete("id = 1")
        table.update("id = 2", {"id": "20"})
        source = spark.range(3, 6).toDF("id")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdate(set={"id": "s.id + 10"}).whenNotMatchedInsertAll().execute()
        changes = read_changes(spark, table_path, start_version=1).count()
        table.restoreToVersion(1)
        table.optimize().executeZOrderBy("id")
    rows = read_delta(spark, table_path, version=3).collect()
    assert sorted(row["id"] for row in rows) == [0, 4, 5, 13, 20]
    assert changes == 1 + 2 + 4
    assert read_delta(spark, table_path).count() == 3
