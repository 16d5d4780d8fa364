"""Sidecars that no checkpoint names. PROTOCOL.md#metadata-cleanup"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sparkdelta.operations.upkeep.metadata_cleanup import unreferenced

NAMED = ["a.parquet", "b%20c.parquet", "file:/t/_delta_log/_sidecars/d.parquet", "a.parquet"]


@pytest.mark.usefixtures("hostile")
def test_names_count_however_they_are_spelled(spark: SparkSession) -> None:
    stored = spark.createDataFrame(
        [("a.parquet",), ("b c.parquet",), ("e.parquet",), ("f%20.parquet",)], "name STRING"
    )
    sidecars = spark.createDataFrame([(path,) for path in NAMED], "path STRING")
    unused = unreferenced(stored, sidecars).collect()
    assert sorted(row["name"] for row in unused) == ["e.parquet", "f%20.parquet"]
