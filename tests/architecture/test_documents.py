"""Tests of the statements in the Markdown files."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta import DeltaTable
from sparkdelta.base.protocol import write_support
from sparkdelta.base.protocol.feature_rules import ALL_WRITING, FEATURES, FeatureRules
from sparkdelta.error_conditions import CONDITIONS
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from tests.support.delta_spark import PYSPARK_SERIES
from tests.versions import PINNED, TESTED

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "tests" / "README.md",
    ROOT / "tests/benchmarks/RESULTS.md",
]
PACKAGE = sorted((ROOT / "sparkdelta").rglob("*.py"))
DELTA_SPARK = json.loads((Path(__file__).parent / "delta_spark_api.json").read_text())["DeltaTable"]


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _section(document: str, title: str) -> str:
    """The text below a heading, up to the next one of its level."""
    return _text(document).split(f"\n## {title}\n")[1].split("\n## ")[0]


def _rows(text: str) -> list[list[str]]:
    """The rows of Markdown tables, without their headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = {number for number, line in enumerate(lines) if line.startswith("|---")}
    body = [n for n in range(len(lines)) if n not in rules and n + 1 not in rules]
    return [[cell.strip() for cell in lines[n].strip("|").split("|")] for n in body]


def _code(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def test_the_readme_has_every_feature() -> None:
    """The tables of features say what the rules of the features say."""
    section = _section("README.md", "Table features")
    assert [[cell.replace("`", "") for cell in row] for row in _rows(section)] == [
        [
            f.value,
            *([", ".join(rules.aliases)] if rules.reader_writer else []),
            ", ".join(needed.value for needed in rules.needs),
            *([_read(rules)] if rules.reader_writer else []),
            _dropped(rules),
        ]
        for f, rules in sorted(FEATURES.items(), key=lambda item: not item[1].reader_writer)
    ]


def _read(rules: FeatureRules) -> str:
    if not rules.readable:
        return f"refused: {rules.reason}"
    return "yes" if rules.writable == ALL_WRITING else f"yes, {rules.reason}"


def _dropped(rules: FeatureRules) -> str:
    if rules.drop is None:
        return "no"
    removes = rules.drop.removes
    return "yes" if removes.startswith("nothing") else f"yes, with {removes}"


@pytest.mark.parametrize(
    ("document", "title"), [("README.md", "Limits"), ("COMPATIBILITY.md", "Not there yet")]
)
def test_features_that_are_never_written_are_listed(document: str, title: str) -> None:
    assert {f.value for f in write_support._NEVER_WRITTEN} <= set(_code(_section(document, title)))


def test_the_readme_has_the_tested_versions() -> None:
    exact = [each.spark for each in TESTED if each.spark.count(".") == 2]
    series = [each.spark for each in TESTED if each.spark not in exact]
    pythons = sorted({each.python for each in TESTED}, key=lambda name: name.split("."))
    sentence = (
        f"Tested are Spark {', '.join(exact)} and the newest patches of {_listing(series)}, "
        f"with Python {_listing(pythons)}."
    )
    assert sentence in " ".join(_text("README.md").split())
    assert f'"pyspark[connect]=={PINNED}"' in _text("pyproject.toml")
    assert PINNED.startswith(PYSPARK_SERIES)


def _listing(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def test_the_readme_has_the_bound_of_a_scan() -> None:
    assert f"Beyond {MAX_DRIVER_FILES:,} files" in _section("README.md", "Limits")


@pytest.mark.filterwarnings("ignore")  # delta-rs warns of its own doings
def test_the_readmes_example_prints_what_it_says(
    spark: SparkSession,  # the example gets this very session
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("deltalake")
    example, printed = re.findall(r"```(?:python|text)\n(.*?)```", _text("README.md"), re.DOTALL)
    path = str(tmp_path / "people")
    assert example.count('"people"') == 3
    exec(compile(example.replace('"people"', repr(path)), "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == printed.strip()


def test_the_readme_has_every_argument() -> None:
    """The API table has each public function with the names of all its arguments."""
    calls = {}
    for row in _rows(_section("README.md", "API")):
        for text in _code(row[0]):
            if call := re.fullmatch(r"([a-z_]+)\(([\w*=, ]*)\)", text):
                calls[call[1]] = [argument.strip(" *=") for argument in call[2].split(",")]
    functions = {
        name: list(inspect.signature(getattr(sparkdelta, name)).parameters)
        for name in set(sparkdelta.__all__) - {"alter_table"}
        if inspect.isfunction(getattr(sparkdelta, name))
    }
    assert calls == functions


def test_every_read_of_the_driver_is_listed() -> None:
    listed = {row[0] for row in _rows(_section("ARCHITECTURE.md", "What the driver may read"))}
    named = {
        what
        for path in PACKAGE
        for what in re.findall(r'\bwhat="([^"]+)",', path.read_text(encoding="utf-8"))
    }
    assert listed == named


def test_what_delta_table_lacks_is_listed() -> None:
    section = _section("COMPATIBILITY.md", "Not there yet")
    missing = {name for name in DELTA_SPARK if not hasattr(DeltaTable, name)}
    there = set(DELTA_SPARK) - missing
    words = {word.removeprefix("DeltaTable.") for word in _code(section)}
    table, _, after = section.partition("\n\n`DeltaTable` has ")
    assert missing <= words
    assert set(_code(after)) == there
    assert not (there - {"isDeltaTable"}) & set(_code(table))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_errors_exist(path: Path) -> None:
    named = set(re.findall(r"\bDELTA_[A-Z_]+\b", path.read_text(encoding="utf-8")))
    assert named - {"DELTA_SPEC_TESTDATA", "DELTA_PYTHON_TESTS"} <= CONDITIONS.keys()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_links_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    files = [
        name
        for name in _code(text)
        if re.fullmatch(r"(sparkdelta|tests|jobs|notebooks)/[\w./*-]*", name)
    ]
    assert not [link for link in links if not (path.parent / link).exists()]
    assert not [name for name in files if not list(ROOT.glob(name.rstrip("/")))]


def test_the_flows_of_architecture_name_files_that_exist() -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```", _text("ARCHITECTURE.md"), re.DOTALL | re.MULTILINE)
    flows = "\n".join(blocks)
    paths = re.findall(r"\b[a-z]+/[a-z_/]+\.py", flows)
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / "sparkdelta" / path).exists()]


def _room(path: Path) -> str:
    """The part of a module's path that names its room in ARCHITECTURE.md, as `table/log`."""
    return "/".join(path.relative_to(ROOT / "sparkdelta").parts[:-1][:2])


def test_the_rooms_of_architecture_are_those_of_the_package() -> None:
    cells = [row[0] for row in _rows(_section("ARCHITECTURE.md", "Rooms"))]
    codes = [name for cell in cells for name in _code(cell) if name.endswith("/")]
    named = sorted(name.removeprefix("sparkdelta/").rstrip("/") for name in codes)
    assert named == sorted({_room(path) for path in PACKAGE if path.name != "__init__.py"} - {""})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)
    assert set(named) <= targets
