"""The places of data files, change data files and deletion vectors below a table's root.

PROTOCOL.md#data-files, PROTOCOL.md#change-data-files, PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_changes, read_delta, vacuum, verify, write_delta
from sparkdelta.base.spark.server_store import ServerTableFiles
from sparkdelta.base.storage import local_files
from sparkdelta.base.storage.local_files import LocalTableFiles
from sparkdelta.exceptions import StorageError
from sparkdelta.table.rows import file_descriptions, modified_files
from tests.support.unreferenced import unreferenced

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHANGE_DATA = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def files_of(path: str) -> list[str]:
    """The files of a table, without its log and Hadoop's checksums, relative to the table."""
    files = (file.relative_to(path) for file in Path(path).rglob("*") if file.is_file())
    return [str(file) for file in files if "_delta_log" not in file.parts and file.suffix != ".crc"]


def places(path: str) -> set[str]:
    """The places of `files_of`, with U for UUIDs and N for the other parts of Spark's names."""
    names = (re.sub(UUID, "U", file) for file in files_of(path))
    return {re.sub(r"-\d{5}-U[-.]c000\.\w+\.", "-N.", name) for name in names}


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


def test_files_lie_in_the_root(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.range(0, 4, 1, 2), table_path, properties=VECTORS)
    write_delta(spark.range(0, 4, 1, 2), table_path, mode="append")
    assert places(table_path) == {"part-N.parquet"}
    assert len(files_of(table_path)) == 4
    assert DeltaTable.forPath(spark, table_path).delete("id = 1").num_deletion_vectors == 2
    assert places(table_path) == {"part-N.parquet", "deletion_vector_U.bin"}
    assert {path.name for path in Path(table_path).iterdir() if path.is_dir()} == {"_delta_log"}
    assert ids(spark, table_path) == [0, 0, 2, 2, 3, 3]
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean


def test_partitions_are_directories_of_the_root(spark: SparkSession, table_path: str) -> None:
    """Names and values are escaped as Spark escapes them, whatever letter a name begins with."""
    rows = spark.sql(
        "SELECT * FROM VALUES (1L, '10:30/x', 'q w'), (2L, NULL, 'ü%'), (3L, '', 'b=c') "
        "AS t(id, `_c:d`, `Über`)"
    )
    rows = rows.coalesce(1)
    write_delta(rows, table_path, partition_by=["_c:d", "Über"], properties=CHANGE_DATA)
    write_delta(rows, table_path, mode="append")
    null = "_c%3Ad=__HIVE_DEFAULT_PARTITION__"
    data = {
        "_c%3Ad=10%3A30%2Fx/Über=q w/part-N.parquet",
        f"{null}/Über=ü%25/part-N.parquet",
        f"{null}/Über=b%3Dc/part-N.parquet",
    }
    assert places(table_path) == data
    assert len(files_of(table_path)) == 6
    theirs = spark.read.parquet(table_path).filter("`_c:d` = '10:30/x'").collect()
    assert [(row["id"], row["Über"]) for row in theirs] == [(1, "q w"), (1, "q w")]
    DeltaTable.forPath(spark, table_path).update("id = 1", {"id": "9L"})
    changes = "_change_data/_c%3Ad=10%3A30%2Fx/Über=q w/cdc-N.parquet"
    assert places(table_path) == {*data, changes}
    found = read_changes(spark, table_path, start_version=2).collect()
    assert {(row["_change_type"], row["id"], row["_c:d"], row["Über"]) for row in found} == {
        ("update_preimage", 1, "10:30/x", "q w"), ("update_postimage", 9, "10:30/x", "q w"),
    }  # fmt: skip
    assert ids(spark, table_path) == [2, 2, 3, 3, 9, 9]
    assert read_delta(spark, table_path, where="`Über` = 'ü%'").count() == 2
    assert not unreferenced(table_path)
    assert verify(spark, table_path, footers=True).is_clean
    write_delta(rows.limit(0), table_path, mode="overwrite")
    vacuum(spark, table_path, retention_hours=0, check_retention=False, progress=False)
    assert not files_of(table_path)


def test_partitions_of_mapped_tables_have_physical_names(
    spark: SparkSession, table_path: str
) -> None:
    rows = spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS `part, of`")
    mapped = {"delta.columnMapping.mode": "name"}
    write_delta(rows, table_path, partition_by=["part, of"], properties=mapped)
    assert places(table_path) == {f"col-U={n}/part-N.parquet" for n in (0, 1)}
    assert ids(spark, table_path) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "why",
    [
        pytest.param("there are too many", marks=pytest.mark.full),
        pytest.param("the storage cannot rename", marks=pytest.mark.slow),
    ],
)
def test_files_that_stay_in_a_directory_of_their_write(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """They have the directories of all writes of earlier versions; new files join them."""
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS part")
    with monkeypatch.context() as patched:
        if why == "there are too many":
            for module in (file_descriptions, modified_files):
                for limit in ("MAX_NEW_FILES", "MAX_TOUCHED_FILES", "MAX_DRIVER_FOOTERS"):
                    patched.setattr(module, limit, 1, raising=False)
            patched.setattr(modified_files, "MAX_READ_POSITIONS", 0)
        else:
            for files in (LocalTableFiles, ServerTableFiles):
                patched.setattr(files, "can_move", False)
        write_delta(rows, table_path, partition_by=["part"], properties=VECTORS | CHANGE_DATA)
        assert places(table_path) == {f"data-U/part={n}/part-N.parquet" for n in (0, 1)}
        table = DeltaTable.forPath(spark, table_path)
        assert table.delete("id IN (0, 1, 38, 39)").num_deletion_vectors == 4
        kept = {file for file in files_of(table_path) if file.endswith(".bin")}
        assert {re.sub(UUID, "U", file) for file in kept} == {"data-U/deletion_vector_U.bin"}
        assert not [*Path(table_path).glob("_sparkdelta-*")]
    write_delta(rows.where("id = 0"), table_path, mode="append")
    table.delete("id = 2")
    assert "part=0/part-N.parquet" in places(table_path)
    assert ids(spark, table_path) == [0, *range(3, 38)]
    assert read_changes(spark, table_path, start_version=1).count() == 6
    assert verify(spark, table_path, footers=True).is_clean
    assert not unreferenced(table_path)
    write_delta(rows.limit(0), table_path, mode="overwrite")
    vacuum(spark, table_path, retention_hours=0, check_retention=False, progress=False)
    assert not files_of(table_path)


@pytest.mark.classic("makes the storage of this process fail")
@pytest.mark.parametrize("operation", ["append", "delete"])
def test_a_move_that_fails_leaves_nothing(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """Files that are moved, and the others, are deleted."""
    rows = spark.range(0, 40, 1, 2)
    write_delta(rows, table_path, properties=VECTORS)
    there = sorted(Path(table_path).iterdir())
    rename, moved = local_files.os.rename, []

    def fail(source: str, target: str) -> None:
        if (target.endswith(".parquet") and moved) or operation == "delete":
            raise PermissionError(13, "not allowed", target)
        moved.append(rename(source, target))

    monkeypatch.setattr(local_files.os, "rename", fail)
    run: dict[str, Callable[[], object]] = {
        "append": lambda: write_delta(rows, table_path, mode="append"),
        "delete": lambda: DeltaTable.forPath(spark, table_path).delete("id IN (1, 30)"),
    }
    with pytest.raises(StorageError):
        run[operation]()
    assert bool(moved) == (operation == "append")
    assert sorted(Path(table_path).iterdir()) == there
    assert ids(spark, table_path) == [*range(40)]
