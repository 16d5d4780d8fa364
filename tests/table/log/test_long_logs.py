"""A long log does not go through the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table_builder import add, create

COMMITS = 1_500
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from sparkdelta import load_snapshot
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.maxResultSize", "4m").config("spark.driver.memory", "512m")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
snapshot = load_snapshot(spark, sys.argv[1])
assert not snapshot.log.commits.is_local
print(snapshot.version, snapshot.metadata.id, snapshot.add_files().count())
spark.stop()
"""


@pytest.mark.slow
def test_a_long_log_under_a_small_result_size(tmp_path: Path) -> None:
    table = tmp_path / "table"
    create(table, add("f0"))
    stats = json.dumps({"numRecords": 1, "minValues": {"text": "x" * 10_000}})
    for version in range(1, COMMITS):
        line = json.dumps(add(f"f{version}", stats=stats))
        (table / "_delta_log" / f"{version:020d}.json").write_text(line + "\n")
    root = str(Path(__file__).parents[3])
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(table)],
        env={**os.environ, "PYTHONPATH": root, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == [str(COMMITS - 1), "0", str(COMMITS)]
