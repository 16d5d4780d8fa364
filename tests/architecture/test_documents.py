"""Tests of the statements in the Markdown files."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkdelta.tables
from sparkdelta.base.protocol import table_features
from sparkdelta.base.protocol.feature_registry import ALL_WRITING, FEATURES, FeatureRules
from sparkdelta.error_conditions import CONDITIONS
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from tests.clients.suites import PEER, SUITES
from tests.support.delta_spark import DELTA_SETTINGS, PYSPARK_SERIES
from tests.versions import PINNED, TESTED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "tests" / "README.md",
    ROOT / "tests/benchmarks/RESULTS.md",
]
PACKAGE = sorted((ROOT / "sparkdelta").rglob("*.py"))
DELTA_SPARK = json.loads((Path(__file__).parent / "delta_spark_api.json").read_text())


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


def test_the_features_are_those_of_the_rules() -> None:
    """FEATURES.md has all features, as `FEATURES` describes them."""
    assert [[cell.replace("`", "") for cell in row] for row in _rows(_text("FEATURES.md"))] == [
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


@pytest.mark.parametrize("document", ["FEATURES.md", "COMPATIBILITY.md"])
def test_features_that_are_never_written_are_listed(document: str) -> None:
    assert {f.value for f in table_features._NEVER_WRITTEN} <= set(_code(_text(document)))


def test_the_readme_has_the_tested_versions() -> None:
    exact = [each.spark for each in TESTED if each.spark.count(".") == 2]
    series = [each.spark for each in TESTED if each.spark not in exact]
    pythons = sorted({each.python for each in TESTED}, key=lambda name: name.split("."))
    sentence = (
        f"Tested with Spark {', '.join(exact)} and the newest patches of {_listing(series)}, "
        f"with Python {_listing(pythons)}."
    )
    assert sentence in " ".join(_text("README.md").split())
    assert f'"pyspark[connect]=={PINNED}"' in _text("pyproject.toml")
    assert PINNED.startswith(PYSPARK_SERIES)


def test_the_numbers_of_programs_are_those_of_their_suites() -> None:
    assert _rows(_section("COMPATIBILITY.md", "Programs")) == [s.row() for s in SUITES.values()]


def test_programs_are_compared_with_the_tested_delta_spark() -> None:
    assert PEER.settings == DELTA_SETTINGS


def _listing(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def test_the_bound_of_a_scan_is_documented() -> None:
    assert f"more than {MAX_DRIVER_FILES:,} files (`max_driver_files`)" in " ".join(
        _text("COMPATIBILITY.md").split()
    )


@pytest.mark.parametrize(
    ("document", "most"),
    [("README.md", 6), ("ARCHITECTURE.md", 12), ("tests/README.md", 8)],
)
def test_first_documents_stay_short(document: str, most: int) -> None:
    """The limits are in KB: details belong into docstrings, differences into COMPATIBILITY.md."""
    assert len(_text(document).encode()) <= most * 1024


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


PUBLIC_FUNCTIONS = sorted(
    name for name in sparkdelta.__all__ if inspect.isfunction(getattr(sparkdelta, name))
)


@pytest.mark.parametrize("name", PUBLIC_FUNCTIONS)
def test_every_argument_is_in_the_api_reference(name: str) -> None:
    """A docstring names all arguments, or the function that has the same ones."""
    function = getattr(sparkdelta, name)
    text = inspect.getdoc(function) or ""
    if "same as for `read_delta`" in text:
        text += inspect.getdoc(sparkdelta.read_delta) or ""
    arguments = set(inspect.signature(function).parameters) - {
        "spark",
        "path",
        "df",
        "builder",
        "text",
    }
    assert not {each for each in arguments if not re.search(rf"\b{each}\b", text)}


@pytest.mark.full
def test_the_api_reference_is_built_without_warnings(tmp_path: Path) -> None:
    """The command is that of `make docs`."""
    pytest.importorskip("pdoc")
    [line] = [line for line in _text("Makefile").splitlines() if "run_module('pdoc'" in line]
    _, *arguments = shlex.split(line)
    arguments[arguments.index("build/api")] = str(tmp_path)
    built = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "sparkdelta.html").read_text(encoding="utf-8")
    assert not [name for name in sparkdelta.__all__ if f'id="{name}"' not in page]
    assert (tmp_path / "sparkdelta/tables.html").exists()
    assert 'id="TableNotFoundError"' in (tmp_path / "sparkdelta/exceptions.html").read_text()


def test_delta_table_and_its_builders_lack_no_method() -> None:
    assert "`DeltaTable` and its builders have all methods" in _text("COMPATIBILITY.md")
    assert not [
        f"{owner}.{name}"
        for owner, names in DELTA_SPARK.items()
        if owner != "delta-spark"
        for name in names
        if not hasattr(getattr(sparkdelta.tables, owner), name)
    ]


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
    assert len(paths) > 10
    assert not [path for path in paths if not (ROOT / "sparkdelta" / path).exists()]


def _room(path: Path) -> str:
    """The part of a module's path that names its room in ARCHITECTURE.md, as `table/log`."""
    return "/".join(path.relative_to(ROOT / "sparkdelta").parts[:-1][:2])


def _named_rooms() -> list[str]:
    """The rooms of the table in ARCHITECTURE.md, in its order, as `table/log`."""
    cells = [row[0] for row in _rows(_section("ARCHITECTURE.md", "Rooms"))]
    codes = [name for cell in cells for name in _code(cell) if name.endswith("/")]
    return [name.removeprefix("sparkdelta/").rstrip("/") for name in codes]


def test_the_rooms_of_architecture_are_those_of_the_package() -> None:
    rooms = {_room(path) for path in PACKAGE if path.name != "__init__.py"} - {""}
    assert sorted(_named_rooms()) == sorted(rooms)


def test_the_rooms_of_architecture_have_the_order_of_the_contracts() -> None:
    settings = tomllib.loads(_text("pyproject.toml"))["tool"]["importlinter"]
    layers = {
        contract.get("containers", ["sparkdelta"])[0]: contract["layers"]
        for contract in settings["contracts"]
        if contract["type"] == "layers"
    }
    floors = [name.removeprefix("sparkdelta.") for name in layers["sparkdelta"]]
    places = [
        place
        for floor in floors
        for place in (floor, *(f"{floor}/{room}" for room in layers.get(f"sparkdelta.{floor}", [])))
    ]
    named = _named_rooms()
    assert named == [place for place in places if place in named]
    drawn = re.search(
        r"^flowchart TD\n(.*?)^```", _text("ARCHITECTURE.md"), re.DOTALL | re.MULTILINE
    )
    assert drawn is not None
    boxes = re.findall(r'(\w+)\["(\w+)(?:: ([^"]*))?"\]', drawn[1])
    assert [name for _, name, _ in boxes] == floors
    for floor, _, rooms in boxes:
        if floor != "api" and (expected := layers.get(f"sparkdelta.{floor}")):
            assert rooms.split(" > ") == expected


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)
    assert set(named) <= targets
