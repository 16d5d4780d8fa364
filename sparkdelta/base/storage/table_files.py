"""Storage interface of a table's files outside the log: listing, deleting and copying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sparkdelta.base.protocol.file_paths import is_absolute, plain_path, scheme_and_authority
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.storage.log_store import FileEntry
from sparkdelta.exceptions import DeltaError

MOVE_ATTEMPTS = 10
"""The attempts to move a file into a directory that others may delete while it is empty."""


class TableFiles(Protocol):
    """The files below the root of one table, except for the log.

    Paths are decoded, and relative to the root or absolute below it. Escapes such as ``%2F`` are
    part of the name and not decoded again. All methods raise `DELTA_PATH_OUTSIDE_TABLE` for other
    paths, before anything is changed, and `StorageError` if the storage fails.

    Attributes
    ----------
    table_root
        The table's root as a qualified, decoded path without a trailing slash.
    can_move
        True if files get other names without being copied, as on local disks and HDFS; elsewhere
        `move` and `move_directory` raise `StorageError`.
    """

    @property
    def table_root(self) -> str: ...

    @property
    def can_move(self) -> bool: ...

    def list_files(self, directory: str = "") -> Iterator[FileEntry]:
        """Yield all files below a directory while they are listed, in any order.

        The names are paths relative to the table's root. There are none if the directory does not
        exist. Directories that are symbolic links are not entered.
        """

    def stat(self, path: str) -> FileEntry | None:
        """Return the status of a file; None if it does not exist."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files, ignoring those that do not exist."""

    def delete_directory(self, directory: str) -> None:
        """Delete a directory and its contents, if it exists."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file without overwriting.

        An existing target is a FileExistsError, a missing source a FileNotFoundError; `filename` is
        the path.
        """

    def move(self, moves: Mapping[str, str]) -> None:
        """Give files other names, and create the directories of these. Directories that are emptied
        may be deleted.

        No other file may get one of the names: on a local disk it would be overwritten. A missing
        source is a FileNotFoundError.
        """

    def move_directory(self, source: str, target: str) -> None:
        """Give a directory another name, which nothing has."""


def relative_path(table_root: str, path: str) -> str:
    """Return a decoded path below a table's root relative to the root, with single slashes.

    The root itself, the log, and paths that lead out of the root are refused.

    Examples
    --------
    >>> relative_path("file:/t", "file:///t/p=1//f"), relative_path("file:/t", "p=1/f")
    ('p=1/f', 'p=1/f')
    """
    relative = plain_path(path)
    if is_absolute(path):
        root = f"{plain_path(table_root).rstrip('/')}/"
        if relative.startswith("/"):
            relative = scheme_and_authority(table_root) + relative
        # Without the prefix, the first segment is empty.
        relative = relative[len(root) :] if relative.startswith(root) else ""
    segments = relative.split("/")
    if (
        not set(segments).isdisjoint(("", ".", ".."))
        or segments[0] == LOG_DIRECTORY
        or "\0" in relative
    ):
        raise DeltaError.of("DELTA_PATH_OUTSIDE_TABLE", path=path, table_root=table_root)
    return relative


def relative_directory(table_root: str, directory: str) -> str:
    """Return `relative_path` of a directory to list; empty for the root itself."""
    return relative_path(table_root, directory) if directory else ""
