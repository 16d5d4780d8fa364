"""Filters on the source of a generated partition column, and what they imply for the partition.

A file's partition values then choose it, although the condition names another column.

References
----------
PROTOCOL.md#generated-columns
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql.types import (
    DateType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.predicates.names import UnusableError
from sparkdelta.predicates.sql_text import parse_expression
from sparkdelta.protocol.predicates import (
    And,
    Call,
    Cast,
    Column,
    ColumnPath,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Or,
    Predicate,
    columns,
    flipped,
)
from sparkdelta.protocol.protocol_upgrades import GENERATION_EXPRESSION
from sparkdelta.schema.table_schema import type_of_path

_FIELDS_OF_TIME = ("year", "month", "day", "hour")
_SAME_FIELD = {"dayofmonth": "day"}
_SORTED_FORMATS = ("yyyy", "yyyy-MM", "yyyyMM", "yyyy-MM-dd", "yyyyMMdd", "yyyy-MM-dd-HH")
_SPANS = {
    "year": timedelta(days=367), "quarter": timedelta(days=93), "month": timedelta(days=32),
    "week": timedelta(days=8), "day": timedelta(days=2), "hour": timedelta(days=1),
}  # fmt: skip
_GREATEST_OFFSET = timedelta(hours=18)
_MAX_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """A partition column and the expression that made its values."""

    name: str
    source: ColumnPath
    expression: Expression


def generated_columns(
    schema: StructType, partition_fields: Sequence[StructField]
) -> tuple[GeneratedColumn, ...]:
    """The partition columns that are generated from one column in a way that is understood."""
    found = []
    for field in partition_fields:
        text = (field.metadata or {}).get(GENERATION_EXPRESSION)
        if not isinstance(text, str):
            continue
        try:
            expression = parse_expression(text, schema, time_zone="UTC")
        except UnusableError:
            continue
        sources = columns(expression)
        if len(sources) == 1:
            found.append(GeneratedColumn(field.name, next(iter(sources)), expression))
    return tuple(found)


def with_implied(
    predicate: Predicate, generated: Sequence[GeneratedColumn], schema: StructType
) -> Predicate:
    """The predicate with what it implies for generated partition columns beside it.

    Parameters
    ----------
    predicate
        As `protocol.predicates.without_not` gives it.
    """
    if not generated:
        return predicate
    if isinstance(predicate, And | Or):
        terms = tuple(with_implied(term, generated, schema) for term in predicate.terms)
        return type(predicate)(terms)
    if isinstance(predicate, In) and len(predicate.values) <= _MAX_ALTERNATIVES:
        equals = tuple(Comparison("=", predicate.child, value) for value in predicate.values)
        implied = with_implied(Or(equals), generated, schema)
        return predicate if implied == Or(equals) else And((predicate, implied), implied=1)
    if isinstance(predicate, Comparison):
        found = _implied(predicate, generated, schema)
        return And((predicate, *found), implied=len(found))
    return predicate


def _implied(
    comparison: Comparison, generated: Sequence[GeneratedColumn], schema: StructType
) -> list[Predicate]:
    if isinstance(comparison.left, Literal):
        comparison = flipped(comparison)
    source, constant = comparison.left, comparison.right
    if not isinstance(source, Column) or not isinstance(constant, Literal):
        return []
    limits = _limits(constant, schema, source.path)
    if limits is None:
        return []
    of_source = [column for column in generated if column.source == source.path]
    has_lower = comparison.operator in (">", ">=", "=", "<=>")
    has_upper = comparison.operator in ("<", "<=", "=", "<=>")
    found: list[Predicate] = []
    for has_limit, operator, limit in ((has_lower, ">=", limits[0]), (has_upper, "<=", limits[1])):
        if has_limit:
            found += [_or_null(*part) for c in of_source for part in _single(c, operator, limit)]
            found += _fields_of_time(of_source, operator, limit)
    return found


@dataclass(frozen=True, slots=True)
class _Limit:
    """A constant of the source's type: as it is, and as what stands for it in any time zone."""

    exact: Literal
    local: Literal


def _limits(
    constant: Literal, schema: StructType, path: ColumnPath
) -> tuple[_Limit, _Limit] | None:
    """The least and the greatest value that the source can have where it equals the constant.

    Partition values were made in the time zone of whoever wrote them. A moment's local time is
    somewhere within the greatest offset from UTC, on either side.
    """
    data_type, value = type_of_path(schema, path), constant.value
    if isinstance(data_type, TimestampType):
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        utc = value.astimezone(timezone.utc).replace(tzinfo=None)
        try:
            ends = (utc - _GREATEST_OFFSET, utc + _GREATEST_OFFSET)
        except OverflowError:
            return None
        first, last = (_Limit(constant, Literal(end, "timestamp_ntz")) for end in ends)
        return first, last
    is_same = (
        (isinstance(data_type, StringType) and constant.data_type == "string")
        or (isinstance(data_type, DateType) and constant.data_type == "date")
        or (isinstance(data_type, TimestampNTZType) and constant.data_type == "timestamp_ntz")
        or (isinstance(data_type, IntegralType) and constant.data_type == data_type.simpleString())
    )
    if value is None or not is_same:
        return None
    limit = _Limit(constant, constant)
    return limit, limit


def _single(
    column: GeneratedColumn, operator: str, limit: _Limit
) -> list[tuple[Column, Predicate]]:
    """What one column that keeps the order of its source must be."""
    partition = Column((column.name,))
    expression = column.expression
    if isinstance(expression, Call) and expression.function == "date_trunc":
        unit, _ = expression.arguments
        bound = _truncated(unit, operator, limit.exact)
        return [] if bound is None else [(partition, Comparison(operator, partition, bound))]
    if not _keeps_order(expression):
        return []
    compared: Predicate = Comparison(operator, partition, _applied(expression, limit.local))
    if isinstance(expression, Call) and expression.function == "date_format" and operator == ">=":
        # Years of five digits begin with a sign, which sorts before all digits.
        compared = Or((compared, Comparison("<", partition, Literal("0", "string"))))
    return [(partition, compared)]


def _keeps_order(expression: Expression) -> bool:
    if isinstance(expression, Column):
        return True
    if isinstance(expression, Cast):
        return expression.data_type == "date" and isinstance(expression.child, Column)
    if not isinstance(expression, Call):
        return False
    first, *rest = expression.arguments
    if expression.function in ("year", "date", "to_date") and not rest:
        return isinstance(first, Column)
    values = [argument.value for argument in rest if isinstance(argument, Literal)]
    if not isinstance(first, Column) or len(values) < len(rest):
        return False
    if expression.function == "date_format":
        return values[0] in _SORTED_FORMATS
    if expression.function in ("substring", "substr"):
        return len(values) == 2 and values[0] in (0, 1)
    return expression.function in ("trunc", "left")


def _truncated(unit: Expression, operator: str, moment: Literal) -> Literal | None:
    """`date_trunc` gives a moment not after its argument, and less than a unit before it."""
    if not isinstance(unit, Literal) or not isinstance(moment.value, datetime):
        return None
    if operator == "<=":
        return moment
    span = _SPANS.get(str(unit.value).lower())
    try:
        return None if span is None else Literal(moment.value - span, moment.data_type)
    except OverflowError:
        return None


def _fields_of_time(
    generated: Sequence[GeneratedColumn], operator: str, limit: _Limit
) -> list[Predicate]:
    """Year, month, day and hour in columns of their own, compared from the greatest on."""
    by_field: dict[str, GeneratedColumn] = {}
    for column in generated:
        if isinstance(column.expression, Call) and isinstance(
            column.expression.arguments[0], Column
        ):
            name = _SAME_FIELD.get(column.expression.function, column.expression.function)
            by_field.setdefault(name, column)
    present = []
    for name in _FIELDS_OF_TIME:
        if name not in by_field:
            break
        present.append(by_field[name])
    if len(present) < 2:  # the year alone keeps the order by itself
        return []
    strict = operator[0]
    predicate: Predicate | None = None
    for column in reversed(present):
        partition, bound = Column((column.name,)), _applied(column.expression, limit.local)
        if predicate is None:
            predicate = Comparison(operator, partition, bound)
        else:
            same = And((Comparison("=", partition, bound), predicate))
            predicate = Or((Comparison(strict, partition, bound), same))
    assert predicate is not None
    nulls = tuple(IsNull(Column((column.name,))) for column in present)
    return [Or((*nulls, predicate))]


def _or_null(partition: Column, predicate: Predicate) -> Predicate:
    # An empty text is null as a partition value.
    return Or((IsNull(partition), predicate))


def _applied(expression: Expression, constant: Literal) -> Expression:
    """The expression with the constant in the place of its column."""
    if isinstance(expression, Column):
        return constant
    if isinstance(expression, Cast):
        return Cast(_applied(expression.child, constant), expression.data_type, expression.is_try)
    if isinstance(expression, Call):
        arguments = tuple(_applied(argument, constant) for argument in expression.arguments)
        return Call(expression.function, arguments)
    return expression
