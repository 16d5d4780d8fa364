"""Space-filling curves: lines through all cells of a grid on which cells that are near each other
have near places.

Rows in the order of their cells' places make files with narrow ranges of several columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]

Keys: TypeAlias = NDArray[Any]

NOISE_BITS = 8
"""The number of bits below a place: they separate rows of one cell, so that several files can share
it."""

_RANGES_PER_FILE = 16
_LARGE_CELL = 0.1  # of a file: smaller ones are not cut
_SEED = 1  # the same rows are laid out in the same way

MAX_BITS = 54
"""The most bits of a place: with a byte that separates rows of a cell, they fit a LONG."""


@dataclass(frozen=True)
class Curve:
    """A curve through a grid with `2 ** bits` ranges of each of its dimensions.

    Attributes
    ----------
    is_hilbert
        True for the Hilbert curve, of which successive cells are neighbours; False for Z-order,
        which interleaves the bits of the coordinates.
    """

    dimensions: int
    bits: int
    is_hilbert: bool

    @classmethod
    def through(cls, dimensions: int, *, is_hilbert: bool) -> Curve:
        """Return the curve for a number of columns; of one column, it is their order."""
        bits = 14 if dimensions == 1 else min(10, MAX_BITS // dimensions)
        return cls(dimensions, bits, is_hilbert and dimensions > 1)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The Hilbert curve as a state machine that takes a bit of each coordinate at a time.

        Its input is `state << dimensions | bits`, the value at that index is
        `next state << dimensions | digit of the place`. The first state is 0.
        """
        size, numbers = self.dimensions, count()
        states = {(0, 0): next(numbers)}  # where a cube is entered, and the axis that it is left by
        pending, steps = [(0, 0)], []
        for entry, axis in pending:  # grows meanwhile
            for cell in range(1 << size):
                digit = _gray_rank(_rotated(cell ^ entry, -(axis + 1), size))
                following = (
                    entry ^ _rotated(_gray_entry(digit), axis + 1, size),
                    (axis + _gray_axis(digit, size) + 1) % size,
                )
                if following not in states:
                    states[following] = next(numbers)
                    pending.append(following)
                steps.append(states[following] << size | digit)
        return tuple(steps)

    def places(self, coordinates: Sequence[Integers]) -> Integers:
        """Return the place of each cell.

        Parameters
        ----------
        coordinates
            Of each dimension, the coordinates of all cells.
        """
        steps = np.array(self.steps if self.is_hilbert else (), np.int64)
        place = step = np.zeros_like(coordinates[0])
        digits = (1 << self.dimensions) - 1
        for bit in reversed(range(self.bits)):
            digit = np.zeros_like(place)
            for coordinate in coordinates:
                digit = digit << 1 | coordinate >> bit & 1
            if self.is_hilbert:
                step = steps[step & ~digits | digit]
                digit = step & digits
            place = place << self.dimensions | digit
        return place


def _rotated(bits: int, by: int, size: int) -> int:
    by %= size
    return (bits << by | bits >> (size - by)) & ((1 << size) - 1)


def _gray_rank(code: int) -> int:
    """Return the position of a code in the sequence of Gray codes."""
    rank = code
    while code := code >> 1:
        rank ^= code
    return rank


def _gray_entry(number: int) -> int:
    """Return the corner where the curve enters the cube of this number."""
    before = max(0, (number - 1) & ~1)
    return before ^ before >> 1


def _gray_axis(number: int, size: int) -> int:
    """Return the axis along which the curve passes through the cube of this number: it depends on
    the number's trailing ones.
    """
    number = max(0, number - 1 if number % 2 == 0 else number)
    return ((~number & number + 1).bit_length() - 1) % size


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
            Of each column, the keys of all sampled rows.
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
    """Return the index of the last item of each part but the last, if items are cut into equal
    parts.
    """
    return np.maximum(np.arange(1, parts, dtype=np.int64) * count // parts - 1, 0)


def _share(cells: Integers, of: Integers) -> NDArray[np.float64]:
    """Return the fraction of the sorted cells that are equal to each of the given ones."""
    number = np.searchsorted(cells, of, "right") - np.searchsorted(cells, of, "left")
    return number / len(cells)
