"""Assignments of values to the columns of a table, as UPDATE and MERGE make them.

References
----------
PROTOCOL.md#generated-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.sql_text import is_name
from sparkdelta.base.schema.table_constraints import RowRules
from sparkdelta.base.schema.table_schema import field_named, known_path, type_of_path
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import ColumnNotFoundError, DeltaError
from sparkdelta.table.rows.assigned_row_frames import (
    Assigned,
    AssignedFields,
    ColumnValue,
    Origin,
)
from sparkdelta.table.scan.conditions import (
    is_of_several_rows,
    missing_column,
    problem_of,
    shown,
)
from sparkdelta.table.scan.file_row_frames import expression_of

_PathValue: TypeAlias = "tuple[ColumnPath, str | Column]"
_NamedValue: TypeAlias = "tuple[ColumnPath, str | Column, str]"
"""The path of a column or field, its value, and its name as given."""


def update_assignments(
    schema: StructType,
    given: Mapping[str, str | Column],
    rules: RowRules,
    *,
    alias: str | None = None,
    unknown: Callable[[str, Sequence[str]], DeltaError] | None = None,
) -> dict[str, ColumnValue]:
    """Return the values of a table's columns after an update that assigns some of them.

    Generated columns that are not assigned are computed anew.

    Parameters
    ----------
    given
        Expressions by the name of a column or of a field of a struct column; the text ``DEFAULT``
        is the default value of a column.
    alias
        The table's alias, which may precede the names.
    unknown
        Makes the error for an unknown name from it and the names of the columns; by default a
        `ColumnNotFoundError`.

    Raises
    ------
    ColumnNotFoundError, DELTA_MISSING_SET_COLUMN
        The table has no such column, or the struct no such field.
    DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT
        A name refers to a field inside an array or a map, or of a column that is not a struct.
    DELTA_CONFLICT_SET_COLUMN
        A column is assigned twice, or together with one of its fields.
    DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED
        An identity column is assigned.
    """
    found = [
        (column_path(schema, name, alias=alias, unknown=unknown), value, name)
        for name, value in given.items()
    ]
    for path, *_ in found:
        if path[0] in rules.identities:
            raise DeltaError.of("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", column=path[0])
    values: dict[str, ColumnValue] = {}
    for field in schema.fields:
        own = [each for each in found if each[0][0] == field.name]
        if own:
            values[field.name] = _value(own, 1)
        else:
            is_generated = field.name in rules.generated
            values[field.name] = Origin.FILLED if is_generated else Origin.KEPT
        value = values[field.name]
        if isinstance(value, Assigned) and is_default(value.expression):
            values[field.name] = Origin.FILLED
    return values


def column_path(
    schema: StructType,
    name: str,
    *,
    alias: str | None = None,
    unknown: Callable[[str, Sequence[str]], DeltaError] | None = None,
) -> ColumnPath:
    """Return the path of a column or nested field, spelled as in the schema.

    Parameters
    ----------
    alias, unknown
        As of `update_assignments`.

    Raises
    ------
    ColumnNotFoundError, DELTA_MISSING_SET_COLUMN
        There is no such column, or the struct has no such field.
    DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT
        The name refers to a field inside an array or a map, or of a column that is not a struct.
    """
    unknown = unknown or _not_found
    try:
        names = name_parts(name)
    except UnusableError:
        raise unknown(name, schema.names) from None
    is_qualified = len(names) > 1 and alias is not None and name_key(names[0]) == name_key(alias)
    if is_qualified and field_named(schema, names[1]) is not None:
        names = names[1:]
    path = known_path(schema, names)
    if len(path) == len(names):
        return path
    if not path:
        raise unknown(name, schema.names)
    data_type = type_of_path(schema, path)
    if not isinstance(data_type, StructType):
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT",
            column=".".join(path),
            data_type=data_type.simpleString(),
        )
    available = [".".join((*path, other)) for other in data_type.names]
    raise DeltaError.of(
        "DELTA_MISSING_SET_COLUMN", column=".".join((*path, names[len(path)])), available=available
    )


def _not_found(name: str, available: Sequence[str]) -> ColumnNotFoundError:
    return ColumnNotFoundError(column=name, available=available)


def _value(given: Sequence[_NamedValue], depth: int) -> Assigned | AssignedFields:
    """Return the value of the column or field that all these paths begin with.

    Parameters
    ----------
    depth
        The length of its own path.
    """
    whole = [value for path, value, _ in given if len(path) == depth]
    if whole:
        if len(given) > 1:
            names = [".".join((*path[:-1], name_parts(name)[-1])) for path, _, name in given]
            raise DeltaError.of("DELTA_CONFLICT_SET_COLUMN", columns=names)
        return Assigned(whole[0])
    by_field: dict[str, list[_NamedValue]] = {}
    for each in given:
        by_field.setdefault(each[0][depth], []).append(each)
    return AssignedFields({name: _value(own, depth + 1) for name, own in by_field.items()})


def is_default(value: str | Column) -> bool:
    """Return True if a value is the keyword DEFAULT, which stands for the default of a column."""
    return isinstance(value, str) and value.strip().upper() == "DEFAULT"


@unlogged_errors()
def check_expressions(
    rows: DataFrame,
    given: Sequence[_PathValue],
    *,
    unknown: Callable[[str, Sequence[str]], DeltaError] | None = None,
) -> None:
    """Raise if an expression cannot be evaluated on a row: Spark refuses others in a filter.

    Parameters
    ----------
    given
        The expressions, with the paths of the columns and fields that they are assigned to.
    unknown
        As of `update_assignments`.
    """
    if not given:
        return
    names = [value for _, value in given if isinstance(value, str) and is_name(value)]
    others = [value for _, value in given if not isinstance(value, str) or not is_name(value)]
    checked = [" OR ".join(f"(({name}) IS NULL)" for name in names)] if names else []
    conditions = (*map(F.expr, checked), *map(_is_null, others))
    try:
        _ = rows.filter(reduce(operator.or_, conditions)).schema
    except DeltaError:
        raise
    except AnalysisException:
        for path, value in given:
            try:
                _ = rows.filter(_is_null(value)).schema
            except DeltaError:
                raise
            except AnalysisException as error:
                name = missing_column(error)
                if name is not None:
                    if unknown is not None:
                        raise unknown(name, rows.columns) from None
                    raise _not_found(name, rows.columns).named(error) from None
                raise _refusal(error, path, value) from None
        raise


def _is_null(value: str | Column) -> Column:
    return F.isnull(expression_of(value))


def _refusal(error: AnalysisException, path: ColumnPath, value: str | Column) -> DeltaError:
    problem, is_of_several = problem_of(error), is_of_several_rows(error)
    if is_of_several:
        problem = "It contains an aggregate function, window function or generator."
    refusal = DeltaError.of(
        "DELTA_INVALID_ASSIGNMENT",
        column=".".join(path),
        expression=shown(value),
        problem=problem,
        spark_condition=str(error.getCondition()),
    )
    if is_of_several:
        return refusal.named("UNSUPPORTED_EXPR_FOR_OPERATOR", invalidExprSqls=f'"{shown(value)}"')
    return refusal.named(error)
