"""Statistics of files anew from their footers.

PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, recompute_statistics, verify
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    ConcurrentDeleteReadException,
    NonPartitionColumnReferenceError,
)
from sparkdelta.table.commit.transaction import Transaction
from tests.support.log_writer import write_commit
from tests.support.table_builder import (
    field,
    metadata,
    protocol,
    remove,
    struct_of,
    write_data,
    write_vectors,
)

FIELDS = (
    field("id", "long"),
    field("s", struct_of(field("x", "decimal(20,2)"))),
    field("p", "string"),
)


def rows(start: int) -> pa.Table:
    numbers = pa.array([None, start, start + 1], pa.decimal128(20, 2))
    structs = pa.StructArray.from_arrays([numbers], ["x"])
    return pa.table({"id": pa.array([start, start + 1, start + 2]), "s": structs})


def stats(spark: SparkSession, table: Path) -> dict[str, Any]:
    files = load_snapshot(spark, str(table)).add_files().collect()
    return {row.path: row.stats and json.loads(row.stats) for row in files}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A file without statistics, one with wrong ones, and one with a deletion vector."""
    path = tmp_path / "table"
    (vector,) = write_vectors(path, [0])
    wrong = {"minValues": {"id": 500, "s": {"x": 1.5}}, "maxValues": {"id": 501}}
    actions = [
        write_data(path, "p=a/1 é.parquet", rows(0), {"p": "a"}),
        write_data(path, "p=b/2.parquet", rows(10), {"p": "b"}),
        write_data(path, "p=b/3.parquet", rows(20), {"p": "b"}, deletionVector=vector),
    ]
    del actions[0]["add"]["stats"]
    actions[1]["add"]["stats"] = json.dumps({"numRecords": 3, **wrong})
    features = protocol(features=["deletionVectors"])
    write_commit(path, 0, [features, metadata(*FIELDS, partitioned_by=["p"]), *actions])
    return path


@pytest.mark.full
def test_all_files(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#per-file-statistics: of files with deletion vectors bounds are wide."""
    assert read_delta(spark, str(table), where="id < 13").count() == 3
    result = recompute_statistics(spark, str(table))
    assert (result.version, result.num_files) == (1, 3)
    found = stats(spark, table)
    assert found["p=b/2.parquet"] == {
        "numRecords": 3, "minValues": {"id": 10, "s": {"x": 10.0}},
        "maxValues": {"id": 12, "s": {"x": 11.0}}, "nullCount": {"id": 0, "s": {"x": 1}},
        "tightBounds": True,
    }  # fmt: skip
    assert found["p=b/3.parquet"]["tightBounds"] is False
    assert found["p=a/1%20%C3%A9.parquet"]["maxValues"]["id"] == 2
    assert read_delta(spark, str(table), where="id < 13").count() == 6
    assert read_delta(spark, str(table)).count() == 8
    assert verify(spark, str(table), footers=True).is_clean
    files = load_snapshot(spark, str(table)).add_files().collect()
    assert not any(row.dataChange for row in files)


@pytest.mark.slow
def test_columns_and_partitions(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#per-file-statistics: what other columns have stays, to the digit."""
    before = stats(spark, table)
    result = recompute_statistics(spark, str(table), where="p = 'b'", columns=["ID"])
    after = stats(spark, table)
    assert result.num_files == 2
    assert after["p=a/1%20%C3%A9.parquet"] is None is before["p=a/1%20%C3%A9.parquet"]
    assert after["p=b/2.parquet"]["minValues"] == {"s": {"x": 1.5}, "id": 10}
    recompute_statistics(spark, str(table), columns=["s.x"])
    assert stats(spark, table)["p=b/2.parquet"]["minValues"] == {"id": 10, "s": {"x": 10.0}}
    with pytest.raises(ColumnNotFoundError):
        recompute_statistics(spark, str(table), columns=["s.y"])
    with pytest.raises(NonPartitionColumnReferenceError):
        recompute_statistics(spark, str(table), where="id = 1")
    assert recompute_statistics(spark, str(table), where="p = 'c'").version is None


def test_floats_of_writers_that_leave_out_nan(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#per-file-statistics: no bounds, since NaN may be greater than them."""
    rows = pa.table({"f": [1.5, float("nan"), None], "id": [1, 2, 3]})
    action = write_data(tmp_path, "1.parquet", rows)
    wrong = {"minValues": {"f": 1.5}, "maxValues": {"f": 1.5}}
    action["add"]["stats"] = json.dumps({"numRecords": 3, **wrong})
    fields = (field("f", "double"), field("id", "long"))
    write_commit(tmp_path, 0, [protocol(), metadata(*fields), action])
    recompute_statistics(spark, str(tmp_path))
    assert stats(spark, tmp_path)["1.parquet"] == {
        "numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3},
        "nullCount": {"f": 1, "id": 0}, "tightBounds": True,
    }  # fmt: skip


@pytest.mark.full
def test_a_file_that_is_removed_meanwhile(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#add-file-and-remove-file: it must not come back."""
    commit = Transaction.commit

    def late(self: Transaction) -> Any:
        write_commit(table, 1, [remove("p=b/2.parquet", partitionValues={"p": "b"})])
        return commit(self)

    with (
        patch.object(Transaction, "commit", late),
        pytest.raises(ConcurrentDeleteReadException),
    ):
        recompute_statistics(spark, str(table))
    assert read_delta(spark, str(table)).count() == 5
