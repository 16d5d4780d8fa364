"""OPTIMIZE of very many files on a small driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import optimize
from tests.benchmarks.logs import CheckpointedLog
from tests.support.spark_worker import SparkWorker

pytestmark = pytest.mark.slow


def planned(spark: SparkSession, path: str) -> list[int]:
    """Runs in a process of its own: what OPTIMIZE and Z-order would do."""
    plain = optimize(spark, path, dry_run=True)
    ordered = optimize(spark, path, zorder_by=["id"], dry_run=True)
    return [each.removed.count for each in (plain, ordered)]


def test_a_million_files_and_a_heap_of_a_gigabyte(spark: SparkSession, tmp_path: Path) -> None:
    """Every file is looked at, some at a time."""
    count = 1_000_000
    log = CheckpointedLog(
        layout="sorted",
        statistics="both",
        files=count,
        sidecars=8,
        tail_commits=3,
        actions_per_commit=100,
    )
    table = log.write_once(spark, tmp_path)
    session = "tests.benchmarks.session:local_session"
    with SparkWorker(session, cores=2, memory="1g") as worker:
        found = worker.run("tests.table.scan.test_many_files:planned", path=str(table))
    assert all(each >= count * 0.99 for each in found)
