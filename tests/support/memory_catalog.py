"""A stand-in for a catalog's commit API: ratified commits of tables, in memory."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkdelta import RatifiedCommits, StagedCommit


@dataclass
class MemoryCatalog:
    """`Catalog` whose calls can be made to fail before or after they have had an effect.

    Attributes
    ----------
    ratified
        The commits of each table that are stored, by version.
    latest
        The latest ratified version of each table.
    forgets
        False for a catalog that goes on storing what is published.
    """

    hook: Callable[[str, str], None] = lambda when, verb: None
    forgets: bool = True
    ratified: dict[str, dict[int, StagedCommit]] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def with_hook(self, hook: Callable[[str, str], None]) -> MemoryCatalog:
        """This catalog as another client asks it, with a hook of its own."""
        return MemoryCatalog(hook, self.forgets, self.ratified, self.latest, self._lock)

    def get_commits(self, table: str) -> RatifiedCommits:
        self.hook("before", "get_commits")
        with self._lock:
            commits = self.ratified.get(table, {})
            found = RatifiedCommits(
                self.latest.get(table, -1), tuple(commits[v] for v in sorted(commits))
            )
        self.hook("after", "get_commits")
        return found

    def commit(self, table: str, commit: StagedCommit) -> None:
        self.hook("before", "ratify")
        with self._lock:
            last = self.latest.get(table, -1)
            if commit.version <= last:
                raise FileExistsError(errno.EEXIST, "ratified", str(commit.version))
            if commit.version != last + 1:
                raise OSError(errno.EINVAL, "not the next version", str(commit.version))
            self.ratified.setdefault(table, {})[commit.version] = commit
            self.latest[table] = commit.version
        self.hook("after", "ratify")

    def published(self, table: str, version: int) -> None:
        self.hook("before", "published")
        with self._lock:
            for stored in list(self.ratified.get(table, {})) if self.forgets else ():
                if stored <= version:
                    del self.ratified[table][stored]
        self.hook("after", "published")
