"""Caches of recent values: their size, and threads that ask for the same value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from sparkdelta.base.storage.recent_values import RecentValues


def test_oldest_value_is_dropped_beyond_the_size() -> None:
    values: RecentValues[str, int] = RecentValues(2)
    for number, key in enumerate(("a", "b", "a", "c")):
        values.keep(key, number)
    assert [values.find(key) for key in "abc"] == [2, None, 3]


def test_value_is_made_once_while_other_threads_wait() -> None:
    values: RecentValues[str, object] = RecentValues(1)
    is_asked, is_made = Event(), Event()

    def make() -> object:
        is_asked.set()
        assert is_made.wait(60)
        return object()

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(values.find_or_make, "a", make)
        assert is_asked.wait(60)
        second = threads.submit(values.find_or_make, "a", object)
        is_made.set()
        assert first.result(60) is second.result(60)


def test_value_that_fails_to_be_made_is_made_again() -> None:
    values: RecentValues[str, int] = RecentValues(1)

    def fail() -> int:
        raise ValueError

    with pytest.raises(ValueError):
        values.find_or_make("a", fail)
    assert values.find_or_make("a", lambda: 1) == 1
