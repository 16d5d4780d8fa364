"""Log store on any Hadoop file system of the session, through the JVM of classic Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from sparkdelta.base.jvm.hadoop import Hadoop, WorkerHadoop
from sparkdelta.base.jvm.hadoop_files import HadoopTableFiles, listed, renaming
from sparkdelta.base.jvm.jvm import (
    hadoop_path,
    is_not_found,
    storage_errors,
)
from sparkdelta.base.protocol.log_files import (
    LOG_DIRECTORY,
    is_staging_directory,
    is_write_directory,
)
from sparkdelta.base.storage.log_store import (
    Data,
    FileEntry,
    already_in_log,
    checked_name,
    checked_staging_directory,
    in_parallel,
    log_path,
    not_in_log,
    pieces,
    temporary_name,
)
from sparkdelta.exceptions import StorageError, StoreNotWritableError

ATOMIC_RENAME = frozenset({"hdfs", "abfs", "abfss"})
"""Schemes with an atomic rename that does not overwrite (on ADLS with a hierarchical namespace).
Object stores copy and delete instead.
"""

MOVING = frozenset({"hdfs"})
"""Schemes on which data files are moved: a rename takes no longer than to open a file."""


def open_on_worker(table_root: str, settings: Mapping[str, str]) -> HadoopLogStore:
    """Return a store for a Python worker, with Hadoop's settings of the session."""
    return HadoopLogStore(WorkerHadoop(settings), table_root, {})


@dataclass(frozen=True, slots=True)
class HadoopLogStore:
    """`LogStore` on any Hadoop file system of the session.

    Its atomic primitive is the non-overwriting rename of `FileContext`, because a rename of
    `FileSystem` may overwrite or fail silently.
    """

    hadoop: Hadoop
    table_root: str
    hadoop_conf: Mapping[str, str]

    def list_from(self, start: str = "") -> list[FileEntry]:
        return [entry for entry in self._list("") if entry.name >= start]

    def read(self, names: Sequence[str]) -> list[bytes]:
        return in_parallel(self._read, names)

    def read_start(self, name: str, size: int) -> bytes:
        return self._read(name, size)

    def read_from(self, name: str, start: int) -> bytes:
        return self._read(name, start=start)

    def check_writable(self) -> None:
        scheme = self._scheme()
        if scheme not in ATOMIC_RENAME:
            raise StoreNotWritableError(
                path=self.table_root,
                reason=f"Hadoop has no atomic rename without overwriting on {scheme}:, so "
                "one of two concurrent commits would be lost",
                remedy="Write to a local path, hdfs: or abfss:, or with an engine that commits "
                f"to {scheme}: safely",
            )

    def put_if_absent(self, name: str, data: Data) -> None:
        self.check_writable()
        with self._temporary(checked_name(name), data) as temporary:
            self._rename(temporary, name, overwriting=False)

    def overwrite(self, name: str, data: bytes) -> None:
        self.check_writable()
        with self._temporary(checked_name(name), data) as temporary:
            self._rename(temporary, name, overwriting=True)

    def publish(
        self,
        source: str,
        name: str,
        *,
        is_new_name: bool = False,  # noqa: ARG002 - never overwrites
    ) -> None:
        self.check_writable()
        self._make_directory_of(checked_name(name))
        self._rename(checked_name(source), name, overwriting=False)

    def delete(self, names: Sequence[str]) -> None:
        paths = [self._path(checked_name(name)) for name in names]
        if not paths:
            return
        with storage_errors(self.table_root):
            system = self._file_system(paths[0])
            in_parallel(lambda path: system.delete(path, False), paths)

    def list_directory(self, name: str) -> list[FileEntry]:
        return self._list(checked_name(name))

    def is_alone(self) -> bool:
        root = self._path("").getParent()
        try:
            with storage_errors(self.table_root):
                statuses = self._file_system(root).listStatusIterator(root)
                while statuses.hasNext():
                    name = str(statuses.next().getPath().getName())
                    if name != LOG_DIRECTORY and not is_write_directory(name):
                        return False
        except FileNotFoundError:
            return True
        return True

    def staging_directories(self) -> list[FileEntry]:
        return [
            FileEntry(entry.name, 0, entry.modification_time_ms)
            for entry in self._list("", directories=True)
            if is_staging_directory(entry.name)
        ]

    def delete_directory(self, name: str) -> None:
        path = self._path(checked_staging_directory(name))
        with storage_errors(self.table_root):
            self._file_system(path).delete(path, True)

    def table_files(self) -> HadoopTableFiles:
        return HadoopTableFiles(
            self.hadoop, self.table_root, self.hadoop_conf, self._scheme() in MOVING
        )

    def _scheme(self) -> str:
        """Return the scheme of the file system behind a viewfs mount, or that of the path."""
        path = self._path("")
        scheme = str(path.toUri().getScheme())
        while scheme == "viewfs" and path is not None:
            with suppress(Py4JJavaError):  # the path may not exist yet
                return str(self._file_system(path).resolvePath(path).toUri().getScheme())
            path = path.getParent()
        return scheme

    def _list(self, name: str, *, directories: bool = False) -> list[FileEntry]:
        jvm = self.hadoop.jvm
        directory = self._path(name)
        try:
            with storage_errors(self.table_root):
                statuses = self._file_system(directory).listStatus(directory)
        except FileNotFoundError:
            return []
        listing = [
            FileEntry(entry.name, entry.size_bytes, entry.modification_time_ms)
            for entry in listed(jvm, statuses)
            if entry.is_directory == directories
        ]
        return sorted(listing, key=lambda entry: entry.name)

    def _read(self, name: str, size: int | None = None, start: int = 0) -> bytes:
        jvm = self.hadoop.jvm
        path = self._path(name)
        try:
            with storage_errors(self.table_root):
                stream = self._file_system(path).open(path)
                try:
                    if start:
                        stream.seek(start)
                    if size is not None:
                        return bytes(stream.readNBytes(size))
                    return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
                finally:
                    stream.close()
        except FileNotFoundError:
            raise not_in_log(name) from None

    @contextmanager
    def _temporary(self, name: str, data: Data) -> Iterator[str]:
        """Write a temporary file in the log directory, for the block to rename; it is deleted if
        the block fails.
        """
        self._make_directory_of(name)
        temporary = temporary_name()
        path = self._path(temporary)
        try:
            with storage_errors(self.table_root):
                stream = self._file_system(path).create(path, False)
                try:
                    for piece in pieces(data):
                        stream.write(piece)
                finally:
                    stream.close()
            yield temporary
        except BaseException:
            with suppress(StorageError, FileNotFoundError):
                self.delete([temporary])
            raise

    def _make_directory_of(self, name: str) -> None:
        directory = self._path(name).getParent()
        with storage_errors(self.table_root):
            self._file_system(directory).mkdirs(directory)

    def _rename(self, source: str, name: str, *, overwriting: bool) -> None:
        path = self._path(name)
        rename = renaming(self.hadoop, path, self.hadoop_conf, overwriting=overwriting)
        try:
            rename(self._path(source), path)
        except Py4JJavaError as error:
            if is_not_found(error):
                raise not_in_log(source) from None
            with storage_errors(self.table_root):
                # Some file systems do not report the cause of a failed rename.
                if not overwriting and self._file_system(path).exists(path):
                    raise already_in_log(name) from None
                raise

    def _path(self, name: str) -> Any:
        path = log_path(self.table_root, name) if name else f"{self.table_root}/{LOG_DIRECTORY}"
        return hadoop_path(self.hadoop.jvm, path)

    def _file_system(self, path: Any) -> Any:
        return path.getFileSystem(self.hadoop.configuration(self.hadoop_conf))
