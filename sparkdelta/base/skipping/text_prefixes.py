"""Ranges of strings with a given prefix.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.ordered_casts import ordered
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Comparison,
    Expression,
    Literal,
    Predicate,
)


def prefix_range(
    expression: Expression, schema: StructType, *, exact_only: bool
) -> Predicate | None:
    """Return the range of strings that LIKE or startswith may match; None if there is no range.

    With `exact_only`, every string in the range must match.
    """
    if not isinstance(expression, Call) or expression.function not in ("like", "startswith"):
        return None
    text, pattern = expression.arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    bound = ordered(text, schema)
    if bound is None or bound.family != "string":
        return None  # numbers and dates are not ordered like their strings
    prefix, is_exact = pattern.value, True
    if expression.function == "like":
        if "\\" in pattern.value:
            return None
        prefix = pattern.value.split("%")[0].split("_")[0]
        if prefix == pattern.value:
            return Comparison("=", text, pattern)
        is_exact = pattern.value == prefix + "%"
    if not prefix or (exact_only and not is_exact):
        return None
    terms: list[Predicate] = [Comparison(">=", text, Literal(prefix, "string"))]
    after = _next_text(prefix)
    if after is not None:
        terms.append(Comparison("<", text, Literal(after, "string")))
    return And(tuple(terms))


def _next_text(prefix: str) -> str | None:
    """Return the least string above all with a prefix, in UTF-8 order; None if there is none."""
    while prefix and prefix[-1] == chr(0x10FFFF):
        prefix = prefix[:-1]
    if not prefix:
        return None
    following = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)
