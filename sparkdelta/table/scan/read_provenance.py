"""The version of a table that rows were read from: a write of them to that table depends on it.

Every scan of a table's latest version has a mark among the options of its Parquet files, which
stays in the plans of all queries on its rows. A scan of a version by number or time has none:
later commits do not change it. The mark of a scan that follows the table has the version at which
it was made: queries read later ones, unless Spark's cache has the rows.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.table.scan.query_versions import pin_version

_MARK = "sparkdelta.read"
_AND_LATER = "+"


def read_mark(table_root: str, version: Version) -> Mapping[str, str]:
    """Return a read option without effect that names the table and the version."""
    return {_MARK: f"{version} {table_root}"}


def following_mark(table_root: str, version: Version) -> Mapping[str, str]:
    """Return the option of a scan that follows the table from a version on."""
    return {_MARK: f"{version}{_AND_LATER} {table_root}"}


def followed_tables(rows: DataFrame) -> frozenset[str]:
    """Return the roots of the tables that rows follow."""
    marks = (
        mark.partition(" ") for mark in engine_of(rows.sparkSession).read_options_named(rows, _MARK)
    )
    return frozenset(root for version, _, root in marks if version.endswith(_AND_LATER))


@dataclass(frozen=True, slots=True)
class TablesRead:
    """The tables that rows are made from, as the operation reads them that the rows are for.

    Attributes
    ----------
    marks
        Of all scans of the rows.
    operation
        The id of the operation; None if no scan follows its table.
    is_cached
        Returns True if Spark's cache has the rows of a scan with a mark.
    """

    marks: frozenset[str]
    operation: str | None
    is_cached: Callable[[str], bool]

    def version_of(self, table_root: str, latest: Version) -> Version | None:
        """Return the oldest version of a table that the rows are made from; None if they are made
        from none. Scans that follow the table read the given version from now on.

        It is unknown, and None, for rows that went through the driver, a checkpoint of Spark's, or
        a view on a server of Spark Connect.
        """
        versions = list[Version]()
        for mark in self.marks:
            version, _, root = mark.partition(" ")
            if root != table_root:
                continue
            if version.endswith(_AND_LATER) and self.operation is not None:
                pin_version(self.operation, root, latest)
                if not self.is_cached(mark):
                    versions.append(latest)
                    continue
            versions.append(int(version.removesuffix(_AND_LATER)))
        return min(versions, default=None)


@contextmanager
def tables_read(rows: DataFrame) -> Iterator[TablesRead]:
    """Find the tables that rows are made from. All queries on the rows in the block read one
    version of a table that the rows follow.
    """
    engine = engine_of(rows.sparkSession)
    marks = frozenset(engine.read_options_named(rows, _MARK))
    if not any(mark.partition(" ")[0].endswith(_AND_LATER) for mark in marks):
        yield TablesRead(marks, None, lambda _: False)
        return
    with engine.shared_reads() as operation:
        yield TablesRead(marks, operation, partial(engine.has_cached_read, rows, _MARK))
