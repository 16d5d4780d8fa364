"""Paths and sessions of classic Spark, through its JVM.

Only this room may access `spark._jvm`. It never changes a setting of the user's session.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyspark
from py4j.java_gateway import JavaClass, JVMView
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from sparkdelta.base.jvm.spark_internals import purpose_of
from sparkdelta.exceptions import DeltaError, SparkMemberNotFoundError, StorageError


class JavaNames:
    """Packages of a JVM, whose attributes are its classes and other packages.

    py4j asks the JVM for each part of ``org.apache.spark``, and the JVM searches all JARs for a
    class of that name. Here the case of a name decides.
    """

    def __init__(self, view: JVMView, package: str = "") -> None:
        self._view = view
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if not name[0].isupper():
            return JavaNames(self._view, f"{self._package}{name}.")
        if not self._package:
            return getattr(self._view, name)  # a class that PySpark has imported
        return SparkClass(f"{self._package}{name}", self._view._gateway_client)


class SparkClass(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class of the JVM that is reached by its name: an error names what this Spark lacks."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except Py4JJavaError:
            raise
        except Py4JError:
            raise self._not_found(f"{self._fqn}.{name}") from None

    def __call__(self, *arguments: Any) -> Any:
        try:
            return super().__call__(*arguments)
        except Py4JJavaError:
            raise
        except Py4JError:
            constructor = f"{self._fqn} with {len(arguments)} arguments"
            raise self._not_found(constructor) from None

    def _not_found(self, member: str) -> SparkMemberNotFoundError:
        return SparkMemberNotFoundError(
            member=member, version=pyspark.__version__, purpose=purpose_of(self._fqn)
        )


def jvm_of(spark: SparkSession) -> Any:
    """Return the packages of a session's JVM."""
    return JavaNames(spark._jvm)


@dataclass(frozen=True)
class JvmSession:
    """A classic session as the JVM has it; classic engines are made of its subclasses."""

    spark: SparkSession

    @property
    def jvm(self) -> Any:
        """The packages of the session's JVM."""
        return jvm_of(self.spark)

    @property
    def java(self) -> Any:
        """The session in the JVM."""
        return self.spark._jsparkSession


def qualify(spark: SparkSession, path: str, hadoop_conf: Mapping[str, str]) -> str:
    """Return a path as Spark qualifies it: with scheme and authority, decoded, without a trailing
    slash.

    Raises
    ------
    DELTA_FILE_SYSTEM_NOT_FOUND
        Spark has no file system for the path's scheme.
    StorageError
        The path is malformed, or its file system cannot be initialized.
    """
    jvm = jvm_of(spark)
    with storage_errors(path):
        try:
            here = hadoop_path(jvm, path)
            return str(file_system(spark, here, hadoop_conf).makeQualified(here).toString())
        except Py4JJavaError as error:
            if not re.search(_NO_FILE_SYSTEM, str(error.java_exception)):
                raise
            scheme = path.partition(":")[0]
            version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            raise DeltaError.of(
                "DELTA_FILE_SYSTEM_NOT_FOUND",
                path=path,
                scheme=scheme,
                remedy=_remedy(scheme.lower(), str(version)),
            ) from None


_NO_FILE_SYSTEM = "UnsupportedFileSystemException|ClassNotFoundException"
_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{version}",
    "abfs": "org.apache.hadoop:hadoop-azure:{version}",
    "abfss": "org.apache.hadoop:hadoop-azure:{version}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}


def _remedy(scheme: str, version: str) -> str:
    supported = "s3a" if scheme in ("s3", "s3n") else scheme
    if supported not in _PACKAGES:
        return "Use a scheme that Spark has a file system for, such as file:, hdfs: or s3a:"
    package = f"the package {_PACKAGES[supported].format(version=version)} (spark.jars.packages)"
    if supported == scheme:
        return f"Start Spark with {package}"
    return f"Use {supported}:// instead, which takes {package}"


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Raise JVM errors about a file as `StorageError`, without the stack trace.

    Raises
    ------
    FileNotFoundError
        The file does not exist; `filename` is the path.
    StorageError
    """
    try:
        yield
    except Py4JJavaError as error:
        if is_not_found(error):
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None
        raise StorageError(path=path, problem=_problem(error.java_exception)) from None
    except DeltaError:
        raise
    except IllegalArgumentException as error:
        raise StorageError(path=path, problem=_problem(error)) from None


def _problem(error: object) -> str:
    """Return the first line of a Java error, without the package of its class."""
    first = str(error).partition("\n")[0]
    return re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error))", "", first).rstrip(". ")


def hadoop_path(jvm: Any, path: str) -> Any:
    """Return Hadoop's `Path` of a decoded path."""
    return jvm.org.apache.hadoop.fs.Path(path)


def file_system(spark: SparkSession, path: Any, hadoop_conf: Mapping[str, str]) -> Any:
    """Return the file system of a Hadoop `Path`."""
    return path.getFileSystem(hadoop_configuration(spark, hadoop_conf))


def hadoop_configuration(spark: SparkSession, hadoop_conf: Mapping[str, str]) -> Any:
    """Return the session's Hadoop configuration with additional settings."""
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in hadoop_conf.items():
        configuration.set(key, value)
    return configuration


def settings(
    spark: SparkSession, names: Sequence[str], hadoop_conf: Mapping[str, str]
) -> dict[str, str]:
    """Return the values of the named Hadoop settings that are set."""
    configuration = hadoop_configuration(spark, hadoop_conf)
    values = {name: configuration.get(name) for name in names}
    return {name: str(value) for name, value in values.items() if value is not None}


def is_not_found(error: Py4JJavaError) -> bool:
    """Return True if the cause of the error is a missing file."""
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


@contextmanager
def rows_rebound_to(rows: DataFrame, session: SparkSession) -> Iterator[DataFrame]:
    """Yield the same rows in another session of the application, which is the active session
    meanwhile.
    """
    jvm = jvm_of(session)
    with same_active_session(session):
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
        yield rebound_rows(rows, session)


@contextmanager
def same_active_session(spark: SparkSession) -> Iterator[None]:
    """Restore the active session of the thread after a block."""
    jvm = jvm_of(spark)
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def same_active_sessions(
    used: SparkSession, user: Callable[[], SparkSession | None]
) -> Iterator[None]:
    """Restore the active session of the thread, and the one that PySpark has for all threads, after
    a block that uses another session.

    Parameters
    ----------
    user
        Returns the user's session, for PySpark if another thread was using `used` already.
    """
    before = SparkSession._activeSession
    try:
        with same_active_session(used):
            yield
    finally:
        if SparkSession._activeSession is used:  # createDataFrame has set it
            SparkSession._activeSession = user() if before is used else before


def scala_items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(number) for number in range(sequence.size())]


def class_name(java_object: Any) -> str:
    """Return the name of the class of an object of the JVM, without its package."""
    return str(java_object.getClass().getSimpleName())


def plan_tag(jvm: Any, name: str) -> Any:
    """Return a tag of this library for plans of Spark."""
    return jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(f"sparkdelta.{name}")


def analyzed(frame: DataFrame) -> Any:
    """Return the analyzed plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()


def frame_of(plan: Any, session: SparkSession) -> DataFrame:
    """Return the DataFrame of a plan in a session."""
    jvm = jvm_of(session)
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return ClassicDataFrame(rows, session)


def rebound_rows(rows: DataFrame, session: SparkSession) -> DataFrame:
    """Return the same rows as a DataFrame of another session of the application."""
    return frame_of(analyzed(rows), session)


def none_of(jvm: Any) -> Any:
    """Return Scala's `None`."""
    return singleton(jvm.scala, "None$")


def singleton(package: Any, name: str) -> Any:
    """Return a Scala object of a package; its name ends with a dollar sign."""
    return getattr(getattr(package, name), "MODULE$")


def texts(jvm: Any, array: Any) -> str:
    """Return the string forms of an array's elements, one per line, with a single JVM call."""
    return str(sequence(jvm, array).mkString("\n"))


def sequence(jvm: Any, array: Any) -> Any:
    """Return an array as an immutable Scala sequence."""
    return singleton(jvm.scala.collection.immutable, "ArraySeq$").unsafeWrapArray(array)
