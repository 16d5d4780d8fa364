"""DELETE, UPDATE, MERGE and overwrites whose process is killed during each of their Spark jobs: the
table reads as before or as after, VACUUM reports the files that are left, and nothing is in the way
of the same operation.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    read_changes,
    read_delta,
    vacuum,
    verify,
    write_delta,
)
from sparkdelta.operations.merge import merge_pairs
from sparkdelta.table.commit import transaction
from sparkdelta.table.rows import modified_files
from sparkdelta.table.scan import scan
from tests.support.spark_worker import SparkWorker, SparkWorkerError
from tests.support.unreferenced import unreferenced

pytestmark = pytest.mark.classic("kills processes of classic sessions")

HERE = "tests.operations.write.test_killed_changes"
AT_ONCE: dict[str, Any] = {"retention_hours": 0, "check_retention": False, "progress": False}
ATTEMPTS = 5
"""At most, to kill a process during a short job."""

Rows = dict[int, int]
BEFORE: Rows = {n: n for n in range(1, 40)}
"""The values of the rows by their ids, in four files."""


def _delete(spark: SparkSession, path: str) -> None:
    """Some rows of three files, and all of another."""
    DeltaTable.forPath(spark, path).delete("id % 10 = 3 OR id BETWEEN 20 AND 29")


def _update(spark: SparkSession, path: str) -> None:
    condition = "id % 10 = 4 AND value < 1000"
    DeltaTable.forPath(spark, path).update(condition, {"value": "value + 1000"})


def _merge(spark: SparkSession, path: str) -> None:
    """Updates, deletes and inserts."""
    source = spark.sql("SELECT explode(array(5L, 15L, 16L, 25L, 100L)) AS key").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.key")
    merge = merge.whenMatchedDelete("key IN (15, 16)")
    merge = merge.whenMatchedUpdate(set={"value": "key + 2000"})
    values = {"id": "key", "value": "key + 2000"}
    merge.whenNotMatchedInsert("key NOT IN (15, 16)", values).execute()


def _replace_where(spark: SparkSession, path: str) -> None:
    rows = spark.range(24, 28, 1, 1).selectExpr("id", "id + 3000 AS value")
    write_delta(rows, path, mode="overwrite", replace_where="id >= 24")


@dataclass(frozen=True)
class Operation:
    """An operation that leaves the same rows if it runs twice.

    Attributes
    ----------
    name
        In history.
    after
        The rows that the table has once it is done.
    changes
        The change data of its commit.
    commits_again
        True if it commits a version, too, when its rows are there.
    """

    run: Callable[[SparkSession, str], None]
    name: str
    after: Rows
    changes: list[tuple[str, int, int]]
    commits_again: bool = False


OPERATIONS = {
    "delete": Operation(
        _delete,
        "DELETE",
        {n: n for n in BEFORE if n % 10 != 3 and n // 10 != 2},
        sorted(("delete", n, n) for n in BEFORE if n % 10 == 3 or n // 10 == 2),
    ),
    "update": Operation(
        _update,
        "UPDATE",
        {n: n + 1000 if n % 10 == 4 else n for n in BEFORE},
        sorted(
            change
            for n in (4, 14, 24, 34)
            for change in (("update_preimage", n, n), ("update_postimage", n, n + 1000))
        ),
    ),
    "merge": Operation(
        _merge,
        "MERGE",
        {n: n for n in BEFORE if n not in (15, 16)} | {n: n + 2000 for n in (5, 25, 100)},
        sorted(
            [
                *(("delete", n, n) for n in (15, 16)),
                *(("update_preimage", n, n) for n in (5, 25)),
                *(("update_postimage", n, n + 2000) for n in (5, 25)),
                ("insert", 100, 2100),
            ]
        ),
        commits_again=True,
    ),
    "replace where": Operation(
        _replace_where,
        "WRITE",
        {n: n for n in BEFORE if n < 24} | {n: n + 3000 for n in range(24, 28)},
        sorted(
            [
                *(("delete", n, n) for n in range(24, 40)),
                *(("insert", n, n + 3000) for n in range(24, 28)),
            ]
        ),
        commits_again=True,
    ),
}


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes
    ----------
    zeros
        Limits of what the driver does by itself that are zero, as if the table were large.
    """

    properties: dict[str, str]
    zeros: tuple[tuple[ModuleType, str], ...] = ()


VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGE_DATA = {"delta.enableChangeDataFeed": "true"}
KINDS = {
    "vectors": Kind(VECTORS),
    "change data": Kind(CHANGE_DATA),
    "large": Kind(
        VECTORS | CHANGE_DATA,
        (
            (modified_files, "MAX_READ_POSITIONS"),
            (modified_files, "MAX_TOUCHED_FILES"),
            (merge_pairs, "MAX_READ_PAIRS"),
            (scan, "MAX_KNOWN_FILES"),
            (transaction, "MAX_VALUE_ACTIONS"),
        ),
    ),
}


# In the process that is killed.


def session(scratch: Path) -> SparkSession:
    """A session in a process group of its own, which runs one task at a time."""
    os.setsid()
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )


@dataclass
class JobListener:
    """A listener of Spark that notes the jobs, and kills its own process during one of them.

    Attributes
    ----------
    kill
        The number of a job, and a moment: ``in a task``, once its first task has started, or
        ``after a task``, once that has ended, and perhaps the job.
    note
        A file that tells, when the process is dead, in which job that was.
    jobs
        The description of each job, and the number of tasks that it started.
    """

    spark: SparkSession
    kill: tuple[int, str] | None
    note: str
    jobs: list[tuple[str, int]] = field(default_factory=list)

    class Java:
        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)

    def __post_init__(self) -> None:
        self.scheduler = self.spark.sparkContext._jsc.sc().dagScheduler()
        self.first_job = self.scheduler.numTotalJobs()
        self.job_of_stage: dict[int, int] = {}

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on"):  # the other events
            return lambda *_: None
        raise AttributeError(name)

    def onJobStart(self, event: Any) -> None:
        stages = event.stageIds()
        for number in range(stages.size()):  # one of an earlier job does not run again
            self.job_of_stage.setdefault(stages.apply(number), len(self.jobs))
        self.jobs.append((event.properties().getProperty("spark.job.description"), 0))

    def onTaskStart(self, event: Any) -> None:
        job = self.job_of_stage[event.stageId()]
        description, tasks = self.jobs[job]
        self.jobs[job] = (description, tasks + 1)
        self._at(job, "in a task")

    def onTaskEnd(self, event: Any) -> None:
        self._at(self.job_of_stage[event.stageId()], "after a task")

    def _at(self, job: int, moment: str) -> None:
        if self.kill != (job, moment):
            return
        is_active = self.scheduler.jobIdToActiveJob().contains(self.first_job + job)
        if moment == "in a task" and not is_active:
            return
        assert os.getpgid(0) == os.getpid(), "the process group has other processes"
        note = {"job": job, "description": self.jobs[job][0], "session": os.getpid()}
        Path(self.note).write_text(json.dumps(note))
        os.killpg(0, signal.SIGKILL)


def run_operation(
    spark: SparkSession,
    operation: str,
    path: str,
    kind: str,
    kill: tuple[int, str] | None = None,
    note: str = "",
) -> list[tuple[str, int]]:
    """Run an operation, and return its jobs."""
    context = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    listener = JobListener(spark, None if kill is None else (kill[0], kill[1]), note)
    context._jsc.sc().addSparkListener(listener)
    with ExitStack() as limits:
        for module, name in KINDS[kind].zeros:
            limits.enter_context(patch.object(module, name, 0))
        OPERATIONS[operation].run(spark, path)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    context._jsc.sc().removeSparkListener(listener)
    return listener.jobs


# In the process of the tests.


@contextmanager
def workers() -> Iterator[Callable[[], SparkWorker]]:
    """Sessions in processes of their own; one is started while the one before is in use."""

    def started() -> SparkWorker:
        worker = SparkWorker(f"{HERE}:session")
        worker.start()
        return worker

    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        pending = [threads.submit(started)]
        stack.callback(lambda: pending[0].result().stop())

        def following() -> SparkWorker:
            worker = pending.pop().result()
            stack.callback(worker.stop)
            pending.append(threads.submit(started))
            return worker

        yield following


def await_end(session: int) -> None:
    """Wait until no process of a session is left: Python workers notice that their JVM is dead."""
    until = time.monotonic() + 60
    while left := [*processes_of(session)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def processes_of(session: int) -> Iterator[str]:
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, _, _, its_session = status.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                yield status.parent.name


def rows_of(spark: SparkSession, path: str) -> Rows:
    found = read_delta(spark, path).collect()
    rows = {row["id"]: row["value"] for row in found}
    assert len(rows) == len(found)
    return rows


def changes_of(spark: SparkSession, path: str, version: int) -> list[tuple[str, int, int]]:
    found = read_changes(spark, path, start_version=version, end_version=version).collect()
    return sorted((row["_change_type"], row["id"], row["value"]) for row in found)


def assert_before_or_after(spark: SparkSession, path: str, operation: str) -> tuple[bool, int]:
    """Return whether the operation was committed, and how many files it left that are of no use."""
    committed = Path(path, "_delta_log", f"{2:020d}.json").exists()
    assert load_snapshot(spark, path).version == (2 if committed else 1)
    assert rows_of(spark, path) == (OPERATIONS[operation].after if committed else BEFORE)
    assert verify(spark, path, footers=True).is_clean
    orphans = {str(file) for file in unreferenced(path)}
    assert not (orphans and committed)
    if orphans:
        assert orphans <= {*vacuum(spark, path, dry_run=True, **AT_ONCE).files}
    return committed, len(orphans)


def assert_done_again(spark: SparkSession, path: str, operation: str, committed: bool) -> None:
    """The operation does what it would have done, and nothing stays of the one that was killed."""
    wanted = OPERATIONS[operation]
    wanted.run(spark, path)
    history = DeltaTable.forPath(spark, path).history().collect()
    versions = 4 if committed and wanted.commits_again else 3
    assert [commit["version"] for commit in history] == [*reversed(range(versions))]
    assert {commit["operation"] for commit in history[:-2]} == {wanted.name}
    if "delta.enableChangeDataFeed" in load_snapshot(spark, path).properties:
        assert changes_of(spark, path, 2) == wanted.changes
    if unreferenced(path):
        vacuum(spark, path, **AT_ONCE)
        assert not unreferenced(path)
    assert rows_of(spark, path) == wanted.after


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_during_each_job(
    spark: SparkSession, tmp_path: Path, kind: str, operation: str
) -> None:
    """PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#add-cdc-file"""
    table, path, note = tmp_path / "table", str(tmp_path / "copy"), tmp_path / "note"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id AS value")
    properties = {**KINDS[kind].properties, "delta.checkpointInterval": "2"}
    write_delta(rows, str(table), properties=properties)
    DeltaTable.forPath(spark, str(table)).delete("id = 0")

    def run(worker: SparkWorker, kill: tuple[int, str] | None) -> Any:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(table, path)
        return worker.run(
            f"{HERE}:run_operation",
            operation=operation, path=path, kind=kind, kill=kill, note=str(note),
        )  # fmt: skip

    with workers() as following:
        jobs = run(following(), None)
        assert assert_before_or_after(spark, path, operation) == (True, 0)
        kills = [(job, "in a task") for job in range(len(jobs))]
        for job, (description, tasks) in enumerate(jobs):
            if tasks > 1 or "data files" in description:
                kills.append((job, "after a task"))
        outcomes = []
        for job, moment in kills:
            for _ in range(ATTEMPTS):
                try:
                    run(following(), (job, moment))
                except SparkWorkerError:
                    break
            else:
                pytest.fail(f"{jobs[job]} was always over when its process was to be killed")
            told = json.loads(note.read_text())
            note.unlink()
            assert (told["job"], told["description"]) == (job, jobs[job][0])
            await_end(told["session"])
            committed, orphans = assert_before_or_after(spark, path, operation)
            outcomes.append((committed, orphans))
            assert_done_again(spark, path, operation, committed)
    assert {committed for committed, _ in outcomes} == {False, True}
    if any("data files" in description for description, _ in jobs):
        assert any(orphans for _, orphans in outcomes)
