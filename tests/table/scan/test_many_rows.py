"""DELETE, UPDATE and MERGE of more rows and files than the driver reads: executors do the same."""

from __future__ import annotations

from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_changes, read_delta, verify, write_delta
from sparkdelta.operations.merge import merge_pairs
from sparkdelta.table.rows import modified_files
from sparkdelta.table.scan import scan

POSITIONS = [(modified_files, "MAX_READ_POSITIONS"), (merge_pairs, "MAX_READ_PAIRS")]
FILES = [(scan, "MAX_KNOWN_FILES"), (modified_files, "MAX_TOUCHED_FILES")]


@pytest.mark.slow
@pytest.mark.parametrize("has_vectors", [True, False], ids=["vectors", "rewrite"])
@pytest.mark.parametrize(
    "limits", [POSITIONS, FILES, [*POSITIONS, *FILES]], ids=["rows", "files", "both"]
)
def test_many_rows(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    limits: list[tuple[ModuleType, str]],
    has_vectors: bool,
) -> None:
    """PROTOCOL.md#deletion-vectors, PROTOCOL.md#row-tracking"""
    for module, name in limits:
        monkeypatch.setattr(module, name, 0)
    properties = {
        "delta.enableDeletionVectors": str(has_vectors).lower(),
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
    }
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id AS old", "id DIV 20 AS p")
    write_delta(rows, table_path, partition_by=["p"], properties=properties)
    expected = {n: n for n in range(40)}
    table = DeltaTable.forPath(spark, table_path)

    table.delete("id % 10 = 3")
    expected = {new: old for new, old in expected.items() if old % 10 != 3}
    table.update("id % 10 = 4", {"id": "id + 1000"})
    expected = {old + 1000 if old % 10 == 4 else new: old for new, old in expected.items()}
    source = spark.sql("SELECT explode(array(5L, 15L, 25L, 100L)) AS key").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.key")
    merge = merge.whenMatchedUpdate("key != 15", {"id": "key + 2000"})
    merge = merge.whenMatchedDelete()
    merge = merge.whenNotMatchedInsert(values={"id": "key", "old": "key", "p": "0L"})
    merge.whenNotMatchedBySourceDelete("t.id = 39").execute()
    expected = {new: old for new, old in expected.items() if old not in (5, 15, 25, 39)}
    expected |= {2005: 5, 2025: 25, 100: 100}

    found = read_delta(spark, table_path)
    assert {row["id"]: row["old"] for row in found.collect()} == expected
    assert found.count() == len(expected)
    changes = read_changes(spark, table_path, start_version=1).groupBy("_change_type").count()
    assert {row[0]: row[1] for row in changes.collect()} == {
        "delete": 4 + 2, "update_preimage": 4 + 2, "update_postimage": 4 + 2, "insert": 1,
    }  # fmt: skip
    assert verify(spark, table_path, footers=True).is_clean
