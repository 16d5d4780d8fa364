"""The table that a statement is about, as the functions of statements take it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.sql.grammar.parser import Name
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.table.listing.table_names import path_in_name
from sparkdelta.table.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class StatementTable:
    """The table that a statement is about.

    Attributes
    ----------
    name
        As in the statement.
    path
        Empty if the statement creates the table.
    """

    sql: SparkSql
    name: Name
    path: str

    @property
    def spark(self) -> SparkSession:
        return self.sql.spark

    @cached_property
    def snapshot(self) -> Snapshot:
        """The latest version, which is loaded once for a statement."""
        return load_snapshot(self.spark, self.path)

    @property
    def delta(self) -> DeltaTable:
        """The table with its methods, each of which lists the log itself."""
        table = DeltaTable(self.spark, self.path, {})
        return table._converting_in(self.sql.time_zone)  # noqa: SLF001 - delta-spark has no such argument

    def named(self, alias: str | None) -> DeltaTable:
        """Return the table with an alias for its rows: the one of the statement, else its name."""
        if alias is None and path_in_name(self.name) is None:
            alias = self.name[-1]
        return self.delta if alias is None else self.delta.alias(alias)
