"""JSON as other engines read it: numbers keep all their digits, and text is not escaped.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#json-checksum
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class ExactNumber(str):
    """A number as JSON spells it."""

    __slots__ = ()


def parse_exact(text: str) -> Any:
    """Parse JSON, with numbers as `ExactNumber`."""
    return json.loads(
        text, parse_int=ExactNumber, parse_float=ExactNumber, parse_constant=ExactNumber
    )


def json_text(value: object) -> str:
    """Return compact JSON in which only lone surrogates and control characters are escaped.

    delta-rs decodes escaped pairs of surrogates to other characters from U+20000 on, and then skips
    files by wrong bounds.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else _LONE_SURROGATE.sub(_escaped, text)


def _escaped(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def exact_text(value: Any) -> str:
    """Return a document of `parse_exact` as JSON, with numbers spelled as they were."""
    if isinstance(value, dict):
        members = (f"{json_text(name)}:{exact_text(member)}" for name, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(exact_text, value)) + "]"
    if isinstance(value, ExactNumber):
        return str(value)
    return json_text(value)
