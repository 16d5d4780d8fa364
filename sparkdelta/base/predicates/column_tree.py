"""Conversion of Column expression trees, independent of the kind of session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
    is_known,
)
from sparkdelta.base.predicates.resolved_names import UnusableError

_COMPARISONS = {"=", "<=>", "<", "<=", ">", ">="}
_MAX_DEPTH = 100
"""The deepest nesting of conditions, such as AND below OR below NOT: deeper ones would take Spark's
parser long."""


class ColumnTree(ABC):
    """A converter of the expression nodes of one kind of tree, which subclasses interpret."""

    def __init__(self, schema: StructType, time_zone: str) -> None:
        self.schema = schema
        self.time_zone = time_zone

    @abstractmethod
    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        """Return the lower-case name and arguments of a function or operator, or None."""

    @abstractmethod
    def value(self, node: Any) -> Expression:
        """Return a column, literal or cast, or raise `UnusableError`."""

    def shown(self, node: Any) -> str:
        """Return a node as text for messages."""
        return str(node)

    def predicate(self, node: Any, level: int = 0) -> Predicate:
        """Return the predicate of a boolean node, which is nested `level` deep."""
        name, arguments = self.call(node) or ("", ())
        try:
            if name in ("and", "or", "not") and level == _MAX_DEPTH:
                raise RecursionError
            if name in ("and", "or"):
                operands = self._chained(name, arguments)
                terms = tuple(self.predicate(operand, level + 1) for operand in operands)
                return And(terms) if name == "and" else Or(terms)
            if name == "not":
                return self._negated(arguments[0], level + 1)
            try:
                return self._atom(node, name, arguments)
            except UnusableError as error:
                return Unusable(self.shown(node), error.reason)
        except RecursionError:
            return Unusable("", "it is nested too deeply")

    def _chained(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Return the operands of a chain of the same operator."""
        operands, stack = [], [*reversed(arguments)]
        while stack:
            node = stack.pop()
            inner, below = self.call(node) or ("", ())
            if inner == name:
                stack += reversed(below)
            else:
                operands.append(node)
        return operands

    def _negated(self, node: Any, level: int) -> Predicate:
        """Return the negation of a node, in which pairs of NOT cancel each other out."""
        is_negated = True
        while (call := self.call(node)) is not None and call[0] == "not":
            (node,) = call[1]
            is_negated = not is_negated
        term = self.predicate(node, level)
        return Not(term) if is_negated else term

    def _atom(self, node: Any, name: str, arguments: Sequence[Any]) -> Predicate:
        if name in _COMPARISONS:
            left, right = (self.expression(argument) for argument in arguments)
            return Comparison(name, left, right)
        if name == "isnull":
            return IsNull(self.expression(arguments[0]))
        if name == "isnotnull":
            return Not(IsNull(self.expression(arguments[0])))
        if name == "in":
            child, *values = (self.expression(argument) for argument in arguments)
            return In(child, tuple(values))
        return Truth(self.expression(node))

    def expression(self, node: Any) -> Expression:
        """Return the expression of any node, or raise `UnusableError`."""
        call = self.call(node)
        if call is None:
            return self.value(node)
        name, arguments = call
        if not is_known(name, len(arguments)):
            raise UnusableError(f"{name} is not supported")
        return Call(name, tuple(self.expression(argument) for argument in arguments))
