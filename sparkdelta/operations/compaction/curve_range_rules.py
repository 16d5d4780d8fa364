"""Ranges of columns and of places on a curve, from a sample of rows, that give files of about equal
size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparkdelta.operations.compaction.curve_rules import Curve, Integers

Keys: TypeAlias = NDArray[Any]

NOISE_BITS = 8
"""The number of bits below those of a place: they tell rows of one cell apart, so that several
files can share it."""

_RANGES_PER_FILE = 16
_LARGE_CELL = 0.1  # of a file: smaller ones are not cut
_SEED = 1  # the same rows are laid out in the same way


@dataclass(frozen=True, slots=True)
class CurveRanges:
    """Ranges of the rows that one group of files holds.

    Attributes
    ----------
    bounds
        Of each column, the upper bounds (inclusive) of all ranges but the last. The number of a
        range is a coordinate on the curve. A frequent value bounds several ranges, so that it
        takes as much of the grid as of the rows.
    last_places
        The last place of each file but the last one, with the bits of the noise.
    """

    bounds: tuple[tuple[float | str, ...], ...]
    last_places: tuple[int, ...]

    @classmethod
    def of(cls, keys: Sequence[Keys], curve: Curve, num_files: int) -> CurveRanges:
        """Compute the ranges from the keys of a sample.

        Parameters
        ----------
        keys
            Of each column, those of all sampled rows.
        """
        count = len(keys[0])
        if not count:
            return cls(((),) * len(keys), ())
        ranges = min(1 << curve.bits, 1 << (_RANGES_PER_FILE * num_files - 1).bit_length())
        bounds = [np.sort(column)[_cuts(count, ranges)] for column in keys]
        cells = curve.places([np.searchsorted(b, k) for b, k in zip(bounds, keys, strict=True)])
        noise = np.random.default_rng(_SEED).integers(0, 1 << NOISE_BITS, count)
        places = np.sort(cells << NOISE_BITS | noise)
        last = places[_cuts(count, num_files)]
        is_large = _share(places >> NOISE_BITS, last >> NOISE_BITS) * num_files > _LARGE_CELL
        last = np.where(is_large, last, last | (1 << NOISE_BITS) - 1)
        return cls(tuple(tuple(each.tolist()) for each in bounds), tuple(last.tolist()))


def _cuts(count: int, parts: int) -> Integers:
    """The index of the last item of each part but the last, if items are cut into equal parts."""
    return np.maximum(np.arange(1, parts, dtype=np.int64) * count // parts - 1, 0)


def _share(cells: Integers, of: Integers) -> NDArray[np.float64]:
    """The fraction of the sorted cells that are equal to each of the given ones."""
    number = np.searchsorted(cells, of, "right") - np.searchsorted(cells, of, "left")
    return number / len(cells)
