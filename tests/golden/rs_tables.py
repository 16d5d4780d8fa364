"""Golden tables written by delta-rs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.golden.workbench import delta_rs_table

UTC = dt.timezone.utc


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{number}" for number in ids]})


@delta_rs_table("rs-simple", "op_append", "op_overwrite")
def simple(path: Path) -> None:
    """Appends and an overwrite."""
    write_deltalake(path, _rows(1, 2, 3), name="simple", description="written by delta-rs")
    write_deltalake(path, _rows(4), mode="append")
    write_deltalake(path, _rows(5, 6), mode="overwrite")
    write_deltalake(path, _rows(7), mode="append")


@delta_rs_table("rs-partitioned", "partitioned", "uri_encoding", "null")
def partitioned(path: Path) -> None:
    """Two partition columns with special characters, null, empty string; a partition replaced."""
    parts = [
        "a b",
        "100%",
        "a/b=c",
        "12:30",
        "#&+?",
        "snow 雪",
        None,
        "",
        'it\'s "q"',
        "back\\slash",
        "%2F",
    ]
    table = pa.table(
        {
            "id": pa.array(range(len(parts)), pa.int32()),
            "part": pa.array(parts, pa.string()),
            "day": pa.array([dt.date(2024, 2, 29 - n % 3) for n in range(len(parts))]),
        }
    )
    write_deltalake(path, table, partition_by=["part", "day"])
    more = table.slice(0, 2)
    write_deltalake(path, more, mode="append")
    write_deltalake(path, table.slice(2, 1), mode="overwrite", predicate="part = 'a/b=c'")


@delta_rs_table("rs-partition-types", "partitioned", "partition_types", "binary", escaped=("bin",))
def partition_types(path: Path) -> None:
    """Binary (escaped), timestamp, timestamp without zone, decimal, boolean and double partition
    values.
    """
    when = dt.datetime(2024, 2, 29, 1, 2, 3, 456789)
    old = dt.datetime(1582, 10, 4, 23, 59, 59)
    table = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "bin": pa.array([b"\x00\x01\xff", b"abc", None, "ü".encode()], pa.binary()),
            "ts": pa.array([when, old, None, when], pa.timestamp("us", "UTC")),
            "ntz": pa.array([when, old, None, when], pa.timestamp("us")),
            "dec": pa.array(
                [Decimal("1.50"), Decimal("-12.00"), None, Decimal("0.00")], pa.decimal128(10, 2)
            ),
            "flag": pa.array([True, False, None, True]),
            "dbl": pa.array([1.5, -1.5e10, None, 0.1], pa.float64()),
        }
    )
    write_deltalake(path, table, partition_by=["bin", "ts", "ntz", "dec", "flag", "dbl"])
    write_deltalake(path, table.slice(0, 1), mode="append")


@delta_rs_table("rs-checkpointed", "checkpoint_classic", "log_truncated", "partitioned", "txn")
def checkpointed(path: Path) -> None:
    """A checkpoint written by delta-rs, commits after it, an application transaction."""
    for number in range(4):
        table = _rows(number, number + 100).append_column(
            "part", pa.array([number % 2, None], pa.int32())
        )
        properties = CommitProperties(app_transactions=[Transaction("my-app", number)])
        write_deltalake(
            path, table, mode="append", partition_by=["part"], commit_properties=properties
        )
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).delete("id = 101")
    DeltaTable(path).delete("part = 0")


@delta_rs_table("rs-dml", "op_delete", "op_update", "op_merge", "op_optimize", "op_restore")
def dml(path: Path) -> None:
    """Delete, update, merge, optimize and restore."""
    write_deltalake(path, _rows(*range(6)))
    DeltaTable(path).delete("id = 2")
    DeltaTable(path).update({"name": "'updated'"}, predicate="id > 3")
    DeltaTable(path).merge(
        _rows(5, 9), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update({"name": "s.name"}).when_not_matched_insert(
        {"id": "s.id", "name": "s.name"}
    ).execute()
    write_deltalake(path, _rows(20), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).restore(1)


@delta_rs_table("rs-log-compaction", "log_compaction", "checkpoint_classic")
def log_compaction(path: Path) -> None:
    """Log compaction files of versions 1 to 3 and 5 to 7 beside the commits; a checkpoint of
    version 4.
    """
    for number in range(5):
        write_deltalake(path, _rows(number), mode="append" if number else "error")
        if number == 3:
            DeltaTable(path).delete("id = 1")
    DeltaTable(path).compact_logs(1, 3)
    DeltaTable(path).create_checkpoint()
    for number in range(10, 13):
        write_deltalake(path, _rows(number), mode="append")
    DeltaTable(path).delete("id = 10")
    DeltaTable(path).compact_logs(6, 8)


@delta_rs_table("rs-types", "types", "nested", "null", "timestampNtz")
def types(path: Path) -> None:
    """Every type that delta-rs writes, nested ones and nulls; then a column of a merged schema."""
    at = dt.datetime(1815, 12, 10, 1, 2, 3, 4)
    table = pa.table(
        {
            "i8": pa.array([1, None], pa.int8()),
            "i16": pa.array([2, None], pa.int16()),
            "i32": pa.array([3, None], pa.int32()),
            "i64": pa.array([4, None], pa.int64()),
            "f32": pa.array([float("nan"), None], pa.float32()),
            "f64": pa.array([float("-inf"), None], pa.float64()),
            "dec": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
            "flag": pa.array([True, None]),
            "s": pa.array(["", None]),
            "bin": pa.array([b"\x00\xff", None]),
            "d": pa.array([dt.date(1500, 2, 28), None]),
            "ts": pa.array([at.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "ntz": pa.array([at, None], pa.timestamp("us")),
            "st": pa.array(
                [{"a": 1, "b": [1, None]}, None],
                pa.struct({"a": pa.int32(), "b": pa.list_(pa.int64())}),
            ),
            "m": pa.array(
                [[("k", [{"x": 1.5}])], None],
                pa.map_(pa.string(), pa.list_(pa.struct({"x": pa.float64()}))),
            ),
        }
    )
    write_deltalake(path, table)
    wider = pa.table({"i32": pa.array([9], pa.int32()), "new": ["n"]})
    write_deltalake(path, wider, mode="append", schema_mode="merge")


@delta_rs_table("rs-odd-names", "odd_names", "partitioned")
def odd_names(path: Path) -> None:
    """Column names with dots, spaces, unicode and capitals, without column mapping."""
    table = pa.table(
        {"a.b": [1, 2], "With Space": ["x", None], "ÜNÏ": [1.5, None], "Part One": ["p q", None]}
    )
    write_deltalake(path, table, partition_by=["Part One"])
    DeltaTable(path).delete("`a.b` = 1")
