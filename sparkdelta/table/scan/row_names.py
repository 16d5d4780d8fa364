"""The names by which the expressions of a user refer to the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.spark.spark_engine import engine_of


@dataclass(frozen=True, slots=True)
class RowNames:
    """The names by which expressions may refer to the columns of a table, beside their own.

    Attributes
    ----------
    alias
        Of the table; it may precede the names of columns.
    frame
        A DataFrame whose own columns, such as ``frame["id"]``, stand for the table's columns.
    """

    alias: str | None = None
    frame: DataFrame | None = None

    def given_to(self, rows: DataFrame) -> DataFrame:
        """Return rows of the table, on which such expressions can be evaluated."""
        if self.frame is not None:
            rows = engine_of(rows.sparkSession).with_columns_of(rows, self.frame)
        return rows if self.alias is None else rows.alias(self.alias)


NO_NAMES = RowNames()


def columns_frame(rows: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Return an empty DataFrame whose columns can stand for the columns of the rows.

    Spark Connect has no such columns: there, return the rows.

    Parameters
    ----------
    before
        The result for an earlier version; its columns stay usable where they still exist.
    """
    frame = engine_of(rows.sparkSession).columns_frame(rows)
    if frame is None:
        return rows
    frame = frame.alias(qualifier_of(frame.schema))
    return frame if before is None else RowNames(frame=before).given_to(frame)
