"""Conditions and assigned values as users give them: SQL text or Columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column

from sparkdelta.exceptions import ArgumentTypeError, InvalidArgumentError


def checked_condition(condition: Any, argument: str) -> str | Column | None:
    """Return a condition; None for none."""
    if condition is None or isinstance(condition, str | Column):
        return condition
    problem = f"it must be a Spark SQL Column or a string of SQL, not {condition!r}"
    raise ArgumentTypeError(argument=argument, problem=problem)


def checked_values(values: Any, argument: str) -> dict[str, str | Column]:
    """Return the values that are assigned to columns, by their names.

    Raises
    ------
    ArgumentTypeError
        It is not a mapping of text to text or Columns.
    InvalidArgumentError
        It is None or empty.
    """
    if values is None:
        raise InvalidArgumentError(argument=argument, problem="it cannot be None")
    if not isinstance(values, Mapping):
        problem = f"it must be a dict, and is a {type(values).__name__}"
        raise ArgumentTypeError(argument=argument, problem=problem)
    if not values:
        raise InvalidArgumentError(argument=argument, problem="it must assign a column")
    for name, value in values.items():
        if not isinstance(name, str):
            problem = f"Keys of dict in {argument} must contain only names of columns, not {name!r}"
            raise ArgumentTypeError(argument=argument, problem=problem)
        if not isinstance(value, str | Column):
            problem = (
                f"Values of dict in {argument} must contain only Spark SQL Columns or strings of "
                f"SQL, and that of {name} is {value!r}"
            )
            raise ArgumentTypeError(argument=argument, problem=problem)
    return dict(values)
