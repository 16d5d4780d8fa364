"""Rows in a table's columns and types, with generated values, checked in the same pass.

The table's SQL expressions depend on settings of the session that analyzes them; see
`SparkEngine.in_table_session`.

References
----------
PROTOCOL.md#check-constraints, PROTOCOL.md#column-invariants, PROTOCOL.md#generated-columns,
PROTOCOL.md#default-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.exceptions import (
    ConstraintViolatedError,
    DeltaError,
    IdentityInsertError,
    ReplaceWhereMismatchError,
)
from sparkdelta.schema.row_checks import forbidden_values
from sparkdelta.schema.row_rules import Identity, RowRules
from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.store_assignment import assigned
from sparkdelta.schema.table_schema import quoted

_ROW = "\0"
_MAX_ROW_LENGTH = 500
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
    """

    field: StructField
    source: str | None


def conformed_rows(
    rows: DataFrame,
    columns: Sequence[WrittenColumn],
    rules: RowRules,
    *,
    partition_columns: Collection[str],
    max_partitions: int,
    path: str,
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

    Raises
    ------
    IdentityInsertError
        The rows have values for an identity column that is GENERATED ALWAYS.

    References
    ----------
    PROTOCOL.md#check-constraints, PROTOCOL.md#column-invariants, PROTOCOL.md#generated-columns,
    PROTOCOL.md#default-columns, PROTOCOL.md#identity-columns
    """
    generated, numbered = dict[str, str](), dict[str, Identity]()
    for column in columns:
        name = column.field.name
        if column.source is None and name in rules.identities:
            numbered[name] = rules.identities[name]
        elif column.source is None and name in rules.generated:
            generated[name] = rules.generated[name]
        elif name in rules.identities and not rules.identities[name].takes_values:
            raise IdentityInsertError(column=name)
    if numbered:
        rows = rows.coalesce(max_partitions)
    text_partitions = {
        column.field.name
        for column in columns
        if column.field.name in partition_columns and isinstance(column.field.dataType, StringType)
    }
    typed = rows.select(
        *(
            _numbers(numbered[c.field.name], max_partitions).alias(c.field.name)
            if c.field.name in numbered
            else _typed(c, rows.schema, rules, text_partitions)
            for c in columns
            if c.field.name not in generated
        )
    )
    filled = typed.select(
        *(
            _as_stored(
                F.expr(generated[c.field.name]).cast(c.field.dataType), c.field, text_partitions
            ).alias(c.field.name)
            if c.field.name in generated
            else F.col(quoted(c.field.name))
            for c in columns
        )
    )
    given = {c.field.name for c in columns if c.source is not None}
    schema = StructType([column.field for column in columns])
    violations = list(_violations(schema, rules, given, text_partitions, path))
    return filled if not violations else _checked(filled, violations)


def retyped_rows(
    rows: DataFrame, fields: Sequence[StructField], file_columns: Sequence[str]
) -> DataFrame:
    """Cast existing rows of the table to its future columns, and keep the columns `file_columns`.

    Rules of the table are not checked.

    References
    ----------
    PROTOCOL.md#change-metadata
    """
    own = set(rows.columns)
    columns = [WrittenColumn(f, f.name if f.name in own else None) for f in fields]
    typed = (_typed(column, rows.schema, RowRules(), ()) for column in columns)
    return rows.select(*typed, *(F.col(quoted(name)) for name in file_columns))


def fulfilling(rows: DataFrame, where: str | Column) -> DataFrame:
    """Return the rows; a row that does not satisfy the condition fails the query.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    condition = F.expr(where) if isinstance(where, str) else where
    text = where if isinstance(where, str) else "that was given"
    error = ReplaceWhereMismatchError(where=" ".join(text.split()))
    return _checked(rows, [(_is_not_true(condition), error)])


def _typed(
    column: WrittenColumn, rows: StructType, rules: RowRules, text_partitions: Collection[str]
) -> Column:
    field = column.field
    if column.source is not None:
        source = quoted(column.source)
        given = rows[column.source].dataType
        value = F.expr(assigned(source, given, field.dataType, column=field.name))
    elif field.name in rules.defaults:
        value = F.expr(rules.defaults[field.name]).cast(field.dataType)
    else:
        value = F.expr(f"CAST(NULL AS {type_text(field.dataType)})")
    return _as_stored(value, field, text_partitions).alias(field.name)


def _as_stored(value: Column, field: StructField, text_partitions: Collection[str]) -> Column:
    """Return a value as it is stored, so that rules are checked on the stored value.

    Parameters
    ----------
    text_partitions
        The names of the partition columns of type STRING.
    """
    return _empty_to_null(value) if field.name in text_partitions else value


def _empty_to_null(text: Column) -> Column:
    """Replace the empty string by null, which is the same partition value.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    return F.nullif(text, F.lit(""))


def _numbers(identity: Identity, max_partitions: int) -> Column:
    """Generate unique identity values; each partition generates every `max_partitions`-th.

    A value out of the range of LONG fails the query.

    References
    ----------
    PROTOCOL.md#identity-columns
    """
    row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROWS_OF_A_PARTITION))
    number = row * F.lit(max_partitions) + F.spark_partition_id()
    return F.lit(identity.next_value).cast("long") + F.lit(identity.step).cast("long") * number


def _violations(
    schema: StructType, rules: RowRules, given: set[str], text_partitions: set[str], path: str
) -> Iterator[tuple[Column, DeltaError]]:
    """Yield, for each rule, a condition that is true of rows that violate it, and its error."""
    for forbidden in forbidden_values(schema, path=path):
        yield F.expr(forbidden.condition), forbidden.error
    types = {field.name: field.dataType for field in schema.fields}
    for name, expression in rules.generated.items():
        if name in given:
            wanted = F.expr(expression).cast(types[name])
            wanted = _empty_to_null(wanted) if name in text_partitions else wanted
            yield (
                ~F.col(quoted(name)).eqNullSafe(wanted),
                _violation("Generated Column", f"{quoted(name)} <=> {expression}"),
            )
    for constraint in rules.constraints:
        condition = F.expr(constraint.expression)
        yield _is_not_true(condition), _violation(constraint.name, constraint.expression)


def _violation(name: str, expression: str) -> DeltaError:
    text = " ".join(expression.split())
    return ConstraintViolatedError(constraint=name, expression=text, row=_ROW)


def _is_not_true(condition: Column) -> Column:
    return ~F.coalesce(condition, F.lit(False))


def _checked(rows: DataFrame, violations: Sequence[tuple[Column, DeltaError]]) -> DataFrame:
    """Return the rows; a row fails the query with the error of the first condition that is true."""
    first = F.col(quoted(rows.columns[0]))
    # Nondeterministic, so that Spark does not push the check below a LIMIT.
    is_row = F.spark_partition_id() >= 0
    (condition, error), *others = violations
    checked = F.when(condition & is_row, _raised(error))
    for condition, error in others:
        checked = checked.when(condition & is_row, _raised(error))
    value = checked.otherwise(first).alias(rows.columns[0])
    return rows.select(value, *(F.col(quoted(name)) for name in rows.columns[1:]))


def _raised(error: DeltaError) -> Column:
    before, has_row, after = str(error).partition(_ROW)
    text = F.lit(before)
    if has_row:
        row = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        text = F.concat(text, F.left(row, F.lit(_MAX_ROW_LENGTH)), F.lit(after))
    return F.raise_error(text)
