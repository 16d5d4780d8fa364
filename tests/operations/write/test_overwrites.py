"""Overwrites that replace some of a table: by a condition, and by the partitions of the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    read_changes,
    read_delta,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.exceptions import ConcurrentAppendException, InvalidArgumentError, StorageError
from sparkdelta.operations.write import write
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.transaction import Transaction
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.table_builder import (
    field,
    ids,
    metadata,
    protocol,
    write_data,
    write_vectors,
)
from tests.support.unreferenced import unreferenced


def rows(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, read_delta(spark, path).collect()), key=str)


def commit(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


@pytest.mark.full
@pytest.mark.parametrize(
    "where", ["id BETWEEN 4 AND 6", "hash(id) = hash(5L) OR id IN (4, 6)", "a Column"]
)
def test_rows_that_a_condition_names(spark, table_path, where) -> None:  # type: ignore[no-untyped-def]
    """Files that have such rows are written again without them; others stay."""
    if where == "a Column":
        where = F.col("id").between(4, 6)
    write_delta(spark.range(0, 15, 1, 3).selectExpr("id", "'old' AS s"), table_path)
    new = spark.range(4, 6).selectExpr("id", "'new' AS s")
    with settings(spark, HOSTILE["time zone, no ANSI"]):
        done = write_delta(new, table_path, mode="overwrite", replace_where=where)
    assert done.version == 1
    old = [(n, "old") for n in (0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14)]
    assert rows(spark, table_path) == sorted([*old, (4, "new"), (5, "new")], key=str)
    found = commit(table_path, 1)
    assert found["commitInfo"][0]["isBlindAppend"] is False
    assert len(found["remove"]) == 2  # the third file has no such row
    if isinstance(where, str):
        assert found["commitInfo"][0]["operationParameters"]["predicate"] == where
    with raises("DELTA_REPLACE_WHERE_MISMATCH"):
        write_delta(spark.range(1).selectExpr("id", "'x' AS s"), table_path, mode="overwrite",
                    replace_where=where)  # fmt: skip
    assert load_snapshot(spark, table_path).version == 1
    assert not unreferenced(table_path)  # nothing is left of what was refused


def test_conditions_on_more_than_the_row(spark: SparkSession, table_path: str) -> None:
    """A condition is evaluated for files and for rows, and must not change in between."""
    write_delta(spark.range(3).selectExpr("id", "id AS p"), table_path, partition_by=["p"])
    own: Any = F.udf(lambda _: True, "boolean").asNondeterministic()
    for error, conditions in {
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED": (
            "rand() < 0.5", "p = 1 AND uuid() > 'a'", F.rand() < 0.5, own("id"),
        ),
        "DELTA_UNSUPPORTED_SUBQUERY": ("p IN (SELECT 1L)", "id = (SELECT max(id) FROM range(9))"),
        "DELTA_AGGREGATION_NOT_SUPPORTED": (
            "sum(id) > 3", F.max("p") > 3, F.rank().over(Window.orderBy("id")) == 1,
            "explode(array(id)) = 1",
        ),
    }.items():  # fmt: skip
        for where in conditions:
            with raises(error) as raised:
                write_delta(spark.range(1).selectExpr("id", "id AS p"), table_path,
                            mode="overwrite", replace_where=where)  # fmt: skip
            shown = str(where).removeprefix("Column<'").removesuffix("'>")
            assert raised.value.condition == shown
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.full
def test_an_error_before_the_commit_leaves_no_files(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.createDataFrame([(1, "a")], "n INT, p STRING")
    write_delta(frame, table_path, partition_by=["p"])

    def failing(*_: Any, **options: Any) -> Any:
        raise StorageError(path=table_path, problem="no answer")

    monkeypatch.setattr(write, "files_of_same_partitions", failing)
    with pytest.raises(StorageError):
        write_delta(frame, table_path, mode="overwrite", partition_overwrite_mode="dynamic")
    assert not unreferenced(table_path)


@pytest.mark.full
def test_rows_for_which_a_condition_is_null_stay(spark: SparkSession, table_path: str) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, None), (3, "b")], "n INT, p STRING")
    write_delta(frame.coalesce(1), table_path, partition_by=["p"])
    empty = spark.createDataFrame([], "n INT, p STRING")
    write_delta(empty, table_path, mode="overwrite", replace_where="n < 3 AND p = 'a'")
    assert rows(spark, table_path) == [(2, None), (3, "b")]
    assert [r["partitionValues"] for r in commit(table_path, 1)["remove"]] == [{"p": "a"}]
    write_delta(empty, table_path, mode="overwrite", replace_where="n < 3 AND p <> 'a'")
    assert rows(spark, table_path) == [(2, None), (3, "b")]


@pytest.mark.full
def test_deleted_rows_are_not_written_again(spark: SparkSession, table_path: str) -> None:
    """ "Deletion Vectors": the rows that a file has are those that its vector leaves."""
    root = Path(table_path)
    file = write_data(root, "f.parquet", ids(0, 6))
    [vector] = write_vectors(root, [0, 4])
    file["add"]["deletionVector"] = vector
    features = protocol(features=["deletionVectors"])
    configuration = {"delta.enableDeletionVectors": "true"}
    write_commit(root, 0, [features, metadata(configuration=configuration), file])
    write_delta(spark.range(9, 10), table_path, mode="overwrite", replace_where="id IN (2, 9)")
    assert rows(spark, table_path) == [(1,), (3,), (5,), (9,)]
    [removed] = commit(table_path, 1)["remove"]
    assert removed["deletionVector"] == vector


def test_few_replaced_rows_get_a_deletion_vector(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#deletion-vectors: as by DELETE, a file of many other rows is not rewritten."""
    properties = {"delta.enableDeletionVectors": "true"}
    write_delta(spark.range(0, 100, 1, 1), table_path, properties=properties)
    write_delta(spark.range(5, 6), table_path, mode="overwrite", replace_where="id IN (5, 7)")
    assert rows(spark, table_path) == sorted(((n,) for n in range(100) if n != 7), key=str)
    replaced = commit(table_path, 1)
    [file] = commit(table_path, 0)["add"]
    assert [add["path"] for add in replaced["remove"]] == [file["path"]]
    vectors = {add["path"]: add.get("deletionVector") for add in replaced["add"]}
    assert vectors.pop(file["path"])["cardinality"] == 2
    assert [*vectors.values()] == [None]
    metrics = replaced["commitInfo"][0]["operationMetrics"]
    names = ("numFiles", "numOutputRows", "numRemovedFiles", "numRemovedBytes")
    assert [metrics[name] for name in names] == ["1", "1", "0", "0"]


@pytest.mark.full
def test_rows_that_are_written_again_keep_their_ids(spark: SparkSession, table_path: str) -> None:
    """ "Writer Requirements for Row Tracking": copied rows keep ids and commit versions."""
    tracking = {"delta.enableRowTracking": "true"}
    write_delta(spark.range(0, 6, 1, 2), table_path, properties=tracking)
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]

    def tracked() -> dict[int, tuple[int, int]]:
        found = read_delta(spark, table_path, columns=names).collect()
        return {row[0]: (row[1], row[2]) for row in found}

    before = tracked()
    for version, where in enumerate(("id IN (1, 9)", "id IN (2, 9)"), 1):
        write_delta(spark.range(9, 10), table_path, mode="overwrite", replace_where=where)
        tags = commit(table_path, version)["commitInfo"][0]["tags"]
        assert tags["delta.rowTracking.preserved"] == "true"
    after = tracked()
    assert {number: after[number] for number in (0, 3, 4, 5)} == {
        number: before[number] for number in (0, 3, 4, 5)
    }
    assert after[9][0] > max(number for number, _ in before.values())
    assert after[9][1] == 2


@pytest.mark.slow
def test_change_data_of_replaced_rows(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#add-cdc-file: rows that a file keeps are no change, and its removal would say so;
    new rows have the values of the data, whatever a second evaluation would give. Of partitions,
    whole files tell.
    """
    names = ("delta.enableChangeDataFeed", "delta.enableRowTracking", "delta.enableDeletionVectors")
    first = spark.range(0, 12, 1, 2).selectExpr("id", "'old' AS s", "id % 2 AS p")
    properties = dict.fromkeys(names, "true")
    write_delta(first, table_path, partition_by=["p"], properties=properties)
    DeltaTable.forPath(spark, table_path).delete("id = 5")
    new = spark.range(4, 6).selectExpr("id", "uuid() AS s", "id % 2 AS p", "id AS extra")
    write_delta(
        new, table_path, mode="overwrite", replace_where="id BETWEEN 4 AND 6", merge_schema=True
    )
    by_id = {row["id"]: tuple(row) for row in read_delta(spark, table_path).collect()}
    assert by_id.keys() == {*range(6), *range(7, 12)}
    assert by_id[3] == (3, "old", 1, None)
    inserts = {("insert", by_id[4]), ("insert", by_id[5])}
    deletes = {("delete", (key, "old", 0, None)) for key in (4, 6)}
    assert changes(spark, table_path, 2) == inserts | deletes
    write_delta(new, table_path, mode="overwrite", replace_where="p = 0 OR p = 1")
    assert "cdc" not in commit(table_path, 3)
    assert {kind for kind, _ in changes(spark, table_path, 3)} == {"insert", "delete"}
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.slow
def test_replaced_rows_with_change_data_that_fail(spark: SparkSession, table_path: str) -> None:
    """Nothing is left of a write that fails, in its rows or in its change data."""
    write_delta(spark.range(4), table_path, properties={"delta.enableChangeDataFeed": "true"})
    with raises("DELTA_REPLACE_WHERE_MISMATCH"):
        write_delta(spark.range(3), table_path, mode="overwrite", replace_where="id < 2")
    failing = spark.range(1).selectExpr("id + CAST(raise_error('my own') AS BIGINT) AS id")
    with raises("DELTA_WRITE_FAILED") as raised:
        write_delta(failing, table_path, mode="overwrite", replace_where="id < 2")
    assert "my own" in str(raised.value)
    assert not unreferenced(table_path)
    assert rows(spark, table_path) == [(0,), (1,), (2,), (3,)]


def changes(spark: SparkSession, path: str, version: int) -> set[tuple[str, tuple[Any, ...]]]:
    """The kind and the row of each change in a version."""
    found = read_changes(spark, path, start_version=version, end_version=version).collect()
    return {(row["_change_type"], tuple(row)[:-3]) for row in found}


@pytest.mark.full
def test_partitions_of_the_rows(spark: SparkSession, table_path: str) -> None:
    first = [(1, "a", 1), (2, "a", 2), (3, None, 1), (4, "b", 1)]
    frame = spark.createDataFrame(first, "n INT, p STRING, q INT")
    write_delta(frame, table_path, partition_by=["p", "q"])
    new = spark.createDataFrame([(5, "a", 1), (6, None, 1), (7, "c", 1)], "n INT, p STRING, q INT")
    done = write_delta(new, table_path, mode="overwrite", partition_overwrite_mode="dynamic")
    assert done.version == 1
    assert rows(spark, table_path) == [
        (2, "a", 2), (4, "b", 1), (5, "a", 1), (6, None, 1), (7, "c", 1),
    ]  # fmt: skip
    removed = [r["partitionValues"] for r in commit(table_path, 1)["remove"]]
    assert sorted(removed, key=str) == [{"p": "a", "q": "1"}, {"p": None, "q": "1"}]
    nothing = write_delta(
        new.limit(0), table_path, mode="overwrite", partition_overwrite_mode="dynamic"
    )
    assert nothing.version == 2
    assert len(rows(spark, table_path)) == 5
    write_delta(new, table_path, mode="overwrite")
    assert len(rows(spark, table_path)) == 3


def test_partitions_in_the_words_of_other_writers(spark: SparkSession, table_path: str) -> None:
    """ "Partition Value Serialization": the same value may have several texts."""
    root = Path(table_path)
    schema = (field("id", "long"), field("t", "timestamp"), field("d", "decimal(4,2)"))
    values = [
        {"t": "2024-01-01 00:00:00", "d": "1.5"},
        {"t": "2024-01-01T00:00:00.000000Z", "d": "1.50"},
        {"t": "2024-01-01 00:00:00.000000", "d": "1.51"},
    ]
    files = [write_data(root, f"{n}.parquet", ids(n, n + 1), v) for n, v in enumerate(values)]
    write_commit(root, 0, [protocol(), metadata(*schema, partitioned_by=["t", "d"]), *files])
    frame = spark.sql("SELECT 9L AS id, TIMESTAMP'2024-01-01 00:00:00Z' AS t, 1.5BD AS d")
    write_delta(frame, table_path, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(row[0] for row in rows(spark, table_path)) == [2, 9]


@pytest.mark.full
def test_dynamic_overwrite_of_zero_keeps_the_partition_of_negative_zero(
    spark: SparkSession, table_path: str
) -> None:
    """A value and its other spellings are one partition; 0.0 and -0.0 are equal, but two."""
    root = Path(table_path)
    schema = (field("id", "long"), field("p", "double"), field("q", "float"))
    values = [("0", "0"), ("0.0", "-0.0"), ("-0", "0.0"), ("-0.0", "-0"), ("nan", "1e0"),
              ("NaN", "1.5")]  # fmt: skip
    files = [
        write_data(root, f"{n}.parquet", ids(n, n + 1), {"p": p, "q": q})
        for n, (p, q) in enumerate(values)
    ]
    write_commit(root, 0, [protocol(), metadata(*schema, partitioned_by=["p", "q"]), *files])
    frame = spark.sql(
        "SELECT id, p, CAST(q AS FLOAT) AS q FROM VALUES "
        "(10L, 0.0D, 0.0D), (11L, -0.0D, -0.0D), (12L, DOUBLE('NaN'), 1.0D) AS t(id, p, q)"
    )
    write_delta(frame, table_path, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted((row[0], str(row[1]), str(row[2])) for row in rows(spark, table_path)) == [
        (1, "0.0", "-0.0"), (2, "-0.0", "0.0"), (5, "nan", "1.5"),
        (10, "0.0", "0.0"), (11, "-0.0", "-0.0"), (12, "nan", "1.0"),
    ]  # fmt: skip
    write_checkpoint(spark, table_path)  # with the typed values
    write_delta(
        frame.filter("id = 10"), table_path, mode="overwrite", partition_overwrite_mode="dynamic"
    )
    assert sorted(row[0] for row in rows(spark, table_path)) == [1, 2, 5, 10, 11, 12]


def test_a_table_without_partitions_is_replaced(spark: SparkSession, table_path: str) -> None:
    for _ in range(2):
        write_delta(
            spark.range(2), table_path, mode="overwrite", partition_overwrite_mode="dynamic"
        )
    assert len(rows(spark, table_path)) == 2


def test_options_that_contradict_each_other(spark: SparkSession, table_path: str) -> None:
    for error, options in (
        (
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            {"mode": "overwrite", "replace_where": "id = 1", "partition_overwrite_mode": "dynamic"},
        ),
        (InvalidArgumentError, {"partition_overwrite_mode": "dynamic"}),
        (InvalidArgumentError, {"mode": "overwrite", "partition_overwrite_mode": "some"}),
    ):  # fmt: skip
        with raises(error):
            write_delta(spark.range(1), table_path, **options)
    assert not Path(table_path).exists()


@pytest.mark.parametrize(
    ("options", "others", "is_refused"),
    [
        ({"partition_overwrite_mode": "dynamic"}, "b", False),
        ({"partition_overwrite_mode": "dynamic"}, "a", True),
        ({"replace_where": "p = 'a' AND n >= 0"}, "b", False),
        ({"replace_where": "p = 'a' AND n >= 0"}, "a", True),
    ],
)
def test_a_concurrent_append_conflicts_with_an_overwrite(  # type: ignore[no-untyped-def]
    spark, table_path, monkeypatch, options, others, is_refused
) -> None:
    """An overwrite has read what it replaces: rows that come there behind its back are a
    conflict.
    """

    def frame(p: str) -> Any:
        return spark.createDataFrame([(1, p)], "n INT, p STRING")

    write_delta(frame("a"), table_path, partition_by=["p"])
    proceed = Transaction.commit

    def late(transaction: Any, committer: Any = None) -> Any:
        monkeypatch.undo()
        assert transaction.read != ReadSet()
        write_delta(frame(others), table_path, mode="append")
        return proceed(transaction, committer)

    monkeypatch.setattr(Transaction, "commit", late)
    if is_refused:
        with pytest.raises(ConcurrentAppendException):
            write_delta(frame("a"), table_path, mode="overwrite", **options)
        return
    assert write_delta(frame("a"), table_path, mode="overwrite", **options).version == 2
    assert rows(spark, table_path) == [(1, "a"), (1, others)]
