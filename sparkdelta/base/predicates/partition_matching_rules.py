"""Partition pruning of the few files of one commit, on the driver.

`base.skipping.skipping_frames` implements the same rule for many files and for statistics;
`tests/base/skipping/test_pruning_contracts.py` compares the two.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

from sparkdelta.base.predicates.predicate_rules import (
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
from sparkdelta.base.protocol.partition_values import PartitionValue, parse_partition_value
from sparkdelta.exceptions import InvalidPartitionValueError

Outcomes: TypeAlias = frozenset[bool | None]
"""The possible values of a predicate for the rows of a file: true, false, null."""

_ANY: Outcomes = frozenset((True, False, None))
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Types whose values Python compares as Spark does. Floats can be NaN; binary and boolean partition
# columns are too rare.
COMPARABLE = {
    "byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz",
}  # fmt: skip


class _UnknownValueError(Exception):
    """The error for an expression that partition values do not determine."""


def may_match(
    predicate: Predicate,
    partition_values: Mapping[str, str | None],
    partition_types: Mapping[str, tuple[str, str]],
) -> bool:
    """Return False only if the predicate is true for no row of the file.

    Parameters
    ----------
    partition_values
        The partition values of the file, serialized as in the log.
    partition_types
        For each partition column, its key in `partition_values` and the name of its type.
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
            # Combined term by term, so that each product has at most nine pairs.
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
