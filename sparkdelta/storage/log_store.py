"""What the engine asks of a storage: list the log in order, read and write small files whole, and
never overwrite a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar
from uuid import uuid4

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.protocol.log_files import LOG_DIRECTORY, is_staging_directory, is_temporary_file

Data: TypeAlias = bytes | Iterable[bytes]
"""The contents of a file, whole or in pieces where they are large."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_THREADS = 16


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the log directory as a listing shows it."""

    name: str
    size_bytes: int
    modification_time_ms: int


class LogStore(Protocol):
    """The `_delta_log` directory of one table.

    Names are relative to that directory. Those that verbs below `check_writable` take are refused
    if they lead out of it.

    Attributes
    ----------
    table_root
        The table's root as Spark names it, qualified and decoded, without a trailing slash:
        ``file:/data/my table``, ``s3a://bucket/table``.
    """

    @property
    def table_root(self) -> str: ...

    def list_from(self, start: str = "") -> list[FileEntry]:
        """The log's files whose name is not less than `start`, ordered by name.

        A missing directory is an empty log. Subdirectories are not listed.
        """

    def read(self, names: Sequence[str]) -> list[bytes]:
        """The contents of the named files of the log directory, in the order asked.

        Raises
        ------
        FileNotFoundError
            A file is not there; its `filename` is the name asked for.
        """

    def read_start(self, name: str, size: int) -> bytes:
        """The first `size` bytes of a file of the log directory, or all that it has.

        Raises
        ------
        FileNotFoundError
            As of `read`.
        """

    def check_writable(self) -> None:
        """Refuse a store that has no way to write, so that nothing is written in vain.

        Raises
        ------
        StoreNotWritableError
            Also of the verbs that write.
        """

    def put_if_absent(self, name: str, data: Data) -> None:
        """Write a new file in one step: no reader sees a part of it, and of many writers one wins.

        Raises
        ------
        FileExistsError
            It is there; its `filename` is the name. Nothing was written.
        """

    def overwrite(self, name: str, data: bytes) -> None:
        """Write or replace a file in one step."""

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        """Give a file that Spark wrote its final name, in one step, without overwriting.

        Parameters
        ----------
        is_new_name
            Whether nobody else can have chosen the name, so that nothing can be overwritten.

        Raises
        ------
        FileExistsError
            A file of that name is there; its `filename` is the name.
        FileNotFoundError
            `source` is not there; its `filename` is `source`.
        """

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; one that is not there is no error."""

    def list_directory(self, name: str) -> list[FileEntry]:
        """All files of a subdirectory, ordered by name; their names are without the directory.

        A missing directory is empty.
        """

    def is_alone(self) -> bool:
        """Whether nothing else is at the table's root but what writes leave there that were not
        committed, or not yet; of what is there, the first is enough.
        """

    def staging_directories(self) -> list[FileEntry]:
        """The staging directories, ordered by name; their size is 0."""

    def delete_directory(self, name: str) -> None:
        """Delete a staging directory with all it holds; one that is not there is no error."""


def show_same_log(one: LogStore, other: LogStore) -> bool | None:
    """Whether two ways to a table lead to one log; None where neither shows a log."""
    # Others may write meanwhile, but what both see is the same, and something is. What begins with
    # "_" or "." is not seen by Spark's file sources.
    seen, here = (
        {entry.name for entry in store.list_from() if entry.name[0] not in "_."}
        for store in (one, other)
    )
    common = max((name for name in seen & here if name.endswith(".json")), default=None)
    if common is not None:
        return one.read([common]) == other.read([common])
    return False if seen or here else None


def in_parallel(request: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answers of a distant store, in order: a cleanup deletes thousands of files."""
    if len(items) < 2:
        return [request(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items))) as threads:
        return list(threads.map(request, items))


def checked_name(name: str) -> str:
    """The name of a file or directory within the log, refused if it leads anywhere else."""
    if not set(name.split("/")).isdisjoint(("", ".", "..")) or "\0" in name:
        raise InvalidArgumentError(
            argument="name", problem=f"{name!r} is outside the log directory"
        )
    return name


def checked_staging_directory(name: str) -> str:
    """The name of a staging directory; any other is refused: its files would be deleted."""
    if not is_staging_directory(name):
        raise InvalidArgumentError(
            argument="name", problem=f"{name!r} is not a staging directory and may be a table"
        )
    return name


def temporary_name() -> str:
    """A new name in the log directory that listings of engines leave out."""
    name = f".sparkdelta-{uuid4()}.tmp"
    assert is_temporary_file(name)
    return name


def pieces(data: Data) -> Iterable[bytes]:
    """The contents in pieces, be they whole or not."""
    return [data] if isinstance(data, bytes) else data


def log_path(table_root: str, name: str) -> str:
    """Where a file of the log is."""
    return f"{table_root}/{LOG_DIRECTORY}/{name}"
