"""Paths that name a version of a table, as in delta-spark: ``/path@v5``,
``/path@20240501120000000``.
"""

from __future__ import annotations

import re
from datetime import datetime

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.exceptions import TableNotFoundError
from sparkdelta.table.listing.listing import find_log_segment, open_log
from sparkdelta.table.log.session_times import session_time

_AT = re.compile(r"(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<time>\d{17}))")


def split_path(spark: SparkSession, path: str) -> tuple[str, Version | None, datetime | None]:
    """Return the path of a table, and the version or time that follows it.

    A table whose own path has this form is taken as it is. Times are in the session's time zone.
    """
    match = _AT.fullmatch(path)
    if match is None or _is_table(spark, path):
        return path, None, None
    if match["version"] is not None:
        return match["path"], int(match["version"]), None
    digits = match["time"]
    time = "{}{}{}{}-{}{}-{}{} {}{}:{}{}:{}{}.{}{}{}".format(*digits)
    return match["path"], None, session_time(spark, text_literal(time))


def _is_table(spark: SparkSession, path: str) -> bool:
    try:
        find_log_segment(open_log(spark, path))
    except TableNotFoundError:
        return False
    return True
