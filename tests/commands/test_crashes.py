"""A writer that dies at any change of the log leaves a table that everyone can read and write."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    clean_log,
    compact_log,
    load_snapshot,
    read_delta,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.commands.checkpoint import checkpoint
from sparkdelta.table.checkpoint import sidecar_reuse
from sparkdelta.table.checkpoint.options import CheckpointOptions
from tests.support.checksums import assert_checksums
from tests.support.crashing_store import dying_writer
from tests.support.memory_log import Crash

Step = Callable[[SparkSession, str], object]
BEFORE = [0, 1, 2]


def _append(spark: SparkSession, path: str) -> object:
    return write_delta(spark.range(10, 11).coalesce(1), path, mode="append")


def _overwrite(spark: SparkSession, path: str) -> object:
    return write_delta(spark.range(10, 11).coalesce(1), path, mode="overwrite")


def _append_and_checkpoint(spark: SparkSession, path: str) -> object:
    log = Path(path, "_delta_log", f"{0:020d}.json")
    log.write_text(log.read_text().replace('"configuration":{}',
                   '"configuration":{"delta.checkpointInterval":"1"}'))  # fmt: skip
    for checksum in log.parent.glob("*.crc"):  # of the table as it was
        checksum.unlink()
    return _append(spark, path)


def _checkpoint(spark: SparkSession, path: str) -> object:
    return write_checkpoint(spark, path)


def _checkpoint_v2(spark: SparkSession, path: str) -> object:
    """With a sidecar, and then one that takes it over beside a new one."""
    log = Path(path, "_delta_log", f"{0:020d}.json")
    features = '"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"]'
    log.write_text(log.read_text().replace('"minReaderVersion":1,"minWriterVersion":2',
                   f'{features},"writerFeatures":["v2Checkpoint"]'))  # fmt: skip
    for checksum in log.parent.glob("*.crc"):  # of the table as it was
        checksum.unlink()
    checkpoint(spark, path, CheckpointOptions(kind="v2-json"), version=0)
    with patch.object(sidecar_reuse, "_NOT_WORTH_A_LOOK", 0):
        written = checkpoint(spark, path, CheckpointOptions(kind="v2-json"))
    assert (written.num_sidecars, written.num_reused_sidecars) == (2, 1)
    return written


def _compact(spark: SparkSession, path: str) -> object:
    return compact_log(spark, path)


def _clean(spark: SparkSession, path: str) -> object:
    write_checkpoint(spark, path)
    long_ago = time.time() - 40 * 24 * 3600
    for file in Path(path, "_delta_log").glob("*.json"):
        os.utime(file, (long_ago, long_ago))
    return clean_log(spark, path)


STEPS: dict[Step, tuple[int, list[int]]] = {
    _append: (2, [*BEFORE, 10]),
    _overwrite: (2, [10]),
    _append_and_checkpoint: (5, [*BEFORE, 10]),
    _checkpoint: (3, BEFORE),
    _checkpoint_v2: (8, BEFORE),
    _compact: (2, BEFORE),
    _clean: (5, BEFORE),
}
"""With the number of their changes, and the rows of the table once they are done."""

DAILY = (_append,)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions, of three rows."""
    path = tmp_path_factory.mktemp("crashes") / "table"
    write_delta(spark.range(2).coalesce(1), str(path))
    write_delta(spark.range(2, 3).coalesce(1), str(path), mode="append")
    return path


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        pytest.param(step, nth, marks=() if step in DAILY else pytest.mark.slow)
        for step, (changes, _) in STEPS.items()
        for nth in range(1, changes + 1)
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash(
    spark: SparkSession, tmp_path: Path, table: Path, step: Step, nth: int, when: str
) -> None:
    """What was acknowledged stays, and a commit is there whole or not at all."""
    path = str(tmp_path / "table")
    shutil.copytree(table, path)
    with dying_writer(nth, when) as death, pytest.raises(Crash):
        step(spark, path)
    assert len(death.calls) == nth
    committed = Path(path, "_delta_log", f"{2:020d}.json").exists()
    assert load_snapshot(spark, path).version == (2 if committed else 1)
    found = ids(spark, path)
    assert found == (STEPS[step][1] if committed else BEFORE)
    assert _append(spark, path).version == (3 if committed else 2)  # type: ignore[attr-defined]
    assert ids(spark, path) == sorted([*found, 10])
    if step in DAILY:
        assert_checksums(path)
    else:
        assert verify(spark, path).is_clean


@pytest.mark.parametrize(
    "step", [pytest.param(s, marks=() if s in DAILY else pytest.mark.slow) for s in STEPS]
)
def test_no_change_is_forgotten(
    spark: SparkSession, tmp_path: Path, table: Path, step: Step
) -> None:
    """All changes of a step have a crash above."""
    path = str(tmp_path / "table")
    shutil.copytree(table, path)
    with dying_writer(0, "never") as death:
        step(spark, path)
    assert len(death.calls) == STEPS[step][0], death.calls
    assert ids(spark, path) == STEPS[step][1]
