"""Which version of a table some rows were read from: who writes them to that table depends on it.

Every scan of a table's latest version carries a mark among the options of its Parquet files, where
the plan of whatever is made of its rows keeps it. A version that was asked for by number or time
has none: it stays what it is, whatever is committed.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.protocol.log_files import Version

_MARK = "sparkdelta.read"


def read_mark(table_root: str, version: Version) -> Mapping[str, str]:
    """A read option that does nothing but say what is read."""
    return {_MARK: f"{version} {table_root}"}


def version_read(rows: DataFrame, table_root: str) -> Version | None:
    """The oldest version of a table that rows are made from; None where they are not.

    Of rows that went through the driver, a checkpoint of Spark's, or a view on a server of Spark
    Connect, nobody knows.
    """
    marks = engine_of(rows.sparkSession).read_options_named(rows, _MARK)
    split = (mark.split(" ", 1) for mark in marks)
    return min((int(version) for version, root in split if root == table_root), default=None)
