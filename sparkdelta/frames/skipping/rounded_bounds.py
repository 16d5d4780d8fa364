"""Constants to be compared with bounds that a writer rounded: delta-rs writes those of DECIMAL as
DOUBLE, which has fewer digits.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from sparkdelta.frames.skipping.predicate_values import literal
from sparkdelta.protocol.predicates import Cast, Expression, Literal
from sparkdelta.schema.ordered_casts import exact_digits

_EXACT = Context(prec=2 * 38 + 400)  # digits of any DOUBLE to any scale
_ROUNDING = Decimal(2) ** -50  # more than what is lost by rounding twice


def ends_around(constant: Expression, data_type: str) -> tuple[str | None, str | None]:
    """Return SQL of values of a DECIMAL type below and above all that may be rounded to a constant;
    None for ends beyond the type, and if the constant is no number.
    """
    exact, digits = _number(constant), exact_digits(data_type)
    if exact is None or digits is None:
        return None, None
    whole, scale = digits
    margin = _EXACT.multiply(abs(exact), _ROUNDING)
    unit = Decimal(1).scaleb(-scale)
    ends = (
        _EXACT.subtract(exact, margin).quantize(unit, ROUND_FLOOR, _EXACT),
        _EXACT.add(exact, margin).quantize(unit, ROUND_CEILING, _EXACT),
    )
    below, above = (
        literal(Literal(end, data_type)) if abs(end) < 10**whole else None for end in ends
    )
    return below, above


def _number(constant: Expression) -> Decimal | None:
    """Return the value of a finite number, which may be text that is cast to DECIMAL."""
    if isinstance(constant, Cast) and isinstance(constant.child, Literal):
        digits = exact_digits(constant.data_type)
        if digits is None or not constant.data_type.startswith("decimal"):
            return None
        try:
            given = Decimal(str(constant.child.value))
            found = given.quantize(Decimal(1).scaleb(-digits[1]), ROUND_HALF_UP, _EXACT)
        except InvalidOperation:
            return None
        return found if found.is_finite() else None
    number = constant.value if isinstance(constant, Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        return None
    return Decimal(number) if math.isfinite(number) else None


def limit_of_bigint(limit: int, data_type: str) -> str | None:
    """Return SQL of the least or greatest BIGINT as a DECIMAL type; None if the type lacks it."""
    digits = exact_digits(data_type)
    has_it = digits is not None and digits[0] >= len(str(2**63))
    return literal(Literal(Decimal(limit), data_type)) if has_it else None
