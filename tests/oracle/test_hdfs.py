"""Tables on HDFS, written by sparkdelta alone and together with delta-spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    read_delta,
    vacuum,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.exceptions import DeltaError
from tests.support.delta_spark import DeltaSpark
from tests.support.mini_hdfs import MiniHdfs

pytestmark = pytest.mark.oracle


@pytest.fixture
def path(hdfs: MiniHdfs) -> str:
    """The path at which a test may make a table, with a name that URIs write otherwise."""
    return f"{hdfs.uri}/{uuid4()}/my table"


@pytest.mark.slow
def test_a_table_on_hdfs(spark: SparkSession, path: str) -> None:
    """Written, partitioned, overwritten, read with and without a checkpoint, verified."""
    rows = spark.sql("SELECT id, id % 2 AS part, 'a b' AS s FROM range(6)").coalesce(1)
    v2 = {"delta.checkpointPolicy": "v2"}
    write_delta(rows, path, partition_by=["part", "s"], properties=v2)
    write_delta(rows.selectExpr("id + 6 AS id", "part", "s"), path, mode="append")
    more = spark.sql("SELECT 100L AS id, 0L AS part, 'a b' AS s")
    assert write_delta(more, path, mode="overwrite", replace_where="part = 0").version == 2
    wanted = [1, 3, 5, 7, 9, 11, 100]
    assert sorted(row["id"] for row in read_delta(spark, path).collect()) == wanted
    snapshot = load_snapshot(spark, path)
    paths = [row["path"] for row in snapshot.add_files().select("path").collect()]
    assert {path.rpartition("/")[0] for path in paths} == {f"part={n}/s=a%20b" for n in (0, 1)}
    assert snapshot.add_files().where("stats LIKE '%\"numRecords\":%'").count() == 3
    for kind in ("v2-classic", "v2-parquet"):
        write_checkpoint(spark, path, kind=kind)
        assert read_delta(spark, path, where="id BETWEEN 11 AND 100").count() == 2
        write_delta(more.selectExpr("id + 1 AS id", "part", "s"), path, mode="append")
    assert read_delta(spark, path).count() == len(wanted) + 2
    found = verify(spark, path, footers=True)
    assert found.is_clean, str(found)
    assert found.checks[-1].num_checked == snapshot.add_files().count() + 2
    vacuumed = vacuum(spark, path, retention_hours=0, check_retention=False)
    assert vacuumed.kept["live"].count == found.checks[-1].num_checked
    assert vacuumed.deleted.count == 2
    assert read_delta(spark, path).count() == len(wanted) + 2


@pytest.mark.connect
@pytest.mark.slow
def test_a_table_on_hdfs_through_spark_connect(
    spark: SparkSession, connect_session: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has no access to HDFS, and the workers use a JVM of their own."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # for PySpark's functions
    client = connect_session

    def rows(start: int, end: int) -> DataFrame:
        return client.range(start, end, 1, 1).selectExpr("id", "id % 2 AS part", "'a b' AS s")

    vectors = {"delta.enableDeletionVectors": "true"}
    write_delta(rows(0, 10), path, partition_by=["part", "s"], properties=vectors)
    assert write_delta(rows(10, 20), path, mode="append").version == 1
    table = DeltaTable.forPath(client, path)
    table.delete("id = 3")
    source = rows(18, 22).selectExpr("id", "part", "'new' AS s").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete()
    merge.whenNotMatchedInsertAll().execute()
    wanted = [*({*range(18)} - {3}), 20, 21]
    assert sorted(row["id"] for row in read_delta(client, path).collect()) == wanted
    assert read_delta(client, path, max_driver_files=0).count() == len(wanted)
    write_checkpoint(client, path)
    table.optimize().executeCompaction()
    found = verify(client, path, footers=True)
    assert found.is_clean, str(found)
    deleted = vacuum(client, path, retention_hours=0, check_retention=False).deleted
    assert deleted.count > 0
    with pytest.raises(DeltaError, match="DELTA_TABLE_NOT_FOUND"):
        read_delta(client, f"{path}/missing")
    monkeypatch.undo()
    assert sorted(row["id"] for row in read_delta(spark, path).collect()) == wanted
    assert verify(spark, path, footers=True).is_clean


@pytest.mark.slow
@pytest.mark.connect
def test_concurrent_appends_through_spark_connect(
    connect_session: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name node decides which of the workers that rename a commit is first.

    References
    ----------
    PROTOCOL.md#delta-log-entries
    """
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    write_delta(connect_session.range(0), path)

    def append_rows(first: int) -> None:
        for n in range(first, first + 3):
            write_delta(connect_session.range(n, n + 1), path, mode="append")

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(append_rows, first) for first in (0, 3)]:
            done.result()
    assert sorted(row["id"] for row in read_delta(connect_session, path).collect()) == [*range(6)]


def test_executors_read_files_on_hdfs(spark: SparkSession, path: str) -> None:
    """The list of files stays on the executors, whose workers read data files and vectors."""
    rows = spark.range(0, 1000, 1, 4)
    write_delta(rows, path, properties={"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, path).delete("id % 10 = 0")
    assert read_delta(spark, path, max_driver_files=0).selectExpr("sum(id)").head()[0] == 450_000


def append(spark: SparkSession, path: str, first: int, commits: int) -> None:
    """Append one row per commit, numbered from `first`; runs in the process of delta-spark."""
    for n in range(first, first + commits):
        rows = spark.range(n, n + 1).coalesce(1)
        rows.write.format("delta").mode("append").save(path)


def test_nothing_of_concurrent_appends_is_lost(
    spark: SparkSession, delta_spark: DeltaSpark, path: str
) -> None:
    """Both rename a commit into its place, and the name node decides.

    References
    ----------
    PROTOCOL.md#delta-log-entries
    """
    write_delta(spark.range(0), path)

    def ours(first: int) -> None:
        for n in range(first, first + 5):
            write_delta(spark.range(n, n + 1).coalesce(1), path, mode="append")

    with ThreadPoolExecutor(3) as threads:
        running = [
            threads.submit(
                delta_spark.run, "tests.oracle.test_hdfs:append", path=path, first=0, commits=10
            ),
            threads.submit(ours, 10),
            threads.submit(ours, 15),
        ]
        for done in running:
            done.result()
    assert sorted(row["id"] for row in read_delta(spark, path).collect()) == list(range(20))
    names = [entry.name for entry in HadoopLogStore(SessionHadoop(spark), path, {}).list_from()]
    commits = [name for name in names if name.endswith(".json") and name[:20].isdigit()]
    assert commits == [f"{version:020d}.json" for version in range(21)]
    history = DeltaTable.forPath(spark, path).history().collect()
    writers = {row["engineInfo"].partition("/")[0] for row in history}
    assert len(writers) == 2
    rows = delta_spark.run("tests.oracle.test_hdfs:rows", path=path)
    assert rows == list(range(20))


def rows(spark: SparkSession, path: str) -> list[int]:
    """Return the table's rows; runs in the process of delta-spark."""
    return sorted(row["id"] for row in spark.read.format("delta").load(path).collect())
