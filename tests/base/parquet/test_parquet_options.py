"""A test that Spark's file sources leave out exactly the names that we take for hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.parquet.parquet_options import is_hidden

NAMES = [
    "x", "_x", ".x", "_x=1", ".x=1", "_metadata", "_metadata-1.parquet", "_common_metadata",
    "x._COPYING_", "_temporary", "a_b", "x.crc", "_x._COPYING_",
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_against_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "made"))
    (part,) = (tmp_path / "made").glob("part-*.parquet")
    part.rename(tmp_path / name)
    found = spark.read.schema("id LONG").parquet(str(tmp_path / name)).collect()
    assert is_hidden(f"file:{tmp_path}/{name}") == (not found)
