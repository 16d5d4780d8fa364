"""Parts of a predicate whose evaluation may fail, as in ANSI mode.

Data skipping must not fail, because Spark may never evaluate the failing part of the user's
condition. `predicate_values` computes null instead, and a file for which a part fails is kept.
Terms that cannot fail may be evaluated on rows before the deleted ones are left out.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import re

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.ordered_casts import (
    compares_each,
    compares_exactly,
    family,
    keeps_order,
    type_of,
)
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
    children,
    functions,
    marked_conjuncts,
)
from sparkdelta.base.protocol.partition_values import parse_partition_value
from sparkdelta.exceptions import InvalidPartitionValueError

TRIED = {
    "+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod",
}  # fmt: skip
"""The functions that return null where an operator would fail, by operator."""

_TEMPORAL = ("date", "timestamp", "timestamp_ntz")
_TEMPORAL_FUNCTIONS = frozenset(
    ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear",
     "hour", "minute", "second", "last_day", "datediff")
)  # fmt: skip
_TEXT_FUNCTIONS = frozenset(
    ("length", "char_length", "ascii", "instr", "lower", "lcase", "upper", "ucase", "trim", "ltrim",
     "rtrim", "concat", "replace", "reverse", "initcap", "startswith", "endswith", "contains")
)  # fmt: skip
_SUBSTRING_FUNCTIONS = frozenset(("substring", "substr", "left", "right"))
_SAME_TYPE_FUNCTIONS = frozenset(("coalesce", "ifnull", "nvl", "nullif", "greatest", "least"))
_OTHER_STRING_TYPES = ("char(", "varchar(", "string collate")  # read without the collation
_TEXT_SEARCHES = frozenset(("startswith", "endswith", "contains"))
_PATTERNS = ("like", "ilike")
_SAFE_FORMAT = re.compile(r"[-yMdHms/:. ]*")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def infallible_terms(predicate: Predicate, schema: StructType) -> tuple[Predicate, ...]:
    """Return the terms of a condition that fail for no row, without implied ones."""
    return tuple(
        term
        for term, is_implied in marked_conjuncts(predicate)
        if not is_implied and is_infallible(term, schema)
    )


def is_infallible(predicate: Predicate, schema: StructType) -> bool:
    """Return True if a condition fails for no row, with any settings of the session."""
    if isinstance(predicate, And | Or):
        implied = predicate.implied if isinstance(predicate, And) else 0
        given = predicate.terms[: len(predicate.terms) - implied]
        return all(is_infallible(term, schema) for term in given)
    if isinstance(predicate, Not):
        return is_infallible(predicate.term, schema)
    if isinstance(predicate, Unusable) or not functions(predicate) <= _TEXT_SEARCHES:
        return False
    if failing_parts(predicate, schema) != ():
        return False
    # The common type of two types may have too few digits.
    if isinstance(predicate, Comparison):
        return _compares_exactly(predicate.left, predicate.right, schema)
    if isinstance(predicate, In):
        own, *kinds = (_type(each, schema) for each in (predicate.child, *predicate.values))
        known = [kind for kind in kinds if kind is not None]
        return own is not None and len(known) == len(kinds) and compares_each(own, known)
    return True


def failing_parts(
    node: Predicate | Expression, schema: StructType
) -> tuple[Expression, ...] | None:
    """Return the parts that `predicate_values` computes as null if they fail.

    None if other parts may fail, too. `node` is not an `And`, `Or` or `Unusable`.
    """
    inner = [failing_parts(c, schema) for c in children(node) if not isinstance(c, Literal)]
    usable = [parts for parts in inner if parts is not None]
    parts_below = tuple(part for parts in usable for part in parts)
    if len(usable) < len(inner):
        return None
    if isinstance(node, Cast):
        may_fail = not node.is_try and _cast_may_fail(node, schema)
    elif isinstance(node, Call):
        may_fail = _call_may_fail(node, schema)
    elif isinstance(node, Comparison):
        may_fail = False if _is_comparable(node.left, node.right, schema) else None
    elif isinstance(node, In):
        are_all = all(_is_comparable(node.child, value, schema) for value in node.values)
        may_fail = False if are_all else None
    elif isinstance(node, Truth):
        may_fail = False if _type(node.child, schema) in ("boolean", "void") else None
    else:
        return parts_below
    if may_fail is None:
        return None
    return (*parts_below, node) if may_fail and isinstance(node, Cast | Call) else parts_below


def _cast_may_fail(node: Cast, schema: StructType) -> bool | None:
    """Return True if a cast may fail; None if TRY_CAST cannot replace it."""
    source, target = _type(node.child, schema), node.data_type
    if source is None:
        return None
    if target == "string" or source in ("void", target):
        return False
    if source == "string":
        return not _is_convertible(node.child, target)
    if source in _TEMPORAL and target in _TEMPORAL:
        return False
    if family(source) == family(target) == "number":
        return not keeps_order(source, target)
    return None


def _call_may_fail(node: Call, schema: StructType) -> bool | None:
    """Return True if a call may fail but can be computed as null; None if it may fail otherwise."""
    name, kinds = node.function, [_type(argument, schema) for argument in node.arguments]
    families = [None if kind is None else family(kind) for kind in kinds]
    if not kinds or None in kinds:
        return None
    if name in TRIED:
        return True if set(families) == {"number"} else None
    if name in ("date", "to_date") and len(kinds) == 1:
        return kinds[0] == "string" if kinds[0] in ("string", *_TEMPORAL) else None
    is_total = (
        (name in _TEMPORAL_FUNCTIONS and all(kind in _TEMPORAL for kind in kinds))
        or (name in _TEXT_FUNCTIONS and set(kinds) == {"string"})
        or (name in _SAME_TYPE_FUNCTIONS and len(set(families) - {"void"}) <= 1)
        or (
            name in _SUBSTRING_FUNCTIONS
            and kinds[0] == "string"
            and set(families[1:]) <= {"number"}
        )
        or (name in ("date_add", "date_sub") and kinds[0] in _TEMPORAL and kinds[1] == "int")
        or (name == "trunc" and kinds[0] in _TEMPORAL and kinds[1] == "string")
        or (name == "date_trunc" and kinds[0] == "string" and kinds[1] in _TEMPORAL)
        or (name == "date_format" and kinds[0] in _TEMPORAL and _matches(node, _SAFE_FORMAT))
        or (name in _PATTERNS and kinds[0] == "string" and _matches(node, re.compile(r"[^\\]*")))
        or (name == "isnan" and families == ["number"])
        or (
            name in ("abs", "negative")
            and kinds[0] in ("float", "double")
            and not isinstance(node.arguments[0], Call)  # the type of a call is not exact
        )
    )
    return False if is_total else None


def _matches(node: Call, pattern: re.Pattern[str]) -> bool:
    """Return True if the second argument is a constant string that matches a pattern."""
    constant = node.arguments[1] if len(node.arguments) == 2 else None
    is_text = isinstance(constant, Literal) and isinstance(constant.value, str)
    return is_text and pattern.fullmatch(str(constant.value)) is not None  # type: ignore[union-attr]


def _is_comparable(left: Expression, right: Expression, schema: StructType) -> bool:
    """Return True if Spark compares two values without a conversion that may fail."""
    one, other = _type(left, schema), _type(right, schema)
    if one is None or other is None:
        return False
    if "void" in (one, other) or family(one) == family(other):
        return True
    if one in _TEMPORAL and other in _TEMPORAL:
        return True
    if one == "string":
        return _is_convertible(left, other)
    return other == "string" and _is_convertible(right, one)


def _compares_exactly(left: Expression, right: Expression, schema: StructType) -> bool:
    """Return True if Spark compares two comparable values without rounding one of them."""
    one, other = str(_type(left, schema)), str(_type(right, schema))
    return not {"void", "string"}.isdisjoint((one, other)) or compares_exactly(one, other)


def _is_convertible(expression: Expression, data_type: str) -> bool:
    """Return True if an expression is a constant string that can be converted to a type."""
    if not isinstance(expression, Literal) or not isinstance(expression.value, str):
        return False
    text = expression.value
    if data_type in _INTEGERS:
        limit = 1 << (8 << _INTEGERS.index(data_type)) - 1
        return _INTEGER.fullmatch(text) is not None and -limit <= int(text) < limit
    try:
        if data_type in _TEMPORAL:
            return parse_partition_value(text, data_type) is not None
        if data_type in ("float", "double"):
            float(text)
            return "_" not in text
    except (InvalidPartitionValueError, ValueError, OverflowError):
        return False
    return False


def _type(expression: Expression, schema: StructType) -> str | None:
    """Return the type of an expression; None if unknown.

    Unlike `type_of`, this covers functions whose arguments have one type family, and returns
    "string" for all string types.
    """
    if isinstance(expression, Column | Literal | Cast):
        kind = type_of(expression, schema)
        return "string" if kind and kind.startswith(_OTHER_STRING_TYPES) else kind
    if expression.function in _SAME_TYPE_FUNCTIONS:
        kinds = [_type(argument, schema) for argument in expression.arguments]
        known = {kind for kind in kinds if kind not in (None, "void")}
        if None not in kinds and len({family(str(kind)) for kind in known}) == 1:
            return sorted(map(str, known))[0]
    return type_of(expression, schema)
