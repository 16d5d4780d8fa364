"""Tests of the rules of CONTRIBUTING.md about docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPENINGS = ("What ", "Whether ", "How ", "Why ", "The same of ")
VERBS = tuple(Path(__file__).with_name("imperative_verbs.txt").read_text("utf-8").split())

ROOMS = sorted({str(path.parent.relative_to(ROOT)) for path in ROOT.glob("sparkdelta/**/*.py")})

PLURALS = {"Changes", "Counts", "Hashes", "Limits", "Lists", "Places", "Plans", "Points", "Records"}
"""Nouns that look like verbs of the third person."""

NO_NOUNS = {"Raised", *VERBS} | {verb + end for verb in VERBS for end in ("s", "es")} - PLURALS
BANNED = re.compile(
    r"\btells?\b|\bis true of\b|\bthose of\b|(?<!\bthere )\bis no\b|\bwhat is\b|\bso many\b", re.I
)

Described = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file, also below assignments, with the lines where they begin."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, " ".join(text.split())


def _described(room: str) -> Iterator[tuple[str, Described, str]]:
    """Yield the functions and classes of a room that have a docstring, with it."""
    for path in sorted((ROOT / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Described) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node, text


def _is_property(node: Described) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list)


def _first_word(text: str) -> str:
    return text.split()[0].rstrip(",:;.")


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


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_of_functions_begin_with_a_verb(room: str) -> None:
    others = [
        f"{place}: {text[:60]}"
        for place, node, text in _described(room)
        if not isinstance(node, ast.ClassDef)
        and not _is_property(node)
        and _first_word(text) not in VERBS
    ]
    rule = "Begin with a verb of tests/architecture/imperative_verbs.txt, or add one there:"
    assert not others, "\n".join([rule, *others])


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_of_classes_begin_with_a_noun(room: str) -> None:
    others = [
        f"{place}: {text[:60]}"
        for place, node, text in _described(room)
        if isinstance(node, ast.ClassDef) and _first_word(text) in NO_NOUNS
    ]
    assert not others, "\n".join(["A class is described by a noun:", *others])


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_use_plain_phrases(room: str) -> None:
    others = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r} in {text[:60]}"
        for path in sorted((ROOT / room).glob("*.py"))
        for line, text in _docstrings(path)
        if (match := BANNED.search(text))
    ]
    assert not others, "\n".join(["Write the phrase plainly:", *others])


def test_verbs_are_in_alphabetical_order() -> None:
    assert list(VERBS) == sorted(set(VERBS))
