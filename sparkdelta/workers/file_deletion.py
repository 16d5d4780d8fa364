"""Deletion of files and empty directories of a table by Python workers.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from sparkdelta.protocol.log_files import LOG_DIRECTORY
from sparkdelta.workers.files import WorkerFiles

DELETIONS = StructType(
    [
        StructField("path", StringType()),
        StructField("isDir", BooleanType()),
        StructField("length", LongType()),
        StructField("problem", StringType()),
    ]
)
"""What was deleted, and what could not be and why; without what was gone or behind a symbolic link,
and without directories that are no longer empty.
"""

_ARROW = pa.schema(
    [
        ("path", pa.string()),
        ("isDir", pa.bool_()),
        ("length", pa.int64()),
        ("problem", pa.string()),
    ]
)
_THREADS = 16
_STEP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleter:
    """Deletes files of a table, never outside its root.

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
        name, and yield `DELETIONS`.
        """
        start, count = time.monotonic(), 0
        is_inside = lru_cache(1000)(self._is_inside)

        def outcome(row: tuple[str, bool, int | None]) -> tuple[object, ...] | None:
            path, is_directory, length = row
            problem = None
            try:
                if not is_inside(path.rpartition("/")[0]) or not self.files.delete(
                    f"{self.root}/{path}", is_directory=is_directory
                ):
                    return None
            except OSError as error:
                problem = error.strerror or str(error)
            return path, is_directory, length, problem

        is_local = self.root.startswith("file:")  # threads would wait for each other
        with ThreadPoolExecutor(1 if is_local else _THREADS) as threads:
            run = map if is_local else threads.map
            for batch in batches:
                for begin in range(0, batch.num_rows, _STEP):
                    rows = zip(*batch[begin : begin + _STEP].to_pydict().values(), strict=True)
                    done = [one for one in run(outcome, rows) if one is not None]
                    yield pa.RecordBatch.from_pylist(
                        [dict(zip(_ARROW.names, one, strict=True)) for one in done], schema=_ARROW
                    )
                    count += _STEP
                    if self.per_second is not None:
                        time.sleep(max(0, start + count / self.per_second - time.monotonic()))

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
        The columns of `DELETIONS`.
    """
    return files.select("path", "isDir", "length").mapInArrow(deleter.delete, DELETIONS)
