"""Conditions on a table's columns as a small tree, for file pruning and conflict detection.

::

    Predicate  = And | Or | Not | Comparison | IsNull | In | Truth | Unusable
    Expression = Column | Literal | Cast | Call

The tree only ever chooses files, and may choose too many: Spark evaluates the condition as it was
written. Whatever the tree has no node for is `Unusable` and true of every file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

ColumnPath: TypeAlias = tuple[str, ...]
"""A column's name, and the names of the struct fields inside it, as the table's schema spells
them."""

LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a field of a struct."""

    path: ColumnPath


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant.

    Attributes
    ----------
    value
        A timestamp is an aware datetime, one without time zone a naive one.
    data_type
        Spark's simple name of its type: `integer` is ``int``, `void` the type of a bare NULL.
    """

    value: LiteralValue
    data_type: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion to the type of a simple name, in the session's rules.

    Attributes
    ----------
    is_try
        Whether what cannot be converted is null in every session.
    """

    child: Expression
    data_type: str
    is_try: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`, by its name in Spark SQL."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Column | Literal | Cast | Call


@dataclass(frozen=True, slots=True)
class And:
    """All terms are true.

    Attributes
    ----------
    implied
        How many of the last terms only say what follows from the others.
    """

    terms: tuple[Predicate, ...]
    implied: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """A term is true."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The term is false; not true and not null."""

    term: Predicate


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operator` is one of ``= <=> <> < <= > >=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """The child is null."""

    child: Expression


@dataclass(frozen=True, slots=True)
class In:
    """The child is one of the values, all of which Spark brings to one type with it."""

    child: Expression
    values: tuple[Expression, ...]

    @property
    def literals(self) -> tuple[Literal, ...] | None:
        """The values, unless one has to be computed."""
        literals = tuple(value for value in self.values if isinstance(value, Literal))
        return literals if len(literals) == len(self.values) else None


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean expression by itself."""

    child: Expression


@dataclass(frozen=True, slots=True)
class Unusable:
    """A condition that says nothing about files.

    Attributes
    ----------
    text
        The condition as far as it can be shown.
    reason
        Why, for people.
    """

    text: str
    reason: str


FUNCTIONS: Mapping[str, str | None] = {
    **dict.fromkeys(
        ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear",
         "hour", "minute", "second", "datediff", "length", "char_length", "ascii", "instr"),
        "int",
    ),
    **dict.fromkeys(
        ("date", "to_date", "date_add", "date_sub", "trunc", "last_day", "next_day", "add_months",
         "make_date"),
        "date",
    ),
    "date_trunc": "timestamp",
    **dict.fromkeys(
        ("date_format", "substring", "substr", "left", "right", "lower", "lcase", "upper", "ucase",
         "trim", "ltrim", "rtrim", "lpad", "rpad", "concat", "replace", "reverse", "initcap"),
        "string",
    ),
    **dict.fromkeys(
        ("like", "ilike", "rlike", "startswith", "endswith", "contains", "isnan"), "boolean"
    ),
    **dict.fromkeys(
        ("+", "-", "*", "/", "%", "negative", "abs", "floor", "ceil", "round", "coalesce", "ifnull",
         "nvl", "nullif", "greatest", "least"),
        None,
    ),
}  # fmt: skip
"""The functions that a predicate may call, with the type of their result where it is always the
same: they depend on nothing but their arguments and the session they are planned in."""

_WITH_ESCAPE = ("like", "ilike")


def is_known(function: str, num_arguments: int) -> bool:
    """Whether a predicate may call a function with so many arguments: LIKE with an escape character
    of its own has a third.
    """
    return function in FUNCTIONS and not (function in _WITH_ESCAPE and num_arguments > 2)


Predicate: TypeAlias = And | Or | Not | Comparison | IsNull | In | Truth | Unusable

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The terms that must all be true."""
    return tuple(term for term, _ in marked_conjuncts(predicate))


def marked_conjuncts(
    predicate: Predicate, *, is_implied: bool = False
) -> Iterator[tuple[Predicate, bool]]:
    """The terms that must all be true, and of each whether it only follows from others."""
    if not isinstance(predicate, And):
        yield predicate, is_implied
        return
    given = len(predicate.terms) - predicate.implied
    for number, term in enumerate(predicate.terms):
        yield from marked_conjuncts(term, is_implied=is_implied or number >= given)


def flipped(comparison: Comparison) -> Comparison:
    """The same comparison, seen from its right side."""
    operator = _FLIPPED.get(comparison.operator, comparison.operator)
    return Comparison(operator, comparison.right, comparison.left)


def without_not(predicate: Predicate) -> Predicate:
    """The same predicate with `Not` only where nothing else says it: before `IsNull`, `In`, `Truth`
    and ``<=>``.

    Three-valued logic keeps: a negated comparison is true exactly where the opposite one is.
    """
    if isinstance(predicate, And | Or):
        return type(predicate)(tuple(without_not(term) for term in predicate.terms))
    if isinstance(predicate, Not):
        return _negated(predicate.term)
    return predicate


def _negated(predicate: Predicate) -> Predicate:
    if isinstance(predicate, Not):
        return without_not(predicate.term)
    if isinstance(predicate, And | Or):
        dual = Or if isinstance(predicate, And) else And
        return dual(tuple(_negated(term) for term in predicate.terms))
    if isinstance(predicate, Comparison) and predicate.operator in _NEGATED:
        return Comparison(_NEGATED[predicate.operator], predicate.left, predicate.right)
    if isinstance(predicate, Unusable):
        return predicate
    return Not(predicate)


def columns(node: Predicate | Expression) -> frozenset[ColumnPath]:
    """Every column that the tree names."""
    if isinstance(node, Column):
        return frozenset((node.path,))
    return frozenset().union(*(columns(child) for child in children(node)))


def functions(node: Predicate | Expression) -> frozenset[str]:
    """Every function that the tree calls."""
    own = frozenset((node.function,)) if isinstance(node, Call) else frozenset[str]()
    return own.union(*(functions(child) for child in children(node)))


def is_usable(predicate: Predicate) -> bool:
    """Whether no part of it is `Unusable`."""
    return next(unusable_parts(predicate), None) is None


def unusable_parts(node: Predicate | Expression) -> Iterator[Unusable]:
    """The parts that say nothing about files."""
    if isinstance(node, Unusable):
        yield node
    for child in children(node):
        yield from unusable_parts(child)


def children(node: Predicate | Expression) -> Iterator[Predicate | Expression]:
    """The nodes right below one."""
    if isinstance(node, And | Or):
        yield from node.terms
    elif isinstance(node, Not):
        yield node.term
    elif isinstance(node, Comparison):
        yield from (node.left, node.right)
    elif isinstance(node, In):
        yield from (node.child, *node.values)
    elif isinstance(node, IsNull | Truth | Cast):
        yield node.child
    elif isinstance(node, Call):
        yield from node.arguments
