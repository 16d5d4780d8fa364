"""A writer that dies at any of its changes leaves a table that everyone can read and write, and
reports the files that no version refers to.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.mark.structures import ParameterSet
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    clean_log,
    clone,
    compact_log,
    load_snapshot,
    optimize,
    read_delta,
    reorg,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.operations.checkpoint import sidecar_reuse
from tests.support.checksums import assert_checksums
from tests.support.crashing_store import dying_writer
from tests.support.memory_log import Crash
from tests.support.table_builder import inline_vector
from tests.support.unreferenced import assert_reported

pytestmark = pytest.mark.classic("stops a writer that creates files itself")

Step = Callable[[SparkSession, str], object]
BEFORE = [0, 1, 2]


def _append(spark: SparkSession, path: str) -> object:
    return write_delta(spark.range(10, 11).coalesce(1), path, mode="append")


def _overwrite(spark: SparkSession, path: str) -> object:
    return write_delta(spark.range(10, 11).coalesce(1), path, mode="overwrite")


def _reconfigure(path: str, *features: str, **properties: str) -> None:
    """Give the table features and properties from its first version on."""
    log = Path(path, "_delta_log", f"{0:020d}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {f"delta.{k}": v for k, v in properties.items()}
        if "protocol" in action and features:
            readers = sorted({"deletionVectors", "v2Checkpoint"} & {*features})
            action["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": readers, "writerFeatures": features,
            }  # fmt: skip
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in log.parent.glob("*.crc"):  # of the table as it was
        checksum.unlink()


def _append_and_checkpoint(spark: SparkSession, path: str) -> object:
    _reconfigure(path, checkpointInterval="1")
    return _append(spark, path)


def _delete_and_copy(spark: SparkSession, path: str) -> object:
    _reconfigure(path, "changeDataFeed", enableChangeDataFeed="true")
    return DeltaTable.forPath(spark, path).delete("id = 0")


def _delete_by_vector(spark: SparkSession, path: str) -> object:
    _reconfigure(path, "deletionVectors", enableDeletionVectors="true")
    return DeltaTable.forPath(spark, path).delete("id = 0")


def _update(spark: SparkSession, path: str) -> object:
    _reconfigure(
        path, "deletionVectors", "changeDataFeed",
        enableDeletionVectors="true", enableChangeDataFeed="true",
    )  # fmt: skip
    return DeltaTable.forPath(spark, path).update("id = 0", {"id": "20L"})


def _merge(spark: SparkSession, path: str) -> object:
    """Updates, deletes and inserts, with a vector, data files and change data files."""
    _reconfigure(
        path, "deletionVectors", "changeDataFeed",
        enableDeletionVectors="true", enableChangeDataFeed="true",
    )  # fmt: skip
    source = spark.createDataFrame([(0, 20), (2, 0), (30, 30)], "id LONG, new LONG").coalesce(1)
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.new = 0").whenMatchedUpdate(set={"id": "s.new"})
    return merge.whenNotMatchedInsertAll().execute()


def _merge_and_copy(spark: SparkSession, path: str) -> object:
    source = spark.range(1)
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdate(set={"id": "20L"}).execute()


def _replace_where(spark: SparkSession, path: str) -> object:
    _reconfigure(path, "changeDataFeed", enableChangeDataFeed="true")
    rows = spark.range(20, 21).coalesce(1)
    return write_delta(rows, path, mode="overwrite", replace_where="id IN (0, 20)")


def _deep_clone(spark: SparkSession, path: str) -> object:
    source = str(Path(path).parent / "source")
    shutil.copytree(path, source)
    return clone(spark, source, path, deep=True, replace=True, version=0)


def _optimize(spark: SparkSession, path: str) -> object:
    return optimize(spark, path)


def _z_order(spark: SparkSession, path: str) -> object:
    return optimize(spark, path, zorder_by=["id"])


def _cluster(spark: SparkSession, path: str) -> object:
    _reconfigure(path, "clustering", "domainMetadata")
    columns = json.dumps({"clusteringColumns": [["id"]]})
    domain = {"domain": "delta.clustering", "configuration": columns, "removed": False}
    with Path(path, "_delta_log", f"{0:020d}.json").open("a") as log:
        log.write(json.dumps({"domainMetadata": domain}) + "\n")
    return optimize(spark, path)


def _reorg(spark: SparkSession, path: str) -> object:
    """Purge a file with a deleted row."""
    _reconfigure(path, "deletionVectors", enableDeletionVectors="true")
    log = Path(path, "_delta_log", f"{1:020d}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (file,) = (action["add"] for action in actions if "add" in action)
    pq.write_table(pa.table({"id": [2, 3]}), Path(path, file["path"]))
    file["size"] = Path(path, file["path"]).stat().st_size
    file |= {"stats": '{"numRecords": 2}', "deletionVector": inline_vector([1])}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return reorg(spark, path)


def _restore(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).restoreToVersion(0)


def _checkpoint(spark: SparkSession, path: str) -> object:
    return write_checkpoint(spark, path)


def _checkpoint_v2(spark: SparkSession, path: str) -> object:
    """Write a checkpoint with a sidecar, and then one that takes it over beside a new one."""
    _reconfigure(path, "v2Checkpoint")
    write_checkpoint(spark, path, kind="v2-json", version=0)
    with patch.object(sidecar_reuse, "_NOT_WORTH_A_LOOK", 0):
        written = write_checkpoint(spark, path, kind="v2-json")
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
    _append: (5, [*BEFORE, 10]),
    _overwrite: (5, [10]),
    _append_and_checkpoint: (8, [*BEFORE, 10]),
    _delete_and_copy: (10, [1, 2]),
    _delete_by_vector: (6, [1, 2]),
    _update: (14, [1, 2, 20]),
    _merge: (19, [1, 20, 30]),
    _merge_and_copy: (10, [1, 2, 20]),
    _replace_where: (13, [1, 2, 20]),
    _deep_clone: (2, [0, 1]),
    _optimize: (5, BEFORE),
    _z_order: (5, BEFORE),
    _cluster: (5, BEFORE),
    _reorg: (5, BEFORE),
    _restore: (2, [0, 1]),
    _checkpoint: (3, BEFORE),
    _checkpoint_v2: (8, BEFORE),
    _compact: (2, BEFORE),
    _clean: (5, BEFORE),
}
"""The steps, each with the number of its changes and the rows of the table once it is done."""

DAILY = (_append,)
CHANGES_ROWS = (
    *(_append, _overwrite, _delete_and_copy, _delete_by_vector, _update),
    *(_merge, _merge_and_copy, _replace_where, _deep_clone),
    *(_optimize, _z_order, _cluster, _reorg, _restore),
)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions, of three rows."""
    path = tmp_path_factory.mktemp("crashes") / "table"
    write_delta(spark.range(2).coalesce(1), str(path))
    write_delta(spark.range(2, 3).coalesce(1), str(path), mode="append")
    return path


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in read_delta(spark, path).collect())


def steps_and_changes(steps: Iterable[Step]) -> list[ParameterSet]:
    return [
        pytest.param(step, nth, marks=() if step in DAILY and nth > 1 else pytest.mark.slow)
        for step in steps
        for nth in range(1, STEPS[step][0] + 1)
    ]


@pytest.mark.parametrize(("step", "nth"), steps_and_changes(STEPS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash(
    spark: SparkSession,
    tmp_path: Path,
    table: Path,
    caplog: pytest.LogCaptureFixture,
    step: Step,
    nth: int,
    when: str,
) -> None:
    """After a crash, acknowledged commits are there, and the last one is there whole or not at all.

    PROTOCOL.md#add-file-and-remove-file
    """
    path = str(tmp_path / "table")
    shutil.copytree(table, path)
    with dying_writer(nth, when) as death, pytest.raises(Crash):
        step(spark, path)
    assert len(death.calls) == nth
    committed = Path(path, "_delta_log", f"{2:020d}.json").exists()
    assert not (assert_reported(path, caplog.text) and committed)
    assert load_snapshot(spark, path).version == (2 if committed else 1)
    found = ids(spark, path)
    assert found == (STEPS[step][1] if committed else BEFORE)
    assert _append(spark, path).version == (3 if committed else 2)  # type: ignore[attr-defined]
    assert ids(spark, path) == sorted([*found, 10])
    if step in DAILY:
        assert_checksums(path)
    else:
        assert verify(spark, path).is_clean


@pytest.mark.slow
@pytest.mark.parametrize(("step", "nth"), steps_and_changes(CHANGES_ROWS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_fails(
    spark: SparkSession,
    tmp_path: Path,
    table: Path,
    caplog: pytest.LogCaptureFixture,
    step: Step,
    nth: int,
    when: str,
) -> None:
    """A commit that is there is acknowledged; the files of others are deleted before the commit,
    and reported from then on.
    """
    path = str(tmp_path / "table")
    shutil.copytree(table, path)
    with dying_writer(nth, when, OSError) as death:
        try:
            step(spark, path)
            acknowledged = True
        except OSError:
            acknowledged = False
    assert Path(path, "_delta_log", f"{2:020d}.json").exists() == acknowledged
    assert ids(spark, path) == (STEPS[step][1] if acknowledged else BEFORE)
    left = assert_reported(path, caplog.text)
    assert not left or (not acknowledged and death.calls[nth - 1] == "put_if_absent")
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
