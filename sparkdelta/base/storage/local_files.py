"""The files of a table on a local file system, without the JVM."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from stat import S_ISREG
from typing import Any, TypeVar, cast

from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.storage.log_store import FileEntry
from sparkdelta.base.storage.table_files import MOVE_ATTEMPTS, relative_directory, relative_path
from sparkdelta.exceptions import StorageError

_NO_FILE = (FileNotFoundError, NotADirectoryError)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def storage_errors(method: _Method) -> _Method:
    """Decorate a method to raise `StorageError`, except for missing and existing files."""

    @wraps(method)
    def translated(store: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(store, *args, **kwargs)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            problem = error.strerror or str(error)
            raise StorageError(path=error.filename or store.table_root, problem=problem) from None

    return cast("_Method", translated)


@dataclass(frozen=True, slots=True)
class LocalTableFiles:
    """`TableFiles` on ``file:`` paths.

    Nothing is deleted, created or listed in directories that symbolic links place outside the
    table's root or in the log, but files are moved there. Hadoop's checksum file of a file is
    moved and deleted together with it.
    """

    table_root: str

    @property
    def can_move(self) -> bool:
        return True

    def list_files(self, directory: str = "") -> Iterator[FileEntry]:
        relative = relative_directory(self.table_root, directory)
        pending = [self._checked(relative)]
        while pending:
            files, directories = self._scan(pending.pop())
            yield from files
            pending += directories

    @storage_errors
    def stat(self, path: str) -> FileEntry | None:
        relative = relative_path(self.table_root, path)
        with suppress(*_NO_FILE):
            status = os.stat(self._path(relative))
            return file_entry(relative, status) if S_ISREG(status.st_mode) else None
        return None

    @storage_errors
    def delete(self, paths: Sequence[str]) -> None:
        for path in [self._path_in_directory(path) for path in paths]:
            delete_file(path)

    @storage_errors
    def delete_directory(self, directory: str) -> None:
        path = self._checked(relative_path(self.table_root, directory))
        while os.path.lexists(path):
            with suppress(FileNotFoundError):  # of a file that another process deleted
                shutil.rmtree(path)

    @storage_errors
    def copy(self, source: str, target: str) -> None:
        source_path = self._path(relative_path(self.table_root, source))
        target_path = self._path_in_directory(target)
        if not os.path.isfile(source_path):
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        os.makedirs(os.path.dirname(target_path), exist_ok=True)
        try:
            written = open(target_path, "xb")  # noqa: SIM115 - closed below
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, "the file exists", target) from None
        try:
            with written, open(source_path, "rb") as read:
                delete_checksum(target_path)
                shutil.copyfileobj(read, written)
        except BaseException:
            delete_file(target_path)
            raise

    @storage_errors
    def move(self, moves: Mapping[str, str]) -> None:
        for source, target in moves.items():
            paths = [self._path(relative_path(self.table_root, path)) for path in (source, target)]
            _move_file(*paths)
            checksums = [*map(checksum_path, paths)]
            if os.access(checksums[0], os.F_OK):
                _move_file(*checksums)
        for directory in {os.path.dirname(source) for source in moves}:
            with suppress(OSError):  # it has other files
                os.removedirs(self._path(directory))

    @storage_errors
    def move_directory(self, source: str, target: str) -> None:
        found, path = (relative_path(self.table_root, name) for name in (source, target))
        os.makedirs(os.path.dirname(self._path(path)), exist_ok=True)
        os.rename(self._path(found), self._path(path))

    def _path(self, relative: str) -> str:
        return os.path.join(self.table_root.removeprefix("file:"), relative)

    def _checked(self, relative: str) -> str:
        """Return a local path; raise if symbolic links lead out of the root or into the log."""
        path = self._path(relative)
        real, root = os.path.realpath(path), os.path.realpath(self._path(""))
        if real != root:
            relative_path(f"file:{root}", real)
        return path

    def _path_in_directory(self, path: str) -> str:
        """Return a local path; raise if symbolic links put its directory elsewhere."""
        directory, _, name = relative_path(self.table_root, path).rpartition("/")
        return os.path.join(self._checked(directory), name)

    @storage_errors
    def _scan(self, directory: str) -> tuple[list[FileEntry], list[str]]:
        """Return the files and the subdirectories of a directory."""
        files, directories = [], []
        root = self._path("")
        with suppress(*_NO_FILE), os.scandir(directory) as entries:
            for entry in entries:
                name = entry.path.removeprefix(root)
                with suppress(FileNotFoundError):  # deleted since it was listed
                    if entry.is_dir(follow_symlinks=False):
                        directories += [entry.path] if name != LOG_DIRECTORY else []
                    elif entry.is_file():
                        files.append(file_entry(name, entry.stat()))
        return files, directories


def file_entry(name: str, stat: os.stat_result) -> FileEntry:
    """Return the entry of a file from its status."""
    return FileEntry(name, stat.st_size, stat.st_mtime_ns // 1_000_000)


def delete_file(path: str) -> None:
    """Delete a file, if it exists, and Hadoop's checksum file of it."""
    with suppress(*_NO_FILE):
        os.unlink(path)
    delete_checksum(path)


def delete_checksum(path: str) -> None:
    """Delete Hadoop's checksum file of a file, if it exists."""
    with suppress(*_NO_FILE):
        os.unlink(checksum_path(path))


def checksum_path(path: str) -> str:
    """Return the path of Hadoop's checksum file of a file."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.crc")


def _move_file(source: str, target: str) -> None:
    """Rename a file, or copy it to a directory on another file system."""
    for attempt in range(MOVE_ATTEMPTS):
        try:
            os.rename(source, target)
        except FileNotFoundError:
            if attempt + 1 == MOVE_ATTEMPTS or not os.path.lexists(source):
                raise
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copy2(source, target)
            os.unlink(source)
            return
        else:
            return
        with suppress(FileNotFoundError):
            os.makedirs(os.path.dirname(target), exist_ok=True)
