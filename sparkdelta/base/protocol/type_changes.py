"""Supported type changes of type widening, by the type names in the JSON of the schema.

References
----------
PROTOCOL.md#type-widening
"""

from __future__ import annotations

import re

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def is_supported_type_change(from_type: str, to_type: str) -> bool:
    """Return True if readers can convert stored values of `from_type` to `to_type`."""
    if from_type == to_type or from_type == "void":
        return True
    if from_type in _INTEGERS and to_type in _INTEGERS:
        return _INTEGERS.index(from_type) <= _INTEGERS.index(to_type)
    if to_type == "double":
        return from_type in ("float", "byte", "short", "integer")
    if to_type == "timestamp_ntz":
        return from_type == "date"
    target = _DECIMAL.fullmatch(to_type)
    return target is not None and _widens_to_decimal(from_type, int(target[1]), int(target[2]))


def _widens_to_decimal(from_type: str, precision: int, scale: int) -> bool:
    source = _DECIMAL.fullmatch(from_type)
    if source is not None:
        source_precision, source_scale = int(source[1]), int(source[2])
    elif from_type in ("byte", "short", "integer"):
        source_precision, source_scale = 10, 0
    elif from_type == "long":
        source_precision, source_scale = 20, 0
    else:
        return False
    return precision - source_precision >= scale - source_scale >= 0
