"""Expression trees of conditions on a table's columns, for file pruning and conflict detection.

::

    Predicate  = And | Or | Not | Comparison | IsNull | In | Truth | Unusable
    Expression = Column | Literal | Cast | Call

The tree is only used to select files and may select too many, because Spark evaluates the original
condition on the rows. Conditions that it cannot represent are `Unusable` and select every file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from sparkdelta.base.protocol.column_names import ColumnPath

LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a nested struct field."""

    path: ColumnPath


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value.

    Attributes
    ----------
    value
        Timestamps are aware datetimes, timestamps without time zone naive ones.
    data_type
        The simple name of its type in Spark, such as ``int``; ``void`` for NULL without a type.
    """

    value: LiteralValue
    data_type: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast, evaluated with the settings of the session.

    Attributes
    ----------
    data_type
        The simple name of the target type in Spark.
    is_try
        True for TRY_CAST: values that cannot be converted become null even in ANSI mode.
    """

    child: Expression
    data_type: str
    is_try: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of `FUNCTIONS`, by its name in Spark SQL."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Column | Literal | Cast | Call


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction: true if all terms are true.

    Attributes
    ----------
    implied
        The number of terms at the end that follow from the others.
    """

    terms: tuple[Predicate, ...]
    implied: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction: true if a term is true."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A negation: true if the term is false, that is, neither true nor null."""

    term: Predicate


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison; `operator` is one of ``= <=> <> < <= > >=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """A null check: true if the child is null."""

    child: Expression


@dataclass(frozen=True, slots=True)
class In:
    """An IN list: true if the child equals a value. Spark casts all of them to a common type."""

    child: Expression
    values: tuple[Expression, ...]

    @property
    def literals(self) -> tuple[Literal, ...] | None:
        """The values if all of them are literals, else None."""
        literals = tuple(value for value in self.values if isinstance(value, Literal))
        return literals if len(literals) == len(self.values) else None


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean expression that is used as a condition."""

    child: Expression


@dataclass(frozen=True, slots=True)
class Unusable:
    """A condition that cannot select files: its text, if available, and the reason for users."""

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
"""The functions that a predicate may call, with their result type if it is fixed.

They depend only on their arguments and on settings of the session."""

_WITH_ESCAPE = ("like", "ilike")


def is_known(function: str, num_arguments: int) -> bool:
    """Return True if a predicate may call a function with this number of arguments.

    LIKE with a custom escape character, its third argument, is not supported.
    """
    return function in FUNCTIONS and not (function in _WITH_ESCAPE and num_arguments > 2)


Predicate: TypeAlias = And | Or | Not | Comparison | IsNull | In | Truth | Unusable

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the terms that must all be true."""
    return tuple(term for term, _ in marked_conjuncts(predicate))


def marked_conjuncts(
    predicate: Predicate, *, is_implied: bool = False
) -> Iterator[tuple[Predicate, bool]]:
    """Yield the terms that must all be true, each with True if it follows from others."""
    if not isinstance(predicate, And):
        yield predicate, is_implied
        return
    given = len(predicate.terms) - predicate.implied
    for number, term in enumerate(predicate.terms):
        yield from marked_conjuncts(term, is_implied=is_implied or number >= given)


def flipped(comparison: Comparison) -> Comparison:
    """Return an equivalent comparison with its sides swapped."""
    operator = _FLIPPED.get(comparison.operator, comparison.operator)
    return Comparison(operator, comparison.right, comparison.left)


def without_not(predicate: Predicate) -> Predicate:
    """Return an equivalent predicate with `Not` only around `IsNull`, `In`, `Truth` and ``<=>``.

    Equivalent in three-valued logic: a negated comparison is true exactly if the opposite
    comparison is true.
    """
    if isinstance(predicate, And | Or):
        return replace(predicate, terms=tuple(without_not(term) for term in predicate.terms))
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
    """Return all columns that the tree refers to."""
    return frozenset(part.path for part in parts(node) if isinstance(part, Column))


def functions(node: Predicate | Expression) -> frozenset[str]:
    """Return all functions that the tree calls."""
    return frozenset(part.function for part in parts(node) if isinstance(part, Call))


def is_usable(predicate: Predicate) -> bool:
    """Return True if no part of the predicate is `Unusable`."""
    return next(unusable_parts(predicate), None) is None


def unusable_parts(node: Predicate | Expression) -> Iterator[Unusable]:
    """Yield the parts that cannot be used to select files."""
    return (part for part in parts(node) if isinstance(part, Unusable))


def parts(node: Predicate | Expression) -> Iterator[Predicate | Expression]:
    """Yield a node and all nodes below it but literals, from left to right."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        below = [child for child in children(part) if not isinstance(child, Literal)]
        stack += reversed(below)


def children(node: Predicate | Expression) -> Iterator[Predicate | Expression]:
    """Yield the direct children of a node."""
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
