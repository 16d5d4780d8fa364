"""Listing of the files below a directory by Python workers, in as many tasks as it needs.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from sparkdelta.base.storage.worker_files import StoredEntry, StoredFiles
from sparkdelta.exceptions import StorageError

ENTRIES = StructType(
    [
        StructField("path", StringType(), False),
        StructField("length", LongType()),
        StructField("isDir", BooleanType(), False),
        StructField("modificationTime", LongType()),
        StructField("isEmpty", BooleanType(), False),
        StructField("isPending", BooleanType(), False),
        StructField("isOther", BooleanType(), False),
    ]
)
"""A file or directory, by its path relative to the root; sizes in bytes, times in milliseconds
since the epoch. A pending directory has yet to be listed, and has no other row. Others are neither
files nor directories, such as symbolic links.
"""

ENTRIES_IN_ARROW = to_arrow_schema(ENTRIES)

Directory: TypeAlias = tuple[str, int | None]
"""A directory by its path relative to the root, which is the empty path, and its modification time.
"""

_Row: TypeAlias = tuple[str, int | None, bool, int | None, bool, bool, bool]
_BATCH = 10_000
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLister:
    """Lists the visible files and directories of a table.

    Symbolic links are not followed.

    Attributes
    ----------
    files
        The access to files on workers.
    root
        The absolute, decoded path of the table.
    visible
        The regular expression of the paths to list; others are hidden.
    """

    files: StoredFiles
    root: str
    visible: str

    def list_below(self, directories: Iterable[Directory], budget: int) -> Iterator[pa.RecordBatch]:
        """Yield the entries below directories in columns `ENTRIES`.

        Parameters
        ----------
        budget
            The number of entries after which the remaining directories become pending.

        Raises
        ------
        StorageError
            A directory cannot be listed.
        """
        rows = self._rows(deque(directories), budget)
        while batch := [*islice(rows, _BATCH)]:
            columns = zip(zip(*batch, strict=True), ENTRIES_IN_ARROW, strict=True)
            arrays = [pa.array(values, field.type) for values, field in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=ENTRIES_IN_ARROW)

    def _rows(self, pending: deque[Directory], budget: int) -> Iterator[_Row]:
        with ThreadPoolExecutor(_THREADS) as threads:
            while pending and budget > 0:
                wave = [pending.popleft() for _ in range(min(_THREADS, len(pending)))]
                for (path, time), found in zip(wave, threads.map(self._entries, wave), strict=True):
                    budget -= len(found)
                    if path:
                        yield path, None, True, time, not found, False, False
                    for entry in found:
                        name = f"{path}/{entry.name}" if path else entry.name
                        time_ms, is_other = entry.modification_time_ms, entry.is_other
                        if not is_other and self._is_hidden(name):
                            continue
                        if entry.is_directory:
                            pending.append((name, time_ms))
                        else:
                            yield name, entry.size_bytes, False, time_ms, False, False, is_other
        for path, time in pending:
            yield path, None, True, time, False, True, False

    def _is_hidden(self, path: str) -> bool:
        return re.match(self.visible, path) is None

    def _entries(self, directory: Directory) -> list[StoredEntry]:
        path = f"{self.root}/{directory[0]}".rstrip("/")
        try:
            return self.files.entries(path)
        except OSError as error:
            problem = f"it cannot be listed: {error.strerror or error}"
            raise StorageError(path=path, problem=problem) from error


def listed_files(directories: DataFrame, lister: FileLister, *, budget: int) -> DataFrame:
    """List directories by workers, see `FileLister.list_below`.

    Parameters
    ----------
    directories
        path STRING, modificationTime LONG. Each partition is a task.
    budget
        Of each task.

    Returns
    -------
    DataFrame
        The columns of `ENTRIES`.
    """

    def entries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (zip(*batch.to_pydict().values(), strict=True) for batch in batches)
        return lister.list_below([row for batch in rows for row in batch], budget)

    return directories.select("path", "modificationTime").mapInArrow(entries, ENTRIES)
