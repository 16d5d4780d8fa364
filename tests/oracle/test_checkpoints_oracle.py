"""delta-spark and delta-rs read every kind of checkpoint that is written here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, write_checkpoint
from tests.golden.expected import comparable
from tests.oracle.test_delta_spark import delta_rs_rows
from tests.support.delta_spark import DeltaSpark
from tests.support.log_writer import log_directory
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle

CASES = [
    *((False, kind) for kind in ("classic", "v2-classic", "v2-json", "v2-parquet")),
    (True, "v2-json"),
]
"""Pairs of a flag, true for a table with deletion vectors, which delta-rs does not read, and a
kind."""

_WORKER = "tests.oracle.checkpoints"


@pytest.fixture(scope="module")
def origin(
    delta_spark: DeltaSpark,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> tuple[Path, int, Path]:
    """A table of delta-spark, its latest version and its rows."""
    root = tmp_path_factory.mktemp("origin")
    path, rows = root / "table", root / "rows.parquet"
    latest = delta_spark.run(
        f"{_WORKER}:make_table", path=str(path), deletion_vectors=request.param
    )
    delta_spark.run(f"{_WORKER}:rows", path=str(path), to=str(rows))
    return path, latest, rows


@pytest.mark.parametrize(("origin", "kind"), CASES, indirect=["origin"])
def test_others_read_it(
    spark: SparkSession,
    delta_spark: DeltaSpark,
    origin: tuple[Path, int, Path],
    tmp_path: Path,
    kind: str,
) -> None:
    """From nothing but the checkpoint and the commits after it."""
    source, latest, rows = origin
    table = tmp_path / "table"
    shutil.copytree(source, table)
    log = log_directory(table)
    written = write_checkpoint(spark, str(table), version=latest - 1, kind=kind, adds_per_sidecar=3)
    if kind == "v2-json":  # one that takes over sidecars, too
        written = write_checkpoint(spark, str(table), kind=kind, adds_per_sidecar=3)
        assert written.num_reused_sidecars > 0
    for file in log.iterdir():
        gone = file.is_file() and file.name[:20].isdigit() and int(file.name[:20]) < written.version
        if gone and file.name != written.file:
            file.unlink()
    hint = json.loads((log / "_last_checkpoint").read_text())
    assert hint["version"] == written.version
    expected = parquet_rows(rows)
    found = delta_spark.run(f"{_WORKER}:rows", path=str(table), to=str(tmp_path / "found.parquet"))
    assert found["version"] == latest
    assert found["ids"] == [n for n in range(20, 40) if n % 4 == 1 and n % 7]
    assert_same_rows(pq.read_table(tmp_path / "found.parquet"), expected)
    theirs = delta_rs_rows(str(table), latest)
    has_vectors = "deletionVectors" in (
        load_snapshot(spark, str(table)).protocol.reader_features or ()
    )
    assert theirs is not None or has_vectors, "delta-rs reads tables without deletion vectors"
    if theirs is not None:
        assert_same_rows(theirs, expected)
    newer = delta_spark.run(f"{_WORKER}:append", path=str(table))
    ours = comparable(read_delta(spark, str(table), version=newer))
    assert ours.count() == expected.num_rows + 1
    assert_same_rows(ours.filter("id < 1000").toArrow(), expected)
