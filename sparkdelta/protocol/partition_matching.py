"""Files that can hold rows that a predicate is true of, by their partition values alone.

For the few files of one commit; `frames.skipping.skipping_rules` is the same rule for many, and for
statistics. `tests/contracts/test_pruning.py` compares the two.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

from sparkdelta.exceptions import InvalidPartitionValueError
from sparkdelta.protocol.partition_values import PartitionValue, parse_partition_value
from sparkdelta.protocol.predicates import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)

Outcomes: TypeAlias = frozenset[bool | None]
"""What a predicate can be for the rows of a file: true, false, null."""

_ANY: Outcomes = frozenset((True, False, None))
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Python compares these as Spark does; a float may be NaN, bytes and booleans are not worth it.
COMPARABLE = {
    "byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz",
}  # fmt: skip


class _UnknownValueError(Exception):
    """The expression's value does not follow from partition values."""


def may_match(
    predicate: Predicate,
    partition_values: Mapping[str, str | None],
    partition_types: Mapping[str, tuple[str, str]],
) -> bool:
    """Whether the predicate can be true of a row of the file; true where nothing is known.

    Parameters
    ----------
    partition_values
        As they stand in the log.
    partition_types
        Of each partition column: its key in `partition_values`, and the name of its type.

    Examples
    --------
    >>> where = Comparison("=", Column(("p",)), Literal(1, "int"))
    >>> [may_match(where, {"p": p}, {"p": ("p", "integer")}) for p in ("1", "2", None)]
    [True, False, False]
    """

    def value(expression: Expression) -> PartitionValue:
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, Column) and len(expression.path) == 1:
            key, data_type = partition_types.get(expression.path[0], ("", ""))
            if data_type in COMPARABLE and key in partition_values:
                try:
                    return parse_partition_value(partition_values[key], data_type)
                except InvalidPartitionValueError:
                    raise _UnknownValueError from None
        raise _UnknownValueError

    def outcomes(node: Predicate) -> Outcomes:
        if isinstance(node, And | Or):
            combine = _and if isinstance(node, And) else _or
            # Term by term, for of many terms there are no more than three outcomes either.
            found, *rest = map(outcomes, node.terms)
            for other in rest:
                found = frozenset(map(combine, product(found, other)))
            return found
        if isinstance(node, Not):
            return frozenset(None if o is None else not o for o in outcomes(node.term))
        try:
            if isinstance(node, IsNull):
                return frozenset((value(node.child) is None,))
            if isinstance(node, In):
                child = value(node.child)
                equals = [_compared("=", child, value(one)) for one in node.values]
                return frozenset((_or(tuple(equals)),))
            if isinstance(node, Comparison):
                return frozenset((_compared(node.operator, value(node.left), value(node.right)),))
        except _UnknownValueError:
            return _ANY
        return _ANY

    return True in outcomes(predicate)


def _compared(name: str, left: PartitionValue, right: PartitionValue) -> bool | None:
    if name == "<=>":
        if left is None or right is None:
            return left is None and right is None
        name = "="
    if left is None or right is None:
        return None
    if type(left) is not type(right) or isinstance(left, float | bool | bytes):
        raise _UnknownValueError
    return _COMPARISONS[name](left, right)


def _and(terms: tuple[bool | None, ...]) -> bool | None:
    return False if False in terms else None if None in terms else True


def _or(terms: tuple[bool | None, ...]) -> bool | None:
    return True if True in terms else None if None in terms else False
