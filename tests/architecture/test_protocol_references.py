"""Every `PROTOCOL.md#anchor` in the package is a heading of the protocol's text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "sparkdelta"
HEADINGS = set((HERE / "protocol_headings.txt").read_text(encoding="utf-8").split())
MODULES = sorted(PACKAGE.rglob("*.py"))
REFERENCE = re.compile(r"PROTOCOL\.md#([\w-]+)")
RULES = [
    path
    for path in MODULES
    if path.stem.endswith(("_frames", "_workers")) or path.parent.name == "schema"
]


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_references_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(REFERENCE.findall(text)) <= HEADINGS
    assert not re.search(r"PROTOCOL\.md#(?![\w-])", text)


# What they do is Spark's or Parquet's affair; the rules are in the modules that use them.
WITHOUT_RULES = {
    "__init__", "file_row_frames", "file_split_workers", "legacy_calendar_workers",
    "parquet_schema_workers", "predicate_value_frames", "row_group_workers",
    "sql_text", "stored_view",
}  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [p for p in RULES if p.stem not in WITHOUT_RULES],
    ids=_name,
)  # fmt: skip
def test_rules_name_their_source(path: Path) -> None:
    """A module of rules cites the protocol at least once."""
    assert REFERENCE.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_public_things_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module says what it is about"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            is_leaf = path.stem == "exceptions" and isinstance(node, ast.ClassDef)
            assert is_leaf or ast.get_docstring(node), f"{node.name} has no docstring"


RIDDLES = {"What", "Whether", "How", "From", "Who", "Whoever", "Which", "Where"}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_docstrings_say_what_a_thing_is_or_does(path: Path) -> None:
    """The first word is no question: a reader wants the answer."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = (ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, documented))
    assert not [text for text in texts if text and text.split()[0] in RIDDLES]
