"""Every notebook runs, and prints what is saved in it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

from jupyter_client.kernelspec import KernelSpecManager  # noqa: E402 - comes with nbclient
from jupyter_client.manager import AsyncKernelManager  # noqa: E402

from tests.support.shown import shown_rows  # noqa: E402

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGE = ROOT / "notebooks" / "02_plan_a_large_table.ipynb"
CHECKPOINTS = ROOT / "notebooks" / "03_checkpoints.ipynb"
STREAMS = ROOT / "notebooks" / "04_changes_and_streams.ipynb"
PIPELINE = ROOT / "notebooks" / "05_pipeline.ipynb"
SAVED_FILES = {LARGE: 1_000_000, CHECKPOINTS: 120_000}
TESTED_FILES = {LARGE: 20_000, CHECKPOINTS: 12_000}
"""The numbers of files of the logs with which notebooks are saved, and executed here."""
TIMEOUT_SECONDS = 300

pytestmark = [
    pytest.mark.notebook,
    pytest.mark.full,
    # The kernel's client and its event loop warn of their own doings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def execute(notebook: nbformat.NotebookNode, **environment: str) -> nbformat.NotebookNode:
    """Run a notebook with the interpreter that runs this, whatever kernels are installed.

    Parameters
    ----------
    environment
        Variables for the notebook.

    Returns
    -------
    nbformat.NotebookNode
        A copy with the outputs of this run.
    """
    manager = AsyncKernelManager(
        kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])
    )
    client = nbclient.NotebookClient(
        nbformat.from_dict(notebook), km=manager, timeout=TIMEOUT_SECONDS
    )
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    return client.execute(env=variables, cwd=str(ROOT / "notebooks"))


def _printed(notebook: nbformat.NotebookNode) -> list[str]:
    """The output of each code cell, without the JVM's warnings on stderr."""
    return [
        "".join(o["text"] for o in cell["outputs"] if o.get("name") == "stdout")
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _of_notebook(path: Path) -> Any:
    return pytest.param(
        path, marks=pytest.mark.slow if path in (STREAMS, PIPELINE) else (), id=path.stem
    )


@pytest.mark.parametrize(
    "path", [_of_notebook(path) for path in NOTEBOOKS if path not in SAVED_FILES]
)
def test_notebook_prints_what_is_saved(path: Path) -> None:
    saved = nbformat.read(path, as_version=4)
    assert _printed(execute(saved)) == _printed(saved)


def test_the_quickstart_tells_its_story() -> None:
    """The saved output of the quickstart is what the text around it says."""
    notebook = nbformat.read(ROOT / "notebooks" / "01_quickstart.ipynb", as_version=4)
    (_, tables, rows, segment, values, actions, state, history, travel, selected, error, _) = (
        _printed(notebook)
    )
    assert tables.split()[-2:] == ["00000000000000000013.json", "_last_checkpoint"]
    alice, bob, carol = ["Alice", "47"], ["Bob", "23"], ["Carol", "51"]
    assert shown_rows(rows) == [alice, bob, carol, alice, bob]
    assert "00000000000000000011.checkpoint.parquet" in segment
    assert "['00000000000000000012.json', '00000000000000000013.json']" in segment
    assert "struct<day:string,visitor:string,page:bigint>" in values
    assert shown_rows(actions) == [
        ["12", "add", "day=2024-05-02", "1"],
        ["12", "remove", "day=2024-05-02", "4"],
        ["13", "add", "day=2024-05-03", "1"],
        ["13", "remove", "day=2024-05-03", "4"],
    ]
    assert len(shown_rows(state)) == 6
    assert "tombstones: 8" in state
    assert [row[:2] for row in shown_rows(history)] == [
        ["13", "WRITE"], ["12", "DELETE"], ["11", "WRITE"], ["10", "WRITE"],
    ]  # fmt: skip
    assert shown_rows(travel) == [
        ["2024-05-01", "12", "12"],
        ["2024-05-02", "8", "12"],
        ["2024-05-03", "1", "12"],
    ]
    assert [row[1] for row in shown_rows(selected)] == ["6", "7", "9", "10"]
    assert error.splitlines() == [
        "DELTA_VERSION_NOT_FOUND 22003",
        "the versions there are: 0 to 13",
    ]


def _as_saved_and_as_run(path: Path) -> pytest.MarkDecorator:
    run = pytest.param(TESTED_FILES[path], marks=pytest.mark.slow)
    return pytest.mark.parametrize("files", [SAVED_FILES[path], run])


def _large(path: Path, files: int) -> nbformat.NotebookNode:
    """The notebook as it is saved, with many files, or executed with fewer."""
    notebook = nbformat.read(path, as_version=4)
    if files == SAVED_FILES[path]:
        return notebook
    return execute(notebook, SPARKDELTA_NOTEBOOK_FILES=str(files))


@_as_saved_and_as_run(LARGE)
def test_the_large_table_tells_its_story(files: int) -> None:
    notebook = _large(LARGE, files)
    _, _, loaded, found, report, full, questions, plot, _ = _printed(notebook)
    per_day = files // 250
    assert loaded.split()[-2:] == ["sidecars", "8"]
    assert shown_rows(found) == [["2024-03-01", "40", "49"]]
    assert _files_left(report) == [f"{files:,}", "skipped", "1"]
    assert _files_left(full) == [f"{files:,}", f"{per_day:,}", "1"]
    assert [line.split()[0] for line in questions.splitlines()[:5]] == [
        "1", f"{per_day:,}", "1,900", "250", f"{files:,}",
    ]  # fmt: skip
    assert "row filter only" in questions
    assert plot == ""
    kinds = [set(o["data"]) for o in _displayed(notebook)]
    assert any("text/html" in kind for kind in kinds)
    assert any("image/png" in kind for kind in kinds)


@_as_saved_and_as_run(CHECKPOINTS)
def test_checkpoints_tell_their_story(files: int) -> None:
    notebook = _large(CHECKPOINTS, files)
    _, made, full, _, asked, _, later, _, after, _ = _printed(notebook)
    assert made == f"{files:,} files in the log\n"
    days, sidecars = 30, 60
    by_hash, clustered = map(_numbers, full.splitlines())
    assert (by_hash[0], clustered[0]) == (files, files)
    assert by_hash[1] == sidecars
    assert 0.8 * sidecars <= clustered[1] <= sidecars
    rows = [_numbers(line)[:3] for line in asked.splitlines()[1:]]
    found, opened_by_hash, opened = zip(*rows, strict=True)
    assert found == (files // days // 10, files // days, days, files)
    assert min(opened_by_hash) >= 0.9 * sidecars
    for share, limit in zip(opened, (5, 6, sidecars, sidecars), strict=True):
        assert 1 <= share <= limit
    for line in later.splitlines():
        live, all_of_it, taken_over = _numbers(line)
        assert live == files
        if line.startswith("hash"):
            assert taken_over == 0
        else:
            assert 0.8 * all_of_it < taken_over < all_of_it
    (_, opened_by_hash), (_, opened) = map(_numbers, after.splitlines())
    assert opened < opened_by_hash / 5
    assert sum("image/png" in output["data"] for output in _displayed(notebook)) == 3


def _numbers(line: str) -> list[int]:
    return [int(text.replace(",", "")) for text in re.findall(r"[\d,]*\d", line)]


def _files_left(report: str) -> list[str]:
    """The column `files` of a printed report."""
    names = ("in the table", "after partition values", "after statistics")
    lines = [line for line in report.splitlines() if line.startswith(names)]
    return [re.split(r"  +", line)[1] for line in lines]


def _displayed(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [o for cell in cells for o in cell["outputs"] if "data" in o]
