"""Rows in the columns and types of a table, filled in and checked in the same pass.

Expressions of the table mean what the session says that analyzes them; see
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
_ROWS_OF_A_PARTITION = (1 << 33) - 1  # how `monotonically_increasing_id` numbers rows


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column of the table and the column of the rows that it gets its values from.

    Attributes
    ----------
    source
        None if the rows have none.
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
    """The rows in the table's columns, each value of its column's type and as the rules say.

    A row that breaks a rule fails the query; rules are checked where the rows are written, in no
    pass of their own.

    Parameters
    ----------
    max_partitions
        The partitions of rows that get identity values, which are dealt to them in turn.

    Raises
    ------
    IdentityInsertError
        The rows bring values that only the table may generate.

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
    texts = {
        column.field.name
        for column in columns
        if column.field.name in partition_columns and isinstance(column.field.dataType, StringType)
    }
    typed = rows.select(
        *(
            _numbers(numbered[c.field.name], max_partitions).alias(c.field.name)
            if c.field.name in numbered
            else _typed(c, rows.schema, rules, texts)
            for c in columns
            if c.field.name not in generated
        )
    )
    filled = typed.select(
        *(
            _stored(F.expr(generated[c.field.name]).cast(c.field.dataType), c.field, texts).alias(
                c.field.name
            )
            if c.field.name in generated
            else F.col(quoted(c.field.name))
            for c in columns
        )
    )
    given = {c.field.name for c in columns if c.source is not None}
    schema = StructType([column.field for column in columns])
    broken = list(_broken(schema, rules, given, texts, path))
    return filled if not broken else _checked(filled, broken)


def retyped_rows(
    rows: DataFrame, fields: Sequence[StructField], file_columns: Sequence[str]
) -> DataFrame:
    """Rows that are in the table already, cast to its columns as they will be, and the columns
    `file_columns`; no rule is checked.

    References
    ----------
    PROTOCOL.md#change-metadata
    """
    own = set(rows.columns)
    columns = [WrittenColumn(f, f.name if f.name in own else None) for f in fields]
    typed = (_typed(column, rows.schema, RowRules(), ()) for column in columns)
    return rows.select(*typed, *(F.col(quoted(name)) for name in file_columns))


def fulfilling(rows: DataFrame, where: str | Column) -> DataFrame:
    """The rows, each of which must fulfil the condition.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    condition = F.expr(where) if isinstance(where, str) else where
    text = where if isinstance(where, str) else "that was given"
    error = ReplaceWhereMismatchError(where=" ".join(text.split()))
    return _checked(rows, [(_is_not_true(condition), error)])


def _typed(
    column: WrittenColumn, rows: StructType, rules: RowRules, texts: Collection[str]
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
    return _stored(value, field, texts).alias(field.name)


def _stored(value: Column, field: StructField, texts: Collection[str]) -> Column:
    """The value as the table will have it, which rules must see.

    Parameters
    ----------
    texts
        The partition columns of type STRING.
    """
    return _without_empty(value) if field.name in texts else value


def _without_empty(text: Column) -> Column:
    """An empty text is null as a partition value.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    return F.nullif(text, F.lit(""))


def _numbers(identity: Identity, max_partitions: int) -> Column:
    """Values that no other row gets: a partition takes every `max_partitions`-th.

    One out of the range of LONG fails the query.

    References
    ----------
    PROTOCOL.md#identity-columns
    """
    row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROWS_OF_A_PARTITION))
    number = row * F.lit(max_partitions) + F.spark_partition_id()
    return F.lit(identity.next_value).cast("long") + F.lit(identity.step).cast("long") * number


def _broken(
    schema: StructType, rules: RowRules, given: set[str], texts: set[str], path: str
) -> Iterator[tuple[Column, DeltaError]]:
    """The conditions that rows which break a rule fulfil, each with its error."""
    for forbidden in forbidden_values(schema, path=path):
        yield F.expr(forbidden.condition), forbidden.error
    types = {field.name: field.dataType for field in schema.fields}
    for name, expression in rules.generated.items():
        if name in given:
            wanted = F.expr(expression).cast(types[name])
            wanted = _without_empty(wanted) if name in texts else wanted
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


def _checked(rows: DataFrame, broken: Sequence[tuple[Column, DeltaError]]) -> DataFrame:
    """The rows; each condition that is true of one raises the error beside it."""
    first = F.col(quoted(rows.columns[0]))
    # Not deterministic, so that no optimizer checks rows that a LIMIT below leaves out.
    is_row = F.spark_partition_id() >= 0
    (condition, error), *others = broken
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
