"""User-defined types, such as MLlib's vectors: stored and read as delta-spark does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.ml.linalg import DenseMatrix, Matrices, Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from tests.support.errors import raises

_DENSE, _SPARSE = Vectors.dense([1.0, 2.0]), Vectors.sparse(3, [1], [4.0])


def _features(spark: SparkSession) -> DataFrame:
    rows = [(1, _DENSE), (2, _SPARSE), (3, None)]
    return spark.createDataFrame(rows, ["id", "features"]).coalesce(1)


def _vectors(rows: DataFrame) -> dict[int, object]:
    assert isinstance(rows.schema["features"].dataType, VectorUDT)
    return {row["id"]: row["features"] for row in rows.collect()}


@pytest.mark.full
def test_vectors_are_written_read_and_changed(enabled: SparkSession, table_path: str) -> None:
    name, rows = f"delta.`{table_path}`", _features(enabled)
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(table_path)
    read = enabled.read.format("delta").load(table_path)
    assert _vectors(read) == {1: _DENSE, 2: _SPARSE, 3: None}
    assert _vectors(read.where("id = 2")) == {2: _SPARSE}
    declared = json.loads(load_snapshot(enabled, table_path).metadata.schema_string or "")
    assert declared["fields"][1]["type"] == json.loads(VectorUDT().json())
    enabled.sql(f"INSERT INTO {name} SELECT id + 10, features FROM {name} WHERE id = 2")
    enabled.sql(f"DELETE FROM {name} WHERE id = 3")
    enabled.sql(f"UPDATE {name} SET id = 5 WHERE id = 2")
    assert _vectors(read_delta(enabled, table_path)) == {1: _DENSE, 5: _SPARSE, 12: _SPARSE}


@pytest.mark.slow
def test_vectors_are_merged_overwritten_and_compacted(
    enabled: SparkSession, table_path: str, tmp_path: Path
) -> None:
    rows = _features(enabled)
    write_delta(rows.where("id < 3"), table_path, properties={"delta.columnMapping.mode": "name"})
    table = DeltaTable.forPath(enabled, table_path).alias("t")
    other = enabled.createDataFrame([(1, _SPARSE), (7, _DENSE)], ["id", "features"]).alias("s")
    merge = table.merge(other, "t.id = s.id").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll().execute()
    merged = {1: _SPARSE, 2: _SPARSE, 7: _DENSE}
    assert _vectors(table.toDF()) == merged
    table.optimize().executeCompaction()
    assert _vectors(table.toDF()) == merged
    enabled.sql(f"CREATE TABLE delta.`{tmp_path}/copy` USING delta AS TABLE delta.`{table_path}`")
    assert _vectors(read_delta(enabled, f"{tmp_path}/copy")) == merged
    nested = rows.select(F.struct("features").alias("s"), F.array("features").alias("a"))
    write_delta(nested.limit(1), f"{tmp_path}/nested")
    [row] = read_delta(enabled, f"{tmp_path}/nested").collect()
    assert (row["s"]["features"], row["a"]) == (_DENSE, [_DENSE])
    matrix = enabled.createDataFrame([(Matrices.dense(1, 2, [1.0, 2.0]),)], ["m"])
    write_delta(matrix, f"{tmp_path}/matrix")
    [(value,)] = read_delta(enabled, f"{tmp_path}/matrix").collect()
    assert isinstance(value, DenseMatrix)
    stream = enabled.readStream.format("delta").load(table_path).writeStream.format("delta")
    stream = stream.option("checkpointLocation", f"{tmp_path}/checkpoint")
    stream.trigger(availableNow=True).start(f"{tmp_path}/stream").awaitTermination()
    assert _vectors(read_delta(enabled, f"{tmp_path}/stream")) == merged


def test_classes_in_the_log_are_not_run(enabled: SparkSession, table_path: str) -> None:
    """PySpark would unpickle the class of a type that a program's main module defines."""
    write_delta(_features(enabled), table_path)
    commit = Path(table_path, "_delta_log", "00000000000000000000.json")
    text = commit.read_text()
    key = '\\"pyClass\\":\\"pyspark.ml.linalg.VectorUDT\\"'
    assert key in text
    pickled = '\\"serializedClass\\":\\"gASVAAAAAA==\\"'
    commit.write_text(text.replace(key, f"{key},{pickled}"))
    Path(table_path, "_delta_log", "00000000000000000000.crc").unlink(missing_ok=True)
    with raises("DELTA_UNSUPPORTED_DATA_TYPES"):
        read_delta(enabled, table_path)
