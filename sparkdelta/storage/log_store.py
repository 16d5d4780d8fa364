"""What the engine asks of a storage: list the log in order, read small files whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkdelta.protocol.log_files import LOG_DIRECTORY


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the log directory as a listing shows it."""

    name: str
    size_bytes: int
    modification_time_ms: int


class LogStore(Protocol):
    """The `_delta_log` directory of one table.

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


def log_path(table_root: str, name: str) -> str:
    """Where a file of the log is."""
    return f"{table_root}/{LOG_DIRECTORY}/{name}"
