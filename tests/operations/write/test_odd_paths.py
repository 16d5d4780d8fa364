"""Every operation on tables whose paths have characters with a meaning in URIs, globs and SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    clone,
    convert_to_delta,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    read_stream,
    reorg,
    vacuum,
    verify,
    write_checkpoint,
    write_delta,
    write_stream,
)

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
}
LEFT = [(3, "k 1"), (6, "k 0"), (7, "k 1"), (20, "k 0")]


def _frame(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr("id", "concat('k ', id % 2) AS s")


def _rows(frame: DataFrame) -> list[tuple[int, str]]:
    return sorted((row["id"], row["s"]) for row in frame.collect())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a b%20+#?é\U0001f600[x-z]{y,w}st*r'\"&;=,@$", "a:b\\c\nd\te~`^|<z>"]
)
def test_operations_on_tables_with_odd_paths(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    for decoy in ("x", "y", "a b"):
        (tmp_path / decoy).mkdir()
    path, copy, sink = (str(tmp_path / f"{name}{number}") for number in range(3))
    write_delta(_frame(spark, 0, 6), path, partition_by=["s"], properties=PROPERTIES)
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    table.update("id IN (0, 2)", {"id": "id * 10"})
    source = _frame(spark, 4, 8).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    table.delete("id = 0")
    write_checkpoint(spark, path)
    assert _rows(read_delta(spark, path)) == LEFT
    assert _rows(read_delta(spark, path).filter("s = 'k 0' AND id < 10")) == [(6, "k 0")]
    assert read_changes(spark, path, start_version=1).count() == 10
    optimize(spark, path)
    write_stream(
        read_stream(spark, path), sink, f"{sink}-checkpoint", trigger={"availableNow": True}
    ).awaitTermination()
    assert _rows(read_delta(spark, sink)) == LEFT
    clone(spark, path, copy)
    DeltaTable.forPath(spark, copy).delete("id = 20")
    assert _rows(read_delta(spark, copy)) == LEFT[:-1]
    table.restoreToVersion(0)
    table.restoreToVersion(load_snapshot(spark, path).version - 1)
    reorg(spark, path)
    vacuum(spark, path, retention_hours=0, check_retention=False)
    files = [file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts]
    assert len(files) == load_snapshot(spark, path).add_files().count()
    assert verify(spark, path).is_clean
    assert _rows(read_delta(spark, path)) == LEFT


@pytest.mark.slow
def test_directories_with_odd_paths_are_converted(spark: SparkSession, tmp_path: Path) -> None:
    _frame(spark, 0, 4).write.partitionBy("s").parquet(str(tmp_path / "plain"))
    path = tmp_path / "a b%20+#?é[x]{y,z}*"
    (tmp_path / "plain").rename(path)
    convert_to_delta(spark, str(path), partition_schema="s STRING")
    assert _rows(read_delta(spark, str(path))) == _rows(_frame(spark, 0, 4))
