"""The positions of rows in a file that is the concatenation of others.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sparkdelta.base.protocol.roaring_bitmaps import (
    Chunks,
    cardinality,
    chunks_of_rows,
    difference,
    row_indexes,
)


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file whose live rows were copied, in their order, into a larger file.

    Attributes
    ----------
    num_rows
        The number of copied rows.
    before, after
        The rows that were deleted when it was copied, and those that are deleted now; both may be
        empty if they are the same.
    """

    num_rows: int
    before: Chunks = field(default_factory=dict)
    after: Chunks = field(default_factory=dict)


def deleted_since(files: Sequence[CopiedFile]) -> Chunks | None:
    """Return the rows of the larger file that were deleted since they were copied; None if a row
    that was deleted then is not any more.

    Parameters
    ----------
    files
        In the order in which the larger file has their rows.
    """
    found, first = [np.zeros(0, np.int64)], 0
    for file in files:
        if cardinality(difference(file.before, file.after)):
            return None
        deleted = row_indexes(difference(file.after, file.before))
        # A row follows those before it in its file, without the ones that were deleted then.
        found.append(first + deleted - np.searchsorted(row_indexes(file.before), deleted))
        first += file.num_rows
    return chunks_of_rows(np.concatenate(found))
