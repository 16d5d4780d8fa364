"""Clones: rows, files and metadata of shallow and deep ones, repeated deep ones, refusals.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    clone,
    load_snapshot,
    read_delta,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from sparkdelta.operations.copy import copied_files
from sparkdelta.table.commit import transaction
from sparkdelta.table.snapshot.staging import Staging
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.table_builder import add

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
COLUMNS = ["id", "a-é.b", "part"]


def create(spark: SparkSession, path: str, properties: dict[str, str], **options: Any) -> None:
    """Thirty rows in three files, or in three of each partition; two have a deletion vector."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id) AS `a-é.b`", "IF(id % 3 = 0, NULL, 'a b=%') AS part"
    )
    write_delta(rows, path, properties=properties, **options)
    DeltaTable.forPath(spark, path).delete("id IN (4, 25)")


def stored(
    spark: SparkSession, path: str, columns: Sequence[str] = COLUMNS, **options: Any
) -> list[tuple[Any, ...]]:
    rows = read_delta(spark, path, columns=columns, **options).collect()
    return sorted(map(tuple, rows), key=str)


def last_info(path: str) -> dict[str, Any]:
    log = max(Path(path, "_delta_log").glob("*.json"))
    info: dict[str, Any] = json.loads(log.read_text().splitlines()[0])["commitInfo"]
    return info


def data_files(path: str) -> set[Path]:
    return {*Path(path).rglob("*.parquet"), *Path(path).rglob("*.bin")} - {
        *Path(path, "_delta_log").rglob("*")
    }


@pytest.mark.parametrize("deep", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    ("properties", "partition_by", "group"),
    [
        pytest.param({**VECTORS, **ROW_IDS}, None, None, id="vectors", marks=pytest.mark.slow),
        pytest.param({**VECTORS, **ROW_IDS, "delta.columnMapping.mode": "id"}, ["part"], "plans",
                     id="all", marks=pytest.mark.full),
        pytest.param({}, ["part"], "Parquet", id="plain", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.every_case
def test_a_clone_has_the_rows(
    spark: SparkSession,
    tmp_path: Path,
    properties: dict[str, str],
    partition_by: Any,
    group: str | None,
    deep: bool,
) -> None:
    """PROTOCOL.md#add-file-and-remove-file: paths may be absolute; vectors come along."""
    source, target = str(tmp_path / "so u%20rce"), str(tmp_path / "tar get")
    create(spark, source, properties, partition_by=partition_by)
    write_checkpoint(spark, source)
    expected = stored(spark, source)
    with settings(spark, HOSTILE[group] if group else {}):
        result = clone(spark, source, target, deep=deep, properties={"user.key": "x"})
    assert stored(spark, target) == expected
    before, after = load_snapshot(spark, source), load_snapshot(spark, target)
    assert (result.version, result.source_version, after.version) == (0, before.version, 0)
    totals = before.live_file_totals().first()
    assert totals is not None
    assert (result.source_num_of_files, result.source_table_size) == tuple(totals)
    copied = totals.num_files if deep else 0
    assert result.num_copied_files == copied
    assert (result.copied_files_size > 0) is deep
    assert bool(data_files(target)) is deep
    assert after.schema == before.schema
    assert after.metadata.id != before.metadata.id
    assert after.metadata.partition_columns == before.metadata.partition_columns
    assert after.protocol == before.protocol
    assert after.properties["user.key"] == "x"
    assert {k: v for k, v in after.properties.items() if "materialized" not in k} == {
        **{k: v for k, v in before.properties.items() if "materialized" not in k}, "user.key": "x",
    }  # fmt: skip
    info = last_info(target)
    assert (info["operation"], info["operationParameters"]) == (
        "CLONE", {"source": f"delta.`{before.path}`", "sourceVersion": before.version},
    )  # fmt: skip
    assert info["operationMetrics"]["numCopiedFiles"] == str(copied)
    if properties:
        rows = read_delta(spark, target, columns=["_metadata.row_id"]).collect()
        assert len({row.row_id for row in rows}) == len(expected)
    table = DeltaTable.forPath(spark, target)
    table.delete("id < 12")
    table.update("id = 20", {"`a-é.b`": "-1"})
    assert [r[0] for r in stored(spark, target)] == [r[0] for r in expected if r[0] >= 12]
    assert stored(spark, source) == expected
    assert verify(spark, target, footers=True).is_clean


@pytest.mark.slow
def test_a_large_shallow_clone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The performance contract: the actions are not stored before their lines are, unless an
    absolute path may name one of them again.
    """
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    create(spark, source, VECTORS)
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    parts = []
    write = Staging.write_parquet

    def recorded(stage: Staging, rows: DataFrame, part: str, options: Any) -> Any:
        parts.append(part)
        return write(stage, rows, part, options)

    monkeypatch.setattr(Staging, "write_parquet", recorded)
    assert clone(spark, source, target).source_num_of_files == 3
    assert parts == []
    assert stored(spark, target) == stored(spark, source)
    assert verify(spark, target).is_clean
    clone(spark, target, str(tmp_path / "again"))
    assert parts == ["actions"]
    (whole,) = load_snapshot(spark, source).add_files().filter("deletionVector IS NULL").collect()
    write_commit(Path(source), 2, [add(f"file:{quote(source)}/{whole.path}")])
    with raises("DELTA_INVALID_COMMIT", match="several actions"):
        clone(spark, source, str(tmp_path / "twice"))


@pytest.mark.full
def test_a_repeated_deep_clone_keeps_the_row_ids_of_its_copies(
    spark: SparkSession, tmp_path: Path
) -> None:
    """PROTOCOL.md#writer-requirements-for-row-tracking: a file that is committed again has the row
    ids that it had, here with a new deletion vector of the source.
    """
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    write_delta(spark.range(10).coalesce(1), source, properties=properties)
    clone(spark, source, target, deep=True)
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    before = stored(spark, target, columns=columns)
    write_delta(spark.range(10, 12).coalesce(1), source, mode="append")
    DeltaTable.forPath(spark, source).delete("id = 3")
    clone(spark, source, target, deep=True, replace=True)
    after = stored(spark, target, columns=columns)
    assert {row for row in before if row[0] != 3} < set(after)
    assert len(after) == 11
    assert len({row[1] for row in [*before, *after]}) == 12


@pytest.mark.slow
def test_a_repeated_deep_clone_copies_what_is_new(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#deletion-vectors: a file with another vector is another logical file."""
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    create(spark, source, VECTORS)
    assert clone(spark, source, target, deep=True).num_copied_files == 3
    table = DeltaTable.forPath(spark, source)
    files = data_files(target)
    result = clone(spark, source, target, deep=True, replace=True)
    assert (result.version, result.num_copied_files, result.num_removed_files) == (1, 0, 0)
    assert data_files(target) == files
    # A new vector of the source, one of the target, a new file, one that is gone.
    table.delete("id = 5")
    DeltaTable.forPath(spark, target).delete("id = 15")
    write_delta(spark.sql("SELECT 99L AS id, 1L AS `a-é.b`, 'x' AS part"), source, mode="append")
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    result = clone(spark, source, target, deep=True, replace=True)
    assert (result.num_copied_files, result.num_removed_files) == (1, 2)
    assert stored(spark, target) == stored(spark, source)
    table.delete("id < 10")
    result = clone(spark, source, target, deep=True, replace=True)
    assert (result.num_copied_files, result.num_removed_files) == (0, 1)
    assert stored(spark, target) == stored(spark, source)
    assert stored(spark, target, version=0) == stored(spark, source, version=1)
    assert "Cloned version 4" in str(result)
    assert verify(spark, target, footers=True).is_clean
    # A file of a shallow clone is no copy, whatever the tags say that it took over.
    between, last = str(tmp_path / "between"), str(tmp_path / "last")
    clone(spark, target, between)
    assert clone(spark, between, last, deep=True).num_copied_files == 3
    assert clone(spark, between, last, deep=True, replace=True).num_copied_files == 0
    assert clone(spark, source, between, deep=True, replace=True).num_copied_files == 3
    assert stored(spark, last) == stored(spark, between) == stored(spark, source)


@pytest.mark.slow
def test_the_table_that_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#identity-columns: values that were given are not given again.

    PROTOCOL.md#clustered-table: the clone is clustered as the source.
    """
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    for path, mark, clusters in ((source, 1, ("s",)), (target, 7, ())):
        builder = (
            DeltaTable.create(spark)
            .location(path)
            .addColumn("n", "LONG", generatedByDefaultAs=IdentityGenerator())
            .addColumn("s", "STRING")
        )
        (builder.clusterBy(*clusters) if clusters else builder).execute()
        for _ in range(mark):
            write_delta(spark.sql("SELECT 'a' AS s"), path, mode="append")
    alter_table(spark, source).set_properties({"delta.enableInCommitTimestamps": "true"})
    before = load_snapshot(spark, target)
    DeltaTable.forPath(spark, target).delete()
    clone = DeltaTable.forPath(spark, source).clone(
        target, True, True, {"delta.appendOnly": "true"}
    )
    after = load_snapshot(spark, target)
    assert (after.metadata.id, after.version) == (before.metadata.id, before.version + 2)
    assert after.schema["n"].metadata["delta.identity.highWaterMark"] == 7
    assert after.properties["delta.inCommitTimestampEnablementVersion"] == str(after.version)
    assert after.timestamp is not None
    (domain,) = after.domain_metadata().collect()
    (physical,) = json.loads(domain.configuration)["clusteringColumns"]
    assert physical == ["s"]
    assert "clustering" in (after.protocol.writer_features or ())
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        clone.delete()
    fresh = str(tmp_path / "fresh")
    DeltaTable.forPath(spark, source).cloneAtVersion(1, fresh, isShallow=True)
    assert "delta.inCommitTimestampEnablementVersion" not in load_snapshot(spark, fresh).properties
    first = load_snapshot(spark, source, version=1).timestamp
    assert first is not None
    at = DeltaTable.forPath(spark, source).cloneAtTimestamp(
        first.isoformat()[:23] + "Z", str(tmp_path / "at")
    )
    assert at.toDF().count() == 1


@pytest.mark.full
def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    create(spark, source, {})
    table = DeltaTable.forPath(spark, source)
    for wrong in (source, f"{source}/within", str(tmp_path)):
        with pytest.raises(InvalidArgumentError, match="target"):
            table.clone(wrong, replace=True)
    for arguments in ({"isShallow": "false"}, {"replace": 1}, {"properties": {"a": 1}}):
        with pytest.raises(InvalidArgumentError):
            table.clone(target, **arguments)  # type: ignore[arg-type]
    with raises("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
        table.clone(target, properties={"delta.columnMapping.mode": "name"})
    with raises("DELTA_ADD_CONSTRAINTS"):
        table.clone(target, properties={"delta.constraints.c": "id > 100"})
    with pytest.raises(VersionNotFoundError):
        table.cloneAtVersion(9, target)
    with pytest.raises(TableNotFoundError):
        clone(spark, str(tmp_path / "none"), target)
    assert not Path(target).exists()
    Path(target).mkdir()
    Path(target, "other").touch()
    with raises("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"):
        table.clone(target)
    Path(target, "other").unlink()
    table.clone(target, isShallow=True)
    with raises("DELTA_TABLE_ALREADY_EXISTS"):
        table.clone(target)
    with raises("DELTA_UNSUPPORTED_NON_EMPTY_CLONE"):
        table.clone(target, isShallow=True, replace=True)


@pytest.mark.slow
def test_files_are_checked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#data-files: nothing is committed or left behind if a file is not as it was."""
    # By one task: another one might still write after the failed copy is deleted.
    monkeypatch.setattr(type(engine_of(spark)), "parallelism", 1)
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    create(spark, source, VECTORS)
    (vector,) = Path(source).rglob("*.bin")
    content = vector.read_bytes()
    vector.unlink()
    with raises("DELTA_FILE_NOT_FOUND", match="deletion_vector"):
        clone(spark, source, target, deep=True)
    vector.write_bytes(content)
    file = next(Path(source).rglob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data + b" ")
    with pytest.raises(StorageError, match="the log says"):
        clone(spark, source, target, deep=True)
    file.unlink()
    with raises("DELTA_FILE_NOT_FOUND", match=file.name):
        clone(spark, source, target, deep=True)
    assert not data_files(target)
    file.write_bytes(data)
    monkeypatch.setattr(copied_files, "_TASK_BYTES", 1)
    assert clone(spark, source, target, deep=True).num_copied_files == 3
    assert stored(spark, target) == stored(spark, source)
