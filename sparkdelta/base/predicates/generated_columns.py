"""Predicates on generated partition columns, derived from filters on their source columns.

They allow partition pruning although the condition only names the source column.

References
----------
PROTOCOL.md#generated-columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta, timezone
from typing import Any

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.predicates.literals import cast_literal
from sparkdelta.base.predicates.ordered_casts import compares_each, family, ordered, type_of
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
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
from sparkdelta.base.predicates.resolved_names import UnusableError
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.protocol_upgrades import GENERATION_EXPRESSION
from sparkdelta.base.schema.table_schema import type_of_path

_DATE_FUNCTIONS = frozenset(
    ("date", "to_date", "year", "month", "day", "dayofmonth", "date_format", "trunc")
)
_SUPPORTED_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "string": frozenset(("substring", "substr", "left")),
    "date": _DATE_FUNCTIONS,
    "timestamp_ntz": _DATE_FUNCTIONS | {"hour"},
    "timestamp": _DATE_FUNCTIONS | {"hour", "date_trunc"},
}
"""Supported functions by the type of the source column. On other types they do not preserve the
order, like the year of a string, or depend on the writer's time zone.
"""
_FIELDS_OF_TIME = ("year", "month", "day", "hour")
_SAME_FIELD = {"dayofmonth": "day"}
_SORTED_FORMATS = ("yyyy", "yyyy-MM", "yyyyMM", "yyyy-MM-dd", "yyyyMMdd", "yyyy-MM-dd-HH")
_SPANS = {
    "year": timedelta(days=367), "quarter": timedelta(days=93), "month": timedelta(days=32),
    "week": timedelta(days=8), "day": timedelta(days=2), "hour": timedelta(days=1),
}  # fmt: skip
_MAX_UTC_OFFSET = timedelta(hours=18)
_MAX_ZONE_DIFFERENCE = 2 * _MAX_UTC_OFFSET
"""Largest difference between the time zone in which a timestamp was written without one and the
time zone in which it is read.
"""
_MAX_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """A generated partition column and its generation expression."""

    name: str
    source: ColumnPath
    expression: Expression


def generated_columns(
    schema: StructType, partition_fields: Sequence[StructField]
) -> tuple[GeneratedColumn, ...]:
    """Return the partition columns with a supported generation expression over a single column."""
    result = []
    for field in partition_fields:
        text = (field.metadata or {}).get(GENERATION_EXPRESSION)
        if not isinstance(text, str):
            continue
        from sparkdelta.base.predicates.condition_text import parse_expression  # needs sqlglot

        try:
            expression = parse_expression(text, schema, time_zone="UTC")
        except UnusableError:
            continue
        sources = columns(expression)
        made = type_of(expression, schema)
        if made is None or family(made) != family(field.dataType.simpleString()):
            continue  # the conversion to the column's type would depend on the writer
        if len(sources) == 1:
            (source,) = sources
            if _is_supported(expression, type_of_path(schema, source).simpleString()):
                result.append(GeneratedColumn(field.name, source, expression))
    return tuple(result)


def _is_supported(expression: Expression, source_type: str) -> bool:
    functions = _SUPPORTED_FUNCTIONS.get(source_type, frozenset())
    if isinstance(expression, Cast):
        return expression.data_type == "date" and "date" in functions
    return not isinstance(expression, Call) or (
        expression.function in functions
        and all(isinstance(argument, Column | Literal) for argument in expression.arguments)
    )


def with_implied(
    predicate: Predicate,
    generated: Sequence[GeneratedColumn],
    schema: StructType,
    *,
    time_zone: str,
) -> Predicate:
    """Add the conditions on generated partition columns that a predicate without `Not` implies.

    `time_zone` is the session time zone, for timestamps given as a date or a string.
    """
    if not generated:
        return predicate
    if isinstance(predicate, And | Or):
        terms = tuple(
            with_implied(t, generated, schema, time_zone=time_zone) for t in predicate.terms
        )
        return type(predicate)(terms)
    if isinstance(predicate, In) and not _compares_each(predicate, schema):
        return predicate
    if isinstance(predicate, In) and len(predicate.values) <= _MAX_ALTERNATIVES:
        equals = Or(tuple(Comparison("=", predicate.child, value) for value in predicate.values))
        implied = with_implied(equals, generated, schema, time_zone=time_zone)
        return predicate if implied == equals else And((predicate, implied), implied=1)
    if isinstance(predicate, Comparison | In):
        added = _implied(predicate, generated, schema, time_zone)
        return And((predicate, *added), implied=len(added)) if added else predicate
    return predicate


def _compares_each(predicate: In, schema: StructType) -> bool:
    """Return True if IN selects only rows that `=` with one of the values selects."""
    child, literals = ordered(predicate.child, schema), predicate.literals
    if child is None or literals is None:
        return False
    return compares_each(child.data_type, [literal.data_type for literal in literals])


def _implied(
    predicate: Comparison | In,
    generated: Sequence[GeneratedColumn],
    schema: StructType,
    time_zone: str,
) -> list[Predicate]:
    child, lows, highs = _bounds(predicate)
    source, is_date = _column_or_its_date(child)
    if source is None:
        return []
    of_source = [column for column in generated if column.source == source.path]
    data_type = type_of_path(schema, source.path).simpleString()
    terms: list[Predicate] = []
    for operator, constants in ((">=", lows), ("<=", highs)):
        typed = [_typed(c, operator, data_type, time_zone, is_date=is_date) for c in constants]
        limit = _limit(typed, operator)
        if limit is not None:
            terms += [
                Or((IsNull(partition), term))  # an empty string is null as a partition value
                for column in of_source
                for partition, term in _single_column(column, operator, limit)
            ]
            terms += _fields_of_time(of_source, operator, limit)
    return terms


def _bounds(
    predicate: Comparison | In,
) -> tuple[Expression, Sequence[Expression], Sequence[Expression]]:
    """Return the compared expression, its lower bounds and its upper bounds.

    The expression is not less than the smallest lower bound and not greater than the largest upper
    bound.
    """
    if isinstance(predicate, In):
        values = [value for value in predicate.literals or () if value.value is not None]
        return predicate.child, values, values
    if isinstance(predicate.left, Literal):
        predicate = flipped(predicate)
    lows = [predicate.right] if predicate.operator in (">", ">=", "=", "<=>") else []
    highs = [predicate.right] if predicate.operator in ("<", "<=", "=", "<=>") else []
    return predicate.left, lows, highs


def _column_or_its_date(expression: Expression) -> tuple[Column | None, bool]:
    """Return the compared column, and True if its date is compared instead."""
    if isinstance(expression, Column):
        return expression, False
    inner: Expression | None = None
    if isinstance(expression, Cast) and expression.data_type == "date":
        inner = expression.child
    elif isinstance(expression, Call) and expression.function in ("date", "to_date"):
        inner = expression.arguments[0] if len(expression.arguments) == 1 else None
    return (inner, True) if isinstance(inner, Column) else (None, False)


def _typed(
    constant: Expression, operator: str, data_type: str, time_zone: str, *, is_date: bool
) -> Literal | None:
    """Return a bound of the source column as a literal of its type, or None if it is not known."""
    if not isinstance(constant, Literal) or constant.value is None:
        return None
    if not is_date:
        return cast_literal(constant, data_type, time_zone=time_zone)
    day = cast_literal(constant, "date", time_zone=time_zone)
    if day is not None and data_type != "date" and operator == "<=":
        day = _shifted(day, timedelta(days=1))
    return None if day is None else cast_literal(day, data_type, time_zone=time_zone)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A lower or upper bound of the source column.

    Attributes
    ----------
    moment
        The bound for partition columns with values of the source: timestamps are widened by
        `_MAX_ZONE_DIFFERENCE`, because their strings may be read in another time zone than they
        were written in.
    local
        The bound for arguments of functions of the source: for timestamps, the local time widened
        by `_MAX_UTC_OFFSET`, which covers any time zone.
    """

    moment: Literal
    local: Literal


def _limit(constants: Sequence[Literal | None], operator: str) -> _Limit | None:
    """Return the smallest or the largest of some bounds of the source column.

    Partition values were computed in the writer's time zone, so the local time of a timestamp may
    differ from UTC by up to `_MAX_UTC_OFFSET`.
    """
    bounds = [constant for constant in constants if constant is not None]
    if not bounds or len(bounds) < len(constants):
        return None
    values: list[Any] = [constant.value for constant in bounds]
    if any(value != value for value in values):  # NaN is not ordered in Python
        return None
    value = min(values) if operator == ">=" else max(values)
    exact = Literal(value, bounds[0].data_type)
    if exact.data_type != "timestamp":
        return _Limit(exact, exact)
    utc = value.astimezone(timezone.utc).replace(tzinfo=None)
    sign = -1 if operator == ">=" else 1
    local = _shifted(Literal(utc, "timestamp_ntz"), sign * _MAX_UTC_OFFSET)
    moment = _shifted(exact, sign * _MAX_ZONE_DIFFERENCE)
    return None if local is None or moment is None else _Limit(moment, local)


def _shifted(moment: Literal, span: timedelta) -> Literal | None:
    assert isinstance(moment.value, date)
    try:
        return Literal(moment.value + span, moment.data_type)
    except OverflowError:
        return None


def _single_column(
    column: GeneratedColumn, operator: str, limit: _Limit
) -> list[tuple[Column, Predicate]]:
    """Return the implied condition on a generated column that keeps the order of its source."""
    partition = Column((column.name,))
    expression = column.expression
    if isinstance(expression, Column):
        return [(partition, Comparison(operator, partition, limit.moment))]
    if isinstance(expression, Call) and expression.function == "date_trunc":
        unit, _ = expression.arguments
        bound = _truncated(unit, operator, limit.moment)
        return [] if bound is None else [(partition, Comparison(operator, partition, bound))]
    if not _keeps_order(expression):
        return []
    is_format = isinstance(expression, Call) and expression.function == "date_format"
    local: Literal | None = limit.local
    if is_format:
        # It converts local times to instants and moves those in a time zone gap forward: by an hour
        # in most zones, by a day where a zone crossed the date line.
        local = _shifted(limit.local, timedelta(days=-1 if operator == ">=" else 1))
    if local is None:
        return []
    compared: Predicate = Comparison(operator, partition, _substituted(expression, local))
    if is_format and operator == ">=":
        # Years of five digits are formatted with a sign, which sorts before digits.
        compared = Or((compared, Comparison("<", partition, Literal("0", "string"))))
    return [(partition, compared)]


def _keeps_order(expression: Expression) -> bool:
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
    """Return the bound of `date_trunc`, whose result is less than a unit before its argument."""
    if not isinstance(unit, Literal):
        return None
    if operator == "<=":
        return moment
    span = _SPANS.get(str(unit.value).lower())
    return None if span is None else _shifted(moment, -span)


def _fields_of_time(
    generated: Sequence[GeneratedColumn], operator: str, limit: _Limit
) -> list[Predicate]:
    """Return the implied condition on columns of year, month, day and hour, in this order."""
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
    if len(present) < 2:  # `_single_column` handles the year alone
        return []
    strict = operator[0]
    predicate: Predicate | None = None
    for column in reversed(present):
        partition, bound = Column((column.name,)), _substituted(column.expression, limit.local)
        if predicate is None:
            predicate = Comparison(operator, partition, bound)
        else:
            same = And((Comparison("=", partition, bound), predicate))
            predicate = Or((Comparison(strict, partition, bound), same))
    assert predicate is not None
    nulls = tuple(IsNull(Column((column.name,))) for column in present)
    return [Or((*nulls, predicate))]


def _substituted(expression: Expression, constant: Literal) -> Expression:
    """Return the generation expression with a constant in place of its column."""
    if isinstance(expression, Column):
        return constant
    if isinstance(expression, Cast):
        return Cast(
            _substituted(expression.child, constant), expression.data_type, expression.is_try
        )
    if isinstance(expression, Call):
        arguments = tuple(_substituted(argument, constant) for argument in expression.arguments)
        return Call(expression.function, arguments)
    return expression
