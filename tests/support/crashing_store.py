"""A store whose writer dies at one of its calls; another writer sees what it left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from sparkdelta.engine import classic
from sparkdelta.storage.local import LocalLogStore
from sparkdelta.storage.local_files import LocalTableFiles
from sparkdelta.storage.log_store import Data, FileEntry
from tests.support.memory_log import Crash

CHANGES = frozenset({"put_if_absent", "overwrite", "publish", "delete", "delete_directory"})
"""The verbs that change what others see: a crash at another is one after the last of these."""


@dataclass
class Death:
    """When the writer dies: before or after the nth change. From then on no call of it succeeds.

    Attributes
    ----------
    calls
        The changes so far, in order.
    """

    nth: int
    when: str
    is_dead: bool = False
    calls: list[str] = field(default_factory=list)

    def at(self, moment: str, verb: str) -> None:
        if self.is_dead:
            raise Crash
        if verb not in CHANGES:
            return
        if moment == "before":
            self.calls.append(verb)
        if (len(self.calls), moment) == (self.nth, self.when):
            self.is_dead = True
            raise Crash


@dataclass
class CrashingStore:
    """`LogStore` on a local disk, for a writer that dies."""

    table_root: str
    death: Death
    _store: LocalLogStore = field(init=False)

    def __post_init__(self) -> None:
        self._store = LocalLogStore(self.table_root)

    def list_from(self, start: str = "") -> list[FileEntry]:
        with self._called("list_from"):
            return self._store.list_from(start)

    def read(self, names: Sequence[str]) -> list[bytes]:
        with self._called("read"):
            return self._store.read(names)

    def read_start(self, name: str, size: int) -> bytes:
        with self._called("read_start"):
            return self._store.read_start(name, size)

    def check_writable(self) -> None:
        self._store.check_writable()

    def put_if_absent(self, name: str, data: Data) -> None:
        with self._called("put_if_absent"):
            self._store.put_if_absent(name, data)

    def overwrite(self, name: str, data: bytes) -> None:
        with self._called("overwrite"):
            self._store.overwrite(name, data)

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        with self._called("publish"):
            self._store.publish(source, name, is_new_name=is_new_name)

    def delete(self, names: Sequence[str]) -> None:
        """One after the other, as a store may be left in the middle of it."""
        for name in names:
            with self._called("delete"):
                self._store.delete([name])

    def list_directory(self, name: str) -> list[FileEntry]:
        with self._called("list_directory"):
            return self._store.list_directory(name)

    def is_alone(self) -> bool:
        with self._called("is_alone"):
            return self._store.is_alone()

    def staging_directories(self) -> list[FileEntry]:
        with self._called("staging_directories"):
            return self._store.staging_directories()

    def delete_directory(self, name: str) -> None:
        with self._called("delete_directory"):
            self._store.delete_directory(name)

    def table_files(self) -> LocalTableFiles:
        return self._store.table_files()

    @contextmanager
    def _called(self, verb: str) -> Iterator[None]:
        self.death.at("before", verb)
        yield
        self.death.at("after", verb)


@contextmanager
def dying_writer(nth: int, when: str) -> Iterator[Death]:
    """All logs that are opened in the block are those of a writer that dies."""
    death = Death(nth, when)
    with patch.object(classic, "LocalLogStore", lambda root: CrashingStore(root, death)):
        yield death
