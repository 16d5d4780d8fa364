"""Tests of the rule of CONTRIBUTING.md that a docstring first says what a thing is or does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPENINGS = ("What ", "Whether ", "How ", "Why ", "The same of ")


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a file, also those below assignments, with the lines where they begin."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, " ".join(text.split())


@pytest.mark.parametrize("directory", ["sparkdelta", "jobs", "tests"])
def test_docstrings_say_what_a_thing_is_or_does(directory: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for path in sorted((ROOT / directory).rglob("*.py"))
        for line, text in _docstrings(path)
        if text.startswith(OPENINGS)
    ]
    rule = 'CONTRIBUTING.md: "The first sentence of a docstring says what a thing is or does"'
    assert not found, "\n".join([rule, *found])
