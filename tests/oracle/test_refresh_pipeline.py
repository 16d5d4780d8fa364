"""A month of a shop on a cluster: at its end, all tables are as delta-spark makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.support import refresh_job
from tests.support.cluster import Cluster, standalone_cluster
from tests.support.delta_spark import DELTA_SETTINGS, PYSPARK_SERIES, DeltaSpark
from tests.support.s3_server import BUCKET, s3_jars, s3_server

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

DAYS = int(os.environ.get("SPARKDELTA_REFRESH_DAYS", "30"))
_JOBS = 3  # each goes on where the last one stopped
_SECONDS = 3600
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",  # plans are short, and each is run once
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM of delta-spark
}
_STORES = ("local", "s3", "hdfs")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def expected(cluster: Cluster) -> dict[str, Any]:
    """The tables as delta-spark leaves them after the same days, on local disks."""
    if not pyspark.__version__.startswith(PYSPARK_SERIES):
        pytest.skip(f"delta-spark needs pyspark {PYSPARK_SERIES}x")
    more = {"spark.databricks.delta.snapshotPartitions": "2"}
    return month(cluster, "delta-spark", f"file:{cluster.scratch}/theirs", **DELTA_SETTINGS, **more)


def month(
    cluster: Cluster, engine: str, root: str, *, jars: tuple[Path, ...] = (), **settings: str
) -> dict[str, Any]:
    """Submit the job until the month is over; return its state."""
    state = cluster.scratch / f"{engine}-{root.partition(':')[0]}.json"
    package = [cluster.package] if engine == "sparkdelta" else []
    ends = [DAYS * (number + 1) // _JOBS for number in range(_JOBS)]
    for first, end in zip([0, *ends], ends, strict=False):
        export = ["--export"] if end == DAYS else []
        run = cluster.submit(
            str(refresh_job.__file__),
            *("--engine", engine, "--root", root, "--state", str(state)),
            *("--days", str(end - first), *export),
            py_files=package,
            jars=jars,
            more_settings={**_SETTINGS, **settings},
            seconds=_SECONDS,
        )
        assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-6000:]}"
    found: dict[str, Any] = json.loads(state.read_text())
    return found


@pytest.mark.parametrize("store", _STORES)
def test_a_month_ends_with_the_same_tables(
    cluster: Cluster, expected: dict[str, Any], store: str, request: pytest.FixtureRequest
) -> None:
    """The rows of all tables, and those that earlier versions had when they were asked for."""
    root, jars, settings = f"file:{cluster.scratch}/ours", (), dict[str, str]()
    if store == "s3":
        root, jars, settings = request.getfixturevalue("s3")
    elif store == "hdfs":
        root = f"{request.getfixturevalue('hdfs').uri}/a shop"
    ours = month(cluster, "sparkdelta", root, jars=jars, **settings)
    assert ours["findings"] == []
    assert ours["looks"] == expected["looks"]
    assert len(ours["looks"]) == max(0, DAYS // 4 - 1) * 6
    for name, table in expected["tables"].items():
        assert ours["tables"][name] == table, name
        assert table["rows"] or DAYS < 7, name
    if store != "s3":  # delta-spark's own session has no S3
        delta_spark: DeltaSpark = request.getfixturevalue("delta_spark")
        read = delta_spark.run("tests.oracle.test_refresh_pipeline:rows_of", root=root)
        assert read == expected["tables"]


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[tuple[str, tuple[Path, ...], dict[str, str]]]:
    """A root in S3, and the JARs and settings by which Spark reads it."""
    jars = s3_jars(tmp_path)
    with s3_server() as settings:
        hadoop = {f"spark.hadoop.{name}": value for name, value in settings.items()}
        yield f"s3a://{BUCKET}/a shop", tuple(jars), hadoop


def rows_of(spark: SparkSession, root: str) -> dict[str, Any]:
    """Return the rows of all tables; runs in the process of delta-spark."""
    return refresh_job.exported(lambda name: spark.read.format("delta").load(f"{root}/{name}"))
