"""Texts that begin with a prefix, as a range of texts.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from sparkdelta.protocol.predicates import And, Call, Comparison, Expression, Literal, Predicate
from sparkdelta.schema.ordered_casts import ordered


def prefix_range(
    expression: Expression, schema: StructType, *, exact_only: bool
) -> Predicate | None:
    """The range of texts that begin as LIKE or startswith asks; None where there is none.

    Parameters
    ----------
    schema
        The table's columns.
    exact_only
        Whether the range must be all there is to the match.
    """
    if not isinstance(expression, Call) or expression.function not in ("like", "startswith"):
        return None
    text, pattern = expression.arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    bound = ordered(text, schema)
    if bound is None or bound.family != "string":
        return None  # numbers and dates have another order than the texts that they become
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
    """The least text that is greater than all with this prefix, in the order of UTF-8."""
    while prefix and prefix[-1] == chr(0x10FFFF):
        prefix = prefix[:-1]
    if not prefix:
        return None
    following = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)
