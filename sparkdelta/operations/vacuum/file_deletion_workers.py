"""Deletion of files and empty directories of a table by Python workers, and resolution of links.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import compress
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.storage.worker_files import WorkerFiles

_Row: TypeAlias = tuple[str, bool, int | None]

_THREADS = 16
_STEP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The totals of a deletion.

    Attributes
    ----------
    num_files, num_bytes, num_directories
        Without what was gone or behind a symbolic link, and without directories that are no longer
        empty.
    num_problems
        The number of files that could not be deleted; `problem` is the error of one of them.
    """

    num_files: int = 0
    num_bytes: int = 0
    num_directories: int = 0
    num_problems: int = 0
    problem: str | None = None

    def __add__(self, other: Deleted) -> Deleted:
        return Deleted(
            num_files=self.num_files + other.num_files,
            num_bytes=self.num_bytes + other.num_bytes,
            num_directories=self.num_directories + other.num_directories,
            num_problems=self.num_problems + other.num_problems,
            problem=self.problem or other.problem,
        )


_NUMBERS = [field.name for field in fields(Deleted) if field.name != "problem"]
DELETED = StructType(
    [*(StructField(name, LongType()) for name in _NUMBERS), StructField("problem", StringType())]
)
"""The columns of `Deleted`."""

_ARROW = to_arrow_schema(DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleter:
    """A deleter of files of a table, never outside its root.

    Attributes
    ----------
    files
        The access to files on workers.
    root
        The absolute, decoded path of the table.
    per_second
        The most deletions per second of each task; None for any number.
    """

    files: WorkerFiles
    root: str
    per_second: float | None = None

    def delete(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Delete what batches with the columns `path` (relative to the root), `isDir` and `length`
        name, and yield a row of `DELETED` for each batch.
        """
        start, count = time.monotonic(), 0
        is_inside = lru_cache(1000)(self._is_inside)

        problems: list[str] = []

        def attempt(row: _Row) -> bool:
            """Delete a file or directory; return True if it was deleted."""
            path, is_directory, _ = row
            try:
                return is_inside(path.rpartition("/")[0]) and self.files.delete(
                    f"{self.root}/{path}", is_directory=is_directory
                )
            except OSError as error:
                problems.append(f"{path}: {error.strerror or error}")
                return False

        is_local = self.root.startswith("file:")  # threads would wait for each other
        with ThreadPoolExecutor(1 if is_local else _THREADS) as threads:
            run = map if is_local else threads.map
            for batch in batches:
                deleted: list[_Row] = []
                problems.clear()
                for begin in range(0, batch.num_rows, _STEP):
                    columns = batch[begin : begin + _STEP].to_pydict().values()
                    rows = list(zip(*columns, strict=True))
                    deleted += compress(rows, run(attempt, rows))
                    count += _STEP
                    if self.per_second is not None:
                        time.sleep(max(0, start + count / self.per_second - time.monotonic()))
                sizes = [length or 0 for _, is_directory, length in deleted if not is_directory]
                total = Deleted(
                    num_files=len(sizes),
                    num_bytes=sum(sizes),
                    num_directories=len(deleted) - len(sizes),
                    num_problems=len(problems),
                    problem=next(iter(problems), None),
                )
                yield pa.RecordBatch.from_pylist([asdict(total)], schema=_ARROW)

    def _is_inside(self, directory: str) -> bool:
        """Return True if a directory is the one of this name below the root: no symbolic link
        leads to it.
        """
        if not {"..", LOG_DIRECTORY}.isdisjoint(directory.split("/")):
            return False
        if not self.root.startswith("file:"):
            return True
        root = os.path.realpath(self.root.removeprefix("file:"))
        path = os.path.join(root, directory).rstrip("/")
        return os.path.realpath(path) == path


def deleted_files(files: DataFrame, deleter: FileDeleter) -> DataFrame:
    """Delete files and empty directories whenever the DataFrame is computed.

    Parameters
    ----------
    files
        path STRING (relative to the root), isDir BOOLEAN, length LONG. Each partition is a task.

    Returns
    -------
    DataFrame
        Rows of `DELETED`, one or more for each partition.
    """
    return files.select("path", "isDir", "length").mapInArrow(deleter.delete, DELETED)


def linked_files(paths: DataFrame, root: str) -> DataFrame:
    """Return the paths, relative to the root, of the files below it that absolute paths on a local
    disk lead to.

    Parameters
    ----------
    paths
        path STRING (decoded, without scheme).
    root
        The path of the table on the local disk.

    Returns
    -------
    DataFrame
        path STRING.
    """

    def resolve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        below = f"{os.path.realpath(root)}/"
        for batch in batches:
            real = map(os.path.realpath, batch.column(0).to_pylist())
            found = [path.removeprefix(below) for path in real if path.startswith(below)]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], names=["path"])

    return paths.select("path").mapInArrow(resolve, "path STRING")
