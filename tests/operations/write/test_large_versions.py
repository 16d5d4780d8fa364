"""Tables whose versions are more than an INT can hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    clone,
    compact_log,
    load_snapshot,
    read_changes,
    read_delta,
    read_stream,
    verify,
    write_checkpoint,
    write_delta,
    write_stream,
)

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": "1000",
}


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def _table_of_version(spark: SparkSession, path: str, version: int) -> None:
    """Create a table and give its first version another number."""
    write_delta(spark.range(6).coalesce(1), path, properties=PROPERTIES)
    write_checkpoint(spark, path)
    for file in Path(path, "_delta_log").iterdir():
        if file.name.startswith(f"{0:020d}"):
            file.rename(file.with_name(file.name.replace(f"{0:020d}", f"{version:020d}")))
        elif file.is_file():
            file.unlink()


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize(
    "first",
    [2**31 - 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (2**53 - 2, 2**63 - 20))],
)
def test_operations_beyond_int_versions(spark: SparkSession, table_path: str, first: int) -> None:
    _table_of_version(spark, table_path, first)
    table = DeltaTable.forPath(spark, table_path)
    assert write_delta(spark.range(6, 8), table_path, mode="append").version == first + 1
    assert table.delete("id = 0").version == first + 2
    assert table.update("id = 1", {"id": "101"}).version == first + 3
    merge = table.alias("t").merge(spark.range(7, 9).alias("s"), "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    compact_log(spark, table_path, start=first + 1, end=first + 3)
    write_checkpoint(spark, table_path)
    assert _ids(read_delta(spark, table_path)) == [2, 3, 4, 5, 6, 8, 101]
    assert _ids(read_delta(spark, table_path, version=first + 2)) == [1, 2, 3, 4, 5, 6, 7]
    columns = ["id", "_metadata.row_commit_version"]
    versions = {row[0]: row[1] for row in read_delta(spark, table_path, columns=columns).collect()}
    assert [versions[n] for n in (2, 6, 8, 101)] == [0, first + 1, first + 4, first + 3]
    changes = read_changes(spark, table_path, start_version=first + 2, end_version=first + 3)
    assert sorted(tuple(r) for r in changes.drop("_commit_timestamp").collect()) == [
        (0, "delete", first + 2),
        (1, "update_preimage", first + 3),
        (101, "update_postimage", first + 3),
    ]
    history = table.history().selectExpr("version", "CAST(timestamp AS STRING) AS time").collect()
    assert [row.version - first for row in history] == [4, 3, 2, 1, 0]
    assert load_snapshot(spark, table_path, timestamp=history[2].time).version == first + 2
    copy, sink = f"{table_path}-copy", f"{table_path}-sink"
    clone(spark, table_path, copy, version=first + 1)
    assert _ids(read_delta(spark, copy)) == list(range(8))
    stream = read_stream(spark, table_path, starting_version=first + 1, skip_change_commits=True)
    trigger = {"availableNow": True}
    write_stream(stream, sink, f"{sink}-checkpoint", trigger=trigger).awaitTermination()
    assert _ids(read_delta(spark, sink)) == [6, 7]
    table.restoreToVersion(first + 1)
    assert _ids(read_delta(spark, table_path)) == list(range(8))
    assert verify(spark, table_path).is_clean
