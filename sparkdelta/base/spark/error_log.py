"""Keeps errors that are replaced or handled out of PySpark's log, which adds the JVM's stack."""

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
    """Keep errors raised in a block out of PySpark's log, in this thread; also a decorator.

    For blocks whose errors are replaced by short ones of this library, or handled.
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
