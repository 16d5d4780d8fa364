"""The Spark session that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import sparkdelta
from tests.support.frame_inputs import actions, hostile, lines  # noqa: F401 - fixtures
from tests.support.jvm_lookups import remember_lookups
from tests.support.mini_hdfs import MiniHdfs, MiniHdfsUnavailable
from tests.support.stored_logs import disk_log, kind, log, place, s3  # noqa: F401 - fixtures

# How long an example takes is no property of the code: a busy machine would fail good tests.
settings.register_profile("sparkdelta", deadline=None)
settings.load_profile("sparkdelta")

remember_lookups()
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "support" / "spark_conf")


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, and share out the cases of those with Spark.

    Tests without Spark come first: most mistakes show there, within seconds. Of the cases of a
    parametrized test with Spark, ``make test`` runs the first, ``make test-rest`` the last, and
    ``make slow`` those between. Of a test marked ``full`` or ``oracle``, the first runs with its
    mark, and the others are slow. All seeds run.
    """
    items.sort(key=_uses_spark)
    cases: dict[tuple[object, str, bool], list[pytest.Item]] = {}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        apart = any(map(item.get_closest_marker, ("slow", "every_case"))) or "seed" in parameters
        if _uses_spark(item) and parameters and not apart:
            is_marked = any(map(item.get_closest_marker, ("full", "oracle")))
            of_test = (item.parent, getattr(item, "originalname", ""), is_marked)
            cases.setdefault(of_test, []).append(item)
    for (*_, is_marked), (_, *others) in cases.items():
        if others and not is_marked:
            others.pop().add_marker("full")
        for item in others:
            item.add_marker("slow")


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session; workers run this very interpreter."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("sparkdelta tests")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")  # one would hide mistakes of order
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which PySpark's own methods know Delta tables."""
    yield sparkdelta.enable(spark)
    sparkdelta.disable(spark)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[MiniHdfs]:
    """A small HDFS; skips by name where it cannot be had."""
    server = MiniHdfs()
    try:
        server.start()
    except MiniHdfsUnavailable as unavailable:
        pytest.skip(f"HDFS: {unavailable}")
    yield server
    server.stop()


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    """The path at which a test may make a table."""
    return str(tmp_path / "table")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The path at which a test may make a table."""
    return tmp_path / "table"
