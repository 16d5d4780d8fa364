"""Filters in plans that Spark Connect clients send, and the relations that they hold for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkdelta.base.protocol.column_names import name_key


@dataclass(frozen=True)
class SentCondition:
    """The condition of a filter in a plan that is sent.

    Attributes
    ----------
    message
        Its expression, as it is sent.
    alias
        Of the rows there, which the first part of a name may be; None without one.
    is_above_select
        True if it is a condition on selected columns.
    is_above_join
        True if other relations may have its names in another spelling.
    """

    message: Any
    alias: str | None = None
    is_above_select: bool = False
    is_above_join: bool = False

    def holds_for(self, columns: Sequence[str]) -> bool:
        """Return False if it may name other columns than these in another spelling."""
        texts = [*map(_text, _leaves(self.message))] if self.is_above_join else []
        return all(_spells(text, column) for text in texts for column in columns)


_LEFT_KINDS = frozenset(("INNER", "CROSS", "LEFT_OUTER", "LEFT_SEMI", "LEFT_ANTI"))
_RIGHT_KINDS = frozenset(("INNER", "CROSS", "RIGHT_OUTER"))
"""Joins without the rows of a side for which a condition on its columns is not true."""


def conditions_of_sides(
    join: Any, conditions: Sequence[SentCondition]
) -> tuple[tuple[SentCondition, ...], tuple[SentCondition, ...]]:
    """Return the conditions of filters above a join that hold for the needed rows of each side, as
    far as it has their columns.

    Directly above a join, a name of one part is a column of one side, for Spark refuses it if both
    sides have it. Names of several parts are passed over, and columns that were selected, perhaps
    from one of the sides that have the name.
    """
    kind = join.JoinType.Name(join.join_type).removeprefix("JOIN_TYPE_")
    left, right = (
        {each.common.plan_id for each in relations_in(side)} for side in (join.left, join.right)
    )
    own: list[tuple[SentCondition, ...]] = []
    for kinds, relations, others in (
        (_LEFT_KINDS, left - right, ()),
        (_RIGHT_KINDS, right - left, join.using_columns),
    ):
        found = (
            replace(each, is_above_join=True)
            for each in conditions
            if not each.is_above_select and _is_of(each.message, relations, others)
        )
        own.append(tuple(found) if kind in kinds else ())
    return own[0], own[1]


def _is_of(expression: Any, relations: set[int], others: Sequence[str]) -> bool:
    """Return True if an expression has names of one part only, no name of others, and no column of
    another DataFrame than those with these plan ids.
    """
    return all(_names_only(leaf, relations, others) for leaf in _leaves(expression))


def _names_only(leaf: Any, relations: set[int], others: Sequence[str]) -> bool:
    text = name_key(_text(leaf))
    if "." in text:
        return False
    if leaf.WhichOneof("expr_type") == "expression_string":
        return not any(name_key(each) in text for each in others)
    attribute = leaf.unresolved_attribute
    is_other = text.strip("`") in map(name_key, others)
    return not is_other and (not attribute.HasField("plan_id") or attribute.plan_id in relations)


def _leaves(expression: Any) -> Iterator[Any]:
    """Yield the names and the SQL texts in an expression, as messages."""
    if expression.WhichOneof("expr_type") in ("expression_string", "unresolved_attribute"):
        yield expression
    else:
        for each in children(expression, "Expression"):
            yield from _leaves(each)


def _text(leaf: Any) -> str:
    if leaf.WhichOneof("expr_type") == "expression_string":
        return str(leaf.expression_string.expression)
    return str(leaf.unresolved_attribute.unparsed_identifier)


def _spells(text: str, column: str) -> bool:
    """Return True if a text has a name only in this spelling."""
    return name_key(text).count(name_key(column)) == text.count(column)


def relations_in(relation: Any) -> Iterator[Any]:
    """Yield a relation and all those below it."""
    yield relation
    for child in children(relation):
        yield from relations_in(child)


def children(message: Any, kind: str = "Relation") -> Iterator[Any]:
    """Yield the relations, or messages of another kind, directly below a message."""
    for described, value in message.ListFields():
        if described.message_type is None or described.message_type.GetOptions().map_entry:
            continue
        for each in value if described.is_repeated else [value]:
            if described.message_type.name == kind:
                yield each
            else:
                yield from children(each, kind)
