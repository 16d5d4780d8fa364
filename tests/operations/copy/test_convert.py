"""Conversion of Parquet directories: rows, schema, partitions, statistics, refusals.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta import (
    DeltaTable,
    convert_to_delta,
    load_snapshot,
    read_delta,
    vacuum,
    verify,
    write_delta,
)
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.copy import converted_table
from sparkdelta.table.commit import transaction
from tests.support.crashing_store import dying_writer
from tests.support.errors import raises
from tests.support.memory_log import Crash
from tests.support.settings import HOSTILE, settings

PARTITION = "day DATE, `p-q` STRING"


def parquet(path: str, file: str, **columns: Any) -> Path:
    """A Parquet file that pyarrow writes."""
    target = Path(path, file)
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), target)
    return target


def partitioned(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    """Spark's own partitioned directory, with a null and names that are escaped; its rows."""
    rows = spark.range(0, 12, 1, 2).selectExpr(
        "id", "named_struct('x', id, 'y', CAST(id AS STRING)) AS s", "map('k', id / 4) AS m",
        "DATE'2024-01-30' + CAST(id % 3 AS INT) AS day",
        "CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN 'a/b=%c' ELSE 'é' END AS `p-q`",
    )  # fmt: skip
    rows.write.partitionBy("day", "p-q").parquet(path)
    return sorted(tuple(row) for row in rows.collect())


def rows(spark: SparkSession, path: str, **options: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in read_delta(spark, path, **options).collect()), key=str)


@pytest.mark.slow
def test_a_partitioned_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#partition-value-serialization: the values of the directories."""
    path = str(tmp_path / "a directory%20")
    expected = sorted(partitioned(spark, path), key=str)
    Path(path, "_hidden").mkdir()
    parquet(path, "_hidden/x.parquet", other=[1])
    files = len(list(Path(path).rglob("day=*/**/*.parquet")))
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    monkeypatch.setattr(converted_table, "_FILES_PER_TASK", 2)
    with settings(spark, HOSTILE["Parquet"]):
        table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", PARTITION)
    assert rows(spark, path) == expected
    snapshot = load_snapshot(spark, path)
    assert snapshot.metadata.partition_columns == ("day", "p-q")
    assert snapshot.schema == StructType.fromDDL(
        "id BIGINT, s STRUCT<x: BIGINT, y: STRING>, m MAP<STRING, DOUBLE>, day DATE, `p-q` STRING"
    )
    adds = snapshot.add_files().collect()
    assert len(adds) == files
    stats = [json.loads(row.stats) for row in adds]
    assert sum(found["numRecords"] for found in stats) == len(expected)
    assert all("day" not in found["minValues"] and "id" in found["minValues"] for found in stats)
    info = table.history(1).collect()[0]
    assert (info.operation, info.operationParameters) == (
        "CONVERT",
        {"numFiles": str(files), "partitionedBy": '["day","p-q"]', "collectStats": "true",
         "sourceFormat": "parquet"},
    )  # fmt: skip
    assert info.operationMetrics["numConvertedFiles"] == str(files)
    assert len(snapshot.scan("id = 3").files().collect()) == files // 2
    table.delete("id < 6")
    assert rows(spark, path) == [row for row in expected if row[0] >= 6]
    assert verify(spark, path, footers=True).is_clean
    again = convert_to_delta(spark, path)
    assert (again.version, str(again)) == (
        None, f"Nothing to do: {snapshot.path} is a Delta table"
    )  # fmt: skip
    assert DeltaTable.convertToDelta(spark, f"delta.`{path}`").toDF().count() == 6


@pytest.mark.full
def test_files_of_several_schemas(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#delta-data-type-to-parquet-type-mappings: as Spark infers them, ids kept."""
    field = pa.field("n", pa.int16(), metadata={"PARQUET:field_id": "7"})
    Path(table_path, "x").mkdir(parents=True)
    pq.write_table(pa.table({"n": pa.array([1, None], pa.int16())}, schema=pa.schema([field])),
                   Path(table_path, "x", "a.parquet"))  # fmt: skip
    ids = pa.schema([field.with_type(pa.int32()), pa.field("z", pa.timestamp("us", "UTC"))])
    pq.write_table(pa.table([[2], [0]], schema=ids), Path(table_path, "b.parquet"))
    parquet(table_path, "x/y/c", u=pa.array([2**32 - 1], pa.uint32()),
            l=pa.array([[{"e": b"1"}]]), d=pa.array([date(2024, 1, 2)]))  # fmt: skip
    parquet(table_path, "empty.parquet", n=pa.array([], pa.int8()))
    result = convert_to_delta(spark, table_path)
    assert (result.version, result.num_converted_files) == (0, 4)
    assert read_delta(spark, table_path, where="u > 4000000000").count() == 1
    shutil.rmtree(Path(table_path, "_delta_log"))
    convert_to_delta(spark, table_path, collect_statistics=False)
    snapshot = load_snapshot(spark, table_path)
    assert {f.name: f.dataType.simpleString() for f in snapshot.schema} == {
        "n": "int", "z": "timestamp", "u": "bigint", "l": "array<struct<e:binary>>", "d": "date",
    }  # fmt: skip
    assert snapshot.schema["z"].metadata == {}
    assert [row.stats for row in snapshot.add_files().collect()] == [None] * 4
    found = read_delta(spark, table_path).select("n", "u", "d").collect()
    assert sorted(map(tuple, found), key=str) == [
        (1, None, None), (2, None, None), (None, 2**32 - 1, date(2024, 1, 2)), (None, None, None),
    ]  # fmt: skip
    write_delta(spark.sql("SELECT 5 AS n"), table_path, mode="append")
    assert read_delta(spark, table_path, where="n = 5").count() == 1


def test_floats_of_writers_that_leave_out_nan(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#per-file-statistics: no bounds, since NaN may be greater than them."""
    parquet(table_path, "f.parquet", f=[1.5, float("nan"), None], s=[{"d": 1.5}] * 3, id=[1, 2, 3])
    convert_to_delta(spark, table_path)
    (row,) = load_snapshot(spark, table_path).add_files().collect()
    assert json.loads(row.stats) == {
        "numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3},
        "nullCount": {"f": 1, "s": {"d": 0}, "id": 0}, "tightBounds": True,
    }  # fmt: skip


@pytest.mark.full
def test_a_directory_whose_name_has_a_colon(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#add-file-and-remove-file: its files have relative paths."""
    file = parquet(table_path, "C:/f.parquet", id=[1, 2])
    os.utime(file, (0, 0))
    convert_to_delta(spark, table_path)
    assert sorted(row["id"] for row in read_delta(spark, table_path).collect()) == [1, 2]
    vacuum(spark, table_path)
    assert file.exists()


def test_field_ids_are_kept(spark: SparkSession, table_path: str) -> None:
    field = pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "7"})
    Path(table_path).mkdir()
    pq.write_table(pa.table([[1]], schema=pa.schema([field])), Path(table_path, "a.parquet"))
    convert_to_delta(spark, table_path)
    write_delta(spark.sql("SELECT 2L AS n"), table_path, mode="append")
    assert load_snapshot(spark, table_path).schema["n"].metadata == {"parquet.field.id": 7}
    assert rows(spark, table_path) == [(1,), (2,)]


@pytest.mark.full
def test_partition_columns_can_be_inferred(spark: SparkSession, table_path: str) -> None:
    for number, (day, kind, big) in enumerate(
        [("2024-01-01", "05", "5000000000"), ("2024-02-01", "__HIVE_DEFAULT_PARTITION__", "x")]
    ):
        parquet(table_path, f"day={day}/k={kind}/big={number}/t={big}/f.parquet", n=[number])
    convert_to_delta(spark, table_path, infer_partitions=True)
    assert load_snapshot(spark, table_path).schema == StructType.fromDDL(
        "n BIGINT, day DATE, k INT, big INT, t STRING"
    )
    assert rows(spark, table_path) == [
        (0, date(2024, 1, 1), 5, 0, "5000000000"), (1, date(2024, 2, 1), None, 1, "x"),
    ]  # fmt: skip
    shutil.rmtree(Path(table_path, "_delta_log"))
    parquet(table_path, "day=2024-03-01/f.parquet", n=[1])
    with raises("DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", match="day, k, big, t"):
        convert_to_delta(spark, table_path, infer_partitions=True)


@pytest.mark.slow
def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is committed, and nothing left behind."""
    path = str(tmp_path / "directory")
    for missing in (path, str(tmp_path)):
        with raises("DELTA_EMPTY_DIRECTORY"):
            convert_to_delta(spark, missing)
    file = parquet(path, "p=1/q=x/f.parquet", n=[1], v=["a"])

    def refused(error: str | type[Exception], match: str | None = None, **options: Any) -> None:
        with raises(error, match=match):
            convert_to_delta(spark, path, **options)
        assert not list(Path(path, "_delta_log").rglob("*"))

    refused("DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", r"columns \(\).*\(p, q\)")
    refused("DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", partition_schema="p INT")
    refused(
        "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
        "q.*p",
        partition_schema="q STRING, p INT",
    )
    refused("DELTA_FAILED_CAST_PARTITION_VALUE", "x of", partition_schema="p INT, q INT")
    refused(InvalidArgumentError, "partition_schema", partition_schema="p INT, INT INT INT")
    refused(InvalidArgumentError, "infer_partitions", infer_partitions="yes")
    given: dict[str, Any] = {"partition_schema": "p INT, q STRING"}
    refused(
        "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS", collect_statistics=False,
        properties={"delta.enableRowTracking": "true"}, **given,
    )  # fmt: skip
    refused(
        InvalidArgumentError, "columns", properties={"delta.columnMapping.mode": "name"}, **given
    )
    other = parquet(path, "p=2/q=x/g.parquet", n=["1"])
    refused("DELTA_FAILED_MERGE_SCHEMA_FILE", "g.parquet.*n: ", **given)
    other.write_text("no Parquet")
    refused("DELTA_FAILED_READ_FILE_FOOTER", "g.parquet", **given)
    other.unlink()
    other.symlink_to(file)
    refused("DELTA_PATH_OUTSIDE_TABLE", "g.parquet", **given)
    other.unlink()
    other.parent.rename(tmp_path / "elsewhere")
    Path(path, "p=2").joinpath("q=x").symlink_to(tmp_path / "elsewhere")
    refused("DELTA_PATH_OUTSIDE_TABLE", "q=x", **given)
    shutil.rmtree(Path(path, "p=2"))
    parquet(path, "metadata/v1.metadata.json", n=[1])
    refused("DELTA_CONVERT_NON_PARQUET_TABLE", "Iceberg", **given)
    for identifier, error in (
        (path, "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
        (f"iceberg.`{path}`", "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ("events", "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
    ):  # fmt: skip
        with raises(error):
            DeltaTable.convertToDelta(spark, identifier)


@pytest.mark.slow
@pytest.mark.classic("stops a writer that creates files itself")
def test_a_crash_at_each_change(spark: SparkSession, tmp_path: Path) -> None:
    """After a crash, there is a table with all files or none, and the directory can be converted
    again.
    """

    def directory(name: str) -> str:
        parquet(str(tmp_path / name), "x/f.parquet", n=[1, 2])
        return str(tmp_path / name)

    with dying_writer(0, "never") as whole:
        convert_to_delta(spark, directory("whole"))
    assert whole.calls[:2] == ["put_if_absent", "delete_directory"]
    for nth in range(1, len(whole.calls) + 1):
        for when in ("before", "after"):
            path = directory(f"{when} {nth}")
            with dying_writer(nth, when), pytest.raises(Crash):
                convert_to_delta(spark, path)
            committed = Path(path, "_delta_log", f"{0:020d}.json").exists()
            assert committed == ((nth, when) != (1, "before"))
            assert (convert_to_delta(spark, path).version is None) == committed
            assert rows(spark, path) == [(1,), (2,)]
            assert verify(spark, path).is_clean
