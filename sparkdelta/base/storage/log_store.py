"""Storage interface of the log: ordered listing, reading and writing of small files, and commits
that never overwrite.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable
from uuid import uuid4

from sparkdelta.base.protocol.log_files import (
    LOG_DIRECTORY,
    is_staging_directory,
    is_temporary_file,
)
from sparkdelta.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from sparkdelta.base.storage.table_files import TableFiles

Data: TypeAlias = bytes | Iterable[bytes]
"""The contents of a file as a whole or, if they are large, in pieces."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREADS = 16


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or directory in a listing of the log or of the table's files."""

    name: str
    size_bytes: int
    modification_time_ms: int


@runtime_checkable
class CombinesRequests(Protocol):
    """A log store whose requests take long, so that one does the work of several."""

    def expect_put(self, name: str, data: bytes, *, after: str) -> None:
        """Create a file in the request that creates another one, if that comes next. The caller
        creates it later all the same, which takes no request if it was absent.
        """

    def expect_deletion(self, directory: str) -> None:
        """Delete a staging directory in the next request that creates a file. The caller deletes it
        later all the same, which takes no request then.
        """


class LogStore(Protocol):
    """The `_delta_log` directory of one table.

    File names are relative to that directory. All methods declared after `check_writable` reject
    names that lead out of it.

    Attributes
    ----------
    table_root
        The table's root as a qualified, decoded path without a trailing slash, such as
        ``s3a://bucket/my table`` or ``file:/data/table``.
    """

    @property
    def table_root(self) -> str: ...

    def list_from(self, start: str = "") -> list[FileEntry]:
        """Return the files of the log with names greater than or equal to `start`, ordered by name.

        The list is empty if the directory does not exist. Subdirectories are not included.
        """

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of the named files of the log directory in the given order.

        A missing file is a FileNotFoundError, whose `filename` is its name, as in all reads.
        """

    def read_start(self, name: str, size: int) -> bytes:
        """Return the first `size` bytes of a file of the log directory, or all of a shorter one."""

    def read_from(self, name: str, start: int) -> bytes:
        """Return the bytes of a file of the log directory from a position on."""

    def check_writable(self) -> None:
        """Raise StoreNotWritableError if writes will, before any work is done."""

    def put_if_absent(self, name: str, data: Data) -> None:
        """Create a file atomically: readers never see a part, and one of several writers succeeds.

        The others get a FileExistsError, whose `filename` is its name, and have written nothing.
        """

    def overwrite(self, name: str, data: bytes) -> None:
        """Create or replace a file atomically."""

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        """Move a file written by Spark to its final name atomically, without overwriting.

        A missing `source` is a FileNotFoundError, an existing name a FileExistsError.

        Parameters
        ----------
        is_new_name
            True if no other writer can use the name, so that no file can be overwritten.
        """

    def delete(self, names: Sequence[str]) -> None:
        """Delete files, ignoring those that do not exist."""

    def list_directory(self, name: str) -> list[FileEntry]:
        """Return all files of a subdirectory, ordered by name; names do not include the directory.

        The list is empty if the directory does not exist.
        """

    def is_alone(self) -> bool:
        """Return True if the table's root contains only the log and files of uncommitted writes.

        Stops at the first other file.
        """

    def staging_directories(self) -> list[FileEntry]:
        """Return the staging directories, ordered by name, each with a size of 0."""

    def delete_directory(self, name: str) -> None:
        """Delete a staging directory and its contents, if it exists."""

    def table_files(self) -> TableFiles:
        """Return access to the files of the table outside the log."""


def show_same_log(one: LogStore, other: LogStore) -> bool | None:
    """Return True if two stores of a table show the same log; None if neither shows any file."""
    # Other writers may add files between the listings, so only a common commit is compared. Spark's
    # file sources ignore names that begin with "_" or ".".
    names, other_names = (
        {entry.name for entry in store.list_from() if entry.name[0] not in "_."}
        for store in (one, other)
    )
    common = max((name for name in names & other_names if name.endswith(".json")), default=None)
    if common is not None:
        return one.read([common]) == other.read([common])
    return False if names or other_names else None


def in_parallel(request: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the results of requests to a remote store, in order.

    Log cleanup deletes thousands of files.
    """
    if len(items) < 2:
        return [request(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items))) as threads:
        return list(threads.map(request, items))


def checked_name(name: str) -> str:
    """Return the name of a file or directory of the log; raise if it leads out of the log."""
    if not set(name.split("/")).isdisjoint(("", ".", "..")) or "\0" in name:
        raise InvalidArgumentError(
            argument="name", problem=f"{name!r} is outside the log directory"
        )
    return name


def checked_staging_directory(name: str) -> str:
    """Return the name of a staging directory; raise for others, whose contents would be deleted."""
    if not is_staging_directory(name):
        raise InvalidArgumentError(
            argument="name", problem=f"{name!r} is not a staging directory and may be a table"
        )
    return name


def temporary_name() -> str:
    """Return a unique name for a file of the log directory that readers ignore in listings."""
    name = f".sparkdelta-{uuid4()}.tmp"
    assert is_temporary_file(name)
    return name


def pieces(data: Data) -> Iterable[bytes]:
    """Return the contents of a file as an iterable of pieces."""
    return [data] if isinstance(data, bytes) else data


def not_in_log(name: str) -> FileNotFoundError:
    """Return the error for a missing file that is to be read or moved."""
    return FileNotFoundError(errno.ENOENT, "no such file in the log", name)


def already_in_log(name: str) -> FileExistsError:
    """Return the error for an existing file that is to be written."""
    return FileExistsError(errno.EEXIST, "already in the log", name)


def log_path(table_root: str, name: str) -> str:
    """Return the path of a file of the log."""
    return f"{table_root}/{LOG_DIRECTORY}/{name}"
