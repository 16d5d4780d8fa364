"""OPTIMIZE: rows and row ids, what is rewritten and what is not, commits, conflicts and refusals.

PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as DeltaRsTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_delta,
    reorg,
    verify,
    write_delta,
)
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    InvalidArgumentError,
    NonPartitionColumnReferenceError,
)
from sparkdelta.operations.compaction import compaction_batches
from sparkdelta.table.commit.transaction import Transaction
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import counted_jobs, counted_tasks

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
ROW_ID_COLUMNS = ["_metadata.row_id", "_metadata.row_commit_version"]


def create(spark: SparkSession, path: str, properties: dict[str, str], **options: Any) -> None:
    """A table of 30 rows in three files, or in three of each partition."""
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "IF(id % 5 = 0, NULL, id) AS `a-é.b`", "IF(id % 3 = 0, NULL, 'a b=%') AS part"
    )
    write_delta(rows, path, properties=properties, **options)


def actions(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


def stored(spark: SparkSession, path: str, *more: str) -> list[tuple[Any, ...]]:
    rows = read_delta(spark, path, columns=["id", "a-é.b", "part", *more]).collect()
    return sorted(map(tuple, rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        ({**VECTORS, **MAPPED, **ROW_IDS, "delta.appendOnly": "false"}, ["part"]),
        pytest.param({"delta.appendOnly": "true"}, None, marks=pytest.mark.full),
        pytest.param({**VECTORS, "delta.enableChangeDataFeed": "true"}, None,
                     marks=pytest.mark.full),
        pytest.param(ROW_IDS, None, marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_rows_stay(
    spark: SparkSession, table_path: str, properties: dict[str, str], partition_by: Any
) -> None:
    """PROTOCOL.md#writer-requirements-for-row-tracking: rows that move keep their ids."""
    create(spark, table_path, properties, partition_by=partition_by)
    more = ROW_ID_COLUMNS if ROW_IDS.items() <= properties.items() else []
    deletes = properties.get("delta.appendOnly") != "true"
    if deletes:
        DeltaTable.forPath(spark, table_path).delete("id IN (1, 12)")
    before, version = stored(spark, table_path, *more), load_snapshot(spark, table_path).version
    num_files = load_snapshot(spark, table_path).add_files().count()
    planned = optimize(spark, table_path, dry_run=True)
    assert planned.versions == ()
    with settings(spark, HOSTILE["time zone, no ANSI"]):
        done = optimize(spark, table_path)
    bins = 2 if partition_by else 1
    assert done.versions == (version + 1,)
    assert (done.removed.count, done.added.count) == (num_files, bins)
    assert (planned.removed, planned.num_bins) == (done.removed, bins)
    assert stored(spark, table_path, *more) == before
    written = actions(table_path, version + 1)
    assert not [a for name in ("add", "remove") for a in written[name] if a["dataChange"]]
    assert not [add for add in written["add"] if "deletionVector" in add]
    assert "cdc" not in written
    info = written["commitInfo"][0]
    assert (info["operation"], info["isolationLevel"]) == ("OPTIMIZE", "SnapshotIsolation")
    vectors = sum("deletionVector" in remove for remove in written["remove"])
    assert info["operationMetrics"]["numDeletionVectorsRemoved"] == str(vectors)
    assert (vectors > 0) == (deletes and VECTORS.items() <= properties.items())
    assert verify(spark, table_path, footers=True).is_clean
    again = optimize(spark, table_path)  # nothing to do, no version
    assert (again.versions, again.num_bins, again.num_considered_files) == ((), 0, bins)
    assert "Nothing to do" in str(again)
    if not MAPPED.items() <= properties.items() and not vectors:
        assert len(DeltaRsTable(table_path).to_pyarrow_table()) == len(before)


def test_the_builder_of_a_partition(spark: SparkSession, table_path: str) -> None:
    """Other partitions stay, and the result has delta-spark's names."""
    create(spark, table_path, {}, partition_by=["part"])
    builder = DeltaTable.forPath(spark, table_path).optimize()
    (row,) = builder.where("part IS NULL").where("part IS NULL").executeCompaction().collect()
    metrics = row["metrics"]
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (1, 3)
    assert (metrics["partitionsOptimized"], metrics["totalConsideredFiles"]) == (1, 3)
    assert metrics["filesRemoved"]["totalSize"] == sum(
        remove["size"] for remove in actions(table_path, 1)["remove"]
    )
    parameters = actions(table_path, 1)["commitInfo"][0]["operationParameters"]
    assert json.loads(parameters["predicate"]) == ["isnull('part)", "isnull('part)"]
    assert load_snapshot(spark, table_path).add_files().count() == 4


@pytest.mark.full
def test_optimize_keeps_zero_and_negative_zero_in_their_partitions(
    spark: SparkSession, table_path: str
) -> None:
    values = [(n, -0.0 if n % 2 else 0.0) for n in range(8)]
    rows = spark.createDataFrame(values, "id INT, p DOUBLE").repartition(2, "id")
    write_delta(rows, table_path, partition_by=["p"])
    assert optimize(spark, table_path).num_bins == 2
    texts = [add["partitionValues"]["p"] for add in actions(table_path, 1)["add"]]
    assert sorted(texts) == ["-0.0", "0.0"]
    read = read_delta(spark, table_path).selectExpr("id", "CAST(p AS STRING)").collect()
    assert sorted(map(tuple, read)) == [(n, "-0.0" if n % 2 else "0.0") for n in range(8)]


@pytest.mark.full
def test_files_with_many_deleted_rows_are_rewritten(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#deletion-vectors: large files stay, unless many of their rows are deleted."""
    rows = spark.range(0, 3000, 1, 3).withColumn("text", F.sha2(F.col("id").cast("string"), 256))
    write_delta(rows, table_path, properties={**VECTORS, "delta.targetFileSize": "1000"})
    assert optimize(spark, table_path).num_bins == 0
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id < 1000 AND id % 50 = 0 OR id BETWEEN 1000 AND 1099")  # 2% and 10%
    done = optimize(spark, table_path)
    assert (done.removed.count, done.num_deleted_rows, done.num_deletion_vectors) == (1, 100, 1)
    assert optimize(spark, table_path, target_file_size=10**6).added.count == 1
    assert table.toDF().count() == 2880


@pytest.mark.full
def test_commits_in_steps(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails keeps what it committed; the driver packs a few files at a time."""
    create(spark, table_path, {}, partition_by=["part"])
    rows = stored(spark, table_path)
    commit = Transaction.commit
    done = []

    def once(self: Transaction, *arguments: Any) -> Any:
        if done:
            raise RuntimeError("the machine died")
        done.append(self)
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", once)
    monkeypatch.setattr(compaction_batches, "MAX_CANDIDATES", 3)
    with pytest.raises(RuntimeError):
        optimize(spark, table_path, max_bytes=1)
    assert load_snapshot(spark, table_path).version == 1
    monkeypatch.setattr(Transaction, "commit", commit)
    assert optimize(spark, table_path, max_bytes=1).versions == (2,)
    assert stored(spark, table_path) == rows


@pytest.mark.classic("counts Spark's jobs")
def test_no_row_is_shuffled(spark: SparkSession, table_path: str) -> None:
    """A job for all bins, with a task for each."""
    create(spark, table_path, {}, partition_by=["part"])
    with counted_jobs(spark) as jobs, counted_tasks(spark) as tasks:
        optimize(spark, table_path)
    assert jobs.count <= 3
    assert tasks.count(2) == 1
    files = [add["path"].rpartition("/")[2][:10] for add in actions(table_path, 1)["add"]]
    assert sorted(files) == ["part-00000", "part-00001"]  # of two tasks


@pytest.mark.parametrize(
    "other", ["append", "vector", pytest.param("elsewhere", marks=pytest.mark.full)]
)
def test_a_commit_in_between(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    other: str,
) -> None:
    """PROTOCOL.md#delta-log-entries: a deletion vector moves to the new file."""
    create(spark, table_path, VECTORS, partition_by=["part"])
    commit = Transaction.commit
    table = DeltaTable.forPath(spark, table_path)

    def after_another(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        if other == "append":
            new = "SELECT 33L AS id, 1L AS `a-é.b`, CAST(NULL AS STRING) AS part"
            write_delta(spark.sql(new), table_path, mode="append")
        else:
            table.delete("id = 3" if other == "vector" else "id = 4")
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_another)
    retries = optimize(spark, table_path, where="part IS NULL").retries
    assert retries == (1 if other == "vector" else 0)
    gone, new = {"append": (None, [33]), "vector": (3, []), "elsewhere": (4, [])}[other]
    expected = sorted([i for i in range(30) if i != gone] + new)
    assert [row[0] for row in stored(spark, table_path)] == expected


@pytest.mark.slow
def test_purge(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping: no file holds rows or columns that
    the table no longer has.
    """
    nested = spark.range(0, 90, 1, 9).selectExpr(
        "id", "named_struct('x', id, 'y', id) AS s", "array(named_struct('x', id, 'y', id)) AS l",
        "map(named_struct('x', id), id) AS m", "CAST(id % 3 AS INT) AS part",
    )  # fmt: skip
    properties = {**VECTORS, **MAPPED, **ROW_IDS}
    write_delta(nested, table_path, properties=properties, partition_by=["part"])
    assert reorg(spark, table_path).versions == ()
    DeltaTable.forPath(spark, table_path).delete("id = 4")  # of part 1
    planned = reorg(spark, table_path, where="part < 2", dry_run=True)
    assert (planned.num_bins, planned.removed.count, planned.num_deleted_rows) == (1, 1, 1)
    alter_table(spark, table_path).drop_columns("l.element.y")
    new = nested.selectExpr("id + 100 AS id", "s", "array(struct(id AS x)) AS l", "m", "part")
    write_delta(new.limit(1), table_path, mode="append")
    before = read_delta(spark, table_path, columns=["id", "l", *ROW_ID_COLUMNS]).collect()
    assert reorg(spark, table_path, where="part = 0").removed.count == 9
    done = reorg(spark, table_path)
    assert (done.removed.count, done.added.count, done.num_considered_files) == (18, 2, 20)
    (version,) = done.versions
    info = actions(table_path, version)["commitInfo"][0]
    assert info["operation"] == "REORG"
    assert info["operationParameters"] == {"predicate": "[]", "applyPurge": True}
    after = read_delta(spark, table_path, columns=["id", "l", *ROW_ID_COLUMNS]).collect()
    assert sorted(after) == sorted(before)
    assert reorg(spark, table_path).versions == ()
    assert verify(spark, table_path, footers=True).is_clean


def test_wrong_statistics(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#per-file-statistics: files with other rows than the log says stay."""
    create(spark, table_path, {})
    first = Path(table_path, "_delta_log", f"{0:020d}.json")
    first.write_text(first.read_text().replace('\\"numRecords\\":10', '\\"numRecords\\":12'))
    with raises("DELTA_NUM_RECORDS_MISMATCH") as refused:
        optimize(spark, table_path)
    assert (refused.value.expected, refused.value.found) == (36, 30)
    assert load_snapshot(spark, table_path).version == 0
    assert len(list(Path(table_path).rglob("*.parquet"))) == 3


def test_refusals(spark: SparkSession, table_path: str, tmp_path: Path) -> None:
    create(spark, table_path, {}, partition_by=["part"])
    table = DeltaTable.forPath(spark, table_path)
    with pytest.raises(NonPartitionColumnReferenceError) as refused:
        table.optimize().where("id > 3 AND part = 'x'").executeCompaction()
    assert (refused.value.column, refused.value.available) == ("id", ("part",))
    with pytest.raises(ColumnNotFoundError):
        table.optimize().where("nope = 3").executeCompaction()
    for arguments in ({"target_file_size": 0}, {"max_bytes": "1"}, {"dry_run": 1}):
        with pytest.raises(InvalidArgumentError):
            optimize(spark, table_path, **arguments)  # type: ignore[arg-type]
    for names, error in (
        ([], InvalidArgumentError),
        (["part"], "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (["id", "nope"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
    ):
        with raises(error):
            table.optimize().executeZOrderBy(names)
    with raises("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"):
        optimize(spark, table_path, full=True)
    clustered = str(tmp_path / "clustered")
    create(spark, clustered, {"delta.dataSkippingStatsColumns": "id"})
    with raises("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS") as without:
        optimize(spark, clustered, zorder_by=["ID", "part"])
    assert without.value.columns == ["part"]
    alter_table(spark, clustered).cluster_by("id")
    with raises("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"):
        optimize(spark, clustered, where="part = 'x'")
    with raises("DELTA_CLUSTERING_WITH_ZORDER_BY"):
        optimize(spark, clustered, zorder_by=["id"])
    assert load_snapshot(spark, table_path).version == 0
