"""Two changes of the deletion vector of one file: the rows that they delete together.

PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparkdelta.base.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    decode,
    z85_encode,
)
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.roaring_bitmaps import Chunks, chunks_of_rows, deleted_rows
from sparkdelta.table.vectors.vector_change_rules import (
    VectorChange,
    following,
    has_rows_left,
    united_rows,
    vector_changes,
)
from tests.support.bitmaps import encode

ROOT = "file:/t"
FAR = 1 << 20  # in another chunk
STATS = json.dumps({"numRecords": FAR + 3, "minValues": {"v": 1}, "nullCount": {"v": 0}})


def vector(*rows: int) -> DeletionVectorDescriptor | None:
    if not rows:
        return None
    data = encode(rows)
    text = z85_encode(data + bytes(-len(data) % 4))
    return DeletionVectorDescriptor("i", text, None, len(data), len(rows))


def change(before: tuple[int, ...], after: tuple[int, ...], **fields: object) -> VectorChange:
    stats = fields.pop("stats", STATS)
    add = AddFile(
        "a%20b", {"p": "1"}, 9, 8, True, str(stats), deletion_vector=vector(*after), **fields
    )  # type: ignore[arg-type]
    return VectorChange(RemoveFile("a%20b", 5, True, deletion_vector=vector(*before)), add)


def positions(chunks: Chunks | None) -> list[int] | None:
    if chunks is None:
        return None
    found = deleted_rows(chunks, 0, FAR + 9)
    return [] if found is None else np.flatnonzero(found).tolist()


@pytest.mark.parametrize(
    ("mine", "winners", "united"),
    [
        (((), (1,)), ((), (2, FAR)), [1, 2, FAR]),
        (((7,), (7, 1)), ((7,), (7, 2)), [1, 2, 7]),
        (((7,), (7, 1)), ((7,), (7,)), [1, 7]),
        (((), (1, 3)), ((), (2, 3)), None),  # both delete row 3
        (((7,), (7, 1)), ((), (2,)), None),  # of another vector
        (((), (1,)), ((2,), (2, 3)), None),
        (((7,), (7, 1)), ((7,), (2,)), None),  # row 7 comes back
        (((7,), (7, 1)), ((7,), ()), None),
        (((7,), (1,)), ((7,), (7, 2)), None),
    ],
)
def test_united_rows(mine, winners, united) -> None:  # type: ignore[no-untyped-def]
    assert positions(united_rows(change(*mine), change(*winners), decode)) == united


def test_of_a_file_without_a_number_of_rows() -> None:
    """PROTOCOL.md#writer-requirement-for-deletion-vectors"""
    mine = change((), (1,), stats="{}")
    assert united_rows(mine, change((), (2,)), decode) is None


def test_actions_that_follow() -> None:
    """The file is as the winner left it, with all deleted rows, wide bounds and its row ids."""
    winners = change((), (2,), base_row_id=40, default_row_commit_version=3)
    both = vector(1, 2)
    remove, add = following(change((), (1,)), winners, both)
    assert remove == RemoveFile(
        "a%20b", 5, True, deletion_vector=vector(2), base_row_id=40, default_row_commit_version=3
    )
    assert add is not None
    assert add.deletion_vector == both
    assert (add.base_row_id, add.default_row_commit_version, add.size) == (40, 3, 9)
    assert json.loads(str(add.stats)) == {**json.loads(STATS), "tightBounds": False}


def test_no_row_is_left() -> None:
    three = '{"numRecords":3}'
    mine, winners = change((), (1,), stats=three), change((), (0, 2), stats=three)
    united = united_rows(mine, winners, decode)
    assert united is not None
    assert not has_rows_left(mine, united)
    assert has_rows_left(mine, chunks_of_rows(np.array([0, 2])))
    remove, add = following(mine, winners, None)
    assert (remove.deletion_vector, add) == (vector(0, 2), None)


def test_which_files_a_commit_changes() -> None:
    """PROTOCOL.md#add-file-and-remove-file: those that it removes and adds under one path."""
    here, other = change((), (1,)), change((), (2,))
    [found] = vector_changes([here.add], [here.remove], table_root=ROOT).items()
    assert found == ("a b", here)
    assert not vector_changes([here.add], [], table_root=ROOT)
    assert not vector_changes([], [here.remove], table_root=ROOT)
    assert not vector_changes([here.add, other.add], [here.remove], table_root=ROOT)
    moved = RemoveFile("a%20b", 5, True, partition_values={"p": "2"})
    assert not vector_changes([here.add], [moved], table_root=ROOT)
