"""A bar on the driver while a query takes long, where a person looks.

It only ever looks on: no setting and no local property is touched, and whatever fails in it stays
in it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import StatusTracker
from pyspark.sql import SparkSession

from sparkdelta.engine.sessions import is_connect

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY_SECONDS = 1.0
"""What takes no longer than this shows nothing."""

_EVERY_SECONDS = 0.25
_JOB_GROUP = "spark.jobGroup.id"
_SPARKS_OWN_BAR = "spark.ui.showConsoleProgress"


@contextmanager
def progress(spark: SparkSession, what: str, *, is_on: bool) -> Iterator[None]:
    """Show what is being done, once it takes longer than DELAY_SECONDS: the time elapsed and, on
    classic Spark, how many tasks are finished.

    Nothing is shown without rich, where standard error is neither a terminal nor a notebook's, and
    in a terminal where Spark shows a bar of its own.

    Parameters
    ----------
    is_on
        Whether a bar is wanted at all.
    """
    watcher = _start(spark, what) if is_on and is_watched() else None
    try:
        yield
    finally:
        if watcher is not None:
            watcher.stop()


def is_watched() -> bool:
    """Whether a person is likely to look on: at a terminal, or in a notebook."""
    return _in_notebook() or bool(sys.stderr and sys.stderr.isatty())


def _in_notebook() -> bool:
    # Another thread may be importing it now, so that its names are not there yet.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and getattr(get_ipython(), "kernel", None) is not None


def _start(spark: SparkSession, what: str) -> _Watcher | None:
    with suppress(Exception):  # here and below: a picture never fails a query
        tasks = None
        if not is_connect(spark):
            if not _in_notebook() and spark.conf.get(_SPARKS_OWN_BAR, "false") == "true":
                return None
            tasks = _Tasks.from_now_on(spark)
        watcher = _Watcher(what, tasks)
        watcher.thread.start()
        return watcher
    return None


class _Watcher:
    """A thread that waits, then draws until it is told to stop."""

    def __init__(self, what: str, tasks: _Tasks | None) -> None:
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
        from rich.console import Console  # an extra: where it is missing, there is no bar
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
            redirect_stdout=False,  # they are the user's
            redirect_stderr=False,
        )
        bar.add_task(self._what, total=None, tasks="")
        bar.tasks[0].start_time = self._started
        if _in_notebook():
            self._draw_in_notebook(bar)
            return
        with bar:
            while self._moves(bar):
                bar.refresh()

    def _draw_in_notebook(self, bar: Progress) -> None:
        from IPython.display import display

        table = bar.make_tasks_table(bar.tasks)
        handle = display(table, display_id=True)  # type: ignore[no-untyped-call]  # IPython's
        try:
            while self._moves(bar):
                handle.update(bar.make_tasks_table(bar.tasks))
        finally:
            handle.update({"text/plain": ""}, raw=True)

    def _moves(self, bar: Progress) -> bool:
        """Wait a little and bring the bar up to date; False once there is nothing to wait for."""
        if self._tasks is not None:
            finished, total = self._tasks.counts()
            if total:
                text = f"{finished:,} of {total:,} tasks"
                bar.update(bar.tasks[0].id, completed=finished, total=total, tasks=text)
        return not self._is_done.wait(_EVERY_SECONDS)


@dataclass(slots=True)
class _Tasks:
    """The tasks of the jobs that were started since; of other threads, too, unless jobs run in a
    group.

    Attributes
    ----------
    others
        Jobs that ran before.
    group
        The job group of the thread that asked.
    stages
        Tasks finished and all, of each stage that was seen.
    """

    tracker: StatusTracker
    others: frozenset[int]
    group: str | None
    stages: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def from_now_on(cls, spark: SparkSession) -> _Tasks:
        context = spark.sparkContext
        tracker = context.statusTracker()
        others = frozenset(tracker.getActiveJobsIds())
        return cls(tracker, others, context.getLocalProperty(_JOB_GROUP))

    def counts(self) -> tuple[int, int]:
        """Tasks finished, and all that are known of so far."""
        jobs = set(self.tracker.getActiveJobsIds()) - self.others
        if self.group is not None:
            jobs &= set(self.tracker.getJobIdsForGroup(self.group))
        self.stages = {stage: (total, total) for stage, (_, total) in self.stages.items()}
        for job in jobs:
            info = self.tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = self.tracker.getStageInfo(stage)
                if found is not None:
                    self.stages[stage] = (found.numCompletedTasks, found.numTasks)
        finished = sum(finished for finished, _ in self.stages.values())
        return finished, sum(total for _, total in self.stages.values())
