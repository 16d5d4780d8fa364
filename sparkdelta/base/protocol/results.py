"""Outcomes of functions as plain values, and as tables in notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape

_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Result:
    """The base class of the results of functions, which are dataclasses."""

    def as_dict(self) -> dict[str, object]:
        """Return the attributes by name, as plain values for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return html_table(self.as_dict())


@dataclass(frozen=True, slots=True)
class FileCount:
    """A number of files and their size in bytes."""

    count: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{self.count:,} file{'s' * (self.count != 1)} ({self.bytes:,} bytes)"


NO_FILES = FileCount()


def html_table(facts: Mapping[str, object]) -> str:
    """Return names and values as rows of an HTML table; long values are cut off."""
    rows = (
        f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table>{''.join(rows)}</table>"


def html_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of the same names as an HTML table with a header; long values are cut off."""
    if not rows:
        return "<table></table>"
    header = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    lines = ("".join(f"<td>{escape(_shown(v))}</td>" for v in row.values()) for row in rows)
    return f"<table><tr>{header}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}={item}" for key, item in value.items())
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
