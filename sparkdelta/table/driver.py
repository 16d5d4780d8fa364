"""The one door by which rows reach the driver, and by which Spark's errors become ours.

What may come through, and nothing else:

===============================  ==========================================================
what                             bounded by
===============================  ==========================================================
protocol and metaData            the commits that hold one
protocol, metaData and sidecars  the checkpoint's top-level file
compactions to be left out       the compactions of a segment
files of a scan                  `Scan.max_driver_files`
size of a scan                   one row
keys of files                    the files of a scan
columns of files                 the files of a scan
files with matching rows         the files of a scan
commit timestamps                the commits that a search visits
totals of the live files         one row per pair of bins
totals of one commit             one row per pair of bins
provenance of one commit         one row
findings of a verification       `commands.verify.MAX_FINDINGS`
number of findings               one row
files to be looked at            `commands.verify.MAX_LOOKED_AT`
a missing sidecar                one row
sidecars to be deleted           the files in `_sidecars`
actions of a version checksum    `protocol.version_checksum.MAX_TRANSACTIONS` and others
file counts of a scan            one row
clustering columns               one row
size of a checkpoint             one row
what was written to a checkpoint one row
what was written to sidecars     one row per new sidecar
sidecars that commits may touch  the sidecars of a checkpoint, and one row
what the hint repeats of a checkpoint  twice `MAX_EMBEDDED` in `checkpoint_hint`
sidecars that may match          the sidecars of a checkpoint; no Spark job
new data files                   `MAX_NEW_FILES` in `new_files`
copied data files                `MAX_COPIED_FILES` in `data_file_writer`
totals of the new data files     one row
last value of an identity column one row
partitions that are overwritten  `MAX_NAMED_PARTITIONS` in `replacement`
transaction of an application    one row
file actions of a commit         `MAX_VALUE_ACTIONS` in `transaction`
new rows of a large commit by groups  `GROUPS` in `frames.fresh_row_ids`
what a large commit does         one row
repeated files of a commit       one row
row id high-water mark           one row
table actions of a winning commit  those of one commit, none of files
conflicting files of a winning commit  one row per kind of conflict
===============================  ==========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from sparkdelta.exceptions import (
    DataFileNotFoundError,
    DeltaError,
    DriverReadTooLargeError,
    LogFileNotFoundError,
    StorageError,
    from_message,
)
from sparkdelta.protocol.log_files import LOG_DIRECTORY, Version
from sparkdelta.table.job_names import named_jobs
from sparkdelta.table.sessions import SPARK_ERRORS

_MISSING_FILE = re.compile(
    r"\[(?:PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST)\].*?(?P<file>[\w+.-]+:/\S+?)\.?(?=\s|$)"
)
_BROKEN_FILE = re.compile(r"\[FAILED_READ_FILE\S*\].*?(?P<file>[\w+.-]+:/\S+?)\.?(?=\s|$)")
_TOO_LARGE = "spark.driver.maxResultSize"


def read_rows(
    frame: DataFrame, *, what: str, bound: int, version: Version | None = None
) -> list[Row]:
    """The rows of a small frame; a frame of local data costs no Spark job.

    Parameters
    ----------
    version
        The table's version, for messages.

    Raises
    ------
    DriverReadTooLargeError
        There are more rows than `bound`.
    """
    with (
        our_errors(version, what=what, bound=bound),
        named_jobs(frame.sparkSession, what, version=version),
    ):
        rows = frame.collect()
    if len(rows) > bound:
        raise DriverReadTooLargeError(what=what, rows=len(rows), bound=bound)
    return rows


def read_table(
    frame: DataFrame, *, what: str, bound: int, version: Version | None = None
) -> pa.Table:
    """As `read_rows`, in columns: for many rows."""
    with (
        our_errors(version, what=what, bound=bound),
        named_jobs(frame.sparkSession, what, version=version),
    ):
        table = frame.toArrow()
    if table.num_rows > bound:
        raise DriverReadTooLargeError(what=what, rows=table.num_rows, bound=bound)
    return table


@contextmanager
def our_errors(version: Version | None, *, what: str = "files", bound: int = 0) -> Iterator[None]:
    """Raise what a query found wrong with the table as the `DeltaError` that says it."""
    try:
        yield
    except SPARK_ERRORS as error:
        ours = _translated(str(error), version, what, bound)
        if ours is None:
            raise
        raise ours from error


def _translated(text: str, version: Version | None, what: str, bound: int) -> DeltaError | None:
    raised = from_message(text)
    if raised is not None:
        return raised
    if _TOO_LARGE in text:
        return DriverReadTooLargeError(what=what, rows=None, bound=bound)
    missing = _MISSING_FILE.search(text)
    if missing is not None:
        root, is_log, _ = missing["file"].partition(f"/{LOG_DIRECTORY}/")
        if is_log:
            return LogFileNotFoundError(path=root, version=version, file=missing["file"])
        return DataFileNotFoundError(file=missing["file"], version=version)
    broken = _BROKEN_FILE.search(text)
    if broken is not None:
        return StorageError(path=broken["file"], problem=text.partition("\n")[0])
    return None
