"""Values of optional fields in the wire form of actions and version checksums.

References
----------
PROTOCOL.md#actions
"""

from __future__ import annotations


def optional_integer(value: object) -> int | None:
    """Return a value that is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def optional_string(value: object) -> str | None:
    """Return a value as text; None for null."""
    return None if value is None else str(value)
