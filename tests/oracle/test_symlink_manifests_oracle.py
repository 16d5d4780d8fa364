"""Symlink manifests by delta-spark and by sparkdelta: of copies of a table, and after commits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, write_delta
from tests.operations.upkeep.test_symlink_manifests import ENABLED, MODE, VALUES, manifests
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle


def generate_and_change(spark: SparkSession, table: str, ours: str) -> None:
    """Generate manifests, and commit to a table of ours that has them; runs in the process of
    delta-spark.
    """
    spark.sql(f"GENERATE {MODE} FOR TABLE delta.`{table}`")
    spark.sql(f"DELETE FROM delta.`{ours}` WHERE q = 0")


@pytest.mark.slow
def test_both_generate_the_same(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    ours, theirs, kept = (str(tmp_path / name) for name in ("our table", "theirs", "kept"))
    rows = spark.range(0, 12, 1, 2).selectExpr("id", f"{VALUES} AS `p:1`", "id % 2 AS q")
    write_delta(rows, ours, partition_by=["p:1", "q"])
    write_delta(rows, kept, partition_by=["p:1", "q"], properties=ENABLED)
    shutil.copytree(ours, theirs)
    DeltaTable.forPath(spark, ours).generate(MODE)
    delta_spark.run("tests.oracle.test_symlink_manifests_oracle:generate_and_change",
                    table=theirs, ours=kept)  # fmt: skip
    expected = {
        directory: [line.replace(theirs, ours) for line in lines]
        for directory, lines in manifests(theirs).items()
    }
    assert manifests(ours) == expected
    found = manifests(kept)
    DeltaTable.forPath(spark, kept).generate(MODE)
    assert manifests(kept) == found
