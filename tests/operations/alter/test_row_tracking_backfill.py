"""Row tracking of tables with rows: enabled, suspended, and enabled again.

PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import DeltaError, MetadataChangedException
from sparkdelta.operations.alter import recommits
from sparkdelta.operations.alter.altered_properties import files_without_row_ids
from sparkdelta.table.commit import transaction
from tests.operations.alter.test_drop_feature import operations
from tests.operations.write.test_write import commit
from tests.support.crashing_store import dying_writer
from tests.support.memory_log import Crash

ON = {"delta.enableRowTracking": "true"}
OFF = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
AGAIN = {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "false"}
IDS = ["id", "_metadata.row_id"]


def ids(spark: SparkSession, path: str) -> dict[int, int]:
    """The row id of each row; no two are the same."""
    read = read_delta(spark, path, columns=IDS).collect()
    assert len({row["row_id"] for row in read}) == len(read)
    return {row["id"]: row["row_id"] for row in read}


def append(spark: SparkSession, path: str, first: int) -> None:
    write_delta(spark.range(first, first + 2, 1, 2), path, mode="append")


@pytest.mark.slow
def test_files_get_row_ids(spark: SparkSession, table_path: str) -> None:
    """Row Ids: all files have some in the version that enables row tracking; none is removed."""
    on = {"delta.enableDeletionVectors": "true"}
    write_delta(spark.range(0, 8, 1, 2), table_path, properties=on)
    DeltaTable.forPath(spark, table_path).delete("id = 1")
    table = alter_table(spark, table_path).set_properties(ON)
    assert operations(table_path)[2:] == [
        "UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES",
    ]  # fmt: skip
    backfill = commit(table_path, 3)
    assert backfill["commitInfo"][0]["operationParameters"] == {"batchId": "0"}
    assert [(file["dataChange"], file["defaultRowCommitVersion"]) for file in backfill["add"]] == [
        (False, 3), (False, 3),
    ]  # fmt: skip
    assert "remove" not in backfill
    assert [domain["domain"] for domain in backfill["domainMetadata"]] == ["delta.rowTracking"]
    first = ids(spark, table_path)
    assert sorted(first) == [0, 2, 3, 4, 5, 6, 7]
    append(spark, table_path, 8)
    table.set_properties(OFF)
    append(spark, table_path, 10)
    files = load_snapshot(spark, table_path).add_files()
    assert files.filter("baseRowId IS NULL").count() == 2
    table.set_properties(AGAIN)
    assert ids(spark, table_path).items() >= first.items()


def test_commits_do_not_conflict_with_each_other(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit is based on the version of the one before it."""
    write_delta(spark.range(0, 6, 1, 6), table_path)
    DeltaTable.forPath(spark, table_path).addFeatureSupport("rowTracking")
    monkeypatch.setattr(recommits, "MAX_BATCH_FILES", 2)
    read = load_snapshot(spark, table_path)
    done = list(recommits.recommit(read, files_without_row_ids, {}, "ROW TRACKING BACKFILL"))
    assert len(done) == 3
    assert [commit.attempts for commit in done] == [1, 1, 1]
    files = load_snapshot(spark, table_path).add_files().collect()
    assert sorted(file["baseRowId"] for file in files) == list(range(6))


@pytest.mark.slow
@pytest.mark.parametrize("appends", [True, False])
def test_in_several_commits_between_appends(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, appends: bool
) -> None:
    """The backfill conflicts with nothing that only appends; where files were removed, it looks
    again.
    """
    write_delta(spark.range(0, 12, 1, 6), table_path)
    monkeypatch.setattr(recommits, "MAX_BATCH_FILES", 2)
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 1)
    meanwhile = [
        lambda: append(spark, table_path, 12) if appends else None,
        lambda: DeltaTable.forPath(spark, table_path).delete("id < 10"),  # files of each batch
    ]
    commit_files: Callable[..., object] = recommits._commit

    def committed(*arguments: object) -> object:
        if meanwhile:
            meanwhile.pop(0)()
        return commit_files(*arguments)

    monkeypatch.setattr(recommits, "_commit", committed)
    alter_table(spark, table_path).set_properties(ON)
    assert not meanwhile
    assert sorted(ids(spark, table_path)) == [10, 11, *([12, 13] if appends else [])]


@pytest.mark.full
def test_deletes_go_on_beside_it(spark: SparkSession, table_path: str) -> None:
    """A commit that adds the same files again adds no rows: nobody who read these has to fail."""
    write_delta(spark.range(0, 4, 1, 2), table_path)
    DeltaTable.forPath(spark, table_path).addFeatureSupport("rowTracking")
    read = load_snapshot(spark, table_path)
    next(recommits.recommit(read, lambda s: s.add_files(), {}, "ROW TRACKING BACKFILL"))
    late = read_delta(spark, table_path, version=1).filter("id > 1")
    write_delta(late, table_path, mode="overwrite", replace_where="id > 1")
    assert read_delta(spark, table_path).count() == 4


def test_another_statement_is_a_conflict(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(spark.range(2), table_path)
    commit_files: Callable[..., object] = recommits._commit

    def committed(*arguments: object) -> object:
        alter_table(spark, table_path).set_properties({"own": "x"})
        return commit_files(*arguments)

    monkeypatch.setattr(recommits, "_commit", committed)
    with pytest.raises(MetadataChangedException):
        alter_table(spark, table_path).set_properties(ON)


@pytest.mark.slow
@pytest.mark.classic("stops a writer that creates files itself")
def test_a_backfill_that_dies_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each change of the storage."""
    monkeypatch.setattr(recommits, "MAX_BATCH_FILES", 2)
    for nth in range(1, 60):
        path = str(tmp_path / str(nth))
        write_delta(spark.range(0, 8, 1, 4), path)
        with dying_writer(nth, "after") as death, suppress(Crash, DeltaError):
            alter_table(spark, path).set_properties(ON)
        alter_table(spark, path).set_properties(ON)
        assert sorted(ids(spark, path)) == list(range(8))
        if not death.is_dead:
            return
    raise AssertionError("it never ended")
