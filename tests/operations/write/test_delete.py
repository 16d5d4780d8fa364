"""DELETE: rows, files, change data, history and refusals, compared with the rows of a list.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as DeltaRsTable
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta, verify, write_delta
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
)
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.scan.row_names import RowNames
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import counted_jobs
from tests.support.unreferenced import assert_reported

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


def create(
    spark: SparkSession, path: str, properties: dict[str, str], **options: Any
) -> DeltaTable:
    """A table of 30 rows in three files; every fifth `n` is null."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id % 7) AS n", "concat('é', id) AS a_b", "id % 2 AS part"
    )
    write_delta(rows, path, properties=properties, **options)
    return DeltaTable.forPath(spark, path)


def model() -> list[tuple[int, int | None, str, int]]:
    return [(i, None if i % 5 == 0 else i % 7, f"é{i}", i % 2) for i in range(30)]


def actions(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


def ids(rows: Any) -> list[int]:
    return sorted(row["id"] for row in rows.collect())


DELETES: list[tuple[Any, Callable[[Any], bool]]] = [
    ("n = 3", lambda row: row[1] == 3),
    ("NOT n > 1", lambda row: row[1] is not None and row[1] <= 1),  # null keeps the row
    ("id < 10 OR a_b = 'é11'", lambda row: row[0] < 10 or row[0] == 11),
    ("part = 1 AND id > 25", lambda row: row[3] == 1 and row[0] > 25),
    ("a Column", lambda row: row[0] in (12, 13)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        pytest.param({}, None, id="plain", marks=pytest.mark.slow),
        pytest.param({**VECTORS, **ROW_IDS}, None, id="vectors", marks=pytest.mark.slow),
        pytest.param({**CHANGES, **MAPPED}, ["part"], id="changes", marks=pytest.mark.slow),
        pytest.param({**VECTORS, **CHANGES, **MAPPED, **ROW_IDS}, ["part"], id="all"),
    ],
)
def test_deleted_rows_are_gone(
    spark: SparkSession, table_path: str, properties: dict[str, str], partition_by: Any
) -> None:
    """One delete after another leaves the rows that a list would have left, with their row ids."""
    table = create(spark, table_path, properties, partition_by=partition_by)
    has_ids = "delta.enableRowTracking" in properties
    columns = ["id", "n", "a_b", "part"] + (["_metadata.row_id"] if has_ids else [])

    def stored() -> dict[int, tuple[Any, ...]]:
        found = read_delta(spark, table_path, columns=columns).collect()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: tuple(row) for row in found}

    before, expected = stored(), model()
    for condition, is_deleted in DELETES:
        where = F.col("id").isin(12, 13) if condition == "a Column" else condition
        gone = [row for row in expected if is_deleted(row)]
        expected = [row for row in expected if not is_deleted(row)]
        with settings(spark, HOSTILE["time zone, no ANSI"]):
            done = table.delete(where)
        assert done.num_deleted_rows == len(gone)
        assert stored() == {row[0]: before[row[0]] for row in expected}
        written = actions(table_path, done.version or 0)
        info = written["commitInfo"][0]
        assert info["operation"] == "DELETE"
        assert info["operationMetrics"]["numDeletedRows"] == str(len(gone))
        if condition != "a Column":
            assert json.loads(info["operationParameters"]["predicate"]) == [condition]
        if "cdc" in written:  # PROTOCOL.md#add-cdc-file: all changes of the version
            changed = [f"{table_path}/{file['path']}" for file in written["cdc"]]
            assert all("/_change_data/" in file for file in changed)
            rows = spark.read.option("recursiveFileLookup", "true").parquet(*changed)
            assert rows.count() == len(gone)
            assert {row[0] for row in rows.select("_change_type").collect()} == {"delete"}
        rewrites = done.num_copied_rows > 0
        assert ("cdc" in written) == (rewrites and "delta.enableChangeDataFeed" in properties)
        if not VECTORS.keys() & properties.keys():
            assert done.num_deletion_vectors == 0
    assert verify(spark, table_path, footers=True).is_clean
    if not VECTORS.keys() & properties.keys() and not MAPPED.keys() & properties.keys():
        others = DeltaRsTable(table_path).to_pyarrow_table()
        assert sorted(others["id"].to_pylist()) == [row[0] for row in expected]


def test_statistics_of_a_file_with_a_vector(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#per-file-statistics: bounds stay and are wide, numRecords counts deleted rows."""
    create(spark, table_path, VECTORS).delete("id IN (1, 2)")
    written = actions(table_path, 1)
    (add,), (remove,) = written["add"], written["remove"]
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (10, False)
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 9)
    assert add["deletionVector"]["cardinality"] == 2
    assert add["path"] == remove["path"]
    assert "deletionVector" not in remove
    assert json.loads(remove["stats"]) == {"numRecords": 10}  # as delta-spark has it


def test_whole_files_are_not_read(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#add-file-and-remove-file: partitions and tables go without reading a file."""
    table = create(spark, table_path, CHANGES, partition_by=["part"])
    for file in Path(table_path).rglob("*.parquet"):
        file.write_bytes(b"")
    assert table.delete("part = 1").num_deleted_rows == 15
    assert table.delete().num_deleted_rows == 15
    assert table.toDF().count() == 0
    assert set(actions(table_path, 2)) == {"commitInfo", "remove"}
    assert table.delete().version is None  # nothing is left
    parameters = actions(table_path, 2)["commitInfo"][0]["operationParameters"]
    assert json.loads(parameters["predicate"]) == ["true"]


@pytest.mark.parametrize("name", ["t", "a b", "part"])
@pytest.mark.full
def test_the_alias_of_the_table_in_conditions(
    spark: SparkSession, table_path: str, name: str
) -> None:
    """Files are chosen by them as by other conditions; without the alias, there is no such name."""
    table, alias = create(spark, table_path, VECTORS, partition_by=["part"]), f"`{name}`"
    where = f"{alias}.id < 4 AND {alias}.n > 1"
    scan = load_snapshot(spark, table_path).scan(where).with_aliases(RowNames(name))
    assert scan.files().count() == 2
    aliased = table.alias(name)
    assert aliased.delete(where).num_deleted_rows == 2
    assert aliased.delete(F.col(f"{alias}.part") == 1).num_removed_files == 3
    aliased.update(f"{alias}.id = 28", {"n": f"{alias}.n + 100"})
    expected = [row for row in range(0, 30, 2) if row != 2]
    assert sorted(row["id"] for row in table.toDF().collect()) == expected
    assert [row["id"] for row in table.toDF().filter("n >= 100").collect()] == [28]
    with pytest.raises(ColumnNotFoundError):
        table.delete("other.id = 1")


def test_nothing_matches(spark: SparkSession, table_path: str) -> None:
    """A delete that finds no row commits nothing."""
    table = create(spark, table_path, {})
    for where in ("id = 5 AND n = 1", "id > 1000", "n IS NULL AND n = 1"):
        assert table.delete(where).version is None
    assert load_snapshot(spark, table_path).version == 0
    assert not list(Path(table_path, "_delta_log").glob("*staged*"))


def test_refusals(
    spark: SparkSession, table_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conditions on more than the row, wrong columns and append-only tables."""
    table, logged = create(spark, table_path, VECTORS), list[object]()
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    monkeypatch.setattr(logger, "callHandlers", logged.append)
    with pytest.raises(AnalysisException):
        spark.sql("SELECT idd")
    assert logged.pop()
    for error, condition in {
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED": "rand() < 0.5",
        "DELTA_UNSUPPORTED_SUBQUERY": "id IN (SELECT 1L)",
        "DELTA_AGGREGATION_NOT_SUPPORTED": "max(id) = 1",
        ColumnNotFoundError: "idd = 1",
    }.items():
        with raises(error):
            table.delete(condition)
    assert not logged, "PySpark's own log has the JVM's stack of each"
    only = str(tmp_path / "only")
    create(spark, only, {"delta.appendOnly": "true"})
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        DeltaTable.forPath(spark, only).delete("id = 1")
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.full
def test_conditions_are_not_evaluated_on_deleted_rows(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#deletion-vectors: a row that is gone cannot fail a later delete."""
    rows = spark.sql("SELECT * FROM VALUES ('1'), ('bad'), ('7'), ('9') AS t(s)").coalesce(1)
    write_delta(rows, table_path, properties=VECTORS)
    table = DeltaTable.forPath(spark, table_path)
    table.delete("s = 'bad'")
    assert table.delete("cast(s AS int) < 5").num_deleted_rows == 1
    assert sorted(row["s"] for row in table.toDF().collect()) == ["7", "9"]


@pytest.mark.parametrize(
    ("properties", "other", "error"),
    [
        (VECTORS, "append", ConcurrentAppendException),
        (VECTORS, "delete", ConcurrentDeleteReadException),
        (VECTORS, "elsewhere", None),
        ({}, "other ids", None),
    ],
)
def test_a_commit_in_between(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    properties: dict[str, str],
    other: str,
    error: str | type[Exception] | None,
) -> None:
    """PROTOCOL.md#delta-log-entries: a commit that may change what is deleted is a conflict. The
    deletion vectors of the other are reported.
    """
    table = create(spark, table_path, properties, partition_by=["part"])
    commit = Transaction.commit

    def after_another(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        if other == "delete":
            table.delete("part = 1 AND id = 3")
        else:
            part = 0 if other == "elsewhere" else 1
            key = 3 if other == "append" else 33
            new = spark.sql(f"SELECT {key}L AS id, 1L AS n, 'x' AS a_b, {part}L AS part")
            write_delta(new, table_path, mode="append")
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_another)
    if error is not None:
        with raises(error):
            table.delete("part = 1 AND id < 4")
        assert {file.suffix for file in assert_reported(table_path, caplog.text)} == {".bin"}
        return
    assert table.delete("part = 1 AND id < 4").retries == 0
    assert ids(table.toDF()) == [i for i in range(30) if i % 2 == 0 or i >= 4] + [33]


def test_wrong_statistics(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#per-file-statistics: a file with other rows than the log says stays."""
    table = create(spark, table_path, {})
    first = Path(table_path, "_delta_log", f"{0:020d}.json")
    text = first.read_text()
    damaged = text.replace('\\"numRecords\\":10', '\\"numRecords\\":12')
    assert damaged != text
    first.write_text(damaged)
    with raises("DELTA_NUM_RECORDS_MISMATCH") as refused:
        table.delete("id = 3")
    assert (refused.value.expected, refused.value.found) == (11, 9)
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.classic("counts Spark's jobs")
def test_jobs(spark: SparkSession, table_path: str) -> None:
    """The number of Spark jobs of a delete does not grow with its files."""
    table = create(spark, table_path, VECTORS)
    with counted_jobs(spark) as jobs:
        table.delete("id % 10 = 3")
    assert jobs.count <= 6
