"""Predicates from the filters that Spark hands to a scan when a query runs.

They were analyzed in a session, and perhaps at a time, that is unknown here: parts that depend on
its settings are `Unusable`, such as a cast in a time zone that the text does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.predicates.analyzed_text import has_call, of_user_functions, parse_analyzed
from sparkdelta.base.predicates.ordered_casts import keeps_order, type_of
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Predicate,
    Unusable,
)
from sparkdelta.base.predicates.predicate_text_rules import describe
from sparkdelta.base.predicates.resolved_names import UnusableError
from sparkdelta.base.protocol.column_names import name_key

_REPLACEMENT = "\ufffd"
"""The replacement character. In Spark's text of a constant, it may stand for bytes that are not
UTF-8."""

_NO_ZONE = "unknown"
"""Time zone that stands for an unknown one, so that a text or date cast to a timestamp has no known
value."""

_FUNCTIONS = frozenset(("startswith", "like"))
"""Functions that choose files and depend on no setting."""


def parse_pushed(
    text: str,
    stored: StructType,
    schema: StructType,
    *,
    has_user_functions: Callable[[], bool],
) -> Predicate:
    """Return the predicate of a condition in the text of `Expression.sql`, with timestamps in UTC.

    Parameters
    ----------
    stored
        The columns of the scan, which the text has under the alias `qualifier_of(stored)`.
    schema
        The same columns in the same order as the table names them, at every level.
    has_user_functions
        Returns True if the condition calls functions that are not Spark's own.
    """
    if has_call(text) and has_user_functions():
        return of_user_functions(text)
    # Spark keeps the table's names of nested fields, though it moves casts that rename them.
    both = zip(stored.fields, schema.fields, strict=True)
    named = StructType([StructField(inner.name, outer.dataType) for inner, outer in both])
    parsed = parse_analyzed(text, named, time_zone=_NO_ZONE, shown_zone="UTC")
    return _Trusted(named, stored, schema).predicate(parsed)


@dataclass(frozen=True, slots=True)
class _Trusted:
    """A converter of predicates on columns of a scan to predicates on columns of the table.

    Attributes
    ----------
    named
        The schema of the predicate: columns as in the scan, nested fields as in the table.
    """

    named: StructType
    stored: StructType
    schema: StructType

    def predicate(self, node: Predicate) -> Predicate:
        if isinstance(node, And | Or):
            return replace(node, terms=tuple(map(self.predicate, node.terms)))
        if isinstance(node, Not):
            return Not(self.predicate(node.term))
        if isinstance(node, Unusable):
            return node
        try:
            if isinstance(node, Comparison):
                sides = self.expression(node.left), self.expression(node.right)
                return Comparison(node.operator, *sides)
            if isinstance(node, In):
                return In(self.expression(node.child), tuple(map(self.expression, node.values)))
            return type(node)(self.expression(node.child))
        except UnusableError as error:
            return Unusable(describe(node), error.reason)

    def expression(self, node: Expression) -> Expression:
        if isinstance(node, Literal):
            if isinstance(node.value, str) and _REPLACEMENT in node.value:
                raise UnusableError("a text that may stand for one that is not UTF-8")
            return node
        if isinstance(node, Column):
            return self._column(node)
        if isinstance(node, Cast):
            source = type_of(node.child, self.named)
            is_zoned = "timestamp" in (source, node.data_type)
            if source is None or is_zoned or not keeps_order(source, node.data_type):
                raise UnusableError("a cast that may depend on settings")
            return replace(node, child=self.expression(node.child))
        if node.function not in _FUNCTIONS:
            raise UnusableError(f"{node.function} may depend on settings")
        return Call(node.function, tuple(map(self.expression, node.arguments)))

    def _column(self, column: Column) -> Column:
        top, *nested = column.path
        at = self.stored.names.index(top)
        stored: DataType = self.stored.fields[at].dataType
        logical: DataType = self.schema.fields[at].dataType
        for name in nested:
            assert isinstance(stored, StructType)
            assert isinstance(logical, StructType)
            fields = list(zip(stored.fields, logical.fields, strict=True))
            found = [
                f for f in fields if name_key(name) in (name_key(f[0].name), name_key(f[1].name))
            ]
            if len(found) > 1:
                raise UnusableError(f"{name} is the name of one field and the column of another")
            stored, logical = found[0][0].dataType, found[0][1].dataType
        return Column((self.schema.names[at], *nested))
