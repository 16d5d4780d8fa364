"""The Spark session that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import sparkdelta
from tests.support.cluster import SHORT_LIVED, standalone_cluster
from tests.support.connect_server import connect_server
from tests.support.frame_inputs import actions, hostile, lines  # noqa: F401 - fixtures
from tests.support.jvm_lookups import remember_lookups
from tests.support.mini_hdfs import MiniHdfs, MiniHdfsUnavailable
from tests.support.stored_logs import disk_log, kind, log, place, s3  # noqa: F401 - fixtures

# How long an example takes is no property of the code: a busy machine would fail good tests.
settings.register_profile("sparkdelta", deadline=None)
settings.load_profile("sparkdelta")

remember_lookups()
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "support" / "spark_conf")


ON_BOTH_KINDS = ("tests/operations/", "tests/sql/", "tests/table/scan/test_scan.py")
"""The tests that run on classic Spark and on Spark Connect, unless they are marked `classic`."""


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, and share out the cases of those with Spark.

    Tests without Spark come first: most mistakes show there, within seconds. Of the cases of a
    parametrized test with Spark, ``make test`` runs the first, ``make test-rest`` the last, and
    ``make slow`` those between. Of a test marked ``full`` or ``oracle``, and of one on Spark
    Connect, the first runs with its mark, and the others are slow. All seeds run.
    """
    items.sort(key=_uses_spark)
    cases: dict[tuple[object, ...], list[pytest.Item]] = {}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        apart = any(map(item.get_closest_marker, ("slow", "every_case"))) or "seed" in parameters
        if _uses_spark(item) and parameters and not apart:
            is_marked = any(map(item.get_closest_marker, ("full", "oracle", "connect")))
            kind = parameters.get("spark")
            of_test = (item.parent, getattr(item, "originalname", ""), kind, is_marked)
            cases.setdefault(of_test, []).append(item)
    for (*_, is_marked), (_, *others) in cases.items():
        if others and not is_marked:
            others.pop().add_marker("full")
        for item in others:
            item.add_marker("slow")


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of `ON_BOTH_KINDS` on a classic session and on Spark Connect."""
    is_there = metafunc.definition.nodeid.startswith(ON_BOTH_KINDS)
    only = metafunc.definition.get_closest_marker("classic")
    if is_there and only is None and "spark" in metafunc.fixturenames:
        is_quick = metafunc.definition.get_closest_marker("both_kinds") is not None
        in_runs = pytest.mark.full if is_quick else pytest.mark.more_connect
        connect = pytest.param("connect", marks=[pytest.mark.connect, in_runs])
        metafunc.parametrize("spark", ["classic", connect], indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let PySpark's functions, such as `col`, make columns for the kind of session of a test."""
    if getattr(getattr(item, "callspec", None), "params", {}).get("spark") != "connect":
        return (yield)
    with patch.dict(os.environ, SPARK_CONNECT_MODE_ENABLED="1"):
        return (yield)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> SparkSession:
    """A session: a small local one, or a Spark Connect client of a cluster."""
    session: SparkSession = request.getfixturevalue(
        f"{getattr(request, 'param', 'classic')}_session"
    )
    return session


@pytest.fixture(scope="session")
def connect_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A client of a Spark Connect server on a standalone cluster, whose Python workers have neither
    this package nor sqlglot.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # needs gRPC

    settings = {
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    with (
        standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster,
        connect_server(
            tmp_path_factory.mktemp("server"), settings, master=cluster.master
        ) as remote,
    ):
        session = ConnectSession.builder.remote(remote).create()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def classic_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
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
