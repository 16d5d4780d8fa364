"""``df.mergeInto`` of enabled sessions: PySpark's names for the clauses of a merge."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.merge_builder import DeltaMergeBuilder
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.listing.table_names import path_in_name, table_name

Values = Mapping[str, Column]


class MergeWriter:
    """PySpark's ``MergeIntoWriter`` for a Delta table; nothing is executed before `merge`."""

    def __init__(self, rows: DataFrame, path: str, name: str, condition: Column) -> None:
        table, parts = DeltaTable.forPath(rows.sparkSession, path), table_name(name)
        if path_in_name(parts) is None:
            table = table.alias(parts[-1])
        self.builder: DeltaMergeBuilder = table.merge(rows, condition)

    def whenMatched(self, condition: Column | None = None) -> WhenMatched:
        """Choose rows that match."""
        return WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNotMatched:
        """Choose rows of the source that match no row of the table."""
        return WhenNotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenNotMatchedBySource:
        """Choose rows of the table that match no row of the source."""
        return WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> MergeWriter:
        """Add columns of the source that the table does not have."""
        self.builder = self.builder.withSchemaEvolution()
        return self

    def merge(self) -> None:
        """Execute the merge.

        Raises
        ------
        DeltaError
            Nothing was committed; see `DeltaTable.merge`.
        """
        self.builder.execute()


class _Clause:
    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._condition = writer, condition

    def _with(self, builder: DeltaMergeBuilder) -> MergeWriter:
        self._writer.builder = builder
        return self._writer


class WhenMatched(_Clause):
    """The actions on rows that match."""

    def updateAll(self) -> MergeWriter:
        """Assign the source's columns of the same names."""
        return self._with(self._writer.builder.whenMatchedUpdateAll(self._condition))

    def update(self, assignments: Values) -> MergeWriter:
        """Assign values."""
        return self._with(self._writer.builder.whenMatchedUpdate(self._condition, assignments))

    def delete(self) -> MergeWriter:
        """Delete these rows."""
        return self._with(self._writer.builder.whenMatchedDelete(self._condition))


class WhenNotMatched(_Clause):
    """The action on rows of the source that match no row of the table."""

    def insertAll(self) -> MergeWriter:
        """Insert the source's columns of the same names."""
        return self._with(self._writer.builder.whenNotMatchedInsertAll(self._condition))

    def insert(self, assignments: Values) -> MergeWriter:
        """Insert values."""
        return self._with(self._writer.builder.whenNotMatchedInsert(self._condition, assignments))


class WhenNotMatchedBySource(_Clause):
    """The actions on rows of the table that match no row of the source."""

    def updateAll(self) -> MergeWriter:
        """Refuse: there is no row to take values from.

        Raises
        ------
        InvalidArgumentError
        """
        problem = "there is no row of the source to take values from; use update"
        raise InvalidArgumentError(argument="updateAll", problem=problem)

    def update(self, assignments: Values) -> MergeWriter:
        """Assign values."""
        builder = self._writer.builder
        return self._with(builder.whenNotMatchedBySourceUpdate(self._condition, assignments))

    def delete(self) -> MergeWriter:
        """Delete these rows."""
        return self._with(self._writer.builder.whenNotMatchedBySourceDelete(self._condition))
