"""Collection of rows on the driver, and translation of Spark errors to `DeltaError`.

All rows that reach the driver pass through this module. Each read has a name, for Spark's UI and
for errors, and a bound; `grep -rn 'what="' sparkdelta` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from sparkdelta.base.protocol.log_files import LOG_DIRECTORY, Version
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.exceptions import (
    DeltaError,
    DriverReadTooLargeError,
    LogFileNotFoundError,
    MalformedLogFileError,
    StorageError,
    from_message,
)

_MISSING_FILE = re.compile(
    r"\[(?:PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST)\].*?(?P<file>[\w+.-]+:/\S+?)\.?(?=\s|$)"
)
_BROKEN_FILE = re.compile(r"\[FAILED_READ_FILE\S*\].*?(?P<file>[\w+.-]+:/\S+?)\.?(?=\s|$)")
_TOO_LARGE = "spark.driver.maxResultSize"


def read_rows(
    frame: DataFrame, *, what: str, bound: int, version: Version | None = None
) -> list[Row]:
    """Collect the rows of a small DataFrame; local data takes no Spark job.

    Parameters
    ----------
    version
        The table's version, for error messages.

    Raises
    ------
    DriverReadTooLargeError
        There are more rows than `bound`.
    """
    with (
        delta_errors(version, what=what, bound=bound),
        named_jobs(frame.sparkSession, what, version=version),
    ):
        rows = frame.collect()
    if len(rows) > bound:
        raise DriverReadTooLargeError(what=what, rows=len(rows), bound=bound)
    return rows


def read_row(frame: DataFrame, *, what: str, version: Version | None = None) -> Row:
    """Collect the only row of a DataFrame, such as totals; otherwise like `read_rows`."""
    (row,) = read_rows(frame, what=what, bound=1, version=version)
    return row


def has_rows(frame: DataFrame, *, what: str, version: Version | None = None) -> bool:
    """Return True if a DataFrame has rows; reads one of them, see `read_rows`."""
    return bool(read_rows(frame.limit(1), what=what, bound=1, version=version))


def count_rows(frame: DataFrame, *, what: str, version: Version | None = None) -> int:
    """Count the rows of a DataFrame, see `read_rows`."""
    return int(read_row(frame.selectExpr("count(*)"), what=what, version=version)[0])


def read_table(
    frame: DataFrame, *, what: str, bound: int, version: Version | None = None
) -> pa.Table:
    """Collect a DataFrame as an Arrow table, for many rows; otherwise like `read_rows`.

    Local data takes no Spark job if its types are used by files in the log.
    """
    with (
        delta_errors(version, what=what, bound=bound),
        named_jobs(frame.sparkSession, what, version=version),
    ):
        if _is_collected(frame):
            table = _without_job(frame)
        else:
            table = engine_of(frame.sparkSession).to_arrow(frame, frame.toArrow)
    if table.num_rows > bound:
        raise DriverReadTooLargeError(what=what, rows=table.num_rows, bound=bound)
    return table


def read_parquet(
    files: Sequence[bytes], *, columns: Sequence[str] | None = None, what: str, bound: int
) -> pa.Table:
    """Return the rows of Parquet files that the driver has, without a Spark job; otherwise like
    `read_table`.

    Parameters
    ----------
    columns
        All by default.
    """
    # Nanoseconds, by default of INT96, would not hold all times.
    opened = [
        pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us") for data in files
    ]
    rows = sum(file.metadata.num_rows for file in opened)
    if rows > bound:
        raise DriverReadTooLargeError(what=what, rows=rows, bound=bound)
    return pa.concat_tables([file.read(columns) for file in opened])


_OF_FILES = (BooleanType, IntegerType, LongType, StringType)
"""Types whose values are the same in rows and in Arrow tables."""


def _is_collected(frame: DataFrame) -> bool:
    """Return True if `collect` returns the rows without a job, which `toArrow` always starts."""
    return engine_of(frame.sparkSession).is_local_data(frame) and _is_of_files(frame.schema)


def _is_of_files(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_of_files(field.dataType) for field in data_type.fields)
    return isinstance(data_type, _OF_FILES)


def _without_job(frame: DataFrame) -> pa.Table:
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return pa.Table.from_pylist(rows, to_arrow_schema(frame.schema))


@contextmanager
def delta_errors(version: Version | None, *, what: str = "files", bound: int = 0) -> Iterator[None]:
    """Raise Spark errors that are about the table as `DeltaError`, and all others unchanged."""
    try:
        yield
    except DeltaError:
        raise
    except SPARK_ERRORS as error:
        translated = _translated(str(error), version, what, bound)
        if translated is None:
            raise
        raise translated from error


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
        return DeltaError.of("DELTA_FILE_NOT_FOUND", file=missing["file"], version=version)
    broken = _BROKEN_FILE.search(text)
    if broken is not None:
        root, is_log, name = broken["file"].partition(f"/{LOG_DIRECTORY}/")
        if is_log:
            problem = f"Spark cannot read {name}: {broken[0]}"
            return MalformedLogFileError(path=root, version=version, problem=problem)
        return StorageError(path=broken["file"], problem=text.partition("\n")[0])
    return None
