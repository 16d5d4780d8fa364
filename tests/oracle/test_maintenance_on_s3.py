"""Clones, conversion, manifests and maintenance of tables on S3, in a process with its JARs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    clone,
    convert_to_delta,
    load_snapshot,
    optimize,
    read_delta,
    reorg,
    vacuum,
    verify,
    write_delta,
)
from tests.benchmarks.parts import SESSION
from tests.support.s3_server import BUCKET, s3_session_settings
from tests.support.spark_worker import SparkWorker

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_MODULE = "tests.oracle.test_maintenance_on_s3"
ROOT = f"s3a://{BUCKET}/a shop"
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkWorker]:
    """A session that reads and writes an S3 server."""
    with (
        s3_session_settings(tmp_path_factory.mktemp("jars")) as settings,
        SparkWorker(SESSION, cores=2, memory="1g", settings=settings) as worker,
    ):
        yield worker


@pytest.mark.parametrize("step", ["deep_clones", "conversion", "manifests", "maintenance"])
def test_maintenance_on_s3_gives_the_expected_result(worker: SparkWorker, step: str) -> None:
    found: dict[str, Any] = worker.run(f"{_MODULE}:{step}")
    for name, (one, other) in found.items():
        assert one == other, name


Pairs = dict[str, tuple[object, object]]
"""Found and expected values by their names."""


def deep_clones(spark: SparkSession) -> Pairs:
    """Clone a table, and again after a change of its source; runs in the worker."""
    source, target = f"{ROOT}/é source", f"{ROOT}/target"
    write_delta(_numbers(spark), source, properties=VECTORS, partition_by=["part"])
    DeltaTable.forPath(spark, source).delete("id < 3")
    first = clone(spark, source, target, deep=True)
    write_delta(_numbers(spark, 30, 33), source, mode="append")
    again = clone(spark, source, target, deep=True, replace=True)
    found = vacuum(spark, source, retention_hours=0, check_retention=False, progress=False)
    return {
        "rows": (_ids(read_delta(spark, target)), [*range(3, 33)]),
        "copied": ((first.num_copied_files > again.num_copied_files), True),
        "kept": (found.deleted.count, 0),
        "verified": (verify(spark, target).is_clean, True),
    }


def conversion(spark: SparkSession) -> Pairs:
    """Convert a partitioned directory of Parquet files; runs in the worker."""
    path = f"{ROOT}/parquet files"
    _numbers(spark).write.partitionBy("part").parquet(path)
    convert_to_delta(spark, path, partition_schema="part STRING")
    files = load_snapshot(spark, path).add_files().selectExpr("sum(stats_parsed.numRecords)")
    return {
        "rows": (_ids(read_delta(spark, path, where="part = 'a b=%'")), [*range(0, 30, 3)]),
        "statistics": (files.collect()[0][0], 30),
        "verified": (verify(spark, path, footers=True).is_clean, True),
    }


def manifests(spark: SparkSession) -> Pairs:
    """Generate manifests, which name the files of the table; runs in the worker."""
    path = f"{ROOT}/manifests"
    write_delta(_numbers(spark), path)
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    named = spark.read.text(f"{path}/_symlink_format_manifest/manifest").collect()
    rows = spark.read.parquet(*(row[0] for row in named))
    return {
        "rows": (_ids(rows), [*range(30)]),
        "files": (len(named), load_snapshot(spark, path).add_files().count()),
    }


def maintenance(spark: SparkSession) -> Pairs:
    """Perform OPTIMIZE, REORG, RESTORE, and VACUUM in both modes; runs in the worker."""
    path = f"{ROOT}/maintained"
    write_delta(_numbers(spark).drop("part"), path, properties=VECTORS)
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    purged = reorg(spark, path)
    optimized = optimize(spark, path)
    (restored,) = table.restoreToVersion(0).collect()
    rows = _ids(read_delta(spark, path))
    deleted = [
        vacuum(
            spark, path, mode=mode, retention_hours=0, check_retention=False, progress=False
        ).deleted.count
        for mode in ("lite", "full")
    ]
    return {
        "purged": (purged.removed.count, 1),
        "optimized": (optimized.added.count, 1),
        "restored": (restored["num_restored_files"], optimized.removed.count),
        "rows": (rows, [*range(30)]),
        "deleted": ([deleted[0] > 0, deleted[1]], [True, 0]),
        "rows after": (_ids(read_delta(spark, path)), [*range(30)]),
        "verified": (verify(spark, path).is_clean, True),
    }


def _numbers(spark: SparkSession, start: int = 0, end: int = 30) -> DataFrame:
    return spark.range(start, end, 1, 3).selectExpr(
        "id", "IF(id % 3 = 0, 'a b=%', 'é') AS part", "CAST(id AS DECIMAL(38, 2)) AS d"
    )


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())
