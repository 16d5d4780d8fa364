"""A user's condition on a table: checked by Spark, and understood as far as it chooses files."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    AggregateInConditionError,
    ColumnNotFoundError,
    InvalidConditionError,
    NondeterministicConditionError,
    SubqueryInConditionError,
)
from sparkdelta.predicates.analyzed_text import qualifier_of
from sparkdelta.predicates.generated_columns import generated_columns, with_implied
from sparkdelta.predicates.names import UnusableError, name_parts
from sparkdelta.protocol.predicates import Predicate, without_not
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.schema.table_schema import as_nullable, quoted
from sparkdelta.table.configuration import TableConfiguration


def parse_where(
    spark: SparkSession, where: str | Column, configuration: TableConfiguration
) -> Predicate:
    """The predicate of a condition in SQL text or a Column, in the form that the rules of data
    skipping take.

    Raises
    ------
    ColumnNotFoundError
        The condition names a column that the table does not have.
    InvalidConditionError
        Spark cannot parse it, or it is not of type BOOLEAN.
    """
    try:
        filtered = _filtered(spark, where, configuration.schema)
    except AnalysisException as error:
        raise _refusal(error, where, configuration.schema) from None
    return _predicate(spark, where, configuration, filtered)


def parse_deterministic_where(
    spark: SparkSession, where: str | Column, configuration: TableConfiguration, *, operation: str
) -> Predicate:
    """As `parse_where`, of a condition on the rows that an operation takes out of the table.

    It is evaluated more than once, for files and for rows, so it must be deterministic.

    Raises
    ------
    NondeterministicConditionError, SubqueryInConditionError, AggregateInConditionError
        It depends on more than the row; the last also for window functions and generators.
    ColumnNotFoundError, InvalidConditionError
        As of `parse_where`.
    """
    refusal = {"operation": operation, "condition": str(where)}
    try:
        filtered = _filtered(spark, where, configuration.schema)
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_NOT_OF_A_ROW):
            raise AggregateInConditionError(**refusal) from error
        raise _refusal(error, where, configuration.schema) from None
    is_deterministic, nodes = engine_of(spark).plan_nodes(filtered)
    if not _SUBQUERIES.isdisjoint(node.rpartition(".")[2] for node in nodes):
        raise SubqueryInConditionError(**refusal)
    if not is_deterministic:
        raise NondeterministicConditionError(**refusal)
    return _predicate(spark, where, configuration, filtered)


_NOT_OF_A_ROW = (
    "INVALID_WHERE_CONDITION",
    "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "UNSUPPORTED_GENERATOR",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
)
_SUBQUERIES = frozenset(("Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"))


def _refusal(
    error: AnalysisException, where: str | Column, schema: StructType
) -> ColumnNotFoundError | InvalidConditionError:
    """The error of a condition that Spark refuses, without the plan that Spark's own adds."""
    spark_condition = str(error.getCondition())
    name = (error.getMessageParameters() or {}).get("objectName")
    if name is not None and spark_condition.startswith("UNRESOLVED_COLUMN"):
        return ColumnNotFoundError(column=_plain(name), available=schema.names)
    found = _PROBLEM.search(str(error))
    problem = str(error).strip().partition("\n")[0] if found is None else found["problem"]
    problem = problem.replace(f"{quoted(qualifier_of(schema))}.", "")
    shown = where if isinstance(where, str) else str(where).removeprefix("Column<'")[:-2]
    return InvalidConditionError(condition=shown, problem=problem, spark_condition=spark_condition)


_PROBLEM = re.compile(r"\[[A-Z0-9_.]+\] (?P<problem>.*?)(?= SQLSTATE: |\n|$)")


def _plain(name: str) -> str:
    try:
        return ".".join(name_parts(name))
    except UnusableError:
        return name


def _filtered(spark: SparkSession, where: str | Column, schema: StructType) -> DataFrame:
    columns = [StructField(field.name, as_nullable(field.dataType)) for field in schema.fields]
    empty = spark.createDataFrame([], StructType(columns))
    return engine_of(spark).analyzed_filter(empty, where, qualifier_of(schema))


def _predicate(
    spark: SparkSession, where: str | Column, configuration: TableConfiguration, filtered: DataFrame
) -> Predicate:
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    predicate = without_not(
        engine_of(spark).parse_condition(filtered, where, configuration.schema, time_zone=time_zone)
    )
    if not is_supported(configuration.protocol, TableFeature.GENERATED_COLUMNS):
        return predicate
    generated = generated_columns(configuration.schema, configuration.partition_fields)
    return with_implied(predicate, generated, configuration.schema, time_zone=time_zone)
