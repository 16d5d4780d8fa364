"""Counts of Spark jobs and of calls of the JVM on classic Spark, and the shape of plans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession

_NODE = re.compile(r"^(?P<indent>[ :+-]*)(?:\*\(\d+\) )?(?P<name>\w.*)$")


@dataclass(slots=True)
class Jobs:
    """The number of Spark jobs that a block started."""

    count: int = 0


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[Jobs]:
    """Count the jobs of a block, whatever thread starts them."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    jobs, before = Jobs(), scheduler.numTotalJobs()
    yield jobs
    jobs.count = scheduler.numTotalJobs() - before


@contextmanager
def no_jobs(spark: SparkSession) -> Iterator[None]:
    """Fail if the block starts a Spark job; Spark Connect does not show them."""
    if "connect" in type(spark).__module__:
        yield
        return
    with counted_jobs(spark) as jobs:
        yield
    assert jobs.count == 0, f"{jobs.count} Spark jobs were started"


@contextmanager
def counted_tasks(spark: SparkSession) -> Iterator[list[int]]:
    """The tasks of each stage that a block started."""
    scheduler, tracker = (
        spark.sparkContext._jsc.sc().dagScheduler(),
        spark.sparkContext.statusTracker(),
    )
    tasks: list[int] = []
    before = scheduler.numTotalJobs()
    yield tasks
    for number in range(before, scheduler.numTotalJobs()):
        job = tracker.getJobInfo(number)
        stages = [tracker.getStageInfo(stage) for stage in job.stageIds] if job else []
        tasks += [stage.numTasks for stage in stages if stage]


def files_read(frame: DataFrame) -> list[int]:
    """The number of files that each Parquet scan of a frame read when it was last collected."""
    return [
        node.metrics().get("numFiles").get().value()
        for node in _executed(frame._jdf.queryExecution().executedPlan())
        if node.nodeName().startswith("Scan parquet")
    ]


def shuffled_rows(frame: DataFrame) -> list[tuple[list[str], int]]:
    """The columns and the number of rows of each shuffle when the frame was last collected."""
    return [
        (_columns(node), node.metrics().get("shuffleRecordsWritten").get().value())
        for node in _executed(frame._jdf.queryExecution().executedPlan())
        if node.nodeName() == "Exchange"
    ]


def _executed(node: Any) -> Iterator[Any]:
    """The operators of a plan after adaptive execution."""
    yield node
    if node.nodeName() == "AdaptiveSparkPlan":
        yield from _executed(node.executedPlan())
    elif node.nodeName().endswith("QueryStage"):
        yield from _executed(node.plan())
    children = node.children()
    for number in range(children.size()):
        yield from _executed(children.apply(number))


def _columns(node: Any) -> list[str]:
    output = node.output()
    return [str(output.apply(n).name()) for n in range(output.size())]


def jvm_calls(spark: SparkSession, action: Callable[[], object]) -> int:
    """Count an action's calls of the JVM, without the news of objects that Python has let go."""
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    with patch.object(client, "send_command", wraps=client.send_command) as calls:
        action()
    return sum(not call.args[0].startswith(MEMORY_COMMAND_NAME) for call in calls.mock_calls)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a physical plan.

    Attributes
    ----------
    above
        The names of the operators between it and the root, nearest first.
    """

    text: str
    above: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.text.split(" ")[0]


def plan(frame: DataFrame) -> list[Node]:
    """The operators of a frame's physical plan before adaptive execution, root first."""
    rows: Any = frame
    if "connect" in type(frame).__module__:
        text = rows._explain_string()
    else:
        text = rows._jdf.queryExecution().executedPlan().toString()
    stack: list[tuple[int, str]] = []
    nodes = []
    for line in text.splitlines():
        match = _NODE.match(line)
        if match is None or match["name"].startswith("=="):
            continue
        depth = len(match["indent"])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        name = match["name"].split(" ")[0].split("(")[0]
        nodes.append(Node(match["name"], tuple(name for _, name in reversed(stack))))
        stack.append((depth, name))
    return nodes


def shuffled_columns(frame: DataFrame) -> list[list[str]]:
    """The columns of each shuffle in a frame's physical plan before adaptive execution."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    stack, found = [plan.initialPlan() if "Adaptive" in plan.nodeName() else plan], []
    while stack:
        node = stack.pop()
        children = node.children()
        if node.nodeName() == "Exchange":
            found.append(_columns(node))
        stack += [children.apply(n) for n in range(children.size())]
    return found
