"""Failures of the Spark jobs that write data files, as errors that say the likely cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException

from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.exceptions import DeltaError

_LONGEST = 500
_CAUSE = re.compile(r"^(?:Caused by)?: (.+)$", re.M)
_TASK = re.compile(r"^.*? failed \d+ times, most recent failure: (?:Lost task .*?\): )?")
_PLACE = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)
_PACKAGE = re.compile(r"^(?:[a-z_$][\w$]*\.)+(?=[A-Z])")
_REMEDIES = {
    r"No space left on device|Disk quota exceeded": (
        "The disk is full: free some space, there or in spark.local.dir"
    ),
    r"unmappable characters": (
        "Java takes names of files for those of another locale: start driver and executors with "
        "LC_ALL=C.UTF-8"
    ),
    r"Permission denied|AccessControlException|AccessDenied": (
        "Give the user of the executors the right to write there"
    ),
    r"Mkdirs failed|File name too long": (
        "The executors cannot make this directory: it may be closed to them, or a partition value "
        "be longer than the name of a directory may be"
    ),
    r"OutOfMemoryError|Java heap space|ExecutorLostFailure": (
        "Give the executors more memory, or the rows more partitions"
    ),
    r"Python worker exited": (
        "A Python worker died, of a lack of memory or in native code; "
        "spark.python.worker.faulthandler.enabled tells where"
    ),
}
_ELSE = "The cause of this error has all that Spark says of it"


@contextmanager
def write_failures(path: str) -> Iterator[None]:
    """Raise the failure of a job as a `DELTA_WRITE_FAILED`, with Spark's error as its cause.

    An error of a query's analysis stays PySpark's AnalysisException.
    """
    try:
        yield
    except (DeltaError, AnalysisException):
        raise
    except SPARK_ERRORS as error:
        problem, remedy = likely_cause(str(error))
        raise DeltaError.of(
            "DELTA_WRITE_FAILED", path=path, problem=problem, remedy=remedy
        ) from error


def likely_cause(text: str) -> tuple[str, str]:
    """Return the innermost cause in the text of a Spark error, as one line, and a remedy."""
    _, _, trace = text.partition("Traceback (most recent call last):\n")
    if trace:
        problem, remedy = _raised(trace), "The rows' own Python code raised it"
    else:
        causes = [cause for cause in _CAUSE.findall(text) if ": " in cause]
        problem = _TASK.sub("", causes[-1] if causes else text.partition("\n")[0])
        remedy = _ELSE
    problem = _PACKAGE.sub("", problem)[:_LONGEST].strip().rstrip(".")
    for pattern, likely in _REMEDIES.items():
        if re.search(pattern, problem):
            return problem, likely
    return problem, remedy


def _raised(trace: str) -> str:
    """Return the last line of a Python traceback, and the place that raised it."""
    own = trace.partition("\n\tat ")[0]  # before the stack of Java
    raised, place = own, ""
    for found in _PLACE.finditer(own):
        rest = own[found.end() :].splitlines()
        raised = next((line for line in rest if line and not line[0].isspace()), own)
        place = f" ({found['file']}, line {found['line']}, in {found['name']})"
    return raised + place
