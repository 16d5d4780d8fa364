"""Turns of the threads of a process that commit to the same table.

Without them, threads race for each version: all but one lose, compare their commits with the one
that won, and race again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.table.commit.committer import NO_VERSION

_MAX_TABLES = 1_000


class CommitTurns:
    """A queue of threads: one commits at a time, and the one that came first is next.

    Attributes
    ----------
    last_version
        The version that was committed last in a turn.
    """

    def __init__(self) -> None:
        self.last_version = NO_VERSION
        self._changed = threading.Condition()
        self._threads: deque[int] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn of this thread, which lasts for a block; not within its own turn."""
        thread = threading.get_ident()
        with self._changed:
            is_nested = thread in self._threads
            if not is_nested:
                self._threads.append(thread)
        try:
            with self._changed:
                self._changed.wait_for(lambda: is_nested or self._threads[0] == thread)
            yield
        finally:
            if not is_nested:
                with self._changed:
                    self._threads.remove(thread)
                    self._changed.notify_all()


_recent: RecentValues[str, CommitTurns] = RecentValues(_MAX_TABLES)


def commit_turns(table_root: str) -> CommitTurns:
    """Return the turns of the threads of this process that commit to a table."""
    return _recent.find_or_make(table_root, CommitTurns)
