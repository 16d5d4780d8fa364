"""Tests of the bounds of decoded bitmaps, from what the log says of them.

PROTOCOL.md#deletion-vector-descriptor-schema
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta
from sparkdelta.table.scan import native_scan
from sparkdelta.table.scan.deletion_vector_files import decoded_bytes
from tests.support.distributed import listed_at_once
from tests.support.log_writer import write_commit
from tests.support.snapshots import rows
from tests.support.spark_jobs import plan
from tests.support.table_builder import ids, inline_vector, metadata, protocol, write_data

CHUNK = 65_536
CHUNK_BYTES = CHUNK // 8
_VECTOR = pa.struct([("sizeInBytes", pa.int32()), ("cardinality", pa.int64())])
FILES = pa.schema([("deletionVector", _VECTOR), ("numRecords", pa.int64())])


def _chunks(*files: tuple[int | None, int | None, int | None]) -> float:
    """The estimate for files of a cardinality, size and number of rows, in chunks."""
    listed = [
        {"deletionVector": {"cardinality": deleted, "sizeInBytes": size}, "numRecords": count}
        for deleted, size, count in files
    ]
    return decoded_bytes(pa.Table.from_pylist(listed, schema=FILES)) / CHUNK_BYTES


@pytest.mark.parametrize(
    ("deleted", "size", "count", "chunks"),
    [(0, 20, 10**9, 0), (1, 10**6, 10**9, 1), (7, 10**6, 10**9, 7),
     (10**9, 0, 10**9, 1), (10**9, 34, 10**9, 4), (10**9, 40, 10**9, 5),
     (10**9, 2**31 - 1, 1, 1), (10**9, 2**31 - 1, CHUNK - 1, 1), (10**9, 2**31 - 1, CHUNK + 1, 2),
     (2**40, 2**31 - 1, 2**62, 2**31 // 10 + 1)],
)  # fmt: skip
def test_the_least_of_three_bounds_counts(deleted: int, size: int, count: int, chunks: int) -> None:
    assert _chunks((deleted, size, count)) == chunks


@pytest.mark.parametrize(
    ("deleted", "size", "count", "chunks"),
    [(9, 30, None, 4), (3, 90, None, 3), (9, None, CHUNK, 2), (None, 30, None, 4),
     (9, None, None, 9), (None, None, None, 0)],
)  # fmt: skip
def test_unknown_vector_sizes_count_in_full(
    deleted: int | None, size: int | None, count: int | None, chunks: int
) -> None:
    assert _chunks((deleted, size, count)) == chunks


def test_files_are_summed_up() -> None:
    assert _chunks() == 0
    assert _chunks((1, 90, 90), (9, 30, None), (9, 900, CHUNK)) == 1 + 4 + 2


@pytest.mark.parametrize(
    "positions",
    [
        range(CHUNK), range(3 * CHUNK), range(0, 40 * CHUNK, CHUNK), [5], [0, CHUNK - 1, CHUNK],
        [2**32 - 1, 2**32, 2**33 + CHUNK], range(0, 20 * CHUNK, 1_000), [],
    ],
)  # fmt: skip
def test_no_bitmap_is_larger(positions: Iterable[int]) -> None:
    deleted = list(positions)
    vector = inline_vector(deleted)
    count = max(deleted, default=0) + 1
    needed = len({position // CHUNK for position in deleted})
    for known in (count, None):
        assert _chunks((vector["cardinality"], vector["sizeInBytes"], known)) >= needed


@pytest.mark.parametrize(("bound", "shuffled"), [(2 * CHUNK_BYTES, False), (CHUNK_BYTES, True)])
@pytest.mark.full
def test_larger_ones_are_not_broadcast(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, bound: int, shuffled: bool
) -> None:
    """Larger bitmaps are not broadcast by Spark either, which takes them for small: it does not
    know what they decode to.
    """
    monkeypatch.setattr(native_scan, "DELETION_VECTOR_BROADCAST_BYTES", bound)
    files = [
        write_data(table, name, ids(0, 4), deletionVector=inline_vector([1])) for name in ("f", "g")
    ]
    write_commit(table, 0, [protocol(features=["deletionVectors"]), metadata(), *files])
    with listed_at_once():
        frame = read_delta(spark, str(table))
    assert any(node.name == "ShuffledHashJoin" for node in plan(frame)) == shuffled
    assert rows(frame) == [(0,), (0,), (2,), (2,), (3,), (3,)]
