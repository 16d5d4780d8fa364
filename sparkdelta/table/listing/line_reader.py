"""Lines of commits in the driver's memory.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.log_files import LogFile
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import LogFileNotFoundError, MalformedLogFileError

DRIVER_LOG_BYTES = 4 * 1024 * 1024
"""Up to this many bytes of commits are read by the driver and parsed without a Spark job; more are
read by the executors."""

DRIVER_SCAN_BYTES = 16 * 1024 * 1024
"""Commits, or a checkpoint in JSON, of up to this many bytes are searched by the driver for actions
that are not about files, and nothing else of them is kept: this takes milliseconds, a Spark job
longer."""

_FIRST_LINE_BYTES = 1 << 16


def fits_on_driver(files: Sequence[LogFile]) -> bool:
    """Return True if the lines of commits become local data, see `DRIVER_LOG_BYTES`."""
    return total_size(files) <= DRIVER_LOG_BYTES


def is_searched_by_driver(files: Sequence[LogFile]) -> bool:
    """Return True if the driver searches commits, see `DRIVER_SCAN_BYTES`."""
    return total_size(files) <= DRIVER_SCAN_BYTES


def read_lines(store: LogStore, files: Sequence[LogFile]) -> pa.Table:
    """Read version LONG, line STRING of commits, compactions or a JSON checkpoint to the driver."""
    try:
        contents = store.read([file.name for file in files])
    except FileNotFoundError as error:
        raise _gone(store, error) from error
    tables = [_split(store, file, data) for file, data in zip(files, contents, strict=True)]
    return pa.concat_tables(tables) if tables else _LINES.empty_table()


def read_first_line(store: LogStore, commit: LogFile) -> pa.Table:
    """Read the first line of a commit in the columns of `read_lines`, see `first_line`."""
    try:
        return _split(store, commit, first_line(store, commit.name))
    except FileNotFoundError as error:
        raise _gone(store, error) from error


def _gone(store: LogStore, error: FileNotFoundError) -> LogFileNotFoundError:
    file = str(error.filename)
    return LogFileNotFoundError(path=store.table_root, version=None, file=file)


_LINE = StructType([StructField("version", LongType()), StructField("line", StringType())])
_LINES = pa.schema([("version", pa.int64()), ("line", pa.string())])


def _split(store: LogStore, file: LogFile, data: bytes) -> pa.Table:
    version = file.last_version
    try:
        lines = pa.array(data.decode("utf-8").split("\n"), pa.string())
    except UnicodeDecodeError as error:
        raise MalformedLogFileError(
            path=store.table_root, version=version, problem=f"{file.name} is not UTF-8: {error}"
        ) from error
    return pa.table([pa.repeat(pa.scalar(version, pa.int64()), len(lines)), lines], schema=_LINES)


def first_line(store: LogStore, name: str) -> bytes:
    """Read the first line of a commit: its commitInfo, if it has an in-commit timestamp.

    The commit may be larger than the driver's memory.
    """
    size = _FIRST_LINE_BYTES
    data = store.read_start(name, size)
    while len(data) == size and b"\n" not in data:
        size *= 4
        data = store.read_start(name, size)
    return data.partition(b"\n")[0]


def local_lines(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the lines of `read_lines` as a frame that costs no job."""
    return local_frame(spark, table, _LINE)


def total_size(files: Sequence[LogFile]) -> int:
    """Sum the sizes of log files in bytes."""
    return sum(file.size_bytes for file in files)


def lines_that_name(lines: pa.Table, *actions: str) -> pa.Table:
    """Return the local lines that may contain one of these actions or are truncated.

    `table.listing.log_line_frames.may_name` has the same rule.
    """
    text = lines["line"]
    is_cut = pc.and_(pc.not_equal(text, ""), pc.invert(pc.ends_with(text, "}")))
    # Arrow takes ten times as long to search for each name as a text.
    is_named = pc.match_substring_regex(text, f'"(?:{"|".join(map(re.escape, actions))})"')
    return lines.filter(pc.or_(is_cut, is_named))
