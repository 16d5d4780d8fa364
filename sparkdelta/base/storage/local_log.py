"""Log store on a local file system, without the JVM."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sparkdelta.base.protocol.log_files import (
    LOG_DIRECTORY,
    is_staging_directory,
    is_write_directory,
)
from sparkdelta.base.storage.local_files import (
    LocalTableFiles,
    delete_checksum,
    delete_file,
    file_entry,
    storage_errors,
)
from sparkdelta.base.storage.log_store import (
    Data,
    FileEntry,
    already_in_log,
    checked_name,
    checked_staging_directory,
    not_in_log,
    pieces,
    temporary_name,
)
from sparkdelta.exceptions import StoreNotWritableError

_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(frozen=True, slots=True)
class LocalLogStore:
    """`LogStore` on ``file:`` paths.

    Its atomic primitive is a hard link, which never replaces a file and only names a file that is
    complete and on disk. Hadoop's checksum file of a name is deleted before the name gets new
    contents, because Hadoop would report them as corrupt.
    """

    table_root: str

    def list_from(self, start: str = "") -> list[FileEntry]:
        return [entry for entry in self._list(self._directory) if entry.name >= start]

    def read(self, names: Sequence[str]) -> list[bytes]:
        return [self._read(name) for name in names]

    def read_start(self, name: str, size: int) -> bytes:
        return self._read(name, size)

    def read_from(self, name: str, start: int) -> bytes:
        return self._read(name, start=start)

    def check_writable(self) -> None:
        """Accept any local path; missing support for hard links is detected by the first write."""

    @storage_errors
    def put_if_absent(self, name: str, data: Data) -> None:
        if os.path.exists(self._path(checked_name(name))):
            raise already_in_log(name)  # sooner than after writing and flushing a temporary file
        temporary = self._write_temporary(name, data)
        try:
            self._link(temporary, name)
        finally:
            os.unlink(temporary)

    @storage_errors
    def overwrite(self, name: str, data: bytes) -> None:
        temporary = self._write_temporary(checked_name(name), data)
        path = self._path(name)
        delete_checksum(path)
        os.replace(temporary, path)
        _sync(os.path.dirname(path))

    @storage_errors
    def publish(
        self,
        source: str,
        name: str,
        *,
        is_new_name: bool = False,  # noqa: ARG002 - never overwrites
    ) -> None:
        self._make_directory_of(checked_name(name))
        path = self._path(checked_name(source))
        try:
            _sync(path)
        except FileNotFoundError as error:
            raise not_in_log(source) from error
        self._link(path, name)
        delete_file(path)

    @storage_errors
    def delete(self, names: Sequence[str]) -> None:
        for path in [self._path(checked_name(name)) for name in names]:
            delete_file(path)

    def list_directory(self, name: str) -> list[FileEntry]:
        return self._list(self._path(checked_name(name)))

    @storage_errors
    def is_alone(self) -> bool:
        try:
            with os.scandir(os.path.dirname(self._directory)) as entries:
                names = (entry.name for entry in entries)
                return all(name == LOG_DIRECTORY or is_write_directory(name) for name in names)
        except FileNotFoundError:
            return True
        except NotADirectoryError:
            return False

    def staging_directories(self) -> list[FileEntry]:
        return [
            FileEntry(entry.name, 0, entry.modification_time_ms)
            for entry in self._list(self._directory, directories=True)
            if is_staging_directory(entry.name)
        ]

    @storage_errors
    def delete_directory(self, name: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._path(checked_staging_directory(name)))

    def table_files(self) -> LocalTableFiles:
        return LocalTableFiles(self.table_root)

    @property
    def _directory(self) -> str:
        return os.path.join(self.table_root.removeprefix("file:"), LOG_DIRECTORY)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @storage_errors
    def _list(self, directory: str, *, directories: bool = False) -> list[FileEntry]:
        listing = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # deleted or renamed since it was listed
                        if entry.is_dir() if directories else entry.is_file():
                            listing.append(file_entry(entry.name, entry.stat()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(listing, key=lambda entry: entry.name)

    @storage_errors
    def _read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        try:
            with open(self._path(name), "rb") as file:
                file.seek(start)
                return file.read(size)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise not_in_log(name) from error

    def _write_temporary(self, name: str, data: Data) -> str:
        """Write the whole contents to a temporary file in the log directory and return its path."""
        self._make_directory_of(name)
        temporary = os.path.join(self._directory, temporary_name())
        try:
            with open(temporary, "xb") as file:
                file.writelines(pieces(data))
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        return temporary

    def _link(self, source: str, name: str) -> None:
        path = self._path(name)
        if not os.path.exists(path):
            delete_checksum(path)
        try:
            os.link(source, path)
        except FileExistsError as error:
            raise already_in_log(name) from error
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            raise StoreNotWritableError(
                path=self.table_root,
                reason="Its file system does not support hard links, so a file cannot be "
                "created without overwriting, and one of two concurrent commits would be lost",
                remedy="Write to another file system",
            ) from error
        _sync(os.path.dirname(path))

    def _make_directory_of(self, name: str) -> None:
        directory = os.path.dirname(self._path(name))
        missing = []
        while not os.path.isdir(directory):
            missing.append(directory)
            directory = os.path.dirname(directory)
        for directory in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(directory)
            _sync(os.path.dirname(directory))


def _sync(path: str) -> None:
    """Flush a file or directory to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
