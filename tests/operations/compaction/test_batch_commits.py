"""The bins that new files come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.operations.compaction.batch_commits import added_by_bin
from sparkdelta.operations.compaction.compaction_batches import Batch
from sparkdelta.operations.compaction.row_order import RowOrder
from sparkdelta.table.scan.scan_request import partition_column

TABLE = SimpleNamespace(configuration=SimpleNamespace(partition_keys=[("p", None)]))


def bin_of(partition: str | None, *num_rows: int | None) -> pa.Table:
    """Files of a partition with numbers of rows."""
    none = pa.nulls(len(num_rows), pa.struct([("storageType", pa.string())]))
    return pa.table(
        {
            partition_column(0): pa.array([partition] * len(num_rows), pa.string()),
            "numRecords": pa.array(num_rows, pa.int64()),
            "deletionVector": none,
        }
    )


def added(task: int | str, partition: str | None, num_rows: int) -> AddFile:
    name = task if isinstance(task, str) else f"part-{task:05d}-0a-1b.c000.zstd.parquet"
    stats = json.dumps({"numRecords": num_rows})
    return AddFile(f"p={partition}/{name}", {"p": partition}, 1, 1, False, stats)


def numbers(bins: Sequence[pa.Table], adds: Sequence[AddFile] | None, **more: Any) -> Any:
    """The numbers of the added files of each bin."""
    batch = Batch(cast("Any", TABLE), tuple(bins), (1,) * len(bins), **more)
    found = added_by_bin(batch, adds)
    return {number: [(adds or ()).index(add) for add in own] for number, own in found.items()}


BINS = [bin_of("1", 2, 1), bin_of("1", 0), bin_of(None, 5)]


def test_a_task_writes_the_file_of_a_bin() -> None:
    files = [added(2, None, 5), added(0, "1", 3)]
    assert numbers(BINS, files) == {0: [1], 1: [], 2: [0]}


@pytest.mark.parametrize(
    "files",
    [
        None,
        [added(2, None, 5)],
        [added(2, None, 5), added(0, "1", 4)],
        [added(2, None, 5), added(1, "1", 3)],
        [added(2, None, 5), added(3, "1", 3)],
        [added(2, None, 5), added(0, "1", 1), added(0, "1", 2)],
        [added("other.parquet", None, 5), added(0, "1", 3)],
    ],
)
def test_files_of_which_the_bin_is_not_certain(files: list[AddFile] | None) -> None:
    assert numbers(BINS, files) == {}


def test_rows_that_are_not_counted() -> None:
    assert numbers([bin_of("1", 2, None)], [added(0, "1", 3)]) == {}


def test_ordered_rows_of_partitions() -> None:
    order, bins = RowOrder((("id",),)), [bin_of("1", 4), bin_of("2", 4), bin_of("01", 4)]
    files = [added(0, "2", 1), added(1, "1", 4), added(2, "2", 3)]
    assert numbers(bins[:2], files, order=order) == {0: [1], 1: [0, 2]}
    spelled = [added(0, "2", 4), added(1, "1", 8)]  # new files spell "01" as "1"
    assert numbers(bins, spelled, order=order) == {}
    assert numbers([bin_of(None, 4)], [added(7, None, 4)], order=order) == {0: [0]}
