"""Serialized bitmaps of given rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparkdelta.base.protocol.roaring_bitmaps import chunks_of_rows, encode_chunks


def encode(positions: Sequence[int] | npt.NDArray[np.int64]) -> bytes:
    """The bitmap of row indexes, in any order and with repetitions.

    PROTOCOL.md#deletion-vector-format
    """
    return encode_chunks(chunks_of_rows(np.asarray(positions, np.int64)))
