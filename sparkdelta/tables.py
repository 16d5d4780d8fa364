"""`DeltaTable`, with delta-spark's names: what `from delta.tables import DeltaTable` gives
there.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.commands.describe import table_detail, table_history
from sparkdelta.exceptions import TableNotFoundError
from sparkdelta.table.log_listing import find_log_segment, open_log
from sparkdelta.table.snapshot import Snapshot, open_snapshot


class DeltaTable:
    """A Delta table by its path; every method looks up the latest version when it is called.

    Made by `DeltaTable.forPath`.
    """

    def __init__(self, spark: SparkSession, path: str, hadoopConf: Mapping[str, str]) -> None:
        self._spark = spark
        self._path = path
        self._options = dict(hadoopConf)
        self._alias: str | None = None

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """The table at a path.

        Parameters
        ----------
        hadoopConf
            Options for the file system, added to the session's.

        Raises
        ------
        TableNotFoundError
            There is no Delta table.
        """
        table = cls(sparkSession, path, hadoopConf or {})
        find_log_segment(open_log(sparkSession, path, table._options))
        return table

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta log at a path."""
        try:
            find_log_segment(open_log(sparkSession, identifier))
        except TableNotFoundError:
            return False
        return True

    def toDF(self) -> DataFrame:
        """The rows of the latest version, see `sparkdelta.read_delta`."""
        rows = self._snapshot().scan().to_df()
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table with a name for its columns."""
        table = DeltaTable(self._spark, self._path, self._options)
        table._alias = aliasName
        return table

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first; columns as in `sparkdelta.commands.describe.table_history`."""
        return table_history(self._spark, self._snapshot(), limit)

    def detail(self) -> DataFrame:
        """One row about the table; columns as in `sparkdelta.commands.describe.table_detail`."""
        return table_detail(self._spark, self._snapshot())

    def _snapshot(self) -> Snapshot:
        return open_snapshot(self._spark, self._path, options=self._options)
