"""A Column of classic Spark to the predicate tree, by way of Spark's analyzer.

Beside `storage` the only module that looks behind a DataFrame into the JVM: a classic Column has
no form that Python could read, but the plan of a filter has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType
from pyspark.sql.types import _parse_datatype_json_string as parse_type_json

from sparkdelta.predicates.column_tree import ColumnTree
from sparkdelta.predicates.literals import cast, literal_of, simple_name
from sparkdelta.predicates.names import UnusableError, extract_field, find_column
from sparkdelta.protocol.predicates import Expression, Predicate

_CLASS = re.compile(r'"class":"([^"]+)"')
_NAMES = {
    "And": "and", "Or": "or", "Not": "not", "EqualTo": "=", "EqualNullSafe": "<=>",
    "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "IsNull": "isnull", "IsNotNull": "isnotnull", "In": "in", "Like": "like", "RLike": "rlike",
    "StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains",
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "UnaryMinus": "negative", "Abs": "abs", "Coalesce": "coalesce", "IsNaN": "isnan",
    "Year": "year", "Quarter": "quarter", "Month": "month", "DayOfMonth": "day", "Hour": "hour",
    "Minute": "minute", "Second": "second", "DayOfWeek": "dayofweek", "DayOfYear": "dayofyear",
    "DateAdd": "date_add", "DateSub": "date_sub", "DateDiff": "datediff", "LastDay": "last_day",
    "AddMonths": "add_months", "TruncDate": "trunc", "TruncTimestamp": "date_trunc",
    "DateFormatClass": "date_format", "Substring": "substring", "Lower": "lower", "Upper": "upper",
    "Length": "length", "Concat": "concat",
}  # fmt: skip


_BY_EVAL_MODE = frozenset("+-*/%")


def parse_classic_filter(filtered: DataFrame, schema: StructType, *, time_zone: str) -> Predicate:
    """The predicate of the condition of a filter.

    Parameters
    ----------
    filtered
        A filter of an empty DataFrame of the table's schema.
    schema
        The table's columns.
    time_zone
        The session's, for texts that stand for timestamps.
    """
    frame: Any = filtered
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() != "Filter":
        raise ValueError(f"a filter's plan begins with {plan.nodeName()}")
    return _CatalystTree(schema, time_zone).predicate(plan.condition())


def plan_nodes(frame: DataFrame) -> tuple[bool, frozenset[str]]:
    """Whether a frame is the same each time it is computed, and the classes of its plan's
    operators and expressions.
    """
    own: Any = frame
    plan = own._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()), frozenset(_CLASS.findall(str(plan.toJSON())))


class _CatalystTree(ColumnTree):
    def predicate(self, node: Any) -> Predicate:
        replacement = _replacement(node)
        return super().predicate(node if replacement is None else replacement)

    def expression(self, node: Any) -> Expression:
        replacement = _replacement(node)
        return super().expression(node if replacement is None else replacement)

    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        name = _NAMES.get(_class(node))
        if name is None:
            return None
        children = _children(node)
        if name == "like" and node.escapeChar() != "\\":
            return None
        if name in _BY_EVAL_MODE and str(node.evalMode()) == "TRY":
            return None  # try_add and its like: null where the operator fails
        return name, children

    def value(self, node: Any) -> Expression:
        kind = _class(node)
        if kind == "AttributeReference":
            return find_column(self.schema, [node.name()])
        if kind == "GetStructField":
            (child,) = _children(node)
            return extract_field(self.schema, self.expression(child), node.extractFieldName())
        if kind == "Literal":
            return _literal(node)
        if kind == "Cast":
            (child,) = _children(node)
            name, is_try = simple_name(_data_type(node)), str(node.evalMode()) == "TRY"
            return cast(self.expression(child), name, is_try=is_try, time_zone=self.time_zone)
        if kind == "Alias":
            return self.expression(_children(node)[0])
        raise UnusableError(f"{kind} is not supported")


def _class(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(index) for index in range(children.size())]


def _replacement(node: Any) -> Any | None:
    """What Spark's optimizer will put in the place of a node, as with BETWEEN."""
    if _class(node) in _NAMES:
        return None
    children = _children(node)
    is_replaceable = len(children) == 1 and any(
        interface.endswith((".RuntimeReplaceable", ".InheritAnalysisRules"))
        for interface in _interfaces(node)
    )
    return children[0] if is_replaceable else None


def _interfaces(node: Any) -> list[str]:
    return [str(interface.getName()) for interface in node.getClass().getInterfaces()]


def _data_type(node: Any) -> DataType:
    return parse_type_json(node.dataType().json())


def _literal(node: Any) -> Expression:
    value, data_type = node.value(), _data_type(node)
    name = simple_name(data_type)
    if value is None or isinstance(value, bool | int | float | bytes):
        return literal_of(value, data_type)
    text = str(value.toString())
    return literal_of(Decimal(text) if name.startswith("decimal") else text, data_type)
