"""Keep errors that become short ones out of PySpark's log, which has the JVM's stack of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import LogRecord

from pyspark.logger import PySparkLogger

_NAMES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_IS_QUIET = ContextVar("is_quiet", default=False)


@contextmanager
def unlogged_errors() -> Iterator[None]:
    """Keep the errors of a block out of the log, in this thread; also a decorator of functions.

    It is for those that become short errors of ours, or none: that there was another one first is
    of no use to anyone.
    """
    for name in _NAMES:
        PySparkLogger.getLogger(name).addFilter(_is_shown)
    before = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(before)


def _is_shown(record: LogRecord) -> bool:  # noqa: ARG001 - of any record
    return not _IS_QUIET.get()
