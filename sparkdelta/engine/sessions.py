"""Kinds of Spark sessions, the errors they raise, and sessions with this library's own settings."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

SPARK_ERRORS: tuple[type[Exception], ...]
"""Exceptions of a failed query: PySpark does not convert all Py4J errors."""

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a client of Spark Connect alone
    SPARK_ERRORS = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JJavaError)


_PARTITIONS = "spark.sql.shuffle.partitions"


def is_connect(spark: SparkSession) -> bool:
    """True if the session is a Spark Connect client, which has no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


_WRITING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.unionOutputPartitioning": "false",  # else adds and removes share partitions
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""Settings that the contents of log files depend on and that Spark's writers read only from the
session.
"""


_Siblings: TypeAlias = "weakref.WeakKeyDictionary[SparkSession, SparkSession]"
_writing: _Siblings = weakref.WeakKeyDictionary()


@contextmanager
def session_of_one_write(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a Spark Connect session in which a table's SQL expressions do not depend on the user's
    settings; it is released afterwards.
    """
    with _remote_session(spark, _COMPUTING) as session:
        yield session


@contextmanager
def _remote_session(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield another session on the same server and release it afterwards; an open session would
    keep the program from ending.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    connection: Any = spark.client._builder
    sibling = cast(SparkSession, ConnectSession(connection=connection))
    try:
        _set(sibling, settings)
        yield sibling
    finally:
        sibling.client.release_session()
        sibling.client.close()


def parallelism(spark: SparkSession) -> int:
    """Return the approximate number of tasks that run in parallel."""
    if is_connect(spark):
        return int(str(spark.conf.get(_PARTITIONS)))
    return spark.sparkContext.defaultParallelism


@contextmanager
def writing_session(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a session that writes the same files independent of the user's settings.

    It has the user's Hadoop settings and number of shuffle partitions.
    """
    if is_connect(spark):
        with _remote_session(spark, _WRITING) as sibling:
            sibling.conf.set(_PARTITIONS, str(spark.conf.get(_PARTITIONS)))
            yield sibling
        return
    sibling = _sibling(spark, _writing, _WRITING)
    for key, value in spark.conf.getAll.items():
        if not key.startswith("spark.") or key == _PARTITIONS:
            sibling.conf.set(key, value)
    before = SparkSession.getActiveSession()
    try:
        yield sibling
    finally:
        if before is not None:  # createDataFrame makes its session the active one
            before.createDataFrame([], "nothing INT")
        else:
            from sparkdelta.storage.hadoop import clear_active_session

            clear_active_session(spark)


_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def compile_plans(sibling: SparkSession, *, wanted: bool) -> None:
    """Enable or disable code generation in a session of `writing_session`.

    For few rows, compiling a plan takes longer than interpreting it. Concurrent writers share the
    session and may override each other's choice, which only affects speed.
    """
    for key, value in _INTERPRETED.items():
        if wanted:
            sibling.conf.unset(key)
        else:
            sibling.conf.set(key, value)


_COMPUTING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",  # else the hint REBALANCE has no effect
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""Settings that the results of a table's SQL expressions depend on."""

_computing: _Siblings = weakref.WeakKeyDictionary()


def computing_session(spark: SparkSession) -> SparkSession:
    """Return a session in which a table's SQL expressions do not depend on the user's settings."""
    return _sibling(spark, _computing, _COMPUTING)


def _sibling(spark: SparkSession, cache: _Siblings, settings: Mapping[str, str]) -> SparkSession:
    sibling = cache.get(spark)
    if sibling is None:
        sibling = spark.newSession()
        _set(sibling, settings)
        cache[spark] = sibling
    return sibling


def _set(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        sibling.conf.set(key, value)
    if sibling.conf.get(_ESCAPED_LITERALS) != "false":  # setting it logs a deprecation warning
        sibling.conf.set(_ESCAPED_LITERALS, "false")


_ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
