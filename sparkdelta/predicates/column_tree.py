"""Conversion of Column expression trees, independent of the kind of session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import StructType

from sparkdelta.predicates.names import UnusableError
from sparkdelta.protocol.predicates import (
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

_COMPARISONS = {"=", "<=>", "<", "<=", ">", ">="}


class ColumnTree(ABC):
    """Converts the expression nodes of one kind of tree.

    Nodes are opaque to this class; subclasses interpret them.
    """

    def __init__(self, schema: StructType, time_zone: str) -> None:
        self.schema = schema
        self.time_zone = time_zone

    @abstractmethod
    def call(self, node: Any) -> tuple[str, Sequence[Any]] | None:
        """Return the lower-case name and the arguments of a function or operator; None for other
        nodes.
        """

    @abstractmethod
    def value(self, node: Any) -> Expression:
        """Return a column, literal or cast, or raise `UnusableError`."""

    def shown(self, node: Any) -> str:
        """Return a node as text for messages."""
        return str(node)

    def predicate(self, node: Any) -> Predicate:
        """Return the predicate of a boolean node."""
        name, arguments = self.call(node) or ("", ())
        if name in ("and", "or"):
            terms = tuple(self.predicate(argument) for argument in arguments)
            return And(terms) if name == "and" else Or(terms)
        if name == "not":
            return Not(self.predicate(arguments[0]))
        try:
            return self._atom(node, name, arguments)
        except UnusableError as error:
            return Unusable(self.shown(node), error.reason)
        except RecursionError:
            return Unusable("", "it is nested too deeply")

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
