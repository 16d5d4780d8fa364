"""Tables in which OPTIMIZE and changes of the same rows followed each other, as other engines read
them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.operations.compaction.test_following_commits import random_schedule
from tests.oracle.test_shared_tables import Engines
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "seeds", [range(100, 101), pytest.param(range(101, 120), marks=pytest.mark.slow)], ids=str
)
def test_other_engines_read_the_same_rows(
    spark: SparkSession,
    delta_spark: DeltaSpark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seeds: range,
) -> None:
    """PROTOCOL.md#deletion-vectors"""
    for seed in seeds:
        path = str(tmp_path / f"{seed}")
        rows = random_schedule(spark, path, monkeypatch, seed)
        conditions = [[["id", 3, 1]], [["s", "a"]], [["p", "b c"]]]
        Engines(spark, delta_spark, path).assert_rows(rows, conditions, f"seed {seed}")
