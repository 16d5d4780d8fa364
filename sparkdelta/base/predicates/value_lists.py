"""IN lists in place of many comparisons of the same expression with constants.

A list of values is one node of the SQL that chooses files, where each comparison would be several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.ordered_casts import family, type_of
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Comparison,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Predicate,
    flipped,
)

_FEWEST = 9
"""Fewer comparisons stay as they are: Spark pushes them down one by one."""

_Key: TypeAlias = tuple[Expression, str]
"""The compared expression and the type of the constants: if all have one type, `=` and IN compare
alike."""


def with_value_lists(predicate: Predicate, schema: StructType) -> Predicate:
    """Return an equivalent predicate with IN for many ``=``, and NOT IN for many ``<>``.

    The ``=`` are in a disjunction, the ``<>`` in a conjunction; `predicate` is from `without_not`.
    """
    if not isinstance(predicate, And | Or):
        return predicate
    is_or = isinstance(predicate, Or)
    terms = [with_value_lists(term, schema) for term in _flattened(predicate)]
    compared = [_compared(term, schema, is_or=is_or) for term in terms]
    lists: defaultdict[_Key | None, list[Literal]] = defaultdict(list)
    for key, values in compared:
        lists[key] += values
    long = {key: tuple(values) for key, values in lists.items() if len(values) >= _FEWEST}
    kept = [term for term, (key, _) in zip(terms, compared, strict=True) if key not in long]
    found = [In(key[0], values) for key, values in long.items() if key is not None]
    merged: tuple[Predicate, ...] = (*kept, *(found if is_or else map(Not, found)))
    if len(merged) == 1:
        return merged[0]
    return Or(merged) if is_or else And(merged)


def _flattened(predicate: And | Or) -> Iterator[Predicate]:
    for term in predicate.terms:
        if isinstance(term, And | Or) and type(term) is type(predicate):
            yield from _flattened(term)
        else:
            yield term


def _compared(
    term: Predicate, schema: StructType, *, is_or: bool
) -> tuple[_Key | None, tuple[Literal, ...]]:
    """Return the `_Key` of a term that compares an expression with constants, and the constants.

    For other terms, return None and no constants.
    """
    listed = term.term if isinstance(term, Not) and not is_or else term
    child: Expression | None = None
    values: tuple[Expression, ...] = ()
    if isinstance(term, Comparison) and term.operator == ("=" if is_or else "<>"):
        term = flipped(term) if isinstance(term.left, Literal) else term
        child, values = term.left, (term.right,)
    elif isinstance(listed, In) and (listed is term) == is_or:
        child, values = listed.child, listed.values
    literals = tuple(v for v in values if isinstance(v, Literal) and v.value is not None)
    kinds = {literal.data_type for literal in literals}
    if (
        child is None
        or isinstance(child, Literal)
        or len(kinds) != 1
        or len(literals) < len(values)
    ):
        return None, ()
    (kind,) = kinds
    own = type_of(child, schema)
    is_alike = own is not None and family(own) == family(kind)
    return ((child, kind), literals) if is_alike else (None, ())
