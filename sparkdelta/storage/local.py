"""The log on a file system of the driver's own machine, read without the JVM."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass

from sparkdelta.protocol.log_files import LOG_DIRECTORY
from sparkdelta.storage.log_store import FileEntry


@dataclass(frozen=True, slots=True)
class LocalLogStore:
    """`LogStore` over ``file:`` paths."""

    table_root: str

    @property
    def _directory(self) -> str:
        return os.path.join(self.table_root.removeprefix("file:"), LOG_DIRECTORY)

    def list_from(self, start: str = "") -> list[FileEntry]:
        try:
            with os.scandir(self._directory) as entries:
                files = [entry for entry in entries if entry.name >= start and entry.is_file()]
                listing = [_file_entry(entry.name, entry.stat()) for entry in files]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(listing, key=lambda entry: entry.name)

    def read(self, names: Sequence[str]) -> list[bytes]:
        return [self._read(name) for name in names]

    def _read(self, name: str) -> bytes:
        try:
            with open(os.path.join(self._directory, name), "rb") as file:
                return file.read()
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file in the log", name) from error


def _file_entry(name: str, stat: os.stat_result) -> FileEntry:
    return FileEntry(name, stat.st_size, stat.st_mtime_ns // 1_000_000)
