"""A user's condition on a table: checked by Spark, and understood as far as it chooses files."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.generated_columns import generated_columns, with_implied
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Predicate,
    Unusable,
    conjuncts,
    without_not,
)
from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.predicates.value_lists import with_value_lists
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    InvalidConditionError,
)
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames


@unlogged_errors()
def parse_where(
    spark: SparkSession,
    where: str | Column,
    configuration: TableConfiguration,
    *,
    names: RowNames = NO_NAMES,
) -> Predicate:
    """Return the predicate of a condition in SQL text or a Column, in the form that the rules of
    data skipping take.

    Parameters
    ----------
    names
        Of the table's rows in the condition.

    Raises
    ------
    ColumnNotFoundError
        The condition names a column that the table does not have.
    InvalidConditionError
        Spark cannot parse it, or it is not of type BOOLEAN.
    """
    try:
        filtered = _filtered(spark, where, configuration.schema, names)
    except DeltaError:
        raise
    except AnalysisException as error:
        raise _refusal(error, where, configuration.schema) from None
    return _predicate(spark, where, configuration, filtered, names.alias)


@unlogged_errors()
def parse_deterministic_where(
    spark: SparkSession,
    where: str | Column,
    configuration: TableConfiguration,
    *,
    operation: str,
    names: RowNames = NO_NAMES,
) -> Predicate:
    """Return the predicate of a condition that selects the rows that an operation removes or
    replaces, as of `parse_where`.

    It is evaluated more than once, for files and for rows, so it must be deterministic.
    """
    try:
        filtered = _filtered(spark, where, configuration.schema, names)
    except DeltaError:
        raise
    except AnalysisException as error:
        _refuse_several_rows(error, where, operation)
        raise _refusal(error, where, configuration.schema) from None
    check_deterministic(filtered, where, operation=operation)
    return _predicate(spark, where, configuration, filtered, names.alias)


@unlogged_errors()
def deterministic_filter(rows: DataFrame, where: str | Column, *, operation: str) -> DataFrame:
    """Return the rows that a condition of an operation selects, checked as
    `parse_deterministic_where` checks it.

    Raises
    ------
    AnalysisException
        It is not valid for these rows.
    """
    try:
        filtered = rows.filter(where)
        check_deterministic(filtered, where, operation=operation)  # analyzes it on Spark Connect
    except DeltaError:
        raise
    except AnalysisException as error:
        _refuse_several_rows(error, where, operation)
        raise
    return filtered


def check_deterministic(filtered: DataFrame, where: str | Column, *, operation: str) -> None:
    """Refuse the condition of a filter if it is not deterministic or contains a subquery."""
    is_deterministic, nodes = engine_of(filtered.sparkSession).plan_nodes(filtered)
    if not _SUBQUERIES.isdisjoint(node.rpartition(".")[2] for node in nodes):
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_SUBQUERY", operation=operation, condition=shown(where)
        )
    if not is_deterministic:
        raise DeltaError.of(
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            operation=operation,
            condition=shown(where),
        )


def may_change(
    spark: SparkSession,
    where: str | Column,
    configuration: TableConfiguration,
    *,
    names: RowNames = NO_NAMES,
) -> bool:
    """Return True if a valid condition may select other rows when it is evaluated again: it depends
    on the current time or calls a function of the user's. On Spark Connect, any condition may.
    """
    return has_changing_condition(_filtered(spark, where, configuration.schema, names))


def has_changing_condition(filtered: DataFrame) -> bool:
    """Return True if the condition of a filter may select other rows when it is evaluated again,
    see `may_change`.
    """
    engine = engine_of(filtered.sparkSession)
    if not engine.can("see plans"):
        return True
    _, nodes = engine.plan_nodes(filtered)
    return not _CHANGING.isdisjoint(node.rpartition(".")[2] for node in nodes)


def _refuse_several_rows(error: AnalysisException, where: str | Column, operation: str) -> None:
    if is_of_several_rows(error):
        raise DeltaError.of(
            "DELTA_AGGREGATION_NOT_SUPPORTED", operation=operation, condition=shown(where)
        ) from error


_NOT_OF_A_ROW = (
    "INVALID_WHERE_CONDITION",
    "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "UNSUPPORTED_GENERATOR",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "_LEGACY_ERROR_TEMP_1034",  # the same on Spark 4.0
)
_CHANGING = frozenset(
    (
        *("CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"),
        *("ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF"),
    )
)
_SUBQUERIES = frozenset(("Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"))


def _refusal(
    error: AnalysisException, where: str | Column, schema: StructType
) -> ColumnNotFoundError | InvalidConditionError:
    """Return the error of a condition that Spark refuses, without Spark's plan."""
    name = missing_column(error)
    if name is not None:
        return ColumnNotFoundError(column=name, available=schema.names).named(error)
    problem = problem_of(error).replace(f"{quoted(qualifier_of(schema))}.", "")
    return InvalidConditionError(
        condition=shown(where), problem=problem, spark_condition=str(error.getCondition())
    ).named(error)


def missing_column(error: AnalysisException) -> str | None:
    """Return the name of the column that Spark does not find; None if it is another error."""
    name = (error.getMessageParameters() or {}).get("objectName")
    if name is None or not str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
        return None
    try:
        return ".".join(name_parts(name))
    except UnusableError:
        return name


def problem_of(error: AnalysisException) -> str:
    """Return the sentence of Spark's error, without its condition, SQLSTATE and plan."""
    found = _PROBLEM.search(str(error))
    return str(error).strip().partition("\n")[0] if found is None else found["problem"]


_PROBLEM = re.compile(r"\[[A-Z0-9_.]+\] (?P<problem>.*?)(?= SQLSTATE: |\n|$)")


def shown(expression: str | Column) -> str:
    """Return the text of an expression in an error."""
    text = str(expression)
    return text if isinstance(expression, str) else text.removeprefix("Column<'")[:-2]


def is_of_several_rows(error: AnalysisException) -> bool:
    """Return True if Spark refuses an aggregate or window function or a generator."""
    return str(error.getCondition()).startswith(_NOT_OF_A_ROW)


def _filtered(
    spark: SparkSession, where: str | Column, schema: StructType, names: RowNames
) -> DataFrame:
    columns = [StructField(field.name, as_nullable(field.dataType)) for field in schema.fields]
    empty = names.given_to(empty_frame(spark, StructType(columns)))
    return engine_of(spark).analyzed_filter(empty, where, names.alias or qualifier_of(schema))


def _predicate(
    spark: SparkSession,
    where: str | Column,
    configuration: TableConfiguration,
    filtered: DataFrame,
    alias: str | None,
) -> Predicate:
    time_zone = session_time_zone(spark)
    parsed = engine_of(spark).parse_condition(
        filtered, where, configuration.schema, time_zone=time_zone, alias=alias
    )
    return with_partition_terms(spark, without_not(parsed), configuration)


def usable_part(
    spark: SparkSession, parsed: Predicate, configuration: TableConfiguration
) -> Predicate | None:
    """Return the part of a predicate by which files can be chosen; None if there is none."""
    terms = [term for term in conjuncts(without_not(parsed)) if not isinstance(term, Unusable)]
    return with_partition_terms(spark, And(tuple(terms)), configuration) if terms else None


def with_partition_terms(
    spark: SparkSession, predicate: Predicate, configuration: TableConfiguration
) -> Predicate:
    """Return the predicate with the conditions on generated partition columns that it implies."""
    predicate = with_value_lists(predicate, configuration.schema)
    if not is_supported(configuration.protocol, TableFeature.GENERATED_COLUMNS):
        return predicate
    generated = generated_columns(configuration.schema, configuration.partition_fields)
    time_zone = session_time_zone(spark)
    return with_implied(predicate, generated, configuration.schema, time_zone=time_zone)
