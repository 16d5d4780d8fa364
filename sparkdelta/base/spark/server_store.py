"""A table's storage as a Spark Connect client reaches it: operations run on the server, each in one
Python task whose code travels with the plan.

The client needs no access to the storage, and nothing is installed on the server.
"""

from __future__ import annotations

import errno
import io
import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.hadoop_log import ATOMIC_RENAME, MOVING, open_on_worker
from sparkdelta.base.protocol.log_files import LAST_CHECKPOINT, LOG_DIRECTORY
from sparkdelta.base.spark.connect_storage import BinaryFiles
from sparkdelta.base.spark.server_tasks import NO_PYTHON, on_server
from sparkdelta.base.storage import server_store_workers as workers
from sparkdelta.base.storage.log_store import (
    Data,
    FileEntry,
    checked_name,
    checked_staging_directory,
    temporary_name,
)
from sparkdelta.base.storage.object_log import OBJECT_SCHEMES
from sparkdelta.base.storage.server_store_workers import Item, StoreOperation
from sparkdelta.base.storage.table_files import relative_directory, relative_path
from sparkdelta.base.storage.worker_files import StoredEntry, WorkerFiles
from sparkdelta.exceptions import DeltaError, StorageError, StoreNotWritableError

_LOGGER = logging.getLogger(__name__)

_MAX_MESSAGE_BYTES = 32 << 20
"""The most bytes of a file in one request; a server accepts messages of up to 128 MB."""

BY_HADOOP = frozenset({*ATOMIC_RENAME, "viewfs"})
"""The schemes of storages that workers reach with a JVM of their own."""

_SCHEMES = frozenset({"file", *OBJECT_SCHEMES, *BY_HADOOP})
"""The schemes of storages on which workers may create a file without overwriting."""

_writable: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()


@dataclass(slots=True)
class ServerLogStore:
    """`LogStore` whose operations run on the server.

    Spark itself reads the files whose names it does not ignore, on all executors. Where workers
    have no way to the storage, it also lists them; `_last_checkpoint` is not found then.

    Attributes
    ----------
    settings
        Hadoop's settings for access to the table.
    """

    spark: SparkSession
    table_root: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    _known: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)
    _has_workers: bool = field(default=True, init=False, repr=False)
    _emptied: set[str] = field(default_factory=set, init=False, repr=False)
    _listing: list[FileEntry] | None = field(default=None, init=False, repr=False)
    _expected: dict[str, tuple[str, bytes]] = field(default_factory=dict, init=False, repr=False)
    _created: tuple[str, bytes] | None = field(default=None, init=False, repr=False)
    _unneeded: str | None = field(default=None, init=False, repr=False)
    _deleted: str | None = field(default=None, init=False, repr=False)

    def list_from(self, start: str = "") -> list[FileEntry]:
        listing, self._listing = self._listing, None
        if listing is None:
            listing = self._survey()
        return [entry for entry in listing if entry.name >= start]

    def read(self, names: Sequence[str]) -> list[bytes]:
        is_hint = [*names] == [LAST_CHECKPOINT]
        listing = self._survey() if is_hint else None
        known = {name: self._known.pop(name) for name in {*names} if name in self._known}
        visible = [name for name in names if name not in known and not _is_hidden(name)]
        hidden = [name for name in names if name not in known and _is_hidden(name)]
        if hidden and (is_hint or not self._is_reached()):
            self._listing = listing
            raise FileNotFoundError(errno.ENOENT, "no such file in the log", hidden[0])
        if visible:
            known.update(zip(visible, self._binary.read(visible), strict=True))
        if hidden:
            known.update((name, data or b"") for name, _, _, data in self._read(hidden))
        self._listing = listing  # most readers of the hint list the log next
        return [known[name] for name in names]

    def _read(self, names: Sequence[str]) -> list[Item]:
        return self._call(workers.read, [*names])

    def _survey(self) -> list[FileEntry]:
        """List the log and keep the contents of small new files for the next reads."""
        self._known = {}
        if not self._is_reached():
            return self._binary.list_directory(LOG_DIRECTORY)
        try:
            items = self._call(workers.survey)
        except DeltaError as error:
            is_storage = isinstance(error, StorageError) and not self._is_local()
            if not is_storage and error.error_class != NO_PYTHON:
                raise
            _LOGGER.info("Spark lists the log of %s: %s", self.table_root, error)
            self._has_workers = False
            return self._binary.list_directory(LOG_DIRECTORY)
        self._known = {name: data for name, _, _, data in items if data is not None}
        return _entries(items)

    def read_start(self, name: str, size: int) -> bytes:
        if name in self._known:
            return self._known[name][:size]
        return self._read_part(name, 0, size)

    def read_from(self, name: str, start: int) -> bytes:
        return self._read_part(name, start, None)

    def _read_part(self, name: str, start: int, size: int | None) -> bytes:
        if not self._is_reached():
            return self.read([name])[0][start : None if size is None else start + size]
        [(_, _, _, data)] = self._call(workers.read_part, name, start, size)
        return data or b""

    def check_writable(self) -> None:
        """Raise if the workers cannot create files, or not where Spark's driver sees them."""
        checked = _writable.setdefault(self.spark, set())
        if self.table_root in checked:
            return
        if self._scheme not in _SCHEMES:
            workers.open_store(self.table_root, {})  # raises
        master = str(self.spark.conf.get("spark.master", ""))
        if self._scheme in BY_HADOOP:
            self._call(workers.check_writable)
        elif not (self._is_local() and master.startswith("local")):
            self._check_same_log()
        checked.add(self.table_root)

    def _check_same_log(self) -> None:
        probe = f"probe-{uuid4()}.tmp"
        made = [name for name, *_ in self._call(workers.put_probe, probe)]
        try:
            is_same = self._binary.shows(probe)
        finally:
            self._call(workers.delete_probe, probe, made)
        if not is_same:
            raise StoreNotWritableError(
                path=self.table_root,
                reason="The driver and the workers of the Spark Connect server do not see the same "
                "log, so a commit would not be visible to the driver",
                remedy="Write to a path that all machines of the server share, or give the "
                "endpoint and credentials of the store to the server as spark.hadoop.* settings",
            )

    def expect_put(self, name: str, data: bytes, *, after: str) -> None:
        self._expected = {after: (checked_name(name), data)}

    def expect_deletion(self, directory: str) -> None:
        self._unneeded = checked_staging_directory(directory)

    def put_if_absent(self, name: str, data: Data) -> None:
        checked_name(name)
        expected, self._expected = self._expected.get(name), {}
        created, self._created = self._created, None
        unneeded, self._unneeded = self._unneeded, None
        if created is not None and created == (name, data):
            return
        parts = [*_parts(data)]
        if len(parts) == 1:
            items = self._call(workers.put_if_absent, name, parts[0], expected, unneeded)
            done = {item[0] for item in items}
            if expected is not None and expected[0] in done:
                self._created = expected
            if unneeded in done:
                self._deleted = unneeded
            return
        names = [temporary_name() for _ in parts]
        try:
            for part, content in zip(names, parts, strict=True):
                self._call(workers.overwrite, part, content)
            self._call(workers.join_if_absent, name, names)
        finally:
            self.delete(names)

    def overwrite(self, name: str, data: bytes) -> None:
        self._call(workers.overwrite, checked_name(name), data)

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        self._call(workers.publish, checked_name(source), checked_name(name), is_new_name)

    def delete(self, names: Sequence[str]) -> None:
        if names:
            self._call(workers.delete, [checked_name(name) for name in names])

    def list_directory(self, name: str) -> list[FileEntry]:
        if not self._is_reached():
            return self._binary.list_directory(f"{LOG_DIRECTORY}/{checked_name(name)}")
        items = self._call(workers.list_directory, checked_name(name))
        self._known |= {f"{name}/{file}": data for file, _, _, data in items if data is not None}
        return _entries(items)

    def is_alone(self) -> bool:
        return bool(self._call(workers.is_alone))

    def staging_directories(self) -> list[FileEntry]:
        return _entries(self._call(workers.staging_directories))

    def delete_directory(self, name: str) -> None:
        deleted, self._deleted = self._deleted, None
        if name != deleted:
            self._call(workers.delete_directory, checked_staging_directory(name))

    def table_files(self) -> ServerTableFiles:
        return ServerTableFiles(self)

    @property
    def _binary(self) -> BinaryFiles:
        return BinaryFiles(self.spark, self.table_root)

    @property
    def _scheme(self) -> str:
        return self.table_root.partition(":")[0]

    def _is_local(self) -> bool:
        return self._scheme == "file"

    def _is_reached(self) -> bool:
        return self._has_workers and self._scheme in _SCHEMES

    def _call(self, function: Callable[..., Iterable[Item]], *arguments: Any) -> list[Item]:
        self._listing = None
        is_hadoop = self._scheme in BY_HADOOP
        opened = open_on_worker if is_hadoop else workers.open_store
        settings = dict(self.settings)
        operation = StoreOperation(self.table_root, settings, function, arguments, opened)
        return on_server(self.spark, operation, what="files of a log on the server")


@dataclass(frozen=True, slots=True)
class ServerTableFiles:
    """`TableFiles` whose operations run on the server."""

    store: ServerLogStore

    @property
    def table_root(self) -> str:
        return self.store.table_root

    @property
    def can_move(self) -> bool:
        return self.store._scheme in ("file", *MOVING)

    def list_files(self, directory: str = "") -> Iterator[FileEntry]:
        relative_directory(self.table_root, directory)
        for name, size, time, _ in self.store._call(workers.table_file_list, directory):
            yield FileEntry(name, size, time)

    def stat(self, path: str) -> FileEntry | None:
        found = _entries(self.store._call(workers.table_file, self._relative(path)))
        return found[0] if found else None

    def delete(self, paths: Sequence[str]) -> None:
        found = [*map(self._relative, paths)]
        if found:
            self.store._call(workers.delete_table_files, found)

    def delete_directory(self, directory: str) -> None:
        relative = self._relative(directory)
        if relative in self.store._emptied:
            self.store._emptied.remove(relative)
        else:
            self.store._call(workers.delete_table_directory, relative)

    def copy(self, source: str, target: str) -> None:
        self.store._call(workers.copy_table_file, self._relative(source), self._relative(target))

    def move(self, moves: Mapping[str, str]) -> None:
        for path in (*moves, *moves.values()):
            self._relative(path)
        if moves:
            gone = self.store._call(workers.move_table_files, dict(moves))
            self.store._emptied.update(name for name, *_ in gone)

    def move_directory(self, source: str, target: str) -> None:
        self.store._call(
            workers.move_table_directory, self._relative(source), self._relative(target)
        )

    def _relative(self, path: str) -> str:
        return relative_path(self.table_root, path)


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """`StoredFiles` on the server, each read and written as a whole by one task."""

    spark: SparkSession
    files: WorkerFiles

    def open(self, path: str) -> pa.NativeFile:
        files = self.files

        def read() -> list[Item]:
            with files.open(path) as file:
                return [(path, 0, 0, file.read())]

        [(_, _, _, data)] = self._call(read)
        return pa.BufferReader(data or b"")

    def create(self, path: str) -> pa.NativeFile:
        return _Upload(self, path)

    def size(self, path: str) -> int | None:
        def size() -> list[Item]:
            found = files.size(path)
            return [] if found is None else [(path, found, 0, None)]

        files = self.files
        found = self._call(size)
        return found[0][1] if found else None

    def data_files(self, directory: str) -> list[tuple[str, int, int]]:
        files = self.files
        found = self._call(lambda: [(*file, None) for file in files.data_files(directory)])
        return [(name, size, time) for name, size, time, _ in found]

    def entries(self, directory: str) -> list[StoredEntry]:
        raise NotImplementedError("workers list directories")

    def table_of(self, function: Callable[[WorkerFiles], pa.Table | None]) -> pa.Table | None:
        """Return the table that a function makes of the files, in one task."""
        files = self.files

        def made() -> list[Item]:
            table = function(files)
            if table is None:
                return []
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            return [("", 0, 0, sink.getvalue())]

        found = self._call(made)
        return pa.ipc.open_stream(found[0][3]).read_all() if found else None

    def _call(self, function: Callable[[], list[Item]]) -> list[Item]:
        return on_server(self.spark, function, what="files of a table on the server")


class _Upload(io.BytesIO):
    """A file that is written on the server when it is closed."""

    def __init__(self, target: ServerFiles, path: str) -> None:
        super().__init__()
        self._target, self._path = target, path

    def close(self) -> None:
        if not self.closed:
            files, path, data = self._target.files, self._path, self.getvalue()

            def write() -> list[Item]:
                with files.create(path) as file:
                    file.write(data)
                return []

            super().close()
            self._target._call(write)


def _is_hidden(name: str) -> bool:
    """Return True if Spark's file sources may ignore a file of the log."""
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _entries(items: Iterable[Item]) -> list[FileEntry]:
    return [FileEntry(name, size, time) for name, size, time, _ in items]


def _parts(data: Data) -> Iterator[bytes]:
    """Yield contents in parts that a request can hold; at least one."""
    pending = bytearray()
    for piece in [data] if isinstance(data, bytes) else data:
        pending += piece
        while len(pending) > _MAX_MESSAGE_BYTES:
            yield bytes(pending[:_MAX_MESSAGE_BYTES])
            del pending[:_MAX_MESSAGE_BYTES]
    yield bytes(pending)
