"""The error for a path that is not a Delta table, with a hint to the table that was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.arguments import checked_path
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY, LogFileKind, parse_log_file
from sparkdelta.exceptions import TableNotFoundError
from sparkdelta.table.listing.listing import list_log_files, open_log

_AT_VERSION = re.compile(r"(?P<root>.+)@v(?P<version>\d+)")
_GLOB_CHARACTERS = re.compile(r"([\\{}\[\]*?])")


@contextmanager
def with_not_found_hint(spark: SparkSession, path: str | os.PathLike[str]) -> Iterator[None]:
    """Add advice to a `TableNotFoundError` of the block.

    Only then are the path and its parents looked at.
    """
    try:
        yield
    except TableNotFoundError as error:
        advice = _advice(spark, checked_path(path))
        if advice is None:
            raise
        raise TableNotFoundError(path=error.path, advice=advice) from None


def _advice(spark: SparkSession, path: str) -> str | None:
    path = path.rstrip("/")
    travel = _AT_VERSION.fullmatch(path)
    if travel and _is_table(spark, travel["root"]):
        version = int(travel["version"])
        return f"To read a version of a table, use path={travel['root']!r}, version={version}"
    root, is_log, name = path.partition(f"/{LOG_DIRECTORY}")
    if is_log:
        return _advice_for_log(spark, root, name.lstrip("/"))
    above = path.rpartition("/")[0]
    while above:
        if _is_table(spark, above):
            return f"It is in the Delta table at {above}. Use path={above!r}, and where= for a part"
        if "=" not in above.rpartition("/")[2]:
            break
        above = above.rpartition("/")[0]
    if _holds_parquet(spark, path):
        return (
            "It contains Parquet files and no _delta_log directory. Read them with "
            "spark.read.parquet, or make a table of them with convert_to_delta"
        )
    return None


def _advice_for_log(spark: SparkSession, root: str, name: str) -> str | None:
    if not _is_table(spark, root):
        return None
    file = parse_log_file(name, size_bytes=0, modification_time_ms=0)
    is_commit = file is not None and file.kind is LogFileKind.COMMIT
    version = f", version={file.version}" if file is not None and is_commit else ""
    return f"It is in the log of a table. Use path={root!r}{version}"


def _is_table(spark: SparkSession, path: str) -> bool:
    try:
        return bool(list_log_files(open_log(spark, path)))
    except Exception:  # noqa: BLE001 - that there is no table is the error to raise, not this one
        return False


def _holds_parquet(spark: SparkSession, path: str) -> bool:
    pattern = _GLOB_CHARACTERS.sub(r"\\\1", path) + "/*.parquet"
    try:
        if open_log(spark, path).is_alone():
            return False
        # Of one path alone Spark logs that it is not the output of a stream, with a stack trace.
        return bool(spark.read.format("binaryFile").load([pattern, pattern]).inputFiles())
    except Exception:  # noqa: BLE001 - as above
        return False
