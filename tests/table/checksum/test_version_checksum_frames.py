"""Files counted by the bins of both histograms."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.file_totals import DELETED_BOUNDARIES, SIZE_BOUNDARIES
from sparkdelta.base.schema.action_schemas import ADD
from sparkdelta.table.checksum.version_checksum_frames import changed_bins, file_bins
from tests.support.frame_inputs import ROOT
from tests.support.log_writer import Action
from tests.support.table_builder import add, removal_of, remove

EDGES = [size + step for size in SIZE_BOUNDARIES[1:] for step in (-1, 0)]
COUNTS = [0, 1, 9, 10, 99, 2**31 - 2, 2**31 - 1]


def vector(name: str, cardinality: int = 1) -> dict[str, Any]:
    return {
        "storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 1,
        "cardinality": cardinality,
    }  # fmt: skip


def as_dict(frame: DataFrame) -> dict[tuple[int, int], tuple[Any, ...]]:
    return {
        (row["size_bin"], row["deleted_bin"]): tuple(row[2:6])
        for row in frame.collect()
        if any(row[2:6])
    }


@pytest.mark.usefixtures("hostile")
def test_every_edge_of_every_bin(spark: SparkSession) -> None:
    """PROTOCOL.md#file-size-histogram-schema, PROTOCOL.md#deleted-record-counts-histogram-schema"""
    files = [(size, None) for size in EDGES] + [(5, vector("v", count)) for count in COUNTS]
    schema = f"size LONG, deletionVector {ADD['deletionVector'].dataType.simpleString()}"
    found = as_dict(
        file_bins(spark.createDataFrame(files, schema), size_boundaries=SIZE_BOUNDARIES)
    )
    expected: Counter[tuple[int, int]] = Counter(
        (
            bisect_right(SIZE_BOUNDARIES, size) - 1,
            bisect_right(DELETED_BOUNDARIES, dv["cardinality"] if dv else 0) - 1,
        )
        for size, dv in files
    )
    assert {key: row[0] for key, row in found.items()} == expected
    assert sum(row[1] for row in found.values()) == sum(EDGES) + 5 * len(COUNTS)
    assert sum(row[2] for row in found.values()) == len(COUNTS)
    assert sum(row[3] for row in found.values()) == sum(COUNTS)


PLAIN = add("a", size=10)
REPLACED = [removal_of(add("b", deletionVector=vector("v")), size=5),
            add("b", size=5, deletionVector=vector("w", 12))]  # fmt: skip


def changed(actions: DataFrame) -> DataFrame:
    return changed_bins(actions.coalesce(1), table_root=ROOT, size_boundaries=(0, 8))


@pytest.mark.usefixtures("hostile")
def test_changed_bins_of_a_plain_commit(actions: Callable[..., DataFrame]) -> None:
    found = changed(actions({1: [PLAIN, remove("c", size=4), *REPLACED]}))
    assert as_dict(found) == {
        (1, 0): (1, 10, 0, 0),
        (0, 0): (-1, -4, 0, 0),
        (0, 1): (-1, -5, -1, -1),
        (0, 2): (1, 5, 1, 12),
    }
    assert {row["is_plain"] for row in found.collect()} == {True}


@pytest.mark.parametrize(
    "commit",
    [
        [remove("a")],
        [PLAIN, PLAIN],
        [PLAIN, removal_of(PLAIN, size=10)],
        [PLAIN, remove("file:/t/../a", size=1), remove("%61", size=1)],
        [*REPLACED, removal_of(add("b", deletionVector=vector("x")), size=5)],
    ],
    ids=["no size", "twice", "both", "other spelling", "two vectors"],
)
def test_inexact_changes_are_not_plain(
    actions: Callable[..., DataFrame], commit: Sequence[Action]
) -> None:
    found = changed(actions({1: commit})).collect()
    assert not all(row["is_plain"] for row in found)
