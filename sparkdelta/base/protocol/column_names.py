"""Comparison of the names of columns and fields, as Spark compares them.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from typing import TypeAlias

ColumnPath: TypeAlias = tuple[str, ...]
"""The name of a column, followed by the names of nested struct fields, spelled as in the table's
schema."""


class _Folding(dict[int, str]):
    """The folded form of each character, by its code point."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        # Of one character each, as in Java; `upper` and `lower` may return several.
        forms = (character.upper(), character.title(), character)
        upper = next(form for form in forms if len(form) == 1)
        folded = self[code] = upper.lower()[0]
        return folded


_FOLDING = _Folding()


def name_key(name: str) -> str:
    """Return a key that is equal for names that Spark's resolver considers equal.

    The resolver compares names by Java's `equalsIgnoreCase`: character by character, in lower case
    after upper case. `lower` and `casefold` both differ from it.
    """
    return name.lower() if name.isascii() else name.translate(_FOLDING)


def stored_name_key(name: str) -> str:
    """Return a key that a column shares with the field of a Parquet file that Spark reads for it.

    Unlike the resolver, Spark's Parquet reader compares names in lower case.
    """
    return name.lower()
