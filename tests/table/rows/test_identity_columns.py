"""Identity columns: values that no other row has, and the mark that says which are used up."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import ColumnNotFoundError, MetadataChangedException
from sparkdelta.operations.write import write
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows import file_descriptions
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.table_builder import field, metadata, protocol

MARK = "delta.identity.highWaterMark"


def table(path: str, start: int, step: int, *, mark: int | None = None, takes: bool = False) -> str:
    identity: dict[str, Any] = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": takes,
        "comment": "ü",
    }
    if mark is not None:
        identity[MARK] = mark
    fields = (field("id", "long", metadata=identity), field("v", "long"))
    # Without statistics of its own: the mark is told by the footers all the same.
    configuration = {"delta.dataSkippingNumIndexedCols": "0"}
    actions = [protocol(1, 6), metadata(*fields, configuration=configuration)]
    write_commit(Path(path), 0, actions)
    return path


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


def column(spark: SparkSession, path: str) -> dict[str, Any]:
    schema = json.loads(load_snapshot(spark, path).metadata.schema_string or "")
    return dict(schema["fields"][0]["metadata"])


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [(1, 1, None, 1), (-1, -2, -4, -5), (3, 10, 14, 23)],
)
def test_values(spark, table_path, start, step, mark, first) -> None:  # type: ignore[no-untyped-def]
    """ "Identity Columns": start + k * step, beyond the mark, none twice; the mark moves along."""
    table(table_path, start, step, mark=mark)
    rows = spark.range(20).selectExpr("id AS v")
    for _ in range(2):
        write_delta(rows.repartition(3), table_path, mode="append")
    found = ids(spark, table_path)
    assert len(set(found)) == 40
    assert all((value - start) % step == 0 and (value - first) * step >= 0 for value in found)
    assert column(spark, table_path)[MARK] == (max(found) if step > 0 else min(found))
    assert column(spark, table_path)["comment"] == "ü"
    assert sorted(row["v"] for row in read_delta(spark, table_path).collect()) == sorted(
        [*range(20)] * 2
    )


@pytest.mark.full
def test_the_mark_of_many_files(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Identity Columns": told by executors, where the driver does not know the files."""
    monkeypatch.setattr(file_descriptions, "describe_few_files", lambda *_: None)
    monkeypatch.setattr(file_descriptions, "MAX_NEW_FILES", 1)
    table(table_path, 1, 1)
    rows = spark.range(6).selectExpr("id AS v").repartition(3)
    write_delta(rows, table_path, mode="append")
    assert column(spark, table_path)[MARK] == max(ids(spark, table_path))


def test_values_that_rows_bring(spark: SparkSession, table_path: str) -> None:
    own = spark.sql("SELECT 7L AS id, 1L AS v")
    table(table_path, 1, 1)
    with raises("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"):
        write_delta(own, table_path, mode="append")
    path = table(f"{table_path}2", 1, 1, takes=True)
    write_delta(own, path, mode="append")
    assert ids(spark, path) == [7]
    assert MARK not in column(spark, path)


def test_no_rows(spark: SparkSession, table_path: str) -> None:
    table(table_path, 1, 1)
    write_delta(spark.range(0).selectExpr("id AS v"), table_path, mode="append")
    assert MARK not in column(spark, table_path)


def test_values_end_at_the_range_of_their_type(spark: SparkSession, table_path: str) -> None:
    """ "Identity Columns": an overflow is detected."""
    table(table_path, 1, 1 << 40, mark=2**63 - 2**41)
    with raises("DELTA_WRITE_FAILED") as raised:
        write_delta(spark.range(9).selectExpr("id AS v"), table_path, mode="append")
    cause = raised.value.__cause__
    assert isinstance(cause, PySparkException)
    assert cause.getCondition() == "ARITHMETIC_OVERFLOW"
    assert load_snapshot(spark, table_path).version == 0


def test_a_wrong_step(spark: SparkSession, table_path: str) -> None:
    table(table_path, 1, 0)
    with raises("DELTA_INVALID_SCHEMA"):
        write_delta(spark.range(1).selectExpr("id AS v"), table_path, mode="append")


def test_an_overwrite_goes_on_counting(spark: SparkSession, table_path: str) -> None:
    table(table_path, 1, 1)
    rows = spark.range(3).selectExpr("id AS v")
    write_delta(rows, table_path, mode="append")
    before = ids(spark, table_path)
    write_delta(rows, table_path, mode="overwrite")
    assert min(ids(spark, table_path)) > max(before)


@pytest.mark.full
def test_racing_writes_never_share_a_value(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second generates its values again and writes its files again."""
    table(table_path, 1, 1)
    rows = spark.range(3).selectExpr("id AS v")
    commit = Transaction.commit

    def late(transaction: Any, committer: Any = None) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        write_delta(rows, table_path, mode="append")
        return commit(transaction, committer)

    monkeypatch.setattr(Transaction, "commit", late)
    done = write_delta(rows, table_path, mode="append")
    assert (done.version, done.retries) == (2, 1)
    found = ids(spark, table_path)
    assert len(set(found)) == 6
    assert column(spark, table_path)[MARK] == max(found)
    # Without another try it is delta-spark's exception.
    monkeypatch.setattr(write, "_MAX_REWRITES", 0)
    monkeypatch.setattr(Transaction, "commit", late)
    with pytest.raises(MetadataChangedException):
        write_delta(rows, table_path, mode="append")
    monkeypatch.undo()

    def append(_: int) -> int | None:
        return write_delta(rows, table_path, mode="append").version

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(append, range(3))) == [4, 5, 6]
    assert len(set(ids(spark, table_path))) == 18


def test_values_go_on_after_explicit_ones(spark: SparkSession, table_path: str) -> None:
    """Identity Columns: beyond all that are there, on the way from the start, and never back."""
    table(table_path, 10, 3, takes=True)
    statements = alter_table(spark, table_path).sync_identity("ID")
    write_delta(spark.sql("SELECT 24L AS id, 1L AS v"), table_path, mode="append")
    statements.sync_identity("id").sync_identity("id")
    assert column(spark, table_path)[MARK] == 25
    write_delta(spark.sql("SELECT 2L AS v").coalesce(1), table_path, mode="append")
    assert ids(spark, table_path) == [24, 28]
    assert load_snapshot(spark, table_path).version == 3
    with raises("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"):
        statements.sync_identity("v")
    with pytest.raises(ColumnNotFoundError):
        statements.sync_identity("w")


@pytest.mark.parametrize("step", [1, -1])
def test_given_values_do_not_move_the_mark_back(
    spark: SparkSession, table_path: str, step: int
) -> None:
    """Identity Columns: a MERGE inserts a given value, another clause would generate values."""
    table(table_path, step, step, mark=100 * step, takes=True)
    source = spark.sql(f"SELECT {5 * step}L AS id, 1L AS v").alias("s")
    (
        DeltaTable.forPath(spark, table_path)
        .alias("t")
        .merge(source, "t.v = s.v")
        .whenNotMatchedInsert("s.v = 1", {"id": "s.id", "v": "s.v"})
        .whenNotMatchedInsert(values={"v": "s.v"})
        .execute()
    )
    assert column(spark, table_path)[MARK] == 100 * step
    write_delta(spark.sql("SELECT 2L AS v").coalesce(1), table_path, mode="append")
    assert set(ids(spark, table_path)) == {5 * step, 101 * step}


def test_copied_rows_do_not_move_the_mark_back(spark: SparkSession, table_path: str) -> None:
    """Identity Columns: an overwrite of some rows copies the others of their file."""
    table(table_path, 1, 1)
    for start in (0, 3):  # a file each
        rows = spark.range(start, start + 3).coalesce(1).selectExpr("id AS v")
        write_delta(rows, table_path, mode="append")
    before = ids(spark, table_path)
    nothing = spark.range(0).selectExpr("id AS v")
    write_delta(nothing, table_path, mode="overwrite", replace_where="v = 0")
    assert ids(spark, table_path) == before[1:]
    assert column(spark, table_path)[MARK] == before[-1]
