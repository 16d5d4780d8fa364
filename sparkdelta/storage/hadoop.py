"""Paths, sessions and plans of Spark, through the JVM of classic Spark.

With the modules named `hadoop_` the only one that may touch `spark._jvm`. Nothing in them changes a
setting of the user's session.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from sparkdelta.exceptions import FileSystemNotFoundError, StorageError
from sparkdelta.storage.parquet import WRITE_OPTIONS, WRITE_SETTINGS, committer_settings


def qualify(spark: SparkSession, path: str, hadoop_conf: Mapping[str, str]) -> str:
    """The path as Spark names it: with scheme and authority, decoded, without a trailing slash.

    Raises
    ------
    FileSystemNotFoundError
        Spark has no file system of the path's scheme.
    StorageError
        The path is malformed, or its file system cannot be set up.
    """
    jvm: Any = spark._jvm
    with storage_errors(path):
        try:
            hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
            file_system = hadoop_path.getFileSystem(hadoop_configuration(spark, hadoop_conf))
            return str(file_system.makeQualified(hadoop_path).toString())
        except Py4JJavaError as error:
            if not re.search(_NO_FILE_SYSTEM, str(error.java_exception)):
                raise
            scheme = path.partition(":")[0]
            version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            raise FileSystemNotFoundError(
                path=path, scheme=scheme, remedy=_remedy(scheme.lower(), str(version))
            ) from None


_NO_FILE_SYSTEM = "UnsupportedFileSystemException|ClassNotFoundException"
_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{version}",
    "abfs": "org.apache.hadoop:hadoop-azure:{version}",
    "abfss": "org.apache.hadoop:hadoop-azure:{version}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}


def _remedy(scheme: str, version: str) -> str:
    instead = "s3a" if scheme in ("s3", "s3n") else scheme
    if instead not in _PACKAGES:
        return "Use a scheme that Spark has a file system for, such as file:, hdfs: or s3a:"
    package = f"the package {_PACKAGES[instead].format(version=version)} (spark.jars.packages)"
    if instead == scheme:
        return f"Start Spark with {package}"
    return f"Use {instead}:// instead, which takes {package}"


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Raise the JVM's errors about a file as `StorageError`, without the stack trace.

    Raises
    ------
    FileNotFoundError
        It is not there; its `filename` is the path.
    StorageError
    """
    try:
        yield
    except Py4JJavaError as error:
        if is_not_found(error):
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None
        raise StorageError(path=path, problem=_problem(error.java_exception)) from None
    except IllegalArgumentException as error:
        raise StorageError(path=path, problem=_problem(error)) from None


def _problem(error: object) -> str:
    """The first line of an error of Java, with the class but not its package."""
    first = str(error).partition("\n")[0]
    return re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error))", "", first).rstrip(". ")


def hadoop_configuration(spark: SparkSession, hadoop_conf: Mapping[str, str]) -> Any:
    """Hadoop's configuration of the session, with these settings above it."""
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in hadoop_conf.items():
        configuration.set(key, value)
    return configuration


def settings(
    spark: SparkSession, names: Sequence[str], hadoop_conf: Mapping[str, str]
) -> dict[str, str]:
    """The Hadoop settings of these names that the session has."""
    configuration = hadoop_configuration(spark, hadoop_conf)
    values = {name: configuration.get(name) for name in names}
    return {name: str(value) for name, value in values.items() if value is not None}


def is_not_found(error: Py4JJavaError) -> bool:
    """Whether a file is not there."""
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


def write_parquet(
    rows: DataFrame,
    directory: str,
    *,
    partition_by: Sequence[str],
    options: Mapping[str, str],
    settings: Mapping[str, str],
) -> None:
    """Write rows into a new directory by Spark's own Parquet writer.

    The write belongs to a copy of the user's session that has our settings of the writer, and all
    other settings as they are: the plan of the rows is the user's.

    Parameters
    ----------
    partition_by
        Columns whose values name directories, and are not in the files.
    options
        Options of Spark's Parquet source.
    settings
        Of this write alone.
    """
    spark = rows.sparkSession
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    sibling = spark._jsparkSession.cloneSession()
    committers = committer_settings(sibling.conf().get)
    for key, value in {**WRITE_SETTINGS, **committers, **settings}.items():
        sibling.conf().set(key, value)
    plan = rows._jdf.queryExecution().analyzed()
    writer = jvm.org.apache.spark.sql.classic.Dataset.ofRows(sibling, plan).write()
    names = gateway.new_array(jvm.java.lang.String, len(partition_by))
    for index, name in enumerate(partition_by):
        names[index] = name
    for key, value in {**options, **WRITE_OPTIONS}.items():
        writer = writer.option(key, value)
    writer.format("parquet").mode("errorifexists").partitionBy(names).save(directory)


@contextmanager
def rows_in(rows: DataFrame, session: SparkSession) -> Iterator[DataFrame]:
    """The same rows in another session of the application: what is selected from them meanwhile
    means what it means there.
    """
    jvm: Any = session._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield moved_rows(rows, session)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def clear_active_session(spark: SparkSession) -> None:
    """Leave the thread without a session of its own, as it was."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()


def read_options_named(rows: DataFrame, name: str) -> set[str]:
    """The values that an option has in the file relations of a plan and of its subqueries."""
    plan = rows._jdf.queryExecution().analyzed()
    subqueries = plan.subqueriesAll()
    plans = [plan, *(subqueries.apply(number) for number in range(subqueries.size()))]
    values = set()
    for each in plans:
        leaves = each.collectLeaves()
        for leaf in (leaves.apply(number) for number in range(leaves.size())):
            if leaf.getClass().getSimpleName() != "LogicalRelation":
                continue
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                value = relation.options().get(name)
                values |= {str(value.get())} if value.isDefined() else set()
    return values


def moved_rows(rows: DataFrame, session: SparkSession) -> DataFrame:
    """The same rows, as a frame of another session of the application."""
    jvm: Any = session._jvm
    plan = rows._jdf.queryExecution().analyzed()
    moved = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return ClassicDataFrame(moved, session)


def texts(jvm: Any, array: Any) -> str:
    """The texts of an array's elements, a line each, in one call instead of one per element."""
    return str(sequence(jvm, array).mkString("\n"))


def sequence(jvm: Any, array: Any) -> Any:
    """An array as Scala's immutable sequence."""
    wrapper = getattr(getattr(jvm.scala.collection.immutable, "ArraySeq$"), "MODULE$")
    return wrapper.unsafeWrapArray(array)
