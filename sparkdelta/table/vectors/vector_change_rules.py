"""Deletion vectors that two concurrent commits give one data file.

A transaction that deletes rows of a file by a new deletion vector can follow a commit that did the
same, if both replace the same vector and no row is deleted by both: its vector then has the rows of
both. `table.commit.vector_rebase` reads and writes the vectors.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-file-and-remove-file,
PROTOCOL.md#writer-requirement-for-deletion-vectors
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.protocol.roaring_bitmaps import (
    Chunks,
    cardinality,
    difference,
    intersects,
    union,
)
from sparkdelta.base.protocol.wide_statistics import num_records, wide_statistics

ReadVector: TypeAlias = Callable[[DeletionVectorDescriptor], Chunks]


@dataclass(frozen=True, slots=True)
class VectorChange:
    """The remove and the add of one data file in one commit, which change its deletion vector."""

    remove: RemoveFile
    add: AddFile


def vector_changes(
    adds: Iterable[AddFile], removes: Iterable[RemoveFile], *, table_root: str
) -> dict[str, VectorChange]:
    """Return the data files that a commit removes once and adds once, by canonical path."""
    added = [(canonical_path(add.path, table_root), add) for add in adds]
    removed = [(canonical_path(remove.path, table_root), remove) for remove in removes]
    once = {path for path, count in Counter(path for path, _ in added).items() if count == 1}
    once &= {path for path, count in Counter(path for path, _ in removed).items() if count == 1}
    by_path = {path: remove for path, remove in removed if path in once}
    return {
        path: VectorChange(by_path[path], add)
        for path, add in added
        if path in once and by_path[path].partition_values in (None, add.partition_values)
    }


def deleted_by(change: VectorChange, read: ReadVector) -> Chunks | None:
    """Return the rows that a change deletes; None if it brings deleted rows back."""
    before, after = (_rows(action, read) for action in (change.remove, change.add))
    return None if cardinality(difference(before, after)) else difference(after, before)


def united_rows(mine: VectorChange, winners: VectorChange, read: ReadVector) -> Chunks | None:
    """Return all deleted rows of a file after two changes of its vector.

    None if mine cannot follow the winner's: they replace different vectors, delete the same row, or
    bring rows back; or the number of rows of the file is not known.
    """
    if mine.remove.deletion_vector != winners.remove.deletion_vector:
        return None
    rows, others = deleted_by(mine, read), deleted_by(winners, read)
    if rows is None or others is None or intersects(rows, others):
        return None
    if num_records(mine.add.stats) is None:
        return None
    return union(_rows(winners.add, read), rows)


def has_rows_left(mine: VectorChange, united: Chunks) -> bool:
    """Return True unless the united rows are all rows of the file."""
    return cardinality(united) != num_records(mine.add.stats)


def following(
    mine: VectorChange, winners: VectorChange, vector: DeletionVectorDescriptor | None
) -> tuple[RemoveFile, AddFile | None]:
    """Return the transaction's actions for a file, adapted to follow a winning commit.

    `vector` has the `united_rows`; None if no row is left.
    """
    file = winners.add
    remove = replace(
        mine.remove,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )
    records, deleted = num_records(mine.add.stats), file.deletion_vector
    if vector is None or records is None:
        return remove, None
    stats = wide_statistics(
        file.stats, num_records=records, cardinality=0 if deleted is None else deleted.cardinality
    )
    data_change = mine.add.data_change
    return remove, replace(file, deletion_vector=vector, stats=stats, data_change=data_change)


def _rows(action: AddFile | RemoveFile, read: ReadVector) -> Chunks:
    return {} if action.deletion_vector is None else read(action.deletion_vector)
