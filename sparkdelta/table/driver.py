"""The one door by which rows reach the driver, and by which Spark's errors become ours.

What may come through, and nothing else:

===============================  ==========================================================
what                             bounded by
===============================  ==========================================================
protocol and metaData            one row each
sidecars of a checkpoint         the checkpoint's top-level file
files of a scan                  `sparkdelta.table.scan.MAX_SCAN_FILES`
deletion vector descriptors      the files of a scan
commit timestamps                the commits of the log that a search visits
columns of a file                the footer of one file
===============================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row

from sparkdelta.exceptions import DriverReadTooLargeError, LogFileNotFoundError, from_message

_MISSING_FILE = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException")
_TOO_LARGE = "spark.driver.maxResultSize"


def read_rows(frame: DataFrame, *, what: str, bound: int) -> list[Row]:
    """The rows of a small frame; a frame of local data costs no Spark job.

    Raises
    ------
    DriverReadTooLargeError
        There are more rows than `bound`.
    """
    with our_errors(what, bound):
        rows = frame.collect()
    if len(rows) > bound:
        raise DriverReadTooLargeError(what=what, rows=len(rows), bound=bound)
    return rows


def read_table(frame: DataFrame, *, what: str, bound: int) -> pa.Table:
    """As `read_rows`, in columns: for many rows."""
    with our_errors(what, bound):
        table = frame.toArrow()
    if table.num_rows > bound:
        raise DriverReadTooLargeError(what=what, rows=table.num_rows, bound=bound)
    return table


@contextmanager
def our_errors(what: str, bound: int) -> Iterator[None]:
    """Raise the `DeltaError` that a query raised inside Spark, as itself."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        ours = from_message(text)
        if ours is not None:
            raise ours from error
        if _TOO_LARGE in text:
            raise DriverReadTooLargeError(what=what, rows=None, bound=bound) from error
        raise


def is_missing_file(error: BaseException) -> bool:
    """Whether a file that was asked for by name is gone."""
    if isinstance(error, FileNotFoundError | LogFileNotFoundError):
        return True
    return isinstance(error, PySparkException) and any(sign in str(error) for sign in _MISSING_FILE)
