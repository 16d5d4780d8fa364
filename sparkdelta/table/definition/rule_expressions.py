"""Checks of the expressions of generated columns, constraints and defaults.

References
----------
PROTOCOL.md#generated-columns, PROTOCOL.md#check-constraints, PROTOCOL.md#default-columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.base.protocol.settable_properties import CONSTRAINT
from sparkdelta.base.schema.column_alterations import path_text
from sparkdelta.base.schema.spatial_types import check_not_spatial
from sparkdelta.base.schema.store_assignment import can_assign
from sparkdelta.base.schema.table_constraints import RowRules, row_rules
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.session_settings import rule_evaluation
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.error_names import sql_type
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.table.log.table_configuration import TableConfiguration

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
    """Error types, and the nodes of a plan that are forbidden, for one use of expressions."""

    user_function: str
    nondeterministic: str
    aggregate: str
    unsupported: str
    forbidden: frozenset[str]


_GENERATED = _Use(
    "DELTA_UDF_IN_GENERATED_COLUMN",
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
    "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
    "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
    _OF_OTHER_ROWS | _OF_THE_SESSION | _OF_THE_MOMENT,
)
_CONSTRAINT = _Use(
    "DELTA_UDF_IN_CHECK_CONSTRAINT",
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
    "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
    "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    _OF_OTHER_ROWS | _OF_THE_SESSION,  # a row may be compared with the moment of its writing
)
_INVALID = InvalidArgumentError.error_class
_ALTER_COLUMN = "ALTER TABLE ALTER COLUMN"
_DEFAULT = _Use(_INVALID, _INVALID, _INVALID, _INVALID, _OF_OTHER_ROWS)


def _refused(error: str, name: str, expression: str) -> DeltaError:
    if error == _INVALID:
        problem = f"{expression} of column {name} must be the same for all rows of a write"
        return InvalidArgumentError(argument="default", problem=problem).named(
            "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION", **_default_parameters(name, expression)
        )
    return DeltaError.of(error, name=name, expression=expression)


@unlogged_errors()
def check_default(
    spark: SparkSession, column: StructField, *, statement: str = _ALTER_COLUMN
) -> None:
    """Refuse a default that depends on a row, or does not have the column's type.

    Parameters
    ----------
    statement
        The one that errors name.
    """
    check_not_spatial(column.name, column.dataType, "COLUMN DEFAULT")
    text = str(column.metadata[CURRENT_DEFAULT])
    names = _default_parameters(column.name, text, statement)
    try:
        frame = _checked(spark, StructType(), {column.name: text}, _DEFAULT)[column.name]
    except DeltaError:
        raise
    except AnalysisException as error:
        problem = str(error).partition("\n")[0]
        raise InvalidArgumentError(argument="default", problem=problem).named(
            "INVALID_DEFAULT_VALUE.NOT_CONSTANT", **names
        ) from error
    data_type = frame.schema[0].dataType
    if not can_assign(data_type, column.dataType):
        problem = f"{text} is {data_type.simpleString()}, not {column.dataType.simpleString()}"
        raise InvalidArgumentError(argument="default", problem=problem).named(
            "INVALID_DEFAULT_VALUE.DATA_TYPE",
            **names,
            expectedType=f'"{sql_type(column.dataType.simpleString())}"',
            actualType=f'"{sql_type(data_type.simpleString())}"',
        )


def _default_parameters(
    column: str, default: str, statement: str = _ALTER_COLUMN
) -> dict[str, str]:
    """Return the parameters of Spark's errors about defaults."""
    return {"statement": statement, "colName": quoted(column), "defaultValue": default}


def check_unused(
    spark: SparkSession,
    table: TableConfiguration,
    columns: Sequence[ColumnPath],
    *,
    path: str,
    is_generated_too: bool = False,
) -> None:
    """Refuse to alter columns that a constraint or another column's generation expression uses.

    An expression that uses a field of a column counts as using the whole column. With
    `is_generated_too`, a generated column counts as using itself.
    """
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    for column in columns:
        shown, using = path_text(column), []
        for constraint in rules.constraints:
            if _uses(spark, table.schema, constraint.expression, column[0]):
                using.append(constraint)
        if using:
            raise DeltaError.of(
                "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                name=using[0].name,
                expression=using[0].expression,
                problem=f"it uses {shown}, which would be altered",
                column=shown,
                constraints=[f"{CONSTRAINT}{each.name} -> {each.expression}" for each in using],
            )
        for name, text in rules.generated.items():
            is_altered = (name,) in columns
            if (is_altered and is_generated_too) or (
                not is_altered and _uses(spark, table.schema, text, column[0])
            ):
                raise DeltaError.of(
                    "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                    column=shown,
                    name=name,
                    expression=text,
                )


@unlogged_errors()
def _uses(spark: SparkSession, schema: StructType, expression: str, column: str) -> bool:
    """Return True if an expression becomes invalid without a column."""
    if name_key(column.replace("`", "``")) not in name_key(expression):
        return False
    others = StructType(
        [StructField(f.name, as_nullable(f.dataType)) for f in schema.fields if f.name != column]
    )
    try:
        empty = spark.createDataFrame([], others)
        with engine_of(spark).in_table_session(empty, rule_evaluation()) as ours:
            _ = ours.select(F.expr(expression)).schema
    except DeltaError:
        raise
    except AnalysisException:
        return True
    return False


def check_expressions(spark: SparkSession, schema: StructType, rules: RowRules) -> None:
    """Refuse generated columns and constraints that depend on more than the values of a row.

    Generated columns may refer to all columns that are not generated.
    """
    if rules.generated:
        plain = StructType([f for f in schema.fields if f.name not in rules.generated])
        frames = _checked(spark, plain, rules.generated, _GENERATED)
        for name, frame in frames.items():
            _check_type(schema[name], frame)
    constraints = {each.name: each.expression for each in rules.constraints}
    for name, frame in _checked(spark, schema, constraints, _CONSTRAINT).items():
        if not isinstance(frame.schema[0].dataType, BooleanType):
            raise DeltaError.of(
                "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                name=name,
                expression=constraints[name],
                data_type=frame.schema[0].dataType.simpleString(),
            )
    if rules.defaults:
        empty = spark.createDataFrame([], StructType())
        with engine_of(spark).in_table_session(empty, rule_evaluation()) as ours:
            _ = ours.select(*map(F.expr, rules.defaults.values())).schema


@unlogged_errors()
def _checked(
    spark: SparkSession, schema: StructType, expressions: Mapping[str, str], use: _Use
) -> dict[str, DataFrame]:
    """Return a frame for each expression, its only column; refuse forbidden expressions."""
    if not expressions:
        return {}
    columns = [StructField(f.name, as_nullable(f.dataType)) for f in schema.fields]
    theirs = spark.createDataFrame([], StructType(columns))
    frames, engine, evaluation = {}, engine_of(spark), rule_evaluation()
    for name, text in expressions.items():
        try:
            with engine.in_table_session(theirs, evaluation) as ours:
                frames[name] = ours.select(F.expr(text))
            _ = frames[name].schema  # Spark Connect analyzes a plan when it is asked for
        except DeltaError:
            raise
        except AnalysisException as error:
            condition = str(error.getCondition())
            if use is _CONSTRAINT and condition.startswith(_OTHER_COLUMNS):
                problem = str(error).partition(". ")[0].partition("\n")[0]
                raise DeltaError.of(
                    "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                    name=name,
                    expression=text,
                    problem=problem,
                    column=(error.getMessageParameters() or {}).get("objectName"),
                    constraints=(f"{CONSTRAINT}{name} -> {text}",),
                ).named(error) from error
            if use is _GENERATED and condition.startswith(_OTHER_COLUMNS):
                unknown = (error.getMessageParameters() or {}).get("objectName", "").strip("`")
                if name_key(unknown) in map(name_key, expressions):
                    others = (
                        "itself"
                        if name_key(unknown) == name_key(name)
                        else "another generated column"
                    )
                    raise _refused(use.unsupported, name, text).named(
                        "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
                        fieldName=name,
                        expressionStr=text,
                        reason=f"generation expression cannot reference {others}",
                    ) from error
            if not condition.startswith(_UNKNOWN_FUNCTION):
                raise
            theirs.select(F.expr(text))  # or it is no function of the user's either
            raise _refused(use.user_function, name, text) from error
        is_deterministic, nodes = engine.plan_nodes(frames[name])
        names = {node.rpartition(".")[2] for node in nodes}
        if names & _USERS:
            raise _refused(use.user_function, name, text)
        if not is_deterministic:
            raise _refused(use.nondeterministic, name, text)
        if names & use.forbidden:  # which may have aggregates inside
            raise _refused(use.unsupported, name, text)
        if "AggregateExpression" in names:
            raise _refused(use.aggregate, name, text)
    return frames


def _check_type(column: StructField, generated: DataFrame) -> None:
    data_type = generated.schema[0].dataType
    if as_nullable(data_type) != as_nullable(column.dataType):
        raise DeltaError.of(
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            column=column.name,
            column_type=column.dataType.simpleString(),
            expression_type=data_type.simpleString(),
        )
