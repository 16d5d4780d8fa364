"""A log in memory whose calls can be made to fail, or to crash the writer before or after them."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkdelta.base.protocol.log_files import commit_name, is_staging_directory
from sparkdelta.base.storage.log_store import (
    Data,
    FileEntry,
    checked_name,
    checked_staging_directory,
    pieces,
)

Hook = Callable[[str, str], None]
"""Called with "before" or "after" and the verb; what it raises, the verb raises."""


class Crash(BaseException):
    """The writer dies here; nothing of its code runs any more."""


@dataclass
class MemoryLog:
    """`LogStore` in a dictionary, with `FileSystem`-like atomicity."""

    table_root: str = "memory:/table"
    files: dict[str, bytes] = field(default_factory=dict)
    hook: Hook = lambda when, verb: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def with_hook(self, hook: Hook) -> MemoryLog:
        """This log as another writer sees it, with a hook of its own."""
        return MemoryLog(self.table_root, self.files, hook, self._lock)

    def list_from(self, start: str = "") -> list[FileEntry]:
        self.hook("before", "list_from")
        with self._lock:
            listing = [
                FileEntry(name, len(data), 1_000)
                for name, data in sorted(self.files.items())
                if "/" not in name and name >= start
            ]
        self.hook("after", "list_from")
        return listing

    def read(self, names: Sequence[str]) -> list[bytes]:
        self.hook("before", "read")
        for name in names:
            if name not in self.files:
                raise FileNotFoundError(errno.ENOENT, "no such file", name)
        contents = [self.files[name] for name in names]
        self.hook("after", "read")
        return contents

    def read_start(self, name: str, size: int) -> bytes:
        self.hook("before", "read_start")
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        self.hook("after", "read_start")
        return self.files[name][:size]

    def read_from(self, name: str, start: int) -> bytes:
        self.hook("before", "read_from")
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        self.hook("after", "read_from")
        return self.files[name][start:]

    def check_writable(self) -> None:
        pass

    def put_if_absent(self, name: str, data: Data) -> None:
        self.hook("before", "put_if_absent")
        whole = b"".join(pieces(data))
        with self._lock:
            if self.files.setdefault(checked_name(name), whole) is not whole:
                raise FileExistsError(errno.EEXIST, "already there", name)
        self.hook("after", "put_if_absent")

    def overwrite(self, name: str, data: bytes) -> None:
        self.hook("before", "overwrite")
        self.files[checked_name(name)] = data
        self.hook("after", "overwrite")

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        self.hook("before", "publish")
        if source not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        with self._lock:
            if name in self.files:
                raise FileExistsError(errno.EEXIST, "already there", name)
            self.files[checked_name(name)] = self.files.pop(source)
        self.hook("after", "publish")

    def delete(self, names: Sequence[str]) -> None:
        self.hook("before", "delete")
        for name in names:
            self.files.pop(checked_name(name), None)
        self.hook("after", "delete")

    def list_directory(self, name: str) -> list[FileEntry]:
        prefix = f"{checked_name(name)}/"
        return [
            FileEntry(path.removeprefix(prefix), len(data), 1_000)
            for path, data in sorted(self.files.items())
            if path.startswith(prefix)
        ]

    def is_alone(self) -> bool:
        return True

    def staging_directories(self) -> list[FileEntry]:
        names = {path.partition("/")[0] for path in self.files if "/" in path}
        return [FileEntry(name, 0, 1_000) for name in sorted(names) if is_staging_directory(name)]

    def delete_directory(self, name: str) -> None:
        prefix = f"{checked_staging_directory(name)}/"
        for path in [path for path in self.files if path.startswith(prefix)]:
            del self.files[path]

    def commits(self) -> list[bytes]:
        """The commits in order, none missing."""
        names = [name for name in sorted(self.files) if name.endswith(".json")]
        assert names == [commit_name(version) for version in range(len(names))]
        return [self.files[name] for name in names]
