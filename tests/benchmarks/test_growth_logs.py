"""Tests that the logs of the growth benchmark are valid tables."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot
from tests.benchmarks import growth_logs
from tests.benchmarks.file_actions import BYTES, PARTITION, ROWS
from tests.benchmarks.growth_logs import GrowthLog
from tests.benchmarks.logs import CHECKPOINT_VERSION
from tests.benchmarks.tagged_sidecars import summarized_tags

pytestmark = pytest.mark.full


def test_a_log_has_its_files_and_their_tags(spark: SparkSession, tmp_path: Path) -> None:
    log = GrowthLog(1_000)
    with (
        patch.object(growth_logs, "ADDS_PER_SIDECAR", 400),
        patch.object(growth_logs, "write_tags", wraps=growth_logs.write_tags) as tagged,
    ):
        root = log.write_once(spark, tmp_path)
    [((_, _, tags), _)] = tagged.call_args_list
    assert sorted(tag.num_adds for tag in tags.values()) == [200, 400, 400]
    assert tags == summarized_tags(spark, root, CHECKPOINT_VERSION)
    snapshot = load_snapshot(spark, str(root))
    assert snapshot.version == 20
    rows = snapshot.add_files().collect()
    found = {}
    for row in rows:
        first = row.stats_parsed.minValues.id
        found[first // ROWS] = row.partitionValues_parsed[PARTITION]
        assert row.path.startswith(f"{PARTITION}={row.partitionValues_parsed[PARTITION]}/part-")
        assert (row.size, row.stats_parsed.maxValues.id) == (BYTES, first + ROWS - 1)
    assert found == {number: log.day_of(number) for number in range(1_000)}
    assert len({row.path for row in rows}) == 1_000
    replaced = [row for row in rows if row.stats_parsed.minValues.id // ROWS in log.replaced]
    assert {int(row.path.split("part-")[1][:12]) for row in replaced} == {
        1_000 + number for number in log.replaced
    }
