"""Predicates from Columns of Spark Connect, whose expression tree the client holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql.types import DataType, StructType

from sparkdelta.base.predicates.column_tree import ColumnTree
from sparkdelta.base.predicates.condition_text import (
    parse_condition,
    parse_expression,
    parse_type_name,
)
from sparkdelta.base.predicates.literals import cast, literal_of, simple_name
from sparkdelta.base.predicates.predicate_rules import Expression, Literal, Predicate
from sparkdelta.base.predicates.resolved_names import (
    UnusableError,
    extract_field,
    find_comparable_column,
    name_parts,
)

_NAMES = {"==": "=", "isNull": "isnull", "isNotNull": "isnotnull"}


def parse_connect_column(
    condition: SparkColumn, schema: StructType, *, time_zone: str
) -> Predicate:
    """Return the predicate of a Spark Connect Column.

    `time_zone` is the session time zone, for timestamps without one in the text of `expr`.
    """
    node: Any = condition
    return _ConnectTree(schema, time_zone).predicate(node._expr)


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
