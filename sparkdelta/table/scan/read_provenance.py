"""The version of a table that rows were read from: a write of them to that table depends on it.

Every scan of a table's latest version has a mark among the options of its Parquet files, which
stays in the plans of all queries on its rows. A scan of a version by number or time has none:
later commits do not change it.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.spark_engine import engine_of

_MARK = "sparkdelta.read"


def read_mark(table_root: str, version: Version) -> Mapping[str, str]:
    """A read option without effect that names the table and the version."""
    return {_MARK: f"{version} {table_root}"}


def version_read(rows: DataFrame, table_root: str) -> Version | None:
    """The oldest version of a table that rows are made from; None if they are made from none.

    It is unknown, and None, for rows that went through the driver, a checkpoint of Spark's, or a
    view on a server of Spark Connect.
    """
    marks = engine_of(rows.sparkSession).read_options_named(rows, _MARK)
    split = (mark.split(" ", 1) for mark in marks)
    return min((int(version) for version, root in split if root == table_root), default=None)
