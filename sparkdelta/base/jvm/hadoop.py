"""Hadoop's file systems, in the JVM of a classic session or in one that a Python worker starts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any, Protocol

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import JavaNames, hadoop_configuration, jvm_of
from sparkdelta.exceptions import StorageError

HADOOP_SCHEMES = ("hdfs:", "viewfs:")
"""Schemes whose files Python workers reach with a JVM only: Arrow would need Hadoop's libhdfs,
which Spark does not bring."""

_MEMORY = "-Xmx256m"
_ANY = "the files"
_PREFIX = "spark.hadoop."


def all_hadoop_settings(spark: SparkSession, hadoop_conf: Mapping[str, str]) -> dict[str, str]:
    """Return the Hadoop settings that a session has beyond the configuration files, and others."""
    found = {
        key.removeprefix(_PREFIX): str(value)
        for key, value in spark.conf.getAll.items()
        if key.startswith(_PREFIX)
    }
    return {**found, **hadoop_conf}


class Hadoop(Protocol):
    """A JVM with Hadoop's classes."""

    @property
    def gateway(self) -> Any:
        """py4j's gateway to the JVM."""

    @property
    def jvm(self) -> Any:
        """The packages of the JVM."""

    def configuration(self, settings: Mapping[str, str]) -> Any:
        """Return Hadoop's configuration with additional settings."""


@dataclass(frozen=True)
class SessionHadoop:
    """Hadoop of a classic session."""

    spark: SparkSession

    @property
    def gateway(self) -> Any:
        return self.spark.sparkContext._gateway

    @property
    def jvm(self) -> Any:
        return jvm_of(self.spark)

    def configuration(self, settings: Mapping[str, str]) -> Any:
        return hadoop_configuration(self.spark, settings)


@dataclass(frozen=True)
class WorkerHadoop:
    """Hadoop in a JVM that a Python worker starts, with the Java and the class path of the executor
    that the worker belongs to, and so with its configuration files; it can be pickled.

    Attributes
    ----------
    settings
        Hadoop's settings of the Spark session.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def gateway(self) -> Any:
        """The gateway to the JVM of this process, which ends with it.

        Raises
        ------
        StorageError
            The process has no JVM above it, or the new one does not start.
        """
        # Code that comes with a plan has global variables of its own.
        lock, gateways = vars(sys).setdefault("_sparkdelta_hadoop", (threading.Lock(), {}))
        with lock:
            if os.getpid() not in gateways:  # Spark forks workers
                gateways[os.getpid()] = _start_jvm()
            return gateways[os.getpid()]

    @property
    def jvm(self) -> Any:
        return JavaNames(self.gateway.jvm)

    def configuration(self, settings: Mapping[str, str]) -> Any:
        configuration = self.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in {**self.settings, **settings}.items():
            configuration.set(key, value)
        return configuration


def _start_jvm() -> Any:
    problem = "a worker can start no JVM for Hadoop"
    java, class_path = _java_above()
    jars = [jar for part in class_path.split(os.pathsep) for jar in glob(part)]
    py4j = next((jar for jar in jars if Path(jar).name.startswith("py4j-")), None)
    if py4j is None:
        raise StorageError(path=_ANY, problem=f"{problem}: no executor's JVM is above it")
    user = os.environ.get("SPARK_USER")  # as which executors use Hadoop
    if user is not None:
        os.environ.setdefault("HADOOP_USER_NAME", user)
    try:
        port, token = launch_gateway(
            jarpath=py4j,
            classpath=class_path,
            javaopts=[_MEMORY, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            java_path=java,
            enable_auth=True,
        )
    except (OSError, ValueError) as error:
        raise StorageError(path=_ANY, problem=f"{problem}: {error}") from None
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    return JavaGateway(gateway_parameters=parameters)


def _java_above() -> tuple[str, str]:
    """Return the program and the class path of the nearest Java process above this one; empty texts
    if there is none.
    """
    for process in _processes_above():
        with suppress(OSError):
            program = os.readlink(process / "exe")
            if Path(program).name != "java":
                continue
            arguments = (process / "cmdline").read_bytes().decode().split("\0")
            for option in ("-cp", "-classpath", "--class-path"):
                if option in arguments:
                    return program, arguments[arguments.index(option) + 1]
            variables = (process / "environ").read_bytes().decode().split("\0")
            given = dict(each.partition("=")[::2] for each in variables)
            return program, given.get("CLASSPATH", "")
    return "", ""


def _processes_above() -> Iterator[Path]:
    """Yield what Linux says of the processes above this one, the nearest first."""
    process = os.getpid()
    with suppress(OSError, ValueError):
        while process > 1:
            # The name of a program, in parentheses, may have blanks.
            status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
            process = int(status.rpartition(")")[2].split()[1])
            yield Path(f"/proc/{process}")
