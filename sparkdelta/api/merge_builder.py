"""`DeltaMergeBuilder` with the method names of delta-spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame

from sparkdelta.operations.merge.merge import MergeRequest
from sparkdelta.operations.merge.merge_clauses import Clause, MergeClause
from sparkdelta.table.rows.expression_arguments import checked_condition, checked_values


class DeltaMergeBuilder:
    """The builder of a merge of a source into a table; nothing is executed before `execute`.

    Created by `DeltaTable.merge`. Each method returns a new builder. A row is changed by the first
    clause of its kind whose condition is true; without one it is left alone.

    Conditions and values are SQL text or Columns. For matched rows they may use the columns of both
    sides, qualified by an alias where both have the name; in ``whenNotMatched...`` only the
    source's columns, in ``whenNotMatchedBySource...`` only the table's.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
    """

    def __init__(
        self, request: MergeRequest, executed: Callable[[MergeRequest], DataFrame]
    ) -> None:
        self._request = request
        self._executed = executed

    def whenMatchedUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Assign new values to columns of matched rows.

        Parameters
        ----------
        set
            As of `DeltaTable.update`; the table's alias may precede the names.
        """
        values = checked_values(set, "set")
        return self._with(Clause.MATCHED_UPDATE, condition, values)

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Assign the source's columns of the same names to all columns of matched rows.

        With schema evolution, columns that the source lacks keep their values.
        """
        return self._with(Clause.MATCHED_UPDATE, condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(Clause.MATCHED_DELETE, condition)

    def whenNotMatchedInsert(
        self,
        condition: str | Column | None = None,
        values: Mapping[str, str | Column] | None = None,
    ) -> DeltaMergeBuilder:
        """Insert rows of the source that match no row of the table.

        Parameters
        ----------
        values
            The values of columns by their names; the other columns get their default, generated or
            identity values, else null.
        """
        given = checked_values(values, "values")
        return self._with(Clause.NOT_MATCHED_INSERT, condition, given)

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert rows of the source that match no row of the table, with the source's columns of
        the same names.

        With schema evolution, columns that the source lacks are filled as `whenNotMatchedInsert`
        fills those that it does not name.
        """
        return self._with(Clause.NOT_MATCHED_INSERT, condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Assign new values to columns of rows that match no row of the source.

        Parameters
        ----------
        set
            As of `whenMatchedUpdate`.
        """
        values = checked_values(set, "set")
        return self._with(Clause.NOT_MATCHED_BY_SOURCE_UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(
        self, condition: str | Column | None = None
    ) -> DeltaMergeBuilder:
        """Delete rows that match no row of the source."""
        return self._with(Clause.NOT_MATCHED_BY_SOURCE_DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add the columns and fields to the table that only the source has, if a clause assigns
        them.
        """
        return DeltaMergeBuilder(replace(self._request, evolves=True), self._executed)

    def execute(self) -> DataFrame:
        """Merge, and return one row with the numbers of affected, updated, deleted and inserted
        rows.

        Raises
        ------
        DeltaError
            Nothing was committed; see `sparkdelta.exceptions`.
        """
        return self._executed(self._request)

    def _with(
        self,
        kind: Clause,
        condition: str | Column | None,
        values: Mapping[str, str | Column] | None = None,
    ) -> DeltaMergeBuilder:
        clause = MergeClause(kind, checked_condition(condition, "condition"), values)
        clauses = (*self._request.clauses, clause)
        return DeltaMergeBuilder(replace(self._request, clauses=clauses), self._executed)
