"""Operations in sessions whose parser follows other rules."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_delta, write_delta
from tests.support.settings import settings

PARSER = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
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
