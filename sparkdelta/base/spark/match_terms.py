"""The terms of a condition on a target and a source that restrict the target's rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column

from sparkdelta.base.predicates.predicate_rules import Expression, Predicate


@dataclass(frozen=True, slots=True)
class EqualKey:
    """A term of the form ``target expression = source expression``.

    Attributes
    ----------
    source_column
        The number of the column that the expression of the source is; None if it is another one.
    """

    target: Expression
    source: Column
    source_column: int | None = None


@dataclass(frozen=True, slots=True)
class MatchTerms:
    """Terms that must all be true.

    Attributes
    ----------
    target
        Those that refer to the target alone.
    source
        Those that refer to the source alone.
    keys
        Those that an expression of the target equals one of the source.
    are_all
        True if the condition surely has no other terms, and so none that may change.
    """

    target: tuple[Predicate, ...] = ()
    source: tuple[Column, ...] = ()
    keys: tuple[EqualKey, ...] = ()
    are_all: bool = False
