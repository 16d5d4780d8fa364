"""Positions of rows in a file that is the concatenation of others, against lists of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.roaring_bitmaps import Chunks, chunks_of_rows, row_indexes
from sparkdelta.operations.compaction.moved_row_rules import CopiedFile, deleted_since

FAR = 1 << 16
"""The rows of a chunk of a bitmap: some files are larger."""

SIZES = st.integers(0, 12) | st.sampled_from([FAR - 1, FAR, FAR + 3])


@st.composite
def files(draw: st.DrawFn) -> tuple[int, set[int], set[int]]:
    """The number of rows of a file, those deleted when it was copied, and those deleted since."""
    size = draw(SIZES)
    rows = st.integers(0, max(size - 1, 0)) | st.integers(max(size - 3, 0), max(size - 1, 0))
    drawn = st.sets(rows, max_size=6) if size else st.just(set[int]())
    before = draw(drawn)
    return size, before, draw(drawn) - before


def bitmap(rows: set[int]) -> Chunks:
    return chunks_of_rows(np.array(sorted(rows), np.int64))


def copied(size: int, before: set[int], since: set[int]) -> CopiedFile:
    left = size - len(before)
    return CopiedFile(left, bitmap(before), bitmap(before | since)) if since else CopiedFile(left)


@given(st.lists(files(), max_size=4))
def test_deleted_rows_are_where_their_copies_are(
    drawn: list[tuple[int, set[int], set[int]]],
) -> None:
    """PROTOCOL.md#deletion-vectors"""
    rows = [
        (number, row)
        for number, (size, before, _) in enumerate(drawn)
        for row in range(size)
        if row not in before
    ]
    found = deleted_since([copied(*each) for each in drawn])
    assert found is not None
    assert {rows[position] for position in row_indexes(found).tolist()} == {
        (number, row) for number, (_, _, since) in enumerate(drawn) for row in since
    }


def test_rows_that_came_back_are_not_in_the_new_file() -> None:
    back = CopiedFile(4, bitmap({1, 2}), bitmap({2, 3}))
    assert deleted_since([CopiedFile(3), back]) is None
