"""The likely cause that the text of Spark's error gives."""

from __future__ import annotations

import pytest

from sparkdelta.table.rows.job_failures import likely_cause

_STACK = "\n\tat org.apache.spark.Task.run(Task.scala:1)\n\t... 1 more\n"
_TASK = (
    "An error occurred while calling o7.save.\n: org.apache.spark.SparkException: "
    f"[TASK_WRITE_FAILED] Task failed while writing rows.{_STACK}Caused by: "
)
_STAGE = (
    "An error occurred while calling o7.save.\n: org.apache.spark.SparkException: "
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 1.0 (TID 3) (host executor 1): "
)
_FULL = f"{_TASK}java.io.IOException: No space left on device{_STACK}"
_NAME = f"{_TASK}java.nio.file.InvalidPathException: unmappable characters: /t/p=?{_STACK}"
_LOST = f"{_STAGE}ExecutorLostFailure (executor 1 exited) Reason: gone{_STACK}"
_WORKER = (
    f"{_STAGE}org.apache.spark.SparkException: Python worker exited unexpectedly.{_STACK}"
    f"Caused by: java.io.EOFException{_STACK}"
)
_PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/w/worker.py", line 1, in main
    run()
  File "/home/me/job.py", line 7, in own
    raise ValueError("a: b")
    ^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: a: b
with more
"""
_QUERY = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\nselect 1/0"


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (_FULL, "IOException: No space left on device", "disk"),
        (_NAME, "InvalidPathException: unmappable characters: /t/p=?", "LC_ALL"),
        (_LOST, "ExecutorLostFailure (executor 1 exited) Reason: gone", "memory"),
        (_WORKER, "SparkException: Python worker exited unexpectedly", "Python worker"),
        (_PYTHON, "ValueError: a: b (/home/me/job.py, line 7, in own)", "Python code"),
        (_QUERY, "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "cause"),
    ],
)
def test_the_innermost_cause(text: str, problem: str, hint: str) -> None:
    found, remedy = likely_cause(text)
    assert found == problem
    assert hint in remedy
