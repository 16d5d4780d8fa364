"""Checks of the conditions and values of a MERGE, before anything runs."""

from __future__ import annotations

from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import DeltaError, InvalidConditionError
from sparkdelta.operations.merge.merge_clauses import Clause, ResolvedMerge, unresolved
from sparkdelta.operations.merge.merge_sides import MergeFrames
from sparkdelta.table.rows.assigned_row_frames import expressions_of
from sparkdelta.table.rows.assignments import check_expressions
from sparkdelta.table.scan.conditions import (
    deterministic_filter,
    missing_column,
    problem_of,
    shown,
)


def check_merge(merge: ResolvedMerge, condition: str | Column, frames: MergeFrames) -> None:
    """Refuse conditions and values that cannot be evaluated on the rows that they are for.

    Raises
    ------
    DELTA_MERGE_UNRESOLVED_EXPRESSION
        One names a column that is not there, or is one of the other side.
    DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED, DELTA_UNSUPPORTED_SUBQUERY,
    DELTA_AGGREGATION_NOT_SUPPORTED
        A condition depends on more than the row.
    InvalidConditionError, DELTA_INVALID_ASSIGNMENT
        Spark cannot evaluate a condition or value.
    """
    _check_condition(frames.both, condition, "ON")
    for clause in merge.clauses:
        rows, part = _rows_of(clause.kind, frames), str(clause.kind)
        if clause.condition is not None:
            _check_condition(rows, clause.condition, part)
        if clause.assignments is not None:
            given = list(expressions_of(clause.assignments))
            check_expressions(rows, given, unknown=partial(unresolved, part))


def _rows_of(kind: Clause, frames: MergeFrames) -> DataFrame:
    if kind.is_matched:
        return frames.both
    return frames.source if kind.is_not_matched else frames.target


@unlogged_errors()
def _check_condition(rows: DataFrame, condition: str | Column, part: str) -> None:
    try:
        deterministic_filter(rows, condition, operation=f"MERGE {part}")
    except DeltaError:
        raise
    except AnalysisException as error:
        name = missing_column(error)
        if name is not None:
            raise unresolved(part, name, rows.columns) from None
        raise InvalidConditionError(
            condition=shown(condition),
            problem=problem_of(error),
            spark_condition=str(error.getCondition()),
        ) from None
