"""Checks of the expressions of generated columns, constraints and defaults.

References
----------
PROTOCOL.md#generated-columns, PROTOCOL.md#check-constraints
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    AggregateInConstraintError,
    AggregateInGeneratedColumnError,
    ConstraintDependentColumnError,
    DeltaError,
    GeneratedTypeError,
    NonBooleanConstraintError,
    NondeterministicConstraintError,
    NondeterministicGeneratedColumnError,
    UnsupportedConstraintError,
    UnsupportedGeneratedColumnError,
    UserFunctionInConstraintError,
    UserFunctionInGeneratedColumnError,
)
from sparkdelta.schema.row_rules import RowRules
from sparkdelta.schema.table_schema import as_nullable

_USERS = frozenset(
    (
        "ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "HiveUDAFFunction",
        "PythonUDAF", "PythonUDF", "ScalaAggregator", "ScalaUDAF", "ScalaUDF", "V2Aggregator",
    )
)  # fmt: skip
_OF_OTHER_ROWS = frozenset(
    (
        "Exists", "Generate", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery",
        "WindowExpression",
    )
)  # fmt: skip
_OF_THE_SESSION = frozenset(
    ("CurrentCatalog", "CurrentDatabase", "CurrentTimeZone", "CurrentUser", "SessionUser")
)
_OF_THE_MOMENT = frozenset(
    ("CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now")
)
_UNKNOWN_FUNCTION = "UNRESOLVED_ROUTINE"
_OTHER_COLUMNS = (
    "DATATYPE_MISMATCH",
    "FIELD_NOT_FOUND",
    "INVALID_EXTRACT_BASE_FIELD_TYPE",
    "UNRESOLVED_COLUMN",
)


@dataclass(frozen=True, slots=True)
class _Use:
    """The errors of one use of expressions, and the nodes of a plan that it forbids."""

    user_function: Callable[..., DeltaError]
    nondeterministic: Callable[..., DeltaError]
    aggregate: Callable[..., DeltaError]
    unsupported: Callable[..., DeltaError]
    forbidden: frozenset[str]


_GENERATED = _Use(
    UserFunctionInGeneratedColumnError,
    NondeterministicGeneratedColumnError,
    AggregateInGeneratedColumnError,
    UnsupportedGeneratedColumnError,
    _OF_OTHER_ROWS | _OF_THE_SESSION | _OF_THE_MOMENT,
)
_CONSTRAINT = _Use(
    UserFunctionInConstraintError,
    NondeterministicConstraintError,
    AggregateInConstraintError,
    UnsupportedConstraintError,
    _OF_OTHER_ROWS | _OF_THE_SESSION,  # a row may be compared with the moment of its writing
)


def check_expressions(spark: SparkSession, schema: StructType, rules: RowRules) -> None:
    """Refuse generated columns and constraints that depend on more than the values of a row.

    Generated columns see all columns that are not generated.

    Raises
    ------
    NondeterministicGeneratedColumnError, NondeterministicConstraintError
    UserFunctionInGeneratedColumnError, UserFunctionInConstraintError
    AggregateInGeneratedColumnError, AggregateInConstraintError
    UnsupportedGeneratedColumnError, UnsupportedConstraintError
    GeneratedTypeError, NonBooleanConstraintError
    ConstraintDependentColumnError
        A constraint does not fit the columns, as they are or as a write would make them.
    AnalysisException
        Spark's own.

    References
    ----------
    PROTOCOL.md#generated-columns, PROTOCOL.md#check-constraints
    """
    if rules.generated:
        plain = StructType([f for f in schema.fields if f.name not in rules.generated])
        found = _checked(spark, plain, rules.generated, _GENERATED)
        for name, frame in found.items():
            _check_type(schema[name], frame)
    constraints = {each.name: each.expression for each in rules.constraints}
    for name, frame in _checked(spark, schema, constraints, _CONSTRAINT).items():
        if not isinstance(frame.schema[0].dataType, BooleanType):
            raise NonBooleanConstraintError(
                name=name,
                expression=constraints[name],
                data_type=frame.schema[0].dataType.simpleString(),
            )
    if rules.defaults:
        empty = spark.createDataFrame([], StructType())
        with engine_of(spark).in_table_session(empty) as ours:
            _ = ours.select(*map(F.expr, rules.defaults.values())).schema


def _checked(
    spark: SparkSession, schema: StructType, expressions: Mapping[str, str], use: _Use
) -> dict[str, DataFrame]:
    """A frame with each expression as its only column; refuse those that are not allowed."""
    if not expressions:
        return {}
    columns = [StructField(f.name, as_nullable(f.dataType)) for f in schema.fields]
    theirs = spark.createDataFrame([], StructType(columns))
    found, engine = {}, engine_of(spark)
    for name, text in expressions.items():
        try:
            with engine.in_table_session(theirs) as ours:
                found[name] = ours.select(F.expr(text))
            _ = found[name].schema  # Spark Connect analyzes a plan when it is asked for
        except AnalysisException as error:
            condition = str(error.getCondition())
            if use is _CONSTRAINT and condition.startswith(_OTHER_COLUMNS):
                problem = str(error).partition(". ")[0].partition("\n")[0]
                raise ConstraintDependentColumnError(
                    name=name, expression=text, problem=problem
                ) from error
            if not condition.startswith(_UNKNOWN_FUNCTION):
                raise
            theirs.select(F.expr(text))  # or it is no function of the user's either
            raise use.user_function(name=name, expression=text) from error
        if not engine.sees_plans:
            continue
        is_deterministic, nodes = engine.plan_nodes(found[name])
        names = {node.rpartition(".")[2] for node in nodes}
        if names & _USERS:
            raise use.user_function(name=name, expression=text)
        if not is_deterministic:
            raise use.nondeterministic(name=name, expression=text)
        if names & use.forbidden:  # which may have aggregates inside
            raise use.unsupported(name=name, expression=text)
        if "AggregateExpression" in names:
            raise use.aggregate(name=name, expression=text)
    return found


def _check_type(column: StructField, generated: DataFrame) -> None:
    data_type = generated.schema[0].dataType
    if as_nullable(data_type) != as_nullable(column.dataType):
        raise GeneratedTypeError(
            column=column.name,
            column_type=column.dataType.simpleString(),
            expression_type=data_type.simpleString(),
        )
