"""Which kind of Spark session this is, how its failures look, and the sessions of our own."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

SPARK_ERRORS: tuple[type[Exception], ...]
"""What a failed query raises: PySpark leaves some of the JVM's exceptions as py4j brings them."""

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a client of Spark Connect alone
    SPARK_ERRORS = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JJavaError)


_PARTITIONS = "spark.sql.shuffle.partitions"


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect, which has no JVM at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


_WRITING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.unionOutputPartitioning": "false",  # else adds and removes meet in one partition
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
"""What files of the log depend on and Spark's writers take from nowhere but a session."""


_Siblings: TypeAlias = "weakref.WeakKeyDictionary[SparkSession, SparkSession]"
_writing: _Siblings = weakref.WeakKeyDictionary()


@contextmanager
def session_of_one_write(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of Spark Connect beside the user's, where expressions of a table mean the same
    whatever the user has set; gone afterwards.
    """
    with _remote_session(spark, _COMPUTING) as session:
        yield session


@contextmanager
def _remote_session(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Another session on the same server, which is left in order: a program would not end."""
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
    """How many tasks run at once, about."""
    if is_connect(spark):
        return int(str(spark.conf.get(_PARTITIONS)))
    return spark.sparkContext.defaultParallelism


@contextmanager
def writing_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session beside the user's that writes the same files whatever the user has set.

    It has the user's settings of Hadoop and of the number of partitions.
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
        if before is not None:  # PySpark makes the session active that makes a frame
            before.createDataFrame([], "nothing INT")
        else:
            from sparkdelta.storage.hadoop import clear_active_session

            clear_active_session(spark)


_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def compile_plans(sibling: SparkSession, *, wanted: bool) -> None:
    """Say whether plans of a session of `writing_session` are compiled.

    For few rows that takes longer than to interpret them. Writers of one session may undo each
    other's wish, which costs time alone.
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
    "spark.sql.adaptive.enabled": "true",  # or a hint to shuffle by size is none
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""What the expressions of a table depend on."""

_computing: _Siblings = weakref.WeakKeyDictionary()


def computing_session(spark: SparkSession) -> SparkSession:
    """A session beside the user's in which expressions of a table mean the same whatever the user
    has set.
    """
    return _sibling(spark, _computing, _COMPUTING)


def _sibling(spark: SparkSession, known: _Siblings, settings: Mapping[str, str]) -> SparkSession:
    sibling = known.get(spark)
    if sibling is None:
        sibling = spark.newSession()
        _set(sibling, settings)
        known[spark] = sibling
    return sibling


def _set(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        sibling.conf.set(key, value)
    if sibling.conf.get(_ESCAPED_LITERALS) != "false":  # setting it logs that it is deprecated
        sibling.conf.set(_ESCAPED_LITERALS, "false")


_ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
