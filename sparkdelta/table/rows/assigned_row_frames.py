"""Rows of a table with new values, as UPDATE and MERGE assign them to columns.

References
----------
PROTOCOL.md#default-columns, PROTOCOL.md#generated-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, NumericType, StructField, StructType

from sparkdelta.base.schema.sql_text import is_name, text_literal, type_text
from sparkdelta.base.schema.store_assignment import (
    StoreAssignment,
    assigned,
    can_convert,
    field_of,
    is_up_cast,
)
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.scan.file_row_frames import expression_of

_CURRENT, _VALUE = "__sparkdelta_current__", "__sparkdelta_value__"


class Origin(Enum):
    """The source of a column's value that no expression assigns.

    Attributes
    ----------
    KEPT
        The row's current value; null for a column that the table gets only now.
    FILLED
        The table's default, generated or identity value, else null.
    """

    KEPT = "kept"
    FILLED = "filled"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value that an expression gives to a column or field.

    Attributes
    ----------
    keeps_fields
        True if the fields of structs that the value lacks keep their current values; else they
        become null.
    """

    expression: str | Column
    keeps_fields: bool = False


@dataclass(frozen=True, slots=True)
class AssignedFields:
    """Values for some fields of a struct column; the others are kept."""

    fields: Mapping[str, Assigned | AssignedFields]


ColumnValue: TypeAlias = Origin | Assigned | AssignedFields
Assignments: TypeAlias = Mapping[str, ColumnValue]
"""A value for each column of the table, by its name."""


def expressions_of(
    assignments: Mapping[str, ColumnValue], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str | Column]]:
    """Yield the expressions with the paths of the columns and fields that they are assigned to."""
    for name, value in assignments.items():
        if isinstance(value, Assigned):
            yield (*path, name), value.expression
        elif isinstance(value, AssignedFields):
            yield from expressions_of(value.fields, (*path, name))


@dataclass(frozen=True, slots=True)
class AssignedRows:
    """Rows with evaluated assignments, and their conversion to the types of a table.

    Attributes
    ----------
    evaluated
        The values of all expressions, in the session whose settings these are meant for.
    columns
        The columns of a table, then those to keep, as SQL texts over `evaluated`; they may be
        analyzed by another session.
    """

    evaluated: DataFrame
    columns: tuple[str, ...]


def assigned_rows(
    rows: DataFrame,
    schema: StructType,
    clauses: Sequence[Assignments],
    *,
    current: Mapping[str, str] | None = None,
    clause_column: str | None = None,
    kept: Collection[str] = (),
    adds_fields: bool = False,
    policy: StoreAssignment = StoreAssignment.ANSI,
) -> AssignedRows:
    """Return the rows with the values of a table's columns, and their conversion to the types of
    these.

    Each expression is evaluated once per row, and only for the rows of its clause. A column that is
    `Origin.FILLED` in every clause is not in the result; in rows of the clauses where it is, it is
    null.

    Parameters
    ----------
    rows
        Rows with the columns that the expressions refer to, under their aliases.
    schema
        The columns of the table, with those that it gets only now.
    clauses
        The assignments of each clause.
    current
        The columns of `rows` with the current values of the table's columns, by the table's names;
        by default, they have the same names.
    clause_column
        The column of `rows` with the index of the row's clause, if there are several.
    kept
        Other columns of `rows` to keep, after the table's columns.
    adds_fields
        True if the table's schema evolves, see `can_convert`.
    policy
        The policy by which values are converted, as of `assigned`.
    """
    if current is None:
        current = {name: name for name in schema.names if name in rows.columns}
    others = [*kept, *([clause_column] if clause_column is not None else [])]
    needed = [name for name in current if any(_needs_current(each[name]) for each in clauses)]
    evaluated = _selected_rows(
        rows,
        [
            *(f"{quoted(current[name])} AS {quoted(_CURRENT + name)}" for name in needed),
            *(
                _of_clause(expression, index, clause_column, _value_name(index, path))
                for index, each in enumerate(clauses)
                for path, expression in expressions_of(each)
            ),
            *map(quoted, others),
        ],
    )
    columns = []
    for field in schema.fields:
        if all(each[field.name] is Origin.FILLED for each in clauses):
            continue
        now = _column(evaluated.schema, _CURRENT + field.name) if field.name in needed else None
        texts = [
            _Conversion(evaluated.schema, index, adds_fields, policy).text(
                each[field.name], field, now, (field.name,)
            )
            for index, each in enumerate(clauses)
        ]
        columns.append(f"{_by_clause(texts, clause_column)} AS {quoted(field.name)}")
    return AssignedRows(evaluated, (*columns, *map(quoted, others)))


def _selected_rows(rows: DataFrame, columns: Sequence[str | Column]) -> DataFrame:
    """Return columns of the rows; SQL text takes far fewer JVM calls than Columns."""
    texts = [column for column in columns if isinstance(column, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*map(expression_of, columns))


def _needs_current(value: ColumnValue) -> bool:
    return value.keeps_fields if isinstance(value, Assigned) else value is not Origin.FILLED


def _of_clause(
    expression: str | Column, clause: int, clause_column: str | None, name: str
) -> str | Column:
    """Return a column of an expression that is evaluated in the rows of its clause only."""
    is_wanted = None if clause_column is None else f"{quoted(clause_column)} = {clause}"
    if isinstance(expression, str) and is_name(expression):
        text = f"({expression})"
        text = text if is_wanted is None else f"CASE WHEN {is_wanted} THEN {text} END"
        return f"{text} AS {quoted(name)}"
    column = expression_of(expression)
    column = column if is_wanted is None else F.when(F.expr(is_wanted), column)
    return column.alias(name)


def _value_name(clause: int, path: tuple[str, ...]) -> str:
    return "_".join((f"{_VALUE}{clause}", *(f"{len(part)}_{part}" for part in path)))


def _column(rows: StructType, name: str) -> tuple[str, DataType]:
    return quoted(name), rows[name].dataType


def _by_clause(texts: Sequence[str], clause_column: str | None) -> str:
    if clause_column is None or len(set(texts)) == 1:
        return texts[0]
    cases = " ".join(f"WHEN {index} THEN {text}" for index, text in enumerate(texts))
    return f"CASE {quoted(clause_column)} {cases} END"


@dataclass(frozen=True, slots=True)
class _Conversion:
    """Conversion of the evaluated expressions of one clause to the types of the columns."""

    evaluated: StructType
    clause: int
    adds_fields: bool
    policy: StoreAssignment

    def text(
        self,
        value: ColumnValue,
        field: StructField,
        current: tuple[str, DataType] | None,
        path: tuple[str, ...],
    ) -> str:
        """Return the value of a column or field as a SQL expression.

        Parameters
        ----------
        current
            Its current value, as a SQL expression, and the type of that.
        """
        column = ".".join(path)
        if isinstance(value, AssignedFields):
            assert isinstance(field.dataType, StructType)
            members = []
            for inner in field.dataType.fields:
                now = None if current is None else field_of(*current, inner.name)
                member = value.fields.get(inner.name, Origin.KEPT)
                members += [
                    text_literal(inner.name),
                    self.text(member, inner, now, (*path, inner.name)),
                ]
            return f"named_struct({', '.join(members)})"
        if isinstance(value, Assigned):
            given = _column(self.evaluated, _value_name(self.clause, path))
            self._check_type(given[1], field.dataType, column)
            kept = current if value.keeps_fields else None
            return assigned(*given, field.dataType, column=column, kept=kept, policy=self.policy)
        if value is Origin.KEPT and current is not None:
            return assigned(*current, field.dataType, column=column)
        return f"CAST(NULL AS {type_text(field.dataType)})"

    def _check_type(self, given: DataType, wanted: DataType, column: str) -> None:
        policy, adds_fields = self.policy, self.adds_fields
        if not can_convert(given, wanted, adds_fields=adds_fields, policy=policy):
            error = DeltaError.of(
                "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                column=column,
                value_type=given.simpleString(),
                column_type=wanted.simpleString(),
            )
            if not isinstance(given, StructType):
                has_function = isinstance(given, DateType) and isinstance(wanted, NumericType)
                kind = "WITH_FUNC_SUGGESTION" if has_function else "WITHOUT_SUGGESTION"
                error.named(f"DATATYPE_MISMATCH.CAST_{kind}")
            raise error
        if policy is StoreAssignment.STRICT and not is_up_cast(given, wanted):
            raise DeltaError.of(
                "CANNOT_UP_CAST_DATATYPE",
                column=column,
                table_type=wanted.simpleString(),
                row_type=given.simpleString(),
            )
