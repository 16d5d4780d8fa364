"""The exceptions of Spark, and a block that keeps them out of PySpark's log, which adds the JVM's
stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import LogRecord

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

SPARK_ERRORS: tuple[type[Exception], ...]
"""Exceptions of a failed query: PySpark does not convert all Py4J errors."""

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a pure Spark Connect client
    SPARK_ERRORS = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JJavaError)

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
