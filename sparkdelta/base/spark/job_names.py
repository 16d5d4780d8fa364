"""Descriptions of Spark jobs for the Spark UI: the step, the table and the version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.spark_engine import engine_of

_table: ContextVar[tuple[str, Version | None] | None] = ContextVar("sparkdelta table", default=None)


@contextmanager
def jobs_of(table: str, version: Version | None = None) -> Iterator[None]:
    """Set the table of the jobs that are started in a block; an inner block takes precedence.

    Parameters
    ----------
    version
        The version that is read or that a write is based on; None if it is not known yet.
    """
    token = _table.set((table, version))
    try:
        yield
    finally:
        _table.reset(token)


@contextmanager
def named_jobs(spark: SparkSession, step: str, *, version: Version | None = None) -> Iterator[None]:
    """Describe the Spark jobs that this thread starts in a block, and restore the user's
    description afterwards.

    On classic Spark this is the job description, independent of the job group; on Spark Connect it
    is a tag.
    """
    with engine_of(spark).named_jobs(job_name(step, version)):
        yield


def job_name(step: str, version: Version | None = None) -> str:
    """Return the description of the jobs of a step.

    Examples
    --------
    >>> with jobs_of("file:/data/people", 3):
    ...     job_name("files of a scan")
    'sparkdelta: files of a scan, version 3 of file:/data/people'
    """
    table, default_version = _table.get() or (None, None)
    version = default_version if version is None else version
    of_version = "" if version is None else f", version {version}"
    of_table = "" if table is None else f" of {table}" if of_version else f", {table}"
    return f"sparkdelta: {step}{of_version}{of_table}"
