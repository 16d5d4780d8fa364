"""Work on tables that follows their commits, by a thread of the process: no writer waits for it."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - registers its hook before ours
import threading
from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

_Work = TypeVar("_Work")


class BackgroundThread(Generic[_Work]):
    """A thread that works on one table after the other, and ends when none waits.

    The process does not end before it.

    Parameters
    ----------
    work
        Called with what waits for a table; it must not raise.
    join
        Returns the work of a table that already waits and of a later commit, as one.
    """

    def __init__(
        self, name: str, work: Callable[[_Work], None], join: Callable[[_Work, _Work], _Work]
    ) -> None:
        self._name, self._work, self._join = name, work, join
        self._lock = Lock()
        self._waiting: dict[str, _Work] = {}
        self._thread: Thread | None = None
        # The work may use executors: these take nothing more once a process ends, but for hooks
        # that were registered after theirs. `atexit` is too late.
        threading._register_atexit(self.wait)  # type: ignore[attr-defined] # noqa: SLF001

    def add(self, table: str, work: _Work) -> None:
        """Let a table wait for its turn, which it keeps if it already waits."""
        with self._lock:
            earlier = self._waiting.get(table)
            self._waiting[table] = work if earlier is None else self._join(earlier, work)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name=self._name)
                self._thread.start()

    def wait(self) -> None:
        """Wait until no table waits."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            self._work(work)

    def _next(self) -> _Work | None:
        with self._lock:
            if not self._waiting:
                self._thread = None
                return None
            return self._waiting.pop(next(iter(self._waiting)))
