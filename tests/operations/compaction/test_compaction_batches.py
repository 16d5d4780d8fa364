"""The order in which files are packed; no Spark."""

from __future__ import annotations

import pyarrow as pa

from sparkdelta.operations.compaction.compaction_batches import _ordered


def test_files_are_ordered_as_spark_orders_them() -> None:
    """A null partition value is first, and texts are ordered by their bytes."""
    values = [
        ("b", 2, "x"),
        (None, 9, "y"),
        ("\U0001f600", 1, "z"),
        ("\uffff", 1, "z"),
        (None, 3, "b"),
    ]
    values += [("b", 2, "a"), ("", 5, "c")]
    names = ["p", "size", "path"]
    table = pa.table([list(column) for column in zip(*values, strict=True)], names)
    found = [tuple(row.values()) for row in _ordered(table, names).to_pylist()]
    assert found == sorted(
        values, key=lambda row: (row[0] is not None, (row[0] or "").encode(), *row[1:])
    )
