"""JSON whose numbers keep all their digits: a float may have fewer.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#json-checksum
"""

from __future__ import annotations

import json
from typing import Any


class ExactNumber(str):
    """A number as JSON spells it."""

    __slots__ = ()


def parse_exact(text: str) -> Any:
    """Parse JSON; numbers become `ExactNumber`.

    Raises
    ------
    ValueError
        The text is not JSON.
    """
    return json.loads(
        text, parse_int=ExactNumber, parse_float=ExactNumber, parse_constant=ExactNumber
    )


def exact_text(value: Any, *, ensure_ascii: bool = True) -> str:
    """Return what `parse_exact` returned as JSON, with the numbers as they were.

    Examples
    --------
    >>> exact_text({**parse_exact('{"a":1.10}'), "b": [True]})
    '{"a":1.10,"b":[true]}'
    """
    if isinstance(value, dict):
        members = (
            f"{json.dumps(name)}:{exact_text(member, ensure_ascii=ensure_ascii)}"
            for name, member in value.items()
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        items = (exact_text(item, ensure_ascii=ensure_ascii) for item in value)
        return "[" + ",".join(items) + "]"
    if isinstance(value, ExactNumber):
        return str(value)
    return json.dumps(value, ensure_ascii=ensure_ascii)
