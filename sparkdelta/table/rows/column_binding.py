"""Binding of rows to a table's columns: match them by name, cast, fill in and check the values.

References
----------
PROTOCOL.md#schema-serialization-format, PROTOCOL.md#check-constraints,
PROTOCOL.md#generated-columns, PROTOCOL.md#default-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.store_assignment import StoreAssignment
from sparkdelta.base.schema.table_constraints import Identity, RowRules, row_rules
from sparkdelta.base.schema.table_schema import as_nullable, quoted, stored_schema
from sparkdelta.base.schema.written_schema import (
    check_columns,
    matched_columns,
)
from sparkdelta.base.spark.driver import has_rows
from sparkdelta.base.spark.library_sessions import IN_UTC, UTC, Evaluation
from sparkdelta.base.spark.session_settings import rule_evaluation, store_assignment
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.definition.writable import check_table_writable
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.assigned_row_frames import Assignments, Origin, assigned_rows
from sparkdelta.table.rows.conformed_row_frames import (
    WrittenColumn,
    column_value,
    conformed_rows,
    is_not_true,
    other_rows,
    require_condition,
)
from sparkdelta.table.rows.staged_rows import computed_once, rows_in_session
from sparkdelta.table.scan.file_row_frames import expression_of
from sparkdelta.table.snapshot.staging import Staging

_TASKS_PER_CORE = 4
_CHECKED = "checked rows"


@dataclass(frozen=True, slots=True)
class ColumnBinding:
    """The columns of rows matched with the columns of the table that they go into.

    Attributes
    ----------
    columns
        The table's columns, each with the column of the rows that it gets its values from.
    rules
        The constraints, defaults, generated and identity columns of the table.
    policy
        The policy by which values are converted to the types of the columns.
    """

    columns: tuple[WrittenColumn, ...]
    rules: RowRules
    policy: StoreAssignment = StoreAssignment.ANSI

    @property
    def identities(self) -> dict[str, Identity]:
        """The identity columns whose values are generated, as some rows have none."""
        names = [column.field.name for column in self.columns if column.is_filled]
        return {
            name: self.rules.identities[name] for name in names if name in self.rules.identities
        }


def match_rows(
    rows: StructType, table: TableConfiguration, *, path: str, converts: bool = False
) -> ColumnBinding:
    """Match the columns of rows with the table's columns, and check that it can take them.

    Parameters
    ----------
    converts
        As of `WriteOptions`.

    Raises
    ------
    DELTA_WRITE_NOT_IMPLEMENTED, DELTA_ICEBERG_COMPAT_VIOLATION, DELTA_UNSUPPORTED_DATA_TYPES,
    InvalidColumnNameError
        No rows can be written into the table.
    DELTA_METADATA_MISMATCH, DELTA_FAILED_TO_MERGE_FIELDS, CANNOT_UP_CAST_DATATYPE,
    DELTA_MISSING_NOT_NULL_COLUMN_VALUE, DELTA_PARTITION_COLUMN_NOT_FOUND
        These rows cannot be written into it.
    DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED
        They have values for an identity column that is GENERATED ALWAYS.
    """
    check_table_writable(table, path=path)
    if table.schema.fields:
        check_columns(table.schema, any_names=table.is_mapped)
    stored_schema(table.schema)
    policy = _policy(rows, table.schema) if converts else StoreAssignment.EXACT
    matched = matched_columns(
        table.schema, rows, path=path, any_names=table.is_mapped, policy=policy
    )
    columns = tuple(WrittenColumn(field, source) for field, source in matched)
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    filled = {*rules.defaults, *rules.generated, *rules.identities}
    missing = [
        column.field.name
        for column in columns
        if column.source is None and not column.field.nullable and column.field.name not in filled
    ]
    if missing:
        raise DeltaError.of("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", columns=missing)
    given = {column.field.name for column in columns if column.source is not None}
    for name, identity in rules.identities.items():
        if name in given and not identity.allows_explicit_values:
            raise DeltaError.of("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", column=name)
    given |= filled
    for name in table.partition_columns:
        if name not in given:
            raise DeltaError.of(
                "DELTA_PARTITION_COLUMN_NOT_FOUND", column=name, available=rows.names
            )
    return ColumnBinding(columns, rules, policy)


def _policy(rows: StructType, table: StructType) -> StoreAssignment:
    """Return the policy of the session, which is asked only where a conversion is needed."""
    types = {name_key(field.name): as_nullable(field.dataType) for field in table.fields}
    for field in rows.fields:
        if types.get(name_key(field.name)) != as_nullable(field.dataType):
            return store_assignment()
    return StoreAssignment.ANSI


def converted_rows(rows: DataFrame, matched: ColumnBinding, *, time_zone: str) -> DataFrame:
    """Return the rows with their columns converted to the types of the table's in a time zone; in
    UTC, `conform` does this, except by policy LEGACY.
    """
    if time_zone == UTC and matched.policy is not StoreAssignment.LEGACY:
        return rows
    values = {}
    for column in matched.columns:
        if column.source is not None:
            text = column_value(column, rows.schema, policy=matched.policy)
            if text != quoted(column.source):
                values[column.source] = text
    return with_values(rows, values, time_zone=time_zone, policy=matched.policy)


def with_values(
    rows: DataFrame,
    values: Mapping[str, str],
    *,
    time_zone: str,
    policy: StoreAssignment = StoreAssignment.ANSI,
) -> DataFrame:
    """Return the rows with columns replaced by conversions of them, which are made in a time zone.

    Parameters
    ----------
    values
        SQL by the names of columns.
    policy
        The policy of the conversions.
    """
    if not values:
        return rows
    texts = (f"{values.get(name, quoted(name))} AS {quoted(name)}" for name in rows.columns)
    engine = engine_of(rows.sparkSession)
    evaluation = Evaluation(time_zone, policy is not StoreAssignment.LEGACY)
    with engine.in_table_session(rows, evaluation) as theirs:
        converted = theirs.selectExpr(*texts)
    return engine.rebind_to_session(converted)


def conform_assignments(
    rows: DataFrame,
    table: TableConfiguration,
    clauses: Sequence[Assignments],
    *,
    spark: SparkSession,
    path: str,
    time_zone: str,
    stage: Staging,
    kept: Sequence[str] = (),
    current: Mapping[str, str] | None = None,
    clause_column: str | None = None,
    adds_fields: bool = False,
) -> tuple[DataFrame, ColumnBinding]:
    """Return the rows in the table's columns, with assigned values that are converted in a time
    zone; and the columns that they get these from.

    Parameters
    ----------
    rows, clauses, kept, current, clause_column, adds_fields
        As of `assigned_rows`.
    spark, stage
        A `write_session`, and where rows of another session are staged for it.
    """
    policy = store_assignment()
    assigned = assigned_rows(
        rows,
        table.schema,
        clauses,
        current=current,
        clause_column=clause_column,
        kept=kept,
        adds_fields=adds_fields,
        policy=policy,
    )
    matched = _match_assigned(table, clauses, path=path, clause_column=clause_column)
    evaluated, columns = assigned.evaluated, assigned.columns
    evaluation = Evaluation(time_zone, policy is not StoreAssignment.LEGACY)
    if evaluation != IN_UTC:
        with engine_of(spark).in_table_session(evaluated, evaluation) as theirs:
            evaluated, columns = theirs.selectExpr(*columns), ()
    evaluated = rows_in_session(evaluated, spark, stage)
    conformed = cast_and_validate(
        evaluated, matched, table, spark=spark, path=path, kept=kept, columns=columns
    )
    return conformed, matched


def _match_assigned(
    table: TableConfiguration,
    clauses: Sequence[Assignments],
    *,
    path: str,
    clause_column: str | None,
) -> ColumnBinding:
    """Match the columns of `assigned_rows` with the table's columns.

    The table's rules give the values of columns that a clause does not assign.
    """
    columns = []
    for field in table.schema.fields:
        filled = [i for i, each in enumerate(clauses) if each[field.name] is Origin.FILLED]
        if len(filled) == len(clauses):
            columns.append(WrittenColumn(field, None))
        elif not filled or clause_column is None:
            columns.append(WrittenColumn(field, field.name))
        else:
            where = f"{quoted(clause_column)} IN ({', '.join(map(str, filled))})"
            columns.append(WrittenColumn(field, field.name, where))
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    return ColumnBinding(tuple(columns), rules)


def cast_and_validate(
    rows: DataFrame,
    matched: ColumnBinding,
    table: TableConfiguration,
    *,
    spark: SparkSession,
    path: str,
    kept: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> DataFrame:
    """Return the rows in the table's columns: cast, filled in, and checked where they are written.

    Parameters
    ----------
    columns
        SQL of the columns that `matched` and `kept` name; by default, `rows` has these.
    kept
        Columns of the rows to keep after the table's columns.
    """
    rules = matched.rules
    is_plain = not (rules.constraints or rules.defaults or rules.generated)
    evaluation = IN_UTC if is_plain else rule_evaluation()
    with engine_of(spark).in_table_session(rows, evaluation) as ours:
        if columns:
            ours = ours.selectExpr(*columns)
        conformed = conformed_rows(
            ours,
            matched.columns,
            matched.rules,
            partition_columns=table.partition_columns,
            max_partitions=_TASKS_PER_CORE * engine_of(spark).parallelism,
            path=path,
            kept=kept,
        )
    return engine_of(spark).rebind_to_session(conformed)


def require(
    rows: DataFrame, where: str | Column, *, spark: SparkSession, stage: Staging
) -> DataFrame:
    """Return the rows of a `write_session`; a row that does not satisfy the user's condition fails
    their query or, on Spark Connect, this call, which stages them.

    Parameters
    ----------
    stage
        Of the user's session.
    """
    moved = engine_of(spark).in_user_session(rows)
    if moved is not None:
        with moved as own:
            return require_condition(own, where)
    once = computed_once(rows, stage, _CHECKED)
    others = stage.read_rows(_CHECKED, rows.schema).filter(is_not_true(expression_of(where)))
    if has_rows(others.select(F.lit(1)), what="rows that replaceWhere lacks"):
        raise other_rows(where)
    return once
