"""A program in a virtual environment that is not activated: its workers, and what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MARK = "=== everything above is Spark's own"
# Spark logs it once for any query over more than 25 fields, as history has them.
OF_WIDE_ROWS = "Truncated the string representation of a plan"

PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
table, vectors = sys.argv[1:3]
spark.range(5).write.parquet(table + "-plain")
spark.read.parquet(table + "-plain").collect()
print(sys.argv[3], file=sys.stderr, flush=True)

import sparkdelta
rows = spark.createDataFrame([("a", 1), ("b", 2)], "name STRING, age INT")
sparkdelta.write_delta(rows, table, properties={"delta.checkpointInterval": "2"})
sparkdelta.write_delta(rows, table, mode="append")
assert len(sparkdelta.read_delta(spark, table).collect()) == 4
assert len(sparkdelta.read_delta(spark, table, where="age > 1 AND name LIKE 'b%'").collect()) == 2
files = sparkdelta.load_snapshot(spark, vectors).add_files()
assert files.where("deletionVector IS NOT NULL").count()
assert sparkdelta.read_delta(spark, vectors).collect()
sparkdelta.write_checkpoint(spark, table)
sparkdelta.DeltaTable.forPath(spark, table).history().collect()
assert sparkdelta.verify(spark, table, footers=True).is_clean
assert spark.sparkContext.pythonExec == "python3"

# Elsewhere than on a local master, workers would have run the python3 of the PATH.
from sparkdelta.exceptions import DeltaError
from sparkdelta.base.spark import worker_python
try:
    worker_python._check(spark)
except DeltaError as error:
    assert error.error_class == "DELTA_PYTHON_WORKER_NOT_USABLE"
    assert error.__cause__ is None and "numpy" in error.problem
else:
    raise AssertionError("this Python has no packages")
"""


@pytest.mark.slow
def test_a_normal_run_needs_no_activated_environment_and_prints_nothing(tmp_path: Path) -> None:
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    environment["PATH"] = f"{bare.parent}:{environment['PATH']}"
    vectors = ROOT / "tests" / "golden" / "tables" / "dv-delete" / "delta"
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "table"), str(vectors), MARK],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == ""
    printed = result.stderr.partition(MARK)[2].strip().splitlines()
    assert [line for line in printed if OF_WIDE_ROWS not in line] == []
