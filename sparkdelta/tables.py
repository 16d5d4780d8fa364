"""`DeltaTable`, with delta-spark's names: what `from delta.tables import DeltaTable` gives
there.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.builders import DeltaTableBuilder, IdentityGenerator
from sparkdelta.commands.create_table import Creation
from sparkdelta.commands.describe import table_detail, table_history
from sparkdelta.exceptions import InvalidArgumentError, TableNotFoundError
from sparkdelta.table.log.listing import find_log_segment, open_log
from sparkdelta.table.log.missing_tables import advised
from sparkdelta.table.snapshot import Snapshot, open_snapshot

__all__ = ["DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


class DeltaTable:
    """A Delta table by its path; every method looks up the latest version when it is called.

    Made by `DeltaTable.forPath`, or by the builders of `DeltaTable.create` and its like.
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
        with advised(sparkSession, path):
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

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes a table that is not there yet."""
        return cls._builder(sparkSession, Creation.CREATE)

    @classmethod
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Describes a table that is made unless there is one."""
        return cls._builder(sparkSession, Creation.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes a table that comes in the place of one, without its rows."""
        return cls._builder(sparkSession, Creation.REPLACE)

    @classmethod
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Describes a table that is made, in the place of one if there is any."""
        return cls._builder(sparkSession, Creation.CREATE_OR_REPLACE)

    @classmethod
    def _builder(
        cls, spark: SparkSession | None, creation: Creation
    ) -> DeltaTableBuilder[DeltaTable]:
        spark = spark or SparkSession.getActiveSession()
        if spark is None:
            problem = "it is not given, and there is no active session"
            raise InvalidArgumentError(argument="sparkSession", problem=problem)
        return DeltaTableBuilder(spark, creation, cls.forPath)

    def __repr__(self) -> str:
        return f"DeltaTable({self._path!r})"

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
        """The commits, newest first; columns as in `sparkdelta.commands.describe.table_history`.

        Read the table as of a row by its `version`. Spark shows `timestamp` in the session time
        zone and collects it as a naive datetime in the local one, but `read_delta` reads what has
        no time zone as UTC: pass ``row.timestamp.astimezone()``.
        """
        return table_history(self._spark, self._snapshot(), limit)

    def detail(self) -> DataFrame:
        """One row about the table; columns as in `sparkdelta.commands.describe.table_detail`."""
        return table_detail(self._spark, self._snapshot())

    def _snapshot(self) -> Snapshot:
        with advised(self._spark, self._path):
            return open_snapshot(self._spark, self._path, options=self._options)
