"""The wire form of actions and version checksums: JSON documents with the protocol's field names.

References
----------
PROTOCOL.md#actions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


class WireForm:
    """The base class of dataclasses whose fields are the protocol's, in snake_case."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form, without fields that are None."""
        return wire_form(self)


def wire_form(value: Any) -> dict[str, Any]:
    """Return a dataclass as a dict of the protocol's field names, without fields that are None."""
    members = ((_camel_case(f.name), getattr(value, f.name)) for f in fields(value))
    return {name: _member(member) for name, member in members if member is not None}


def _member(member: Any) -> Any:
    if is_dataclass(member):
        return wire_form(member)
    if isinstance(member, Mapping):
        return dict(member)
    return list(member) if isinstance(member, tuple) else member


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def optional_integer(value: object) -> int | None:
    """Return a value that is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def optional_string(value: object) -> str | None:
    """Return a value as text; None for null."""
    return None if value is None else str(value)
