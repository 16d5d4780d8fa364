"""Deletion of a table's files: by workers, or by the driver where these have no bulk requests.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.file_paths import scheme_and_authority
from sparkdelta.base.spark.driver import read_row, read_table
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.base.storage.object_log import OBJECT_SCHEMES
from sparkdelta.exceptions import StorageError
from sparkdelta.operations.vacuum.file_deletion_workers import Deleted, FileDeleter, deleted_files
from sparkdelta.operations.vacuum.unneeded_files import is_near_workers
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_DRIVER_PATHS = 100_000
"""The most paths that the driver holds at a time while it deletes files."""

_BULK = 1000
_FILES_PER_TASK = 1000


def delete_files(
    files: DataFrame, count: int, snapshot: Snapshot, *, per_second: float | None
) -> Deleted:
    """Delete files and empty directories below a table's root.

    On S3 and GCS the driver deletes up to 1,000 objects with a request, faster than the stores
    allow; on HDFS each worker would start a JVM.

    Parameters
    ----------
    files
        path STRING (relative to the root), isDir BOOLEAN, length LONG.
    count
        Their number.
    per_second
        The most deletions per second; None for any number.
    """
    if not count:
        return Deleted()
    scheme = scheme_and_authority(snapshot.path).partition(":")[0]
    if scheme in OBJECT_SCHEMES or not is_near_workers(snapshot):
        return _deleted_by_driver(files, count, snapshot, per_second)
    return _deleted_by_workers(files, count, snapshot, per_second)


def _deleted_by_workers(
    files: DataFrame, count: int, snapshot: Snapshot, per_second: float | None
) -> Deleted:
    spark = files.sparkSession
    tasks = max(1, min(count // _FILES_PER_TASK, 4 * engine_of(spark).parallelism))
    at_once = min(tasks, engine_of(spark).parallelism)
    deleter = FileDeleter(
        files=worker_files(spark, snapshot.path, snapshot.log.options),
        root=snapshot.path,
        per_second=None if per_second is None else per_second / at_once,
    )
    with worker_python(spark):
        done = deleted_files(files.repartition(tasks), deleter)
    numbers = (name for name in done.columns if name != "problem")
    totals = done.selectExpr(
        *(f"coalesce(sum({name}), 0) AS {name}" for name in numbers), "min(problem) AS problem"
    )
    row = read_row(totals, what="totals of deleted files")
    return Deleted(**row.asDict())


def _deleted_by_driver(
    files: DataFrame, count: int, snapshot: Snapshot, per_second: float | None
) -> Deleted:
    delete = snapshot.log.store.table_files().delete
    pages = 2 * count // MAX_DRIVER_PATHS + 1
    page = F.pmod(F.xxhash64("path"), F.lit(pages))
    start, tried, done = time.monotonic(), 0, Deleted()
    for number in range(pages):
        rows = read_table(
            files.filter(page == number), what="files to delete", bound=MAX_DRIVER_PATHS
        )
        for some in rows.to_batches(max_chunksize=_BULK):
            done = sum(_deleted_batch(some, delete), done)
            tried += some.num_rows
            if per_second is not None:
                time.sleep(max(0, start + tried / per_second - time.monotonic()))
    return done


def _deleted_batch(
    rows: pa.RecordBatch, delete: Callable[[Sequence[str]], None]
) -> Iterator[Deleted]:
    """Delete files in one request, and one after the other if it fails; then directories."""
    directories = [row["path"] for row in rows.to_pylist() if row["isDir"]]
    files = {row["path"]: row["length"] or 0 for row in rows.to_pylist() if not row["isDir"]}
    try:
        delete([*files])
    except StorageError:
        for path, size in files.items():
            yield _attempt(path, delete) or Deleted(num_files=1, num_bytes=size)
    else:
        yield Deleted(num_files=len(files), num_bytes=sum(files.values()))
    for path in directories:
        if _attempt(path, delete) is None:  # or else it is no longer empty
            yield Deleted(num_directories=1)


def _attempt(path: str, delete: Callable[[Sequence[str]], None]) -> Deleted | None:
    """Delete one file or directory; return the problem if that fails."""
    try:
        delete([path])
    except StorageError as error:
        return Deleted(num_problems=1, problem=f"{path}: {error.message}")
    return None
