"""Progress bar on the driver for long-running queries.

It only observes: no setting or local property is changed, and its own errors are suppressed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from sparkdelta.base.spark.spark_engine import engine_of

if TYPE_CHECKING:
    from rich.progress import Progress

    from sparkdelta.base.spark.classic_engine import RunningTasks

DELAY_SECONDS = 1.0
"""Time after which a progress bar is shown."""

_REFRESH_SECONDS = 0.25


@contextmanager
def progress(spark: SparkSession, what: str, *, is_on: bool) -> Iterator[None]:
    """Show a progress bar once a block takes longer than DELAY_SECONDS, with the elapsed time and,
    on classic Spark, the number of finished tasks.

    Nothing is shown if rich is missing, if standard error is neither a terminal nor a notebook, or
    if Spark shows its own bar in the terminal.

    Parameters
    ----------
    is_on
        True if the bar is enabled.
    """
    watcher = _start(spark, what) if is_on and is_watched() else None
    try:
        yield
    finally:
        if watcher is not None:
            watcher.stop()


def is_watched() -> bool:
    """Return True if output is shown to a user, in a terminal or a notebook."""
    return _in_notebook() or bool(sys.stderr and sys.stderr.isatty())


def _in_notebook() -> bool:
    # Another thread may be importing IPython, so that its names are not defined yet.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and getattr(get_ipython(), "kernel", None) is not None


def _start(spark: SparkSession, what: str) -> _Watcher | None:
    with suppress(Exception):  # here and below: an error of the bar must not fail the query
        engine = engine_of(spark)
        if engine.shows_progress_bar and not _in_notebook():
            return None
        watcher = _Watcher(what, engine.task_counter())
        watcher.thread.start()
        return watcher
    return None


class _Watcher:
    """A thread that draws the bar after the delay until it is stopped."""

    def __init__(self, what: str, tasks: RunningTasks | None) -> None:
        self._what = what
        self._tasks = tasks
        self._started = time.monotonic()
        self._is_done = threading.Event()
        self.thread = threading.Thread(target=self._run, name="sparkdelta progress", daemon=True)

    def stop(self) -> None:
        self._is_done.set()
        self.thread.join()

    def _run(self) -> None:
        if not self._is_done.wait(DELAY_SECONDS):
            with suppress(Exception):
                self._draw()

    def _draw(self) -> None:
        from rich.console import Console  # optional dependency: no bar without it
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[tasks]}"),
            TimeElapsedColumn(),
        )
        bar = Progress(
            *columns,
            console=Console(stderr=True, force_jupyter=False),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,  # leave the user's streams alone
            redirect_stderr=False,
        )
        bar.add_task(self._what, total=None, tasks="")
        bar.tasks[0].start_time = self._started
        if _in_notebook():
            self._draw_in_notebook(bar)
            return
        with bar:
            while self._update(bar):
                bar.refresh()

    def _draw_in_notebook(self, bar: Progress) -> None:
        from IPython.display import display

        table = bar.make_tasks_table(bar.tasks)
        handle = display(table, display_id=True)  # type: ignore[no-untyped-call]  # IPython's
        try:
            while self._update(bar):
                handle.update(bar.make_tasks_table(bar.tasks))
        finally:
            handle.update({"text/plain": ""}, raw=True)

    def _update(self, bar: Progress) -> bool:
        """Update the bar after a short wait; return False once the watcher is stopped."""
        if self._tasks is not None:
            finished, total = self._tasks.counts()
            if total:
                text = f"{finished:,} of {total:,} tasks"
                bar.update(bar.tasks[0].id, completed=finished, total=total, tasks=text)
        return not self._is_done.wait(_REFRESH_SECONDS)
