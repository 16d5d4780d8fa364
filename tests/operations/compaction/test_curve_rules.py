"""Places on space-filling curves."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from sparkdelta.operations.compaction.curve_rules import Curve


def cells(curve: Curve) -> list[tuple[int, ...]]:
    """All cells in the order of the curve."""
    grid = list(product(range(1 << curve.bits), repeat=curve.dimensions))
    places = curve.places([np.array(c, np.int64) for c in zip(*grid, strict=True)])
    assert sorted(places) == list(range(len(grid)))
    return [cell for _, cell in sorted(zip(places.tolist(), grid, strict=True))]


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 5), (3, 3), (4, 2), (5, 2)])
def test_a_hilbert_curve_goes_from_cell_to_neighbour(dimensions: int, bits: int) -> None:
    path = cells(Curve(dimensions, bits, is_hilbert=True))
    for one, other in pairwise(path):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


def test_the_corner_of_a_grid_is_passed_first() -> None:
    """Fewer ranges than the grid has keep together."""
    path = cells(Curve(2, 4, is_hilbert=True))
    assert set(path[:16]) == set(product(range(4), repeat=2))


def test_z_order_interleaves_bits() -> None:
    path = cells(Curve(2, 2, is_hilbert=False))
    assert path[:5] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]
    assert cells(Curve(1, 3, is_hilbert=False)) == [(n,) for n in range(8)]


@pytest.mark.parametrize("dimensions", range(1, 12))
def test_places_fit(dimensions: int) -> None:
    curve = Curve.through(dimensions, is_hilbert=dimensions < 6)
    last = np.array([(1 << curve.bits) - 1], np.int64)
    assert 0 < curve.places([last] * dimensions)[0] < 1 << 54
    assert curve.is_hilbert == (1 < dimensions < 6)
