"""Z-order and clustering: rows and row ids, files that conditions skip, Z-cubes, races and crashes.

PROTOCOL.md#clustered-table
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_delta,
    verify,
    write_delta,
)
from sparkdelta.table.commit.transaction import Transaction

ROW_IDS = ["_metadata.row_id", "_metadata.row_commit_version"]
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Rows whose columns `x` and `s.y z` are spread over all files."""
    return spark.range(start, end, 1, 5).selectExpr(
        "id",
        "CAST(pmod(hash(id), 1000) AS INT) AS x",
        "IF(id % 50 = 0, NULL, named_struct('y z', CAST(pmod(hash(id, 1), 1000) AS STRING))) AS s",
        "id % 2 = 0 AS part",
        "sha2(CAST(id AS STRING), 256) AS _place",
    )


def stored(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    columns = ["id", "x", "s", "part", *ROW_IDS]
    return sorted(map(tuple, read_delta(spark, path, columns=columns).collect()))


def files_read(spark: SparkSession, path: str, where: str) -> int:
    return load_snapshot(spark, path).scan(where).files().count()


def commit(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


@pytest.mark.slow
def test_z_order(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#writer-requirements-for-row-tracking: rows that move keep their ids; few files
    of each partition may have rows that a condition on one of the columns is true of.
    """
    write_delta(rows(spark, 0, 8000), table_path, properties=PROPERTIES, partition_by=["part"])
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id % 400 = 1")
    before = stored(spark, table_path)
    considered = load_snapshot(spark, table_path).add_files()
    total = {row["part"]: row["size"] for row in considered.selectExpr(
        "partitionValues_parsed.part", "size").groupBy("part").sum("size").withColumnRenamed(
        "sum(size)", "size").collect()}  # fmt: skip
    size = total[True] // 8
    planned = optimize(
        spark, table_path, zorder_by=["X", "s.`y z`"], target_file_size=size, dry_run=True
    )
    assert planned.num_planned_files == sum(each // size for each in total.values())
    done = optimize(spark, table_path, zorder_by=["X", "s.`y z`"], target_file_size=size)
    assert (done.added.count, done.removed.count) == (planned.num_planned_files, 10)
    assert (done.num_bins, done.num_partitions, done.num_deletion_vectors) == (2, 2, 5)
    assert done.added.largest is not None
    assert done.added.largest < 1.5 * size
    assert stored(spark, table_path) == before
    assert verify(spark, table_path, footers=True).is_clean
    assert files_read(spark, table_path, "x = 500 AND part") <= 5
    assert files_read(spark, table_path, "s.`y z` = '500' AND part") <= 5
    written = commit(table_path, done.versions[0])
    assert not [a for name in ("add", "remove") for a in written[name] if a["dataChange"]]
    parameters = written["commitInfo"][0]["operationParameters"]
    assert json.loads(parameters["zOrderBy"]) == ["X", "s.`y z`"]
    # A partition that becomes one file is compacted; a single file is left alone.
    builder = table.optimize().where("part")
    (row,) = builder.executeZOrderBy(["x"]).collect()
    assert (row["metrics"]["numFilesAdded"], row["metrics"]["numFilesRemoved"]) == (1, 8)
    assert row["metrics"]["zOrderStats"]["mergedFiles"]["num"] == 8
    assert optimize(spark, table_path, where="part", zorder_by=["x"]).versions == ()
    assert stored(spark, table_path) == before


@pytest.mark.slow
def test_clustering_goes_on(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL.md#writer-requirements-for-clustered-table: new files and small Z-cubes become
    Z-cubes; a run that dies keeps those that it has committed.
    """
    write_delta(rows(spark, 0, 6000), table_path, properties=PROPERTIES)
    alter_table(spark, table_path).cluster_by("x", "s.`y z`")
    total = load_snapshot(spark, table_path).add_files().selectExpr("sum(size)").first()[0]
    sizes = {"target_file_size": total // 8, "min_cube_size": total // 2, "max_cube_size": total}
    before = stored(spark, table_path)
    done = optimize(spark, table_path, **sizes)
    assert (done.added.count, done.removed.count) == (8, 5)
    assert stored(spark, table_path) == before
    adds = commit(table_path, done.versions[0])["add"]
    assert {add["clusteringProvider"] for add in adds} == {"liquid"}
    assert {add["tags"]["ZCUBE_ZORDER_BY"] for add in adds} == {'["x","s.`y z`"]'}
    assert len({add["tags"]["ZCUBE_ID"] for add in adds}) == 1
    assert {*adds[0]["tags"]} == {"ZCUBE_ID", "ZCUBE_ZORDER_BY"}
    assert files_read(spark, table_path, "x = 500") <= 4
    assert files_read(spark, table_path, "s.`y z` = '500'") <= 4
    again = optimize(spark, table_path, **sizes)
    assert again.versions == ()
    assert again.clustered_files is not None
    assert (again.clustered_files.num_cubes, again.clustered_files.cube_files) == (1, 8)
    # New rows become a Z-cube of their own, and grow together until it is large.
    for start in (6000, 7000):
        write_delta(rows(spark, start, start + 300), table_path, mode="append")
        done = optimize(spark, table_path, **sizes)
        assert done.removed.count == (5 if start == 6000 else 6)
        assert done.added.count == 1
    # As many Z-cubes as the sizes ask for, each committed by itself.
    small = {**sizes, "min_cube_size": total * 2, "max_cube_size": total * 2}
    alter_table(spark, table_path).cluster_by("id")
    assert optimize(spark, table_path, **small).versions == ()
    real, runs = Transaction.commit, []

    def dies(self: Transaction, *arguments: Any) -> Any:
        runs.append(self)
        if len(runs) > 1:
            raise RuntimeError("the machine died")
        return real(self, *arguments)

    before = stored(spark, table_path)
    parts = {"target_file_size": total, "min_cube_size": 1, "max_cube_size": total // 3}
    monkeypatch.setattr(Transaction, "commit", dies)
    with pytest.raises(RuntimeError):
        optimize(spark, table_path, full=True, **parts)
    monkeypatch.setattr(Transaction, "commit", real)
    first = load_snapshot(spark, table_path)
    done = optimize(spark, table_path, full=True, **parts)
    assert len(done.versions) >= 2
    assert done.removed.count < first.add_files().count()  # the first Z-cube stays
    assert stored(spark, table_path) == before
    assert verify(spark, table_path, footers=True).is_clean
    tags = {row[0] for row in load_snapshot(spark, table_path).add_files().select(
        "tags.ZCUBE_ZORDER_BY").collect()}  # fmt: skip
    assert tags == {'["id"]'}


@pytest.mark.full
@pytest.mark.parametrize("other", ["append", "elsewhere", "same"])
def test_a_commit_in_between(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """PROTOCOL.md#delta-log-entries: changed files are ordered again."""
    write_delta(rows(spark, 0, 2000), table_path, properties=PROPERTIES, partition_by=["part"])
    real, table = Transaction.commit, DeltaTable.forPath(spark, table_path)

    def after_another(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", real)
        if other == "append":
            write_delta(rows(spark, 9000, 9010), table_path, mode="append")
        else:
            table.delete("id = 4" if other == "same" else "id = 5")
        return real(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_another)
    arguments = {"where": "part", "zorder_by": ["x", "id"], "target_file_size": 10_000}
    done = optimize(spark, table_path, **arguments)
    assert (done.versions, done.retries) == ((2,), 0)
    expected = 2010 if other == "append" else 1999
    assert [row[0] for row in stored(spark, table_path)] == sorted(
        {*range(2000), *(range(9000, 9010) if expected == 2010 else ())}
        - ({4} if other == "same" else {5} if other == "elsewhere" else set())
    )
