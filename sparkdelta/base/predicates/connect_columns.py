"""Predicates from Columns of Spark Connect, whose expression tree the client holds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.predicates.aliased_names import parse_aliased
from sparkdelta.base.predicates.column_tree import ColumnTree
from sparkdelta.base.predicates.condition_text import (
    parse_condition,
    parse_expression,
    parse_type_name,
)
from sparkdelta.base.predicates.literals import cast, literal_of, simple_name
from sparkdelta.base.predicates.predicate_rules import (
    Expression,
    Literal,
    Predicate,
)
from sparkdelta.base.predicates.resolved_names import (
    UnusableError,
    extract_field,
    find_comparable_column,
    name_parts,
)

_NAMES = {"==": "=", "isNull": "isnull", "isNotNull": "isnotnull"}


def parse_connect_column(
    condition: SparkColumn, schema: StructType, *, time_zone: str, alias: str | None = None
) -> Predicate:
    """Return the predicate of a Spark Connect Column.

    Parameters
    ----------
    time_zone
        The session time zone, for timestamps without one in the text of `expr`.
    alias
        Of the rows, which the first part of a name may be; None without one.
    """
    node: Any = condition
    return parse_aliased(
        lambda named: _ConnectTree(named, time_zone).predicate(node._expr), schema, alias
    )


class _ConnectTree(ColumnTree):
    def predicate(self, node: Any, level: int = 0) -> Predicate:
        kind = type(node).__name__
        if kind == "SQLExpression":
            return parse_condition(node._expr, self.schema, time_zone=self.time_zone)
        return super().predicate(node._child if kind == "ColumnAlias" else node, level)

    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        if type(node).__name__ not in ("UnresolvedFunction", "CallFunction"):
            return None
        return _NAMES.get(node._name, node._name.lower()), node._args

    def value(self, node: Any) -> Expression:
        kind = type(node).__name__
        if kind == "ColumnReference":
            return find_comparable_column(self.schema, name_parts(node._unparsed_identifier))
        if kind == "SQLExpression":
            return parse_expression(node._expr, self.schema, time_zone=self.time_zone)
        if kind == "LiteralExpression":
            return literal_of(node._value, node._dataType)
        if kind == "CastExpression":
            return self._cast(node)
        if kind == "ColumnAlias":
            return self.expression(node._child)
        if kind == "UnresolvedExtractValue":
            name = self.expression(node._extraction)
            if isinstance(name, Literal) and isinstance(name.value, str):
                return extract_field(self.schema, self.expression(node._child), name.value)
        raise UnusableError(f"{node} is not supported")

    def _cast(self, node: Any) -> Expression:
        if node._eval_mode == "legacy":
            raise UnusableError("a cast with legacy rules")
        wanted = node._data_type
        name = simple_name(wanted) if isinstance(wanted, DataType) else parse_type_name(wanted)
        is_try = node._eval_mode == "try"
        return cast(self.expression(node._expr), name, is_try=is_try, time_zone=self.time_zone)


def parse_connect_message(
    condition: Any, schema: StructType, *, time_zone: str, alias: str | None
) -> Predicate:
    """Return the predicate of a condition as Spark Connect sends it.

    Parameters
    ----------
    alias
        Of the rows, which the first part of a name may be; None without one.
    """
    return parse_aliased(
        lambda named: _MessageTree(named, time_zone).predicate(condition), schema, alias
    )


_LITERALS: dict[str, DataType] = {
    "boolean": BooleanType(),
    "byte": ByteType(),
    "short": ShortType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}


class _MessageTree(ColumnTree):
    def shown(self, node: Any) -> str:
        return str(_kind(node))

    def predicate(self, node: Any, level: int = 0) -> Predicate:
        kind = _kind(node)
        if kind == "expression_string":
            text = node.expression_string.expression
            return parse_condition(text, self.schema, time_zone=self.time_zone)
        return super().predicate(node.alias.expr if kind == "alias" else node, level)

    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        function = node.unresolved_function
        if _kind(node) != "unresolved_function" or function.is_user_defined_function:
            return None
        called = function.function_name
        return _NAMES.get(called, called.lower()), function.arguments

    def value(self, node: Any) -> Expression:
        kind = _kind(node)
        if kind == "unresolved_attribute" and not node.unresolved_attribute.is_metadata_column:
            parts = name_parts(node.unresolved_attribute.unparsed_identifier)
            return find_comparable_column(self.schema, parts)
        if kind == "literal":
            return _literal(node.literal)
        if kind == "alias":
            return self.expression(node.alias.expr)
        raise UnusableError(f"{kind} is not supported")


def _kind(message: Any) -> str | None:
    kind: str | None = message.WhichOneof("expr_type")
    return kind


def _literal(literal: Any) -> Literal:
    kind = literal.WhichOneof("literal_type")
    if kind == "decimal":
        return literal_of(Decimal(literal.decimal.value), DecimalType())
    if kind not in _LITERALS:
        raise UnusableError(f"a literal of type {kind}")
    return literal_of(getattr(literal, kind), _LITERALS[kind])
