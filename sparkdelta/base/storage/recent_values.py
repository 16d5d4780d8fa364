"""Caches of what was last read or found out, for threads that share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class RecentValues(Generic[Key, Value]):
    """A cache of the values that were last kept, up to a number of them."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, RLock()
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def find(self, key: Key) -> Value | None:
        """Return the value of a key; None if there is none."""
        with self._lock:
            return self._values.get(key)

    def keep(self, key: Key, value: Value) -> None:
        """Keep a value, and drop the oldest ones beyond the number."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def find_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key; threads that ask for a missing one wait until it is made."""
        with self._lock:
            if key not in self._values:
                self.keep(key, make())
            return self._values[key]
