"""DataFrames and views of enabled sessions read the latest version whenever a query runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from sparkdelta.base.jvm.jvm import singleton
from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.table.scan.deferred_scan import LateFiles
from sparkdelta.table.scan.query_versions import pin_version
from tests.support.errors import raises
from tests.support.spark_jobs import counted_jobs

_VECTORS = {"delta.enableDeletionVectors": "true"}


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


@pytest.fixture
def table(enabled: SparkSession, table_path: str) -> str:
    """A table with the ids 0 and 1."""
    write_delta(enabled.range(2).coalesce(1), table_path)
    return table_path


_MADE: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "load": lambda spark, path: spark.read.format("delta").load(path),
    "sql": lambda spark, path: spark.sql(f"SELECT id FROM delta.`{path}` WHERE id >= 0"),
    "table": lambda spark, path: spark.table(f"delta.`{path}`"),
    "toDF": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
}


@pytest.mark.every_case
@pytest.mark.parametrize("made", _MADE)
def test_dataframes_see_later_commits(enabled: SparkSession, table: str, made: str) -> None:
    rows = _MADE[made](enabled, table)
    assert rows.count() == 2
    write_delta(enabled.range(2, 5), table, mode="append")
    assert _ids(rows) == [0, 1, 2, 3, 4]
    DeltaTable.forPath(enabled, table).delete("id = 0")
    assert rows.count() == 4


@pytest.mark.classic("looks into the JVM")
def test_queries_of_an_earlier_application_pin_no_version(
    enabled: SparkSession, table: str
) -> None:
    """Each application counts its queries from 0."""
    rows = enabled.read.format("delta").load(table)
    write_delta(enabled.range(2, 5), table, mode="append")
    package: Any = enabled.sparkContext._jvm
    executions = singleton(package.org.apache.spark.sql.execution, "SQLExecution$")
    last = int(executions.nextExecutionId())
    for execution in range(last, last + 100):
        pin_version(str(execution), load_snapshot(enabled, table).path, 0)
    assert _ids(rows) == [0, 1, 2, 3, 4]


def test_views_see_later_commits(enabled: SparkSession, table: str) -> None:
    enabled.sql(f"CREATE OR REPLACE TEMP VIEW followed AS SELECT id FROM delta.`{table}`")
    enabled.sql(f"CREATE OR REPLACE TEMP VIEW of_path USING delta OPTIONS (path '{table}')")
    enabled.table(f"delta.`{table}`").createOrReplaceGlobalTempView("followed")
    write_delta(enabled.range(2, 3), table, mode="append")
    assert _ids(enabled.table("followed")) == [0, 1, 2]
    assert _ids(enabled.table("of_path")) == [0, 1, 2]
    assert _ids(enabled.sql("SELECT * FROM global_temp.followed")) == [0, 1, 2]
    for name in ("followed", "of_path"):
        enabled.catalog.dropTempView(name)
    enabled.catalog.dropGlobalTempView("followed")


def test_named_versions_and_read_delta_are_pinned(enabled: SparkSession, table: str) -> None:
    pinned = [
        read_delta(enabled, table),
        enabled.read.format("delta").option("versionAsOf", 0).load(table),
        enabled.sql(f"SELECT * FROM delta.`{table}` VERSION AS OF 0"),
    ]
    write_delta(enabled.range(2, 3), table, mode="append")
    assert [rows.count() for rows in pinned] == [2, 2, 2]


def test_a_later_deletion_vector_is_applied(enabled: SparkSession, table_path: str) -> None:
    write_delta(enabled.range(10).coalesce(1), table_path, properties=_VECTORS)
    rows = enabled.read.format("delta").load(table_path)
    DeltaTable.forPath(enabled, table_path).delete("id = 3")
    assert (
        load_snapshot(enabled, table_path).add_files().where("deletionVector IS NOT NULL").count()
    )
    assert _ids(rows) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert rows.where("id = 3").count() == 0


@pytest.mark.classic("plans of Spark Connect have their vectors when they are sent")
def test_later_vectors_that_the_plan_cannot_apply_are_an_error(
    enabled: SparkSession, table: str
) -> None:
    rows = enabled.read.format("delta").load(table)
    enabled.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({_property(_VECTORS)})")
    assert rows.count() == 2
    DeltaTable.forPath(enabled, table).delete("id = 1")
    with pytest.raises(PySparkException, match="Make the DataFrame or view again"):
        rows.where("id >= 0").collect()


def _property(properties: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


def test_added_columns_are_left_out_and_other_changes_are_an_error(
    enabled: SparkSession, table: str
) -> None:
    rows, name = enabled.read.format("delta").load(table), f"delta.`{table}`"
    enabled.sql(f"ALTER TABLE {name} ADD COLUMNS (n STRING)")
    enabled.sql(f"INSERT INTO {name} VALUES (2, 'x')")
    assert [tuple(row) for row in rows.orderBy("id").collect()] == [(0,), (1,), (2,)]
    write_delta(enabled.sql("SELECT 'x' AS id"), table, mode="overwrite", overwrite_schema=True)
    with raises("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS") as raised:
        rows.select("id").collect()
    assert isinstance(raised.value, AnalysisException)


def test_errors_of_spark_stay(enabled: SparkSession) -> None:
    with pytest.raises(SparkRuntimeException, match="USER_RAISED_EXCEPTION"):
        enabled.range(1).selectExpr("raise_error('[DELTA_NO_SUCH_CLASS] x')").collect()


def test_a_table_that_was_deleted_and_created_again_is_followed(
    enabled: SparkSession, table: str
) -> None:
    rows = enabled.read.format("delta").load(table)
    assert rows.count() == 2
    shutil.rmtree(table)
    write_delta(enabled.range(7, 8), table)
    assert _ids(rows) == [7]


@pytest.mark.classic("DataFrames that Spark Connect caches keep their rows")
def test_persisted_rows_are_read_again_after_a_commit(enabled: SparkSession, table: str) -> None:
    rows = enabled.read.format("delta").load(table).where("id >= 0").cache()
    enabled.read.format("delta").load(table).persist().createOrReplaceTempView("persisted")
    dropped = enabled.read.format("delta").load(table).where("id > 0").persist()
    assert (rows.count(), enabled.table("persisted").count(), dropped.count()) == (2, 2, 1)
    dropped.unpersist()
    enabled.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    assert (rows.count(), enabled.table("persisted").count()) == (3, 3)
    assert rows.storageLevel.useMemory
    assert not dropped.storageLevel.useMemory
    enabled.catalog.clearCache()
    DeltaTable.forPath(enabled, table).delete("id = 2")
    assert rows.count() == 2
    assert not rows.storageLevel.useMemory


@pytest.mark.classic("DataFrames that Spark Connect caches keep their rows")
def test_cached_views_are_read_again_after_a_commit(enabled: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    for view in ("by_sql", "by_catalog"):
        enabled.read.format("delta").load(table).where("id > 0").createOrReplaceTempView(view)
    try:
        enabled.sql(f"CACHE TABLE of_query AS SELECT id + 1 AS id FROM {name} WHERE id > 0")
        enabled.sql("CACHE TABLE by_sql")
        enabled.catalog.cacheTable("by_catalog")
        assert enabled.table("by_catalog").count() == 1
        enabled.sql(f"INSERT INTO {name} VALUES (2)")
        views = ("of_query", "by_sql", "by_catalog")
        assert [_ids(enabled.table(view)) for view in views] == [[2, 3], [1, 2], [1, 2]]
        assert all(map(enabled.catalog.isCached, views))
        enabled.sql("UNCACHE TABLE of_query")
        enabled.sql(f"INSERT INTO {name} VALUES (3)")
        assert not enabled.catalog.isCached("of_query")
    finally:
        for view in ("of_query", "by_sql", "by_catalog"):
            enabled.catalog.dropTempView(view)


@pytest.mark.classic("commits while a classic session plans a query")
def test_a_query_reads_one_version_for_all_of_its_scans(
    enabled: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (enabled.read.format("delta").load(table) for _ in range(2))
    listed, is_first = LateFiles.chosen, [True]

    def with_commit(files: LateFiles, predicate: Any) -> Any:
        found = listed(files, predicate)
        if is_first:
            is_first.clear()
            _append_by_another_engine(Path(table))
        return found

    monkeypatch.setattr(LateFiles, "chosen", with_commit)
    query = one.where("id >= 0").union(other.where("id < 100"))
    assert _ids(query) == [0, 0, 1, 1]
    assert load_snapshot(enabled, table).version == 1
    monkeypatch.undo()
    assert _ids(one.where("id >= 0").union(other.where("id < 100"))) != [0, 0, 1, 1]


def _append_by_another_engine(table: Path) -> None:
    """Commit the first data file once more under another name."""
    log = table / "_delta_log"
    first = (log / f"{0:020}.json").read_text()
    (add,) = (line for line in first.splitlines() if line.startswith('{"add"'))
    action = json.loads(add)
    path = action["add"]["path"]
    copy = path.replace("part-", "part-copy-")
    shutil.copyfile(table / path, table / copy)
    action["add"]["path"] = copy
    (log / f"{1:020}.json").write_text(json.dumps(action) + "\n")


@pytest.mark.full
def test_rows_of_an_altered_target_are_inserted_and_merged(
    enabled: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    enabled.sql(
        f"CREATE OR REPLACE TEMP VIEW above AS SELECT id + 1 AS id, 'x' AS n FROM {name} "
        f"WHERE id >= (SELECT max(id) FROM {name})"
    )
    enabled.sql(f"ALTER TABLE {name} ADD COLUMNS (n STRING)")
    enabled.sql(f"INSERT INTO {name} SELECT id, n FROM above")
    assert _ids(enabled.table(name)) == [0, 1, 2]
    enabled.sql(
        f"MERGE INTO {name} t USING above s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert _ids(enabled.table(name)) == [0, 1, 2, 3]
    enabled.catalog.dropTempView("above")


def test_a_write_of_own_rows_reads_the_version_that_it_replaces(
    enabled: SparkSession, table: str
) -> None:
    rows = enabled.read.format("delta").load(table)
    write_delta(enabled.range(5, 7), table, mode="append")
    rows.where("id > 0").write.format("delta").mode("overwrite").save(table)
    assert _ids(rows) == [1, 5, 6]


def test_a_write_of_cached_rows_of_an_old_version_is_refused(
    enabled: SparkSession, table: str
) -> None:
    rows = enabled.read.format("delta").load(table).persist()
    assert rows.count() == 2
    write_delta(enabled.range(5, 7), table, mode="append")
    try:
        with pytest.raises(DeltaConcurrentModificationException):
            rows.where("id > 0").write.format("delta").mode("overwrite").save(table)
    finally:
        rows.unpersist()
    assert read_delta(enabled, table).count() == 4


@pytest.mark.classic("counts Spark's jobs")
def test_following_starts_no_further_job(enabled: SparkSession, table: str) -> None:
    pinned, rows = read_delta(enabled, table), enabled.read.format("delta").load(table)
    counts = []
    for each in (pinned, rows):
        each.where("id > 0").collect()
        with counted_jobs(enabled) as jobs:
            each.where("id > 0").collect()
        counts.append(jobs.count)
    assert counts[0] == counts[1]
