"""MERGE: rows, row ids, change data and what is refused, compared with a list.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta, verify, write_delta
from sparkdelta.exceptions import ConcurrentDeleteReadException
from sparkdelta.operations.merge import merge as merge_command
from sparkdelta.operations.merge import merge_pairs
from sparkdelta.operations.merge.merge import MergeRequest, merge
from sparkdelta.operations.merge.merge_clauses import Clause, MergeClause
from sparkdelta.table.scan.row_names import RowNames
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import counted_jobs

COLUMNS = "id LONG, n LONG, s STRING, part LONG"
ALL: dict[str, str] = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}
UPDATE, DELETE = Clause.MATCHED_UPDATE, Clause.MATCHED_DELETE
INSERT = Clause.NOT_MATCHED_INSERT
ALONE_UPDATE = Clause.NOT_MATCHED_BY_SOURCE_UPDATE
ALONE_DELETE = Clause.NOT_MATCHED_BY_SOURCE_DELETE
Row = tuple[Any, ...]


def create(spark: SparkSession, path: str, properties: dict[str, str], **options: Any) -> set[Row]:
    """A table of 30 rows in three files; every fifth `n` is null."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id % 7) AS n", "concat('é', id) AS s", "id % 2 AS part"
    )
    write_delta(rows, path, properties=properties, **options)
    return {(i, None if i % 5 == 0 else i % 7, f"é{i}", i % 2) for i in range(30)}


def files_below(path: str) -> set[Path]:
    return {file for file in Path(path).rglob("*") if file.is_file()}


def stored(spark: SparkSession, path: str) -> Counter[Row]:
    return Counter(tuple(row) for row in read_delta(spark, path).collect())


def source(spark: SparkSession, *rows: Row) -> DataFrame:
    return spark.createDataFrame(list(rows), COLUMNS).alias("s")


def merged(
    spark: SparkSession, path: str, rows: DataFrame, condition: Any, *clauses: Any
) -> tuple[int, int, int]:
    """The numbers of updated, deleted and inserted rows."""
    given = tuple(MergeClause(*clause) for clause in clauses)
    (row,) = merge(spark, path, MergeRequest(rows, condition, given, RowNames("t"))).collect()
    assert row["num_affected_rows"] == sum(row[1:])
    return tuple(row[1:])


def actions(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


@pytest.mark.full
@pytest.mark.parametrize(
    ("properties", "partition_by", "is_large"),
    [
        pytest.param({}, None, False, id="plain", marks=pytest.mark.full),
        pytest.param(ALL, ["part"], True, id="large", marks=pytest.mark.slow),
        pytest.param(ALL, ["part"], False, id="all"),
    ],
)
def test_clauses_of_all_kinds(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    partition_by: Any,
    is_large: bool,
) -> None:
    """The first clause of its kind whose condition is true acts on a row; null keys match none."""
    if is_large:
        monkeypatch.setattr("sparkdelta.operations.merge.merge_output.MAX_BROADCAST_ROWS", 0)
    if not properties:  # bitmaps choose the rows
        monkeypatch.setattr("sparkdelta.operations.merge.merge_output.MAX_COMPARED_ROWS", 0)
    expected = create(spark, table_path, properties, partition_by=partition_by)
    rows = source(
        spark,
        (1, 100, "x", 1),
        (2, 0, "y", 0),
        (3, 0, "z", 0),
        (40, 4, "new", 0),
        (None, 5, "-", 1),
    )
    with settings(spark, HOSTILE["time zone, no ANSI"]):
        done = merged(
            spark,
            table_path,
            rows,
            F.col("t.id") == rows["id"],
            (UPDATE, "s.n = 100", {"n": "s.n + t.n", "s": "concat(t.s, s.s)"}),
            (DELETE, "T.ID = 2"),
            (INSERT, "s.id is not null"),
            (ALONE_UPDATE, "t.id > 27", {"part": "1 - part"}),
            (ALONE_DELETE, F.col("t.id") == 20),
        )
    assert done == (3, 2, 1)
    lost = {(1, 1, "é1", 1), (2, 2, "é2", 0), (20, None, "é20", 0), (28, 0, "é28", 0)}
    lost.add((29, 1, "é29", 1))
    new = {(1, 101, "é1x", 1), (40, 4, "new", 0), (28, 0, "é28", 1), (29, 1, "é29", 0)}
    expected = expected - lost | new
    assert stored(spark, table_path) == Counter(expected)
    written = actions(table_path, 1)
    info = written["commitInfo"][0]
    assert info["operation"] == "MERGE"
    metrics = {
        "numSourceRows": "5",
        "numTargetRowsInserted": "1",
        "numTargetRowsMatchedUpdated": "1",
        "numTargetRowsNotMatchedBySourceUpdated": "2",
        "numTargetRowsMatchedDeleted": "1",
        "numTargetRowsNotMatchedBySourceDeleted": "1",
    }
    assert metrics.items() <= info["operationMetrics"].items()
    if properties:
        files = [f"{table_path}/{file['path']}" for file in written["cdc"]]
        kinds = spark.read.parquet(*files).groupBy("_change_type").count().collect()
        found = {row["_change_type"]: row["count"] for row in kinds}
        assert found == {"update_preimage": 3, "update_postimage": 3, "delete": 2, "insert": 1}
        ids = read_delta(spark, table_path, columns=["id", "_metadata.row_id"]).collect()
        assert len({row["row_id"] for row in ids}) == len(expected)
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("most", [merge_pairs.MAX_READ_PAIRS, 0], ids=["read", "not read"])
def test_ambiguous_rows(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Several source rows may match a row that is deleted in any case, or left alone."""
    monkeypatch.setattr(merge_pairs, "MAX_READ_PAIRS", most)
    expected = create(spark, table_path, {"delta.enableDeletionVectors": "true"})
    rows = source(spark, (1, 1, "a", 0), (1, 2, "b", 0), (50, 1, "c", 0), (50, 2, "d", 0))
    files = files_below(table_path)
    for condition in ("s.n = 1", None):
        with raises("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE") as raised:
            merged(spark, table_path, rows, "t.id = s.id", (UPDATE, condition, {"n": "s.n"}))
        assert (raised.value.num_rows, raised.value.keys) == (1, ['["1"]'])
        assert files_below(table_path) == files
    assert merged(spark, table_path, rows, "t.id = s.id", (INSERT, None)) == (0, 0, 2)
    done = merged(spark, table_path, rows.filter("id = 1"), "t.id = s.id", (DELETE, None))
    assert done == (0, 1, 0)
    new = {(50, 1, "c", 0), (50, 2, "d", 0)}
    assert stored(spark, table_path) == Counter(expected - {(1, 1, "é1", 1)} | new)


def test_files_that_cannot_match_are_not_read(spark: SparkSession, table_path: str) -> None:
    """A damaged file outside the ranges of the source's keys does not matter."""
    create(spark, table_path, {})
    for add in actions(table_path, 0)["add"]:
        if json.loads(add["stats"])["minValues"]["id"] == 10:
            Path(table_path, add["path"]).write_bytes(b"")
    rows = source(spark, (1, 1, "a", 0), (25, 2, "b", 0), (60, 3, "c", 0))
    done = merged(spark, table_path, rows, "t.id = s.id", (UPDATE, None), (INSERT, None))
    assert done == (2, 0, 1)
    assert len(actions(table_path, 1)["remove"]) == 2


@pytest.mark.both_kinds
def test_nothing_to_do(spark: SparkSession, table_path: str) -> None:
    """Without a row that a clause acts on there is no commit; a wrong condition is refused."""
    create(spark, table_path, {})
    rows = source(spark, (1, 1, "a", 0))
    assert (
        merged(spark, table_path, rows.filter("id > 1"), "t.id = s.id", (UPDATE, None)) == (0,) * 3
    )
    assert merged(spark, table_path, rows, "t.id = s.id", (DELETE, "s.n > 1")) == (0, 0, 0)
    with raises("DELTA_AGGREGATION_NOT_SUPPORTED"):
        merged(spark, table_path, rows, "t.id = max(s.id)", (DELETE, None))
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.full
def test_a_row_that_kept_one_out_is_deleted_meanwhile(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source row whose match is deleted meanwhile would have to be inserted, so the merge fails
    though it changes no row.
    """
    create(spark, table_path, {"delta.enableDeletionVectors": "true"})
    commit = merge_command.commit_delta

    def after_a_delete(*arguments: Any) -> Any:
        DeltaTable.forPath(spark, table_path).delete("id = 1")
        return commit(*arguments)

    monkeypatch.setattr(merge_command, "commit_delta", after_a_delete)
    rows = source(spark, (1, 1, "a", 0), (50, 2, "b", 0))
    with pytest.raises(ConcurrentDeleteReadException):
        merged(spark, table_path, rows, "t.id = s.id", (INSERT, None))


@pytest.mark.full
def test_a_table_merged_into_itself_by_ranges(spark: SparkSession, table_path: str) -> None:
    """Conditions need no equality, and columns of the source may be Columns of its DataFrame."""
    expected = create(spark, table_path, {"delta.enableDeletionVectors": "true"})
    own = read_delta(spark, table_path).filter("id = 28")
    condition = (F.col("t.id") > own["id"]) & F.col("t.s").startswith("é")
    done = merged(spark, table_path, own, condition, (UPDATE, None, {"n": own["n"] + 50}))
    assert done == (1, 0, 0)
    new = {(29, 50, "é29", 1)}
    assert stored(spark, table_path) == Counter(expected - {(29, 1, "é29", 1)} | new)


@pytest.mark.full
def test_keys_of_a_large_source(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gaps between the keys of a sample leave out files; the ranges are those of all keys."""
    create(spark, table_path, {})
    monkeypatch.setattr("sparkdelta.operations.merge.merge_keys.MAX_READ_KEYS", 4)
    monkeypatch.setattr("sparkdelta.operations.merge.merge_keys.MAX_SAMPLED_KEYS", 5)
    monkeypatch.setattr("sparkdelta.operations.merge.merge_sides.MAX_BROADCAST_BYTES", 0)
    rows = spark.range(200).selectExpr("IF(id < 10, id, id + 1000) AS id", "-id AS n").alias("s")
    done = merged(spark, table_path, rows, "t.id = s.id", (UPDATE, None, {"n": "s.n"}))
    assert done == (10, 0, 0)
    assert {row[1] for row in stored(spark, table_path) if row[0] < 10} == set(range(-9, 1))
    assert len(actions(table_path, 1)["remove"]) == 1


@pytest.mark.classic("counts Spark's jobs")
@pytest.mark.full
@pytest.mark.parametrize("are_columns", [False, True])
@pytest.mark.parametrize("key", ["DATE", "TIMESTAMP", "DECIMAL(20, 3)", "STRING", "INT"])
def test_keys_of_all_types(
    spark: SparkSession, table_path: str, key: str, are_columns: bool
) -> None:
    """Keys match in any time zone, whether a Spark job computes them or the driver reads columns of
    the staged source; the keys of rows that the condition leaves out may be invalid.
    """
    texts = {
        "DATE": "date_add(DATE '2024-10-25', CAST(id AS INT))",
        "TIMESTAMP": "timestamp_seconds(1729987200 + 1800 * id)",
        "DECIMAL(20, 3)": "CAST(id AS DECIMAL(20, 3)) / 8",
        "STRING": "concat('é', id)",
        "INT": "id",
    }
    rows = spark.range(0, 12, 1, 3).selectExpr(f"CAST({texts[key]} AS {key}) AS k", "id AS n")
    write_delta(rows, table_path)
    own = read_delta(spark, table_path).filter("n IN (3, 7)")
    with settings(spark, {**HOSTILE["time zone, no ANSI"], "spark.sql.ansi.enabled": "true"}):
        bad = spark.createDataFrame([("bad", 0)], "k STRING, n LONG")
        texts_of_keys = own.selectExpr("CAST(k AS STRING) AS k", "-n AS n").unionByName(bad)
        source = own.selectExpr("-n AS n", "k") if are_columns else texts_of_keys
        condition = "t.k = s.k" if are_columns else f"t.k = CAST(s.k AS {key}) AND s.n < 0"
        with counted_jobs(spark) as jobs:
            done = merged(
                spark, table_path, source.alias("s"), condition, (UPDATE, None, {"n": "s.n"})
            )
        assert jobs.count <= (9 if are_columns else 10)
    assert done == (2, 0, 0)
    found = {row["n"] for row in read_delta(spark, table_path).collect()}
    assert found == {0, 1, 2, -3, 4, 5, 6, -7, 8, 9, 10, 11}
    assert len(actions(table_path, 1)["remove"]) == 2


@pytest.mark.full
@pytest.mark.parametrize("sampled", [4_096, 2])
def test_keys_of_an_hour_that_clocks_repeat(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, sampled: int
) -> None:
    """Each moment has a file; those that clocks show as the same time are different keys. A moment
    that Python has not leaves no file out.
    """
    monkeypatch.setattr("sparkdelta.operations.merge.merge_keys.MAX_READ_KEYS", sampled)
    monkeypatch.setattr("sparkdelta.operations.merge.merge_keys.MAX_SAMPLED_KEYS", sampled)
    rows = spark.range(0, 4, 1, 4).selectExpr(
        "timestamp_seconds(1699160400 + 1800 * id) AS k", "id"
    )
    write_delta(rows, table_path)
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        for far in ([], ["TIMESTAMP'+10000-02-03 00:00:00'"]):
            keys = spark.range(4).selectExpr("timestamp_seconds(1699160400 + 1800 * id) AS k")
            for text in far:
                keys = keys.union(spark.sql(f"SELECT {text}"))
            updated = (UPDATE, None, {"id": "t.id + 10"})
            done = merged(spark, table_path, keys.alias("s"), "t.k = s.k", updated)
            assert done == (4, 0, 0)
    found = sorted(row["id"] for row in read_delta(spark, table_path).select("id").collect())
    assert found == [20, 21, 22, 23]
