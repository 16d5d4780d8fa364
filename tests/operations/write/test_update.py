"""UPDATE: rows, row ids, change data, rules of the table and refusals, compared with a list.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as DeltaRsTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta, verify, write_delta
from sparkdelta.exceptions import ColumnNotFoundError, InvalidArgumentError
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.unreferenced import unreferenced

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
Row = tuple[int, int | None, str, int]


def create(
    spark: SparkSession, path: str, properties: dict[str, str], **options: Any
) -> DeltaTable:
    """A table of 30 rows in three files; every fifth `n` is null."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id % 7) AS n", "concat('é', id) AS s", "id % 2 AS part"
    )
    write_delta(rows, path, properties=properties, **options)
    return DeltaTable.forPath(spark, path)


def actions(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


UPDATES: list[tuple[Any, dict[str, Any], Callable[[Row], bool], Callable[[Row], Row]]] = [
    (
        "n > 3",
        {"n": "id", "s": "concat(s, '!')"},
        lambda row: row[1] is not None and row[1] > 3,
        lambda row: (row[0], row[0], row[2] + "!", row[3]),
    ),
    (
        "id < 9",
        {"part": "1 - part", "n": "nullif(part, 1)"},  # values of the row as it was
        lambda row: row[0] < 9,
        lambda row: (row[0], None if row[3] == 1 else row[3], row[2], 1 - row[3]),
    ),
    (
        "part = 1",
        {"s": "'x'"},
        lambda row: row[3] == 1,
        lambda row: (row[0], row[1], "x", row[3]),
    ),
    (None, {"n": "7"}, lambda _: True, lambda row: (row[0], 7, row[2], row[3])),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        pytest.param({}, None, id="plain", marks=pytest.mark.slow),
        pytest.param({**VECTORS, **ROW_IDS}, None, id="vectors", marks=pytest.mark.slow),
        pytest.param({**CHANGES, **MAPPED}, ["part"], id="changes", marks=pytest.mark.full),
        pytest.param({**VECTORS, **CHANGES, **MAPPED, **ROW_IDS}, ["part"], id="all"),
    ],
)
def test_updated_rows(
    spark: SparkSession, table_path: str, properties: dict[str, str], partition_by: Any
) -> None:
    """One update after another gives the rows that a list would have, with their row ids."""
    table = create(spark, table_path, properties, partition_by=partition_by)
    has_ids = "delta.enableRowTracking" in properties
    columns = ["id", "n", "s", "part"] + (["_metadata.row_id"] if has_ids else [])

    def stored() -> dict[int, tuple[Any, ...]]:
        found = read_delta(spark, table_path, columns=columns).collect()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: tuple(row) for row in found}

    row_ids = {key: row[4:] for key, row in stored().items()}
    expected: list[Row] = [(i, None if i % 5 == 0 else i % 7, f"é{i}", i % 2) for i in range(30)]
    for where, values, is_updated, updated in UPDATES:
        before = [row for row in expected if is_updated(row)]
        expected = [updated(row) if is_updated(row) else row for row in expected]
        given = values if len(values) == 1 else {k: F.expr(v) for k, v in values.items()}
        with settings(spark, HOSTILE["time zone, no ANSI"]):
            done = table.update(where, given)
        assert done.num_updated_rows == len(before)
        assert stored() == {row[0]: row + row_ids[row[0]] for row in expected}
        written = actions(table_path, done.version or 0)
        info = written["commitInfo"][0]
        assert info["operation"] == "UPDATE"
        assert info["operationMetrics"]["numUpdatedRows"] == str(len(before))
        assert json.loads(info["operationParameters"]["predicate"]) == ([where] if where else [])
        assert ("cdc" in written) == ("delta.enableChangeDataFeed" in properties)
        if "cdc" in written:  # PROTOCOL.md#add-cdc-file
            files = [f"{table_path}/{file['path']}" for file in written["cdc"]]
            kinds = spark.read.parquet(*files).groupBy("_change_type").count().collect()
            found = {row["_change_type"]: row["count"] for row in kinds}
            assert found == {"update_preimage": len(before), "update_postimage": len(before)}
    assert verify(spark, table_path, footers=True).is_clean
    if not properties:
        others = DeltaRsTable(table_path).to_pyarrow_table()
        assert set(others["n"].to_pylist()) == {7}


def test_random_values_are_those_of_the_change_data(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#add-cdc-file: values are computed once, for the data and the change data."""
    table = create(spark, table_path, {**CHANGES, **VECTORS})
    table.update("id < 12", {"s": "uuid()"})
    files = [f"{table_path}/{file['path']}" for file in actions(table_path, 1)["cdc"]]
    images = spark.read.parquet(*files).filter("_change_type = 'update_postimage'")
    changed = {(row["id"], row["s"]) for row in images.collect()}
    now = {(row["id"], row["s"]) for row in table.toDF().filter("id < 12").collect()}
    assert len(changed) == 12
    assert changed == now


@pytest.mark.slow
@pytest.mark.parametrize("properties", [{**CHANGES, **VECTORS}, {}])
def test_a_condition_that_changes(
    spark: SparkSession, table_path: str, properties: dict[str, str]
) -> None:
    """A condition whose value changes, such as one on the current time, is evaluated once: the rows
    that it found are updated.

    PROTOCOL.md#add-file-and-remove-file
    """
    table = create(spark, table_path, properties)
    before = {row["id"] for row in table.toDF().collect()}
    other_each_time: Any = F.udf(lambda _: os.urandom(1) < b"\x80", "boolean")
    done = table.update(other_each_time("id"), {"s": "'updated'"})
    rows = table.toDF().collect()
    assert sorted(row["id"] for row in rows) == sorted(before)
    assert done.num_updated_rows == sum(row["s"] == "updated" for row in rows) > 0
    deleted = table.delete(other_each_time("id"))
    assert table.toDF().count() == len(before) - deleted.num_deleted_rows
    assert verify(spark, table_path, footers=True).is_clean


@pytest.mark.full
def test_rules_of_the_table(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#generated-columns, PROTOCOL.md#check-constraints: of the new rows alone. An
    update that fails leaves no file.
    """
    (
        DeltaTable.create(spark)
        .location(table_path)
        .addColumn("id", "LONG")
        .addColumn("twice", "LONG", generatedAlwaysAs="id * 2")
        .addColumn("st", "STRUCT<a: INT, b: STRING>")
        .property("delta.constraints.low", "id < 100")
        .property("delta.enableDeletionVectors", "true")
        .execute()
    )
    rows = spark.range(4).selectExpr("id", "named_struct('a', 1, 'b', 'b') AS st")
    write_delta(rows, table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path).alias("t")
    table.update("id = 3", {"t.id": "id + 10", "st.a": "t.st.a + 1"})
    found = {row["id"]: (row["twice"], tuple(row["st"])) for row in table.toDF().collect()}
    assert found == {0: (0, (1, "b")), 1: (2, (1, "b")), 2: (4, (1, "b")), 13: (26, (2, "b"))}
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        table.update("id = 1", {"id": "1000"})
    assert not unreferenced(table_path)
    assert load_snapshot(spark, table_path).version == 2


def test_refusals(spark: SparkSession, table_path: str, tmp_path: Path) -> None:
    """Nothing is written if names or conditions are wrong, or the table is append-only."""
    table = create(spark, table_path, {})
    assert table.update("id > 1000", {"n": "1"}).version is None
    wrong: list[tuple[str | type[Exception], Any, Any]] = [
        (InvalidArgumentError, None, None),
        (ValueError, None, {}),
        (TypeError, None, "n = 1"),
        (TypeError, None, {1: "n"}),
        (TypeError, None, {"n": 1}),
        (TypeError, ["n = 1"], {"n": "1"}),
        (ColumnNotFoundError, None, {"nn": "1"}),
        (ColumnNotFoundError, None, {"n": "idd + 1"}),
        (ColumnNotFoundError, "idd = 1", {"n": "1"}),
        ("DELTA_CONFLICT_SET_COLUMN", None, {"n": "1", "N": "2"}),
        ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "rand() < 1", {"n": "1"}),
    ]
    for error, where, values in wrong:
        with raises(error):
            table.update(where, values)
    assert load_snapshot(spark, table_path).version == 0
    only = str(tmp_path / "only")
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        create(spark, only, {"delta.appendOnly": "true"}).update(None, {"n": "1"})
