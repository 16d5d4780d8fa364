"""A data source of the name ``delta`` that has no rows: with it, Spark Connect servers put names of
tables into the session catalog.

It is registered in sessions of our own alone.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType


class NamedOnly(DataSource):
    """The format of tables that have a name."""

    @classmethod
    def name(cls) -> str:
        return "delta"

    def schema(self) -> StructType:
        """Return no columns: the log has them."""
        return StructType()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Refuse to read.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError("read the table through sparkdelta")
