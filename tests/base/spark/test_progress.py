"""A bar where a person looks, while something takes long; and never anything else."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import DeltaTable, load_snapshot, read_delta
from sparkdelta.base.spark import progress as module
from sparkdelta.base.spark.classic_engine import ClassicEngine, RunningTasks
from sparkdelta.base.spark.connect_engine import ConnectEngine
from sparkdelta.base.spark.progress import progress
from sparkdelta.table.scan import scan as scanning
from sparkdelta.table.snapshot import snapshot as loading
from tests.support.table_builder import create, ids, write_data

pytest.importorskip("rich")
LONG = 20.0
"""Seconds after which a test gives up waiting; none takes them."""


class Terminal(io.StringIO):
    """Standard error of someone who looks on."""

    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal from now on; no fixture, since pytest sets standard error anew for each test."""
    fake = Terminal()
    monkeypatch.setattr(sys, "stderr", fake)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(module, "_REFRESH_SECONDS", 0.01)
    return fake


@pytest.fixture(autouse=True)
def nothing_left_behind(spark: SparkSession) -> Iterator[None]:
    """No thread, and no local property."""
    threads, context = set(threading.enumerate()), spark.sparkContext
    context.setLocalProperty("test.own", "kept")
    before = _local_properties(spark)
    yield
    assert set(threading.enumerate()) <= threads
    assert _local_properties(spark) == before
    context.setLocalProperty("test.own", None)  # type: ignore[arg-type]  # None takes it away


def _local_properties(spark: SparkSession) -> dict[str, str]:
    found = spark.sparkContext._jsc.sc().getLocalProperties()
    return {name: found.getProperty(name) for name in found.stringPropertyNames()}


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_progress_is_shown_and_taken_away(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = at_terminal(monkeypatch)
    with progress(spark, "Counting sheep", is_on=True):
        wait_until(lambda: "Counting sheep" in terminal.getvalue())
        assert "0:00:0" in terminal.getvalue()
    assert terminal.getvalue().endswith(
        "\x1b[?25h\r\x1b[1A\x1b[2K"
    )  # the cursor is back, the line gone


@pytest.mark.slow
def test_tasks_are_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of two tasks waits until the bar has said that the other is finished."""
    terminal = at_terminal(monkeypatch)
    seen = tmp_path / "seen"

    def touch() -> None:
        wait_until(lambda: "1 of 2 tasks" in terminal.getvalue())
        seen.touch()

    helper = threading.Thread(target=touch)
    helper.start()
    with progress(spark, "Waiting", is_on=True):
        assert _half_waits_for(spark, seen).count() == 2
    helper.join()


def _half_waits_for(spark: SparkSession, file: Path) -> DataFrame:
    path, seconds = str(file), LONG

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        for batch in batches:
            end = time.monotonic() + seconds
            while 1 in batch["id"].to_pylist() and not os.path.exists(path):
                assert time.monotonic() < end
                time.sleep(0.02)
            yield batch

    return spark.range(0, 2, 1, 2).mapInArrow(wait, "id LONG")


def test_jobs_of_others_are_not_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that ran before, and those of another job group."""
    stage = SimpleNamespace(numTasks=7, numCompletedTasks=3)
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: [1, 2, 3],
        getJobIdsForGroup=lambda group: {"mine": [1, 2]}[group],
        getJobInfo=lambda job: SimpleNamespace(stageIds=[job * 10]),
        getStageInfo=lambda stage_id: stage if stage_id < 30 else None,
    )
    in_group: Any = RunningTasks(tracker, frozenset([1]), "mine")
    in_none: Any = RunningTasks(tracker, frozenset(), None)
    assert in_group.counts() == (3, 7)
    assert in_none.counts() == (6, 14)
    tracker.getActiveJobsIds = list
    assert in_group.counts() == (7, 7)


def test_fast_work_shows_no_progress(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    monkeypatch.setattr(module, "DELAY_SECONDS", LONG)
    with progress(spark, "Fast", is_on=True):
        pass
    assert terminal.getvalue() == ""


def test_where_nobody_looks_nothing_starts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = at_terminal(monkeypatch)
    threads = threading.active_count()
    with progress(spark, "Off", is_on=False):
        assert threading.active_count() == threads
    for unwatched in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", unwatched)
        with progress(spark, "Unseen", is_on=True):
            assert threading.active_count() == threads
    assert terminal.getvalue() == ""


def test_sparks_own_bar_is_enough(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    at_terminal(monkeypatch)
    own = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: "true"))
    monkeypatch.setattr(module, "engine_of", ClassicEngine)
    with progress(own, "Twice", is_on=True):  # type: ignore[arg-type]  # all it is asked for
        assert "sparkdelta progress" not in {thread.name for thread in threading.enumerate()}


def test_spark_connect_shows_the_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    monkeypatch.setattr(module, "engine_of", ConnectEngine)
    with progress(None, "Far away", is_on=True):  # type: ignore[arg-type]  # it is asked nothing
        wait_until(lambda: "0:00:0" in terminal.getvalue())
    assert "tasks" not in terminal.getvalue()


@pytest.mark.parametrize("broken", ["rich", "terminal", "tracker"])
def test_a_bar_that_fails_fails_no_query(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    terminal = at_terminal(monkeypatch)
    tried = threading.Event()

    def fail(*_: Any) -> Any:
        tried.set()
        raise OSError("broken")

    if broken == "rich":
        monkeypatch.setitem(sys.modules, "rich.console", None)
        tried.set()
    elif broken == "terminal":
        monkeypatch.setattr(terminal, "write", fail)
    else:
        monkeypatch.setattr(RunningTasks, "counts", fail)
    with progress(spark, "Broken", is_on=True):
        assert spark.range(3).count() == 3
        assert tried.wait(LONG)


def test_the_querys_own_error_comes_through(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    with pytest.raises(KeyError, match="mine"), progress(spark, "Failing", is_on=True):
        raise KeyError("mine")


def test_a_notebook_gets_a_display(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    at_terminal(monkeypatch)
    shown: list[Any] = []

    def display(content: Any, display_id: bool) -> Any:
        assert display_id
        shown.append(content)
        return SimpleNamespace(update=lambda content, raw=False: shown.append(content))

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(spark, "Leafing", is_on=True):
        wait_until(lambda: len(shown) > 2)
    assert "Leafing" in shown[0]._repr_mimebundle_([], [])["text/html"]
    assert shown[-1] == {"text/plain": ""}


def test_a_half_imported_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may be importing it: pandas does, on its first use."""
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not module.is_watched()


def test_where_bars_are_shown(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a snapshot loads, files are found and counted; by our own verbs, unless told not to."""
    create(table, write_data(table, "f", ids(0, 3)))
    shown: list[tuple[str, bool]] = []

    def record(spark: SparkSession, what: str, *, is_on: bool) -> Any:
        shown.append((what.split()[0], is_on))
        return progress(spark, what, is_on=False)

    for user in (loading, scanning):
        monkeypatch.setattr(user, "progress", record)
    read_delta(spark, str(table))
    cached = load_snapshot(spark, str(table)).refresh().cache()
    cached.scan().report()
    cached.uncache()
    read_delta(spark, str(table), progress=False)
    DeltaTable.forPath(spark, str(table)).toDF()
    assert shown == [
        ("Loading", True), ("Finding", True), ("Loading", True), ("Counting", True),
        ("Loading", False), ("Finding", False), ("Loading", False), ("Finding", False),
    ]  # fmt: skip
