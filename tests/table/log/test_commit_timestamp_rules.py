"""File times made strictly increasing, and the search among them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.table.log.commit_timestamp_rules import strictly_increasing, version_at_or_before


@pytest.mark.parametrize(
    ("times", "adjusted"),
    [
        ([], []),
        ([5], [5]),
        ([1, 2, 3], [1, 2, 3]),
        ([1, 1, 1], [1, 2, 3]),
        ([10, 5, 4, 11, 30], [10, 11, 12, 13, 30]),
        ([10, 5, 20], [10, 11, 20]),
    ],
)
def test_adjustment(times, adjusted):
    pairs = strictly_increasing(list(enumerate(times)))
    assert pairs == list(enumerate(adjusted))


@pytest.mark.parametrize(
    ("timestamp", "version"), [(9, None), (10, 3), (11, 3), (20, 4), (29, 4), (30, 7), (99, 7)]
)
def test_search(timestamp, version):
    assert version_at_or_before([(3, 10), (4, 20), (7, 30)], timestamp) == version


def test_search_in_nothing():
    assert version_at_or_before([], 5) is None


@given(st.lists(st.integers(0, 50)), st.integers(-1, 120))
def test_properties(times, moment):
    pairs = strictly_increasing(list(enumerate(times)))
    assert [version for version, _ in pairs] == list(range(len(times)))
    assert all(a < b for (_, a), (_, b) in pairwise(pairs))
    assert all(after >= before for (_, after), before in zip(pairs, times, strict=True))
    expected = max((version for version, time in pairs if time <= moment), default=None)
    assert version_at_or_before(pairs, moment) == expected
