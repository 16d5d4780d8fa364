"""Views of Delta tables: permanent ones, as Spark's session catalog keeps them, and temporary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from tests.support.errors import raises
from tests.support.settings import settings


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def database(enabled: SparkSession) -> Iterator[str]:
    """The current database, with a table `t` that has the rows (1, 'a') and (2, 'b')."""
    enabled.sql("CREATE DATABASE of_views")
    enabled.sql("USE of_views")
    enabled.sql("CREATE TABLE t (id INT, s STRING) USING DELTA")
    enabled.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    yield "of_views"
    enabled.sql("USE default")
    enabled.sql("DROP DATABASE of_views CASCADE")


def test_a_view_shows_current_rows_by_every_way_to_name_it(
    enabled: SparkSession, database: str
) -> None:
    enabled.sql("CREATE VIEW v AS SELECT id, upper(s) AS s FROM t WHERE id > 1")
    assert _rows(enabled.table("v")) == [(2, "B")]
    enabled.sql("INSERT INTO t VALUES (3, 'c')")
    rows = [(2, "B"), (3, "C")]
    assert _rows(enabled.table("v")) == rows
    assert _rows(enabled.sql("SELECT * FROM v")) == rows
    assert _rows(enabled.read.table(f"{database}.v")) == rows
    assert _rows(sparkdelta.sql(enabled, f"TABLE spark_catalog.{database}.v")) == rows
    assert _rows(enabled.sql("SELECT v.id FROM V JOIN t USING (id)")) == [(2,), (3,)]
    enabled.sql("USE default")
    assert _rows(enabled.sql(f"SELECT s FROM {database}.v x")) == [("B",), ("C",)]


@pytest.mark.classic("DataFrames of views stay at their version on Spark Connect")
def test_a_dataframe_of_a_view_shows_current_rows(enabled: SparkSession, database: str) -> None:
    enabled.sql("CREATE VIEW v AS SELECT id FROM t")
    made = enabled.table("v")
    assert _rows(made) == [(1,), (2,)]
    enabled.sql("INSERT INTO t VALUES (3, 'c')")
    assert _rows(made.select("*")) == [(1,), (2,), (3,)]  # Spark runs the plan of `made` again


def test_a_cached_view_shows_current_rows(enabled: SparkSession, database: str) -> None:
    """As with delta-spark; a view over a view, too."""
    sql, catalog = enabled.sql, enabled.catalog
    sql("CREATE VIEW inner_v AS SELECT id FROM t")
    sql("CREATE VIEW v AS SELECT max(id) AS id FROM inner_v")
    assert not catalog.isCached("v")
    sql("CACHE TABLE v")
    assert catalog.isCached("v")
    assert catalog.isCached("t")
    assert _rows(sql("SELECT * FROM v")) == [(2,)]
    sql("INSERT INTO t VALUES (3, 'c')")
    assert _rows(sql("SELECT * FROM v")) == [(3,)]
    sql("UNCACHE TABLE v")
    assert not catalog.isCached("v")
    catalog.cacheTable(f"{database}.inner_v")
    assert catalog.isCached("v")
    catalog.uncacheTable("inner_v")
    assert not catalog.isCached("t")


def test_views_are_kept_as_spark_keeps_its_own(enabled: SparkSession, database: str) -> None:
    columns, tail = "(n COMMENT 'number')", "COMMENT 'odd' TBLPROPERTIES ('k' = 'x')"
    enabled.sql("CREATE TABLE p (id INT) USING PARQUET")
    enabled.sql(f"CREATE VIEW own {columns} {tail} AS SELECT id FROM p WHERE id < 9")
    enabled.sql(f"CREATE VIEW ours {columns} {tail} AS SELECT id FROM t WHERE id < 9")
    own, ours = (
        {row[0]: row[1] for row in enabled.sql(f"DESCRIBE EXTENDED {name}").collect()}
        for name in ("own", "ours")
    )
    assert ours.pop("View Text") == "SELECT id FROM t WHERE id < 9"
    for name in ("View Text", "View Original Text", "Created Time", "Table", "Last Access"):
        own.pop(name, None)
        ours.pop(name, None)
    assert ours == own
    assert ("k", "x") in _rows(enabled.sql("SHOW TBLPROPERTIES ours"))
    (create,) = enabled.sql("SHOW CREATE TABLE ours").collect()
    assert "VIEW" in create[0]
    assert "FROM t" in create[0]
    shown = {row["viewName"] for row in enabled.sql("SHOW VIEWS").collect()}
    assert {"own", "ours"} <= shown


def test_views_are_replaced_renamed_altered_and_dropped(
    enabled: SparkSession, database: str
) -> None:
    sql = enabled.sql
    sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(AnalysisException, match="already exists"):
        sql("CREATE VIEW v AS SELECT s FROM t")
    sql("CREATE VIEW IF NOT EXISTS v AS SELECT s FROM t")
    assert enabled.table("v").columns == ["id"]
    sql("CREATE OR REPLACE VIEW v AS SELECT s FROM t")
    assert enabled.table("v").columns == ["s"]
    sql("ALTER VIEW v AS SELECT id + 1 AS m FROM t")
    assert _rows(enabled.table("v")) == [(2,), (3,)]
    sql("ALTER VIEW v SET TBLPROPERTIES ('k' = '1')")
    sql("ALTER VIEW v UNSET TBLPROPERTIES ('k')")
    sql("ALTER VIEW v RENAME TO w")
    assert _rows(enabled.table("w")) == [(2,), (3,)]
    sql("DROP VIEW w")
    sql("DROP VIEW IF EXISTS w")
    with pytest.raises(AnalysisException):
        _rows(enabled.table("w"))


def test_a_view_of_views_queries_and_versions(enabled: SparkSession, database: str) -> None:
    sql = enabled.sql
    sql("CREATE TABLE p (id INT) USING PARQUET")
    sql("INSERT INTO p VALUES (1), (7)")
    sql("CREATE VIEW low AS SELECT id FROM t WHERE id < 2")
    sql("CREATE VIEW plain AS SELECT id FROM p")
    sql(
        "CREATE VIEW mixed AS WITH c AS (SELECT id FROM low) "
        "SELECT id FROM c UNION ALL SELECT id FROM plain "
        "WHERE id NOT IN (SELECT id FROM t VERSION AS OF 1)"
    )
    assert _rows(enabled.table("mixed")) == [(1,), (7,)]
    sql("DELETE FROM t")
    assert _rows(enabled.table("mixed")) == [(7,)]
    assert _rows(sql("SELECT * FROM plain")) == [(1,), (7,)]
    with raises("DELTA_STATEMENT_NOT_SUPPORTED"):
        sql("SELECT * FROM low VERSION AS OF 1")


@pytest.mark.full
def test_a_view_is_the_source_of_changes(enabled: SparkSession, database: str) -> None:
    sql = enabled.sql
    sql("CREATE VIEW v AS SELECT id + 1 AS id, s FROM t")
    sql(
        "MERGE INTO t USING v ON t.id = v.id "
        "WHEN MATCHED THEN UPDATE SET s = v.s WHEN NOT MATCHED THEN INSERT *"
    )
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "a"), (3, "b")]
    sql("INSERT INTO t SELECT * FROM v WHERE id = 4")
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "a"), (3, "b"), (4, "b")]
    sql("CREATE TABLE copy USING DELTA AS SELECT max(id) AS m FROM v")
    assert _rows(enabled.table("copy")) == [(5,)]


def test_a_view_has_the_settings_and_columns_of_its_creation(
    enabled: SparkSession, database: str
) -> None:
    with settings(enabled, {"spark.sql.ansi.enabled": "false"}):
        enabled.sql("CREATE VIEW v AS SELECT *, CAST('x' AS INT) AS n FROM t WHERE id = 1")
    assert _rows(enabled.table("v")) == [(1, "a", None)]
    enabled.sql("ALTER TABLE t ADD COLUMNS (z INT)")
    enabled.range(1).createOrReplaceTempView("t")
    try:
        assert _rows(enabled.table("v")) == [(1, "a", None)]
    finally:
        enabled.catalog.dropTempView("t")
    enabled.sql("DROP TABLE t")
    enabled.sql("CREATE TABLE t (id INT) USING DELTA")
    with raises("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
        enabled.table("v")


def test_a_view_of_a_session_with_another_catalog_is_read(
    enabled: SparkSession, database: str
) -> None:
    """Views that delta-spark's sessions create have the class of its catalog."""
    enabled.sql("CREATE VIEW v AS SELECT id FROM t")
    name = "view.sqlConfig.spark.sql.catalog.spark_catalog"
    enabled.sql(f"ALTER VIEW v SET TBLPROPERTIES ('{name}' = 'no.such.Catalog')")
    assert _rows(enabled.table("v")) == [(1,), (2,)]


def test_wrong_permanent_views_are_refused(enabled: SparkSession, database: str) -> None:
    sql = enabled.sql
    enabled.range(1).createOrReplaceTempView("temporary")
    try:
        with pytest.raises(AnalysisException, match="INVALID_TEMP_OBJ_REFERENCE"):
            sql("CREATE VIEW v AS SELECT t.id FROM t JOIN temporary USING (id)")
    finally:
        enabled.catalog.dropTempView("temporary")
    with pytest.raises(PySparkException):
        sql("CREATE VIEW v AS SELECT id + 1 FROM t")
    with pytest.raises(AnalysisException):
        sql("CREATE VIEW v AS SELECT nothing FROM t")
    with pytest.raises(AnalysisException):
        sql("CREATE VIEW v (a, b, c) AS SELECT id FROM t")
    sql("CREATE VIEW v AS SELECT id FROM t")
    with raises("DELTA_STATEMENT_NOT_SUPPORTED"):
        sql("CREATE OR REPLACE VIEW v AS SELECT t.id FROM t JOIN v USING (id)")
    assert _rows(enabled.table("v")) == [(1,), (2,)]


def test_temporary_views_of_a_path_and_with_columns(
    enabled: SparkSession, database: str, table_path: str
) -> None:
    sql = enabled.sql
    enabled.range(3).write.format("delta").save(table_path)
    sql(f"INSERT INTO delta.`{table_path}` VALUES (7)")
    sql(f"CREATE TEMPORARY VIEW of_path USING delta OPTIONS (path '{table_path}')")
    assert _rows(enabled.table("of_path")) == [(0,), (1,), (2,), (7,)]
    sql(
        "CREATE OR REPLACE GLOBAL TEMP VIEW of_path USING DELTA "
        f"OPTIONS (path = '{table_path}', versionAsOf = '0')"
    )
    assert _rows(sql("SELECT * FROM global_temp.of_path")) == [(0,), (1,), (2,)]
    sql("CREATE TEMP VIEW named (n COMMENT 'number', s) COMMENT 'c' AS SELECT id, s FROM t")
    assert enabled.table("named").schema["n"].metadata == {"comment": "number"}
    assert _rows(sql("SELECT n FROM named")) == [(1,), (2,)]
    for name in ("of_path", "named"):
        enabled.catalog.dropTempView(name)
    enabled.catalog.dropGlobalTempView("of_path")


def test_identifier_names_a_view_and_the_table_in_it(enabled: SparkSession, database: str) -> None:
    sql = enabled.sql
    sql("CREATE VIEW IDENTIFIER('v') AS SELECT id FROM IDENTIFIER('t')")
    sql(f"CREATE OR REPLACE VIEW IDENTIFIER(:name) AS SELECT s FROM {database}.t", {"name": "w"})
    sql("CREATE TEMPORARY VIEW IDENTIFIER('x') AS SELECT id + 5 FROM t")
    try:
        assert _rows(sql("TABLE v")) == [(1,), (2,)]
        assert _rows(sql("TABLE w")) == [("a",), ("b",)]
        assert _rows(sql("TABLE x")) == [(6,), (7,)]
    finally:
        enabled.catalog.dropTempView("x")


def test_permanent_views_are_not_streams(enabled: SparkSession, database: str) -> None:
    enabled.sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(AnalysisException, match="permanent view"):
        _ = enabled.readStream.table("v").schema
    if not enabled.version.startswith("4.0."):
        with pytest.raises(AnalysisException, match="permanent view"):
            enabled.sql("SELECT * FROM STREAM v")
