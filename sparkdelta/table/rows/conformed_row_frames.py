"""Rows in a table's columns and types, with generated values, checked in the same pass.

The table's SQL expressions depend on settings of the session that analyzes them; see
`SparkEngine.in_table_session`.

References
----------
PROTOCOL.md#check-constraints, PROTOCOL.md#column-invariants, PROTOCOL.md#generated-columns,
PROTOCOL.md#default-columns, PROTOCOL.md#identity-columns, PROTOCOL.md#change-metadata,
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkdelta.base.schema.row_checks import SHOWN, forbidden_values
from sparkdelta.base.schema.spatial_types import has_spatial
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.store_assignment import StoreAssignment, assigned
from sparkdelta.base.schema.table_constraints import Identity, RowRules
from sparkdelta.base.schema.table_schema import quoted, without_collations, without_void
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.scan.file_row_frames import expression_of

_FILLED = "__sparkdelta_filled__"
_MAX_SHOWN_LENGTH = 500
_ROWS_OF_A_PARTITION = (1 << 33) - 1  # the row bits of `monotonically_increasing_id`


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column of the table and the source of its values.

    Attributes
    ----------
    field
        The field of the table's schema.
    source
        The name of the column in the rows to write; None if they do not have it.
    filled_where
        A condition on the rows, as SQL text: where it is true, the column gets its default,
        generated or identity value although other rows have a value.
    """

    field: StructField
    source: str | None
    filled_where: str | None = None

    @property
    def is_filled(self) -> bool:
        """True if the rules of the table give the value in some rows."""
        return self.source is None or self.filled_where is not None


def conformed_rows(
    rows: DataFrame,
    columns: Sequence[WrittenColumn],
    rules: RowRules,
    *,
    partition_columns: Collection[str],
    max_partitions: int,
    path: str,
    kept: Sequence[str] = (),
) -> DataFrame:
    """Return the rows in the table's columns and types, with default and generated values.

    A row that violates a rule fails the query. Rules are checked while the rows are written, not in
    a separate pass.

    Parameters
    ----------
    columns
        The columns of the result, in order.
    rules
        The constraints, defaults, generated columns and identity columns of the table.
    partition_columns
        The names of the partition columns.
    max_partitions
        The number of partitions to which rows are coalesced if identity values are generated. Each
        partition generates every `max_partitions`-th value.
    path
        The table, for errors.
    kept
        The names of columns of the rows that follow the table's columns in the result.
    """
    filled_names = [column.field.name for column in columns if column.is_filled]
    numbered = {n: rules.identities[n] for n in filled_names if n in rules.identities}
    generated = {n: rules.generated[n] for n in filled_names if n in rules.generated}
    some_generated = [c for c in columns if c.field.name in generated and c.source is not None]
    if numbered:
        rows = rows.coalesce(max_partitions)
    values = {
        **rules.defaults,
        **{name: _numbers(identity, max_partitions) for name, identity in numbered.items()},
    }
    text_partitions = {
        column.field.name
        for column in columns
        if column.field.name in partition_columns and isinstance(column.field.dataType, StringType)
    }
    filled = rows.selectExpr(
        *(
            _typed(c, rows.schema, values, text_partitions)
            for c in columns
            if c.source is not None or c.field.name not in generated
        ),
        *(f"{c.filled_where} AS {quoted(_FILLED + c.field.name)}" for c in some_generated),
        *map(quoted, kept),
    )
    if generated:
        filled = filled.selectExpr(
            *(
                _generated(c, generated[c.field.name], text_partitions)
                if c.field.name in generated
                else quoted(c.field.name)
                for c in columns
            ),
            *map(quoted, kept),
        )
    given = {c.field.name for c in columns if c.source is not None}
    schema = StructType([column.field for column in columns])
    violations = list(_violations(schema, rules, given, text_partitions, path))
    return filled if not violations else _checked(filled, violations)


def column_value(
    column: WrittenColumn, rows: StructType, *, policy: StoreAssignment = StoreAssignment.ANSI
) -> str:
    """Return SQL for the source of a column, converted to the column's type.

    Parameters
    ----------
    rows
        The schema of the rows, which have the source.
    policy
        As of `assigned`.
    """
    field = column.field
    assert column.source is not None
    source, given = quoted(column.source), rows[column.source].dataType
    wanted = without_collations(field.dataType)
    return assigned(source, given, wanted, column=field.name, policy=policy)


def retyped_rows(
    rows: DataFrame, fields: Sequence[StructField], file_columns: Sequence[str]
) -> DataFrame:
    """Cast existing rows of the table to its future columns, and keep the columns `file_columns`.

    Rules of the table are not checked.
    """
    own = set(rows.columns)
    columns = [WrittenColumn(f, f.name if f.name in own else None) for f in fields]
    typed = (_typed(column, rows.schema, {}, ()) for column in columns)
    return rows.selectExpr(*typed, *map(quoted, file_columns))


def require_condition(rows: DataFrame, where: str | Column) -> DataFrame:
    """Return the rows; a row that does not satisfy the condition fails the query."""
    return _checked(rows, [_Violation(is_not_true(expression_of(where)), other_rows(where))])


def other_rows(where: str | Column) -> DeltaError:
    """Return the error for rows that do not satisfy the condition of `replace_where`."""
    text = where if isinstance(where, str) else "that was given"
    return DeltaError.of("DELTA_REPLACE_WHERE_MISMATCH", where=" ".join(text.split()))


def _typed(
    column: WrittenColumn,
    rows: StructType,
    values: Mapping[str, str],
    text_partitions: Collection[str],
) -> str:
    """Return SQL for a column in its type.

    Parameters
    ----------
    values
        SQL of the default and identity values of the table's columns.
    """
    field, data_type = column.field, without_collations(column.field.dataType)
    value = f"CAST(NULL AS {type_text(data_type)})"
    if column.source is not None:
        value = column_value(column, rows)
    if column.is_filled and field.name in values:
        filled = _cast(values[field.name], data_type)
        if column.filled_where is not None:
            filled = f"CASE WHEN {column.filled_where} THEN {filled} ELSE {value} END"
        value = filled
    return f"{_as_stored(value, field, text_partitions)} AS {quoted(field.name)}"


def _generated(column: WrittenColumn, text: str, text_partitions: Collection[str]) -> str:
    field = column.field
    value = _as_stored(_cast(text, field.dataType), field, text_partitions)
    if column.source is not None:
        is_filled = quoted(_FILLED + field.name)
        value = f"CASE WHEN {is_filled} THEN {value} ELSE {quoted(field.name)} END"
    return f"{value} AS {quoted(field.name)}"


def _cast(expression: str, data_type: DataType) -> str:
    """Return SQL for an expression of the table, which may end with a comment, in a type."""
    return f"CAST((\n{expression}\n) AS {type_text(without_collations(data_type))})"


def _as_stored(value: str, field: StructField, text_partitions: Collection[str]) -> str:
    """Return a value as it is stored, so that rules are checked on the stored value.

    Parameters
    ----------
    text_partitions
        The names of the partition columns of type STRING.
    """
    return _empty_to_null(value) if field.name in text_partitions else value


def _empty_to_null(text: str) -> str:
    """Replace the empty string by null, which is the same partition value."""
    return f"nullif({text}, '')"


def _numbers(identity: Identity, max_partitions: int) -> str:
    """Generate unique identity values; each partition generates every `max_partitions`-th.

    A value out of the range of LONG fails the query.
    """
    row = f"(monotonically_increasing_id() & {_ROWS_OF_A_PARTITION}L)"
    number = f"({row} * {max_partitions} + spark_partition_id())"
    return f"CAST({identity.next_value} AS BIGINT) + CAST({identity.step} AS BIGINT) * {number}"


@dataclass(frozen=True, slots=True)
class _Violation:
    """A condition that selects the rows which violate a rule, and their error.

    Attributes
    ----------
    shown
        The text that stands in the place of `SHOWN` in the error.
    """

    condition: Column
    error: DeltaError
    shown: Column | None = None

    def raised(self) -> Column:
        """Return a column that fails the query."""
        before, is_shown, after = str(self.error).partition(SHOWN)
        text = F.lit(before)
        if is_shown and self.shown is not None:
            text = F.concat(text, F.left(self.shown, F.lit(_MAX_SHOWN_LENGTH)), F.lit(after))
        return F.raise_error(text)


def _violations(
    schema: StructType, rules: RowRules, given: set[str], text_partitions: set[str], path: str
) -> Iterator[_Violation]:
    """Yield the violation of each rule, constraints first, as delta-spark checks them."""
    for constraint in rules.constraints:
        condition = F.expr(constraint.expression)
        yield _violation(schema, is_not_true(condition), constraint.name, constraint.expression)
    for forbidden in forbidden_values(schema, path=path):
        yield _Violation(F.expr(forbidden.condition), forbidden.error, F.expr(forbidden.shown))
    types = {field.name: field.dataType for field in schema.fields}
    for name, expression in rules.generated.items():
        if name in given:
            wanted = _cast(expression, types[name])
            wanted = _empty_to_null(wanted) if name in text_partitions else wanted
            yield _violation(
                schema,
                F.expr(f"NOT ({quoted(name)} <=> {wanted})"),
                "Generated Column",
                f"{quoted(name)} <=> {expression}",
            )


def _violation(schema: StructType, condition: Column, name: str, expression: str) -> _Violation:
    text = " ".join(expression.split())
    error = DeltaError.of(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", constraint=name, expression=text, row=SHOWN
    )
    return _Violation(condition, error, row_text(schema))


def row_text(schema: StructType) -> Column:
    """Return a row as JSON for errors, without the columns that Spark cannot write as JSON."""
    names = [quoted(field.name) for field in schema.fields if not has_spatial(field.dataType)]
    return F.to_json(F.struct(*names), {"ignoreNullFields": "false"})


def is_not_true(condition: Column) -> Column:
    """Return True if a constraint is violated: the condition is false or null."""
    return ~F.coalesce(condition, F.lit(False))


def _checked(rows: DataFrame, violations: Sequence[_Violation]) -> DataFrame:
    """Return the rows; a row fails the query with the error of the first condition that is true."""
    # Not a column that files leave out, and its checks with it.
    names = [f.name for f in rows.schema.fields if without_void(f.dataType) is not None]
    first = F.col(quoted(names[0]))
    # Nondeterministic, so that Spark does not push the check below a LIMIT.
    is_row = F.spark_partition_id() >= 0
    first_one, *others = violations
    checked = F.when(first_one.condition & is_row, first_one.raised())
    for each in others:
        checked = checked.when(each.condition & is_row, each.raised())
    value = checked.otherwise(first).alias(names[0])
    return rows.select(
        *(value if name == names[0] else F.col(quoted(name)) for name in rows.columns)
    )
