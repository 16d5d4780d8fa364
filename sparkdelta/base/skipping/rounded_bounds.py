"""Comparison of constants with rounded bounds: delta-rs writes DECIMAL bounds as DOUBLE.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sparkdelta.base.predicates.ordered_casts import exact_digits
from sparkdelta.base.predicates.predicate_rules import Cast, Expression, Literal
from sparkdelta.base.skipping.predicate_value_frames import literal

_ROUNDING = Fraction(1, 2**50)  # more than what is lost by rounding twice


def ends_around(constant: Expression, data_type: str) -> tuple[str | None, str | None]:
    """Return SQL of DECIMAL values below and above all values that may be rounded to a constant.

    An end is None if it exceeds the type, and both are if the constant is not a finite number.
    """
    number, digits = _number(constant), exact_digits(data_type)
    if number is None or digits is None:
        return None, None
    whole, scale = digits
    margin, unit = abs(number) * _ROUNDING, 10**scale
    ends = math.floor((number - margin) * unit), math.ceil((number + margin) * unit)
    below, above = (
        _decimal(end, scale, data_type) if abs(end) < 10 ** (whole + scale) else None
        for end in ends
    )
    return below, above


def limit_of_bigint(limit: int, data_type: str) -> str | None:
    """Return SQL of the least or greatest BIGINT as a DECIMAL type; None if the type lacks it."""
    digits = exact_digits(data_type)
    if digits is None or digits[0] < len(str(2**63)):
        return None
    scale = digits[1]
    return _decimal(limit * 10**scale, scale, data_type)


def _decimal(units: int, scale: int, data_type: str) -> str:
    """Return SQL of a DECIMAL by the number of units of its last digit."""
    value = Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))
    return literal(Literal(value, data_type))


def _number(constant: Expression) -> Fraction | None:
    """Return the value of a finite number, which may be text that is cast to DECIMAL."""
    if isinstance(constant, Cast) and isinstance(constant.child, Literal):
        digits = exact_digits(constant.data_type)
        if digits is None or not constant.data_type.startswith("decimal"):
            return None
        try:
            given = Decimal(str(constant.child.value))
        except InvalidOperation:
            return None
        if not given.is_finite():
            return None
        unit = 10 ** digits[1]
        half_up = math.floor(abs(Fraction(given)) * unit + Fraction(1, 2))
        return Fraction(half_up if given > 0 else -half_up, unit)
    number = constant.value if isinstance(constant, Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        return None
    return Fraction(number) if math.isfinite(number) else None
