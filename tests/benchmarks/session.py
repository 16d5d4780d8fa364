"""The session that benchmarks run in, here or in a worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

_ENOUGH_MB = 1_000_000  # what a worker of a cluster offers; an executor takes what it is told


def local_session(
    scratch: Path, *, cores: int, memory: str, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A classic session on this machine.

    Parameters
    ----------
    memory
        Of the driver, which in local mode is the executor too; it counts only for the first session
        of a process.
    settings
        More of them.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("sparkdelta benchmarks")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * cores))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def classic_session(scratch: str, cores: int, memory: str) -> SparkSession:
    """Start a session as `local_session` does, for a worker."""
    return local_session(Path(scratch), cores=cores, memory=memory)


def connect_session(_: str, remote: str) -> SparkSession:
    """Start a session of a Spark Connect server."""
    return SparkSession.builder.remote(remote).create()


def cluster_session(
    scratch: Path, *, cores: int, memory: str, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a session as `local_session` does, with the executor in a JVM of its own, which has as
    much memory.
    """
    home = scratch / "spark"  # executors write there
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
    cluster = {
        "spark.master": f"local-cluster[1,{cores},{_ENOUGH_MB}]",
        "spark.executor.memory": memory,
    }
    return local_session(
        scratch, cores=cores, memory=memory, settings={**cluster, **(settings or {})}
    )
