"""Histograms of a version checksum. PROTOCOL.md#file-size-histogram-schema"""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.file_totals import (
    DELETED_BOUNDARIES,
    SIZE_BOUNDARIES,
    FileBin,
    FileSizeHistogram,
    FileTotals,
)

BOUNDARIES = (0, 1024, 4096)
Files = list[tuple[int, int]]
FILES = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from([0, 1, 9, 10, 2**31])))


def totals(files: Files, sign: int = 1) -> FileTotals:
    """The totals of files of a size and a number of deleted records."""
    bins = [
        FileBin(
            size_bin=bisect_right(BOUNDARIES, size) - 1,
            deleted_bin=bisect_right(DELETED_BOUNDARIES, deleted) - 1,
            files=sign,
            size_bytes=sign * size,
            deletion_vectors=sign * (deleted > 0),
            deleted_records=sign * deleted,
        )
        for size, deleted in files
    ]
    return FileTotals.of(bins, BOUNDARIES)


def test_the_protocols_example() -> None:
    found = totals([(0, 0), (1023, 0), (1024, 0), (4096, 0), (99_999, 0)])
    assert found.sizes.file_counts == (2, 1, 2)
    assert found.sizes.total_bytes == (1023, 1024, 104_095)


def test_deleted_records_have_the_protocols_bins() -> None:
    """PROTOCOL.md#deleted-record-counts-histogram-schema"""
    first = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2_147_483_647]
    last = [0, 9, 99, 999, 9_999, 99_999, 999_999, 9_999_999, 2_147_483_646, 2**62]
    assert len(DELETED_BOUNDARIES) == 10
    for counts in (first, last):
        assert totals([(1, count) for count in counts]).deleted_counts == (1,) * 10


def test_the_boundaries_of_sizes() -> None:
    """The boundaries are those that delta-spark writes."""
    assert list(SIZE_BOUNDARIES) == sorted(set(SIZE_BOUNDARIES))
    assert len(SIZE_BOUNDARIES) == 95
    kilobytes = [0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12_288]
    assert [size // 1024 for size in SIZE_BOUNDARIES[:13]] == kilobytes
    assert SIZE_BOUNDARIES[-1] == 256 * 2**30


@given(FILES, FILES, st.data())
def test_a_change_adds_up(files: Files, added: Files, data: st.DataObject) -> None:
    removed = data.draw(st.lists(st.sampled_from(files), unique=True)) if files else []
    after = list(files)
    for file in removed:
        after.remove(file)
    found = totals(files).plus(totals(removed, sign=-1))
    assert found is not None
    assert found.plus(totals(added)) == totals(after + added)


def test_impossible_totals_are_unknown() -> None:
    """A file is gone that was not there; a file of another size."""
    assert totals([(10, 0)]).plus(totals([(2000, 0)], sign=-1)) is None
    assert totals([(10, 0)]).plus(totals([(10, 5)], sign=-1)) is None
    assert totals([(10, 0)]).plus(FileTotals.of([], (0, 7))) is None


def test_the_wire_form() -> None:
    histogram = totals([(1, 0), (5000, 0)]).sizes
    document = histogram.to_dict()
    assert document == {
        "sortedBinBoundaries": [0, 1024, 4096], "fileCounts": [1, 0, 1], "totalBytes": [1, 0, 5000],
    }  # fmt: skip
    assert FileSizeHistogram.from_dict(document) == histogram


@pytest.mark.parametrize(
    "change",
    [
        {"sortedBinBoundaries": [1, 1024, 4096]},
        {"sortedBinBoundaries": [0, 4096, 1024]},
        {"sortedBinBoundaries": []},
        {"fileCounts": [1, 0]},
        {"totalBytes": [1, 0, "5"]},
        {"totalBytes": None},
    ],
)
def test_malformed_histograms_are_unknown(change: dict[str, object]) -> None:
    assert FileSizeHistogram.from_dict({**totals([]).sizes.to_dict(), **change}) is None
    assert FileSizeHistogram.from_dict([]) is None
