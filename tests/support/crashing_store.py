"""A writer that dies, or whose storage fails, at one of its changes; others see what it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from sparkdelta.base.spark import classic_engine
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.base.storage.local_files import LocalTableFiles
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import Data, FileEntry
from sparkdelta.base.storage.worker_files import WorkerFiles
from sparkdelta.table.rows import modified_files
from tests.support.memory_log import Crash

CHANGES = frozenset(
    {
        *("put_if_absent", "overwrite", "publish", "delete", "delete_directory"),
        *("write_parquet", "create", "move"),
    }
)
"""The verbs that change what others see: a crash at another is one after the last of these.

Most are calls of the log store. `write_parquet` writes data files, change data files and staged
rows, `create` writes the driver's deletion vectors, `move` gives each of these files its place, and
`delete_directory` deletes the directory in which it was.
"""


@dataclass
class Death:
    """The moment when the writer dies: before or after the nth change. From then on no call of it
    succeeds.

    Attributes
    ----------
    fault
        Another error than a crash is raised once; later calls succeed.
    calls
        The changes so far, in order.
    """

    nth: int
    when: str
    fault: type[BaseException] = Crash
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
            self.is_dead = self.fault is Crash
            raise self.fault

    @contextmanager
    def around(self, verb: str) -> Iterator[None]:
        self.at("before", verb)
        yield
        self.at("after", verb)


@dataclass
class CrashingStore:
    """`LogStore` on a local disk, for a writer that dies."""

    table_root: str
    death: Death
    _store: LocalLogStore = field(init=False)

    def __post_init__(self) -> None:
        self._store = LocalLogStore(self.table_root)

    def list_from(self, start: str = "") -> list[FileEntry]:
        with self.death.around("list_from"):
            return self._store.list_from(start)

    def read(self, names: Sequence[str]) -> list[bytes]:
        with self.death.around("read"):
            return self._store.read(names)

    def read_start(self, name: str, size: int) -> bytes:
        with self.death.around("read_start"):
            return self._store.read_start(name, size)

    def read_from(self, name: str, start: int) -> bytes:
        with self.death.around("read_from"):
            return self._store.read_from(name, start)

    def check_writable(self) -> None:
        self._store.check_writable()

    def put_if_absent(self, name: str, data: Data) -> None:
        with self.death.around("put_if_absent"):
            self._store.put_if_absent(name, data)

    def overwrite(self, name: str, data: bytes) -> None:
        with self.death.around("overwrite"):
            self._store.overwrite(name, data)

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        with self.death.around("publish"):
            self._store.publish(source, name, is_new_name=is_new_name)

    def delete(self, names: Sequence[str]) -> None:
        """One after the other, as a store may be left in the middle of it."""
        for name in names:
            with self.death.around("delete"):
                self._store.delete([name])

    def list_directory(self, name: str) -> list[FileEntry]:
        with self.death.around("list_directory"):
            return self._store.list_directory(name)

    def is_alone(self) -> bool:
        with self.death.around("is_alone"):
            return self._store.is_alone()

    def staging_directories(self) -> list[FileEntry]:
        with self.death.around("staging_directories"):
            return self._store.staging_directories()

    def delete_directory(self, name: str) -> None:
        with self.death.around("delete_directory"):
            self._store.delete_directory(name)

    def table_files(self) -> CrashingTableFiles:
        return CrashingTableFiles(self._store.table_files(), self.death)


@dataclass
class CrashingTableFiles:
    """`TableFiles` on a local disk, for a writer that dies."""

    files: LocalTableFiles
    death: Death

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def move(self, moves: Mapping[str, str]) -> None:
        """One after the other, as a disk may be left in the middle of it."""
        for source, target in moves.items():
            with self.death.around("move"):
                self.files.move({source: target})

    def delete_directory(self, directory: str) -> None:
        with self.death.around("delete_directory"):
            self.files.delete_directory(directory)


@dataclass
class CrashingFiles:
    """The driver's `StoredFiles`, for a writer that dies."""

    files: WorkerFiles
    death: Death

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def create(self, path: str) -> pa.NativeFile:
        with self.death.around("create"):
            return self.files.create(path)


@contextmanager
def dying_writer(nth: int, when: str, fault: type[BaseException] = Crash) -> Iterator[Death]:
    """All tables that are opened in the block are those of a writer that dies."""
    death = Death(nth, when, fault)
    write = classic_engine.ClassicEngine.write_parquet

    def write_parquet(*arguments: Any, **options: Any) -> None:
        with death.around("write_parquet"):
            write(*arguments, **options)

    with (
        patch.object(classic_engine, "LocalLogStore", lambda root: CrashingStore(root, death)),
        patch.object(classic_engine.ClassicEngine, "write_parquet", write_parquet),
        patch.object(
            modified_files, "worker_files", lambda *of: CrashingFiles(worker_files(*of), death)
        ),
    ):
        yield death
