"""A parser of what `DataFrame.show` prints."""

from __future__ import annotations


def shown_rows(text: str) -> list[list[str]]:
    """The values of all frames that were shown in a text, without their headers."""
    rows, borders = [], 0
    for line in text.splitlines():
        if line.startswith("+"):
            borders = borders % 3 + 1  # above the header, below it, below the rows
        elif line.startswith("|") and borders == 2:
            rows.append([value.strip() for value in line.strip("|").split("|")])
    return rows
