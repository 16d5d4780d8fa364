"""Conversions by delta-spark and by sparkdelta of copies of a directory, and its own of ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, convert_to_delta, load_snapshot, read_delta
from sparkdelta.base.protocol.file_paths import decode_path
from tests.operations.copy.test_convert import PARTITION, parquet, partitioned
from tests.oracle.test_clone_oracle import first_commit
from tests.oracle.test_optimize_oracle import nullable
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle


def convert_and_change(spark: SparkSession, theirs: str, ours: str, plain: str) -> list[Any]:
    """Convert directories, and read and change our table; runs in the process of delta-spark."""
    spark.sql(f"CONVERT TO DELTA parquet.`{theirs}` PARTITIONED BY ({PARTITION})")
    spark.sql(f"CONVERT TO DELTA parquet.`{plain}`")
    rows = spark.read.format("delta").load(ours).select("id", "day", "p-q").collect()
    spark.sql(f"DELETE FROM delta.`{ours}` WHERE id = 1")
    return sorted([row[0], str(row[1]), row[2]] for row in rows)


@pytest.mark.slow
def test_both_convert_the_same(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    ours, theirs, plain, other = (
        str(tmp_path / n) for n in ("our dir", "theirs", "plain", "other")
    )
    partitioned(spark, ours)
    shutil.copytree(ours, theirs)
    parquet(plain, "x/a.parquet", n=[1, 2], v=["a", None])
    parquet(plain, "b.parquet", v=["c"], w=[1.5])
    shutil.copytree(plain, other)
    DeltaTable.convertToDelta(spark, f"parquet.`{ours}`", PARTITION)
    convert_to_delta(spark, other)
    told = delta_spark.run("tests.oracle.test_convert_oracle:convert_and_change",
                           theirs=theirs, ours=ours, plain=plain)  # fmt: skip
    found = read_delta(spark, ours, columns=["id", "day", "p-q"], version=0).collect()
    assert told == sorted([row[0], str(row[1]), row[2]] for row in found)
    assert sorted(r.id for r in read_delta(spark, ours).collect()) == [0, *range(2, 12)]
    for mine, other_path in ((ours, theirs), (other, plain)):
        snapshots = [load_snapshot(spark, path, version=0) for path in (mine, other_path)]
        assert sorted(map(str, nullable(snapshots[0].schema)["fields"])) == sorted(
            map(str, nullable(snapshots[1].schema)["fields"])
        )
        assert snapshots[0].protocol == snapshots[1].protocol
        assert snapshots[0].metadata.partition_columns == snapshots[1].metadata.partition_columns
        commits = [first_commit(path) for path in (mine, other_path)]
        for field in ("path", "partitionValues", "size", "dataChange"):
            texts = [
                sorted(
                    decode_path(json.dumps(add[field], sort_keys=True, ensure_ascii=False))
                    for add in commit["add"]
                )
                for commit in commits
            ]
            assert texts[0] == texts[1]
        counts = [
            {
                decode_path(add["path"]): json.loads(add["stats"])["numRecords"]
                for add in commit["add"]
            }
            for commit in commits
        ]
        assert counts[0] == counts[1]
        infos = [commit["commitInfo"][0] for commit in commits]
        assert infos[0]["operation"] == infos[1]["operation"]
        metrics = [info["operationMetrics"] for info in infos]
        assert {name: metrics[0][name] for name in metrics[1]} == metrics[1]
        given = [info["operationParameters"] for info in infos]
        assert given[0].items() <= given[1].items()
