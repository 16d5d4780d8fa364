"""Paths that name a version of a table, as delta-spark reads them: ``/path@v5``,
``/path@20240501120000000``.
"""

from __future__ import annotations

import re
from datetime import datetime

from pyspark.sql import SparkSession

from sparkdelta.tables import DeltaTable

_AT_VERSION = re.compile(r"(?P<path>.+)@[vV](?P<version>\d+)")
_AT_TIME = re.compile(r"(?P<path>.+)@(?P<digits>\d{17})")


def split_path(spark: SparkSession, path: str) -> tuple[str, dict[str, str]]:
    """Return the path of a table and the option of the version that the text names.

    A table whose own path looks so is that table.
    """
    version, time = _AT_VERSION.fullmatch(path), _AT_TIME.fullmatch(path)
    found = version or time
    if found is None or DeltaTable.isDeltaTable(spark, path):
        return path, {}
    if version is not None:
        return version["path"], {"versionAsOf": version["version"]}
    try:
        moment = datetime.strptime(found["digits"] + "000", "%Y%m%d%H%M%S%f")
    except ValueError:
        return path, {}
    return found["path"], {"timestampAsOf": moment.isoformat(sep=" ")}
