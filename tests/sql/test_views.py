"""Views of Delta tables: permanent ones, as Spark's session catalog keeps them, and temporary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta.exceptions import DeltaError
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


@pytest.fixture
def view(enabled: SparkSession, database: str) -> Iterator[str]:
    """The name of a temporary view, which the test makes."""
    yield "changed"
    enabled.catalog.dropTempView("changed")
    enabled.catalog.dropTempView("below")


VIEWS_OF_ALL_ROWS = {
    "SQL": "CREATE TEMP VIEW changed AS SELECT * FROM t",
    "columns": "CREATE TEMP VIEW changed AS SELECT x.S, x.ID FROM t x",
    "view": "CREATE TEMP VIEW changed AS SELECT id, s FROM (SELECT * FROM below)",
}


@pytest.mark.parametrize("query", VIEWS_OF_ALL_ROWS.values(), ids=VIEWS_OF_ALL_ROWS)
def test_statements_change_the_table_by_a_view_of_all_rows(
    enabled: SparkSession, view: str, query: str
) -> None:
    sql = enabled.sql
    enabled.table("t").createOrReplaceTempView("below")
    sql(query)
    assert _rows(sql("DELETE FROM changed WHERE changed.id = 1")) == [(1,)]
    assert _rows(sql("UPDATE changed c SET c.s = upper(s) WHERE c.id = 2")) == [(1,)]
    sql(
        "MERGE INTO changed USING (SELECT 2 AS k UNION ALL SELECT 9) ON id = k "
        "WHEN MATCHED THEN UPDATE SET s = concat(s, '!') "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, 'new')"
    )
    assert _rows(enabled.table("t")) == [(2, "B!"), (9, "new")]
    assert _rows(enabled.table(view).select("id")) == [(2,), (9,)]
    with pytest.raises(AnalysisException):
        sql("INSERT INTO changed VALUES (3, 'c')")
    plan = sql("EXPLAIN DELETE FROM changed WHERE id = 2").collect()[0][0]
    assert "DeleteCommand" in plan
    assert _rows(enabled.table("t")) == [(2, "B!"), (9, "new")]


@pytest.mark.parametrize("kind", ["named", "path", "USING", "global", "cached"])
def test_rows_are_inserted_by_a_view_of_a_dataframe(
    enabled: SparkSession, view: str, kind: str
) -> None:
    sql, name = enabled.sql, "global_temp.changed" if kind == "global" else view
    path = sql("DESCRIBE DETAIL t").collect()[0]["location"]
    if kind == "USING":
        sql(f"CREATE TEMP VIEW changed USING delta OPTIONS (path '{path}')")
    elif kind == "path":
        enabled.read.format("delta").load(path).alias("x").createOrReplaceTempView(view)
    elif kind == "global":
        enabled.table("t").createGlobalTempView(view)
    else:
        if kind == "cached":
            enabled.catalog.cacheTable("t")
        enabled.table("t").createTempView(view)
    try:
        sql(f"INSERT INTO {name} (id) VALUES (3)")
        enabled.createDataFrame([(4, "d")], "id INT, s STRING").write.insertInto(name)
        sql(f"DELETE FROM {name} WHERE id < 3")
        assert _rows(enabled.table("t")) == _rows(enabled.table(name)) == [(3, None), (4, "d")]
        sql(f"INSERT OVERWRITE {name} VALUES (5, 'e')")
        assert _rows(enabled.table("t")) == [(5, "e")]
    finally:
        enabled.catalog.clearCache()
        enabled.catalog.dropGlobalTempView(view)


def test_a_view_without_a_column_keeps_its_values(enabled: SparkSession, view: str) -> None:
    """delta-spark writes nulls there."""
    enabled.sql("CREATE TEMP VIEW changed AS SELECT id FROM t")
    enabled.sql("UPDATE changed SET id = id + 10 WHERE id = 2")
    enabled.sql("DELETE FROM changed WHERE id = 1")
    assert _rows(enabled.table("t")) == [(12, "b")]
    with raises("DELTA_STATEMENT_NOT_SUPPORTED"):
        enabled.sql("MERGE INTO changed USING range(5) r ON true WHEN MATCHED THEN DELETE")


OTHER_VIEWS = {
    "SELECT * FROM t WHERE id > 0": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT * FROM t LIMIT 5": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT * FROM t ORDER BY id": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT DISTINCT * FROM t": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT a.* FROM t a JOIN t b ON a.id = b.id": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT * FROM t UNION ALL SELECT * FROM t": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT max(id) AS id, s FROM t GROUP BY s": "DELTA_UNSUPPORTED_SOURCE",
    "SELECT id, s AS s2 FROM t": "DELTA_STATEMENT_NOT_SUPPORTED",
    "SELECT id AS s, s AS id FROM t": "DELTA_STATEMENT_NOT_SUPPORTED",
    "SELECT id, upper(s) AS s FROM t": "DELTA_STATEMENT_NOT_SUPPORTED",
    "SELECT *, 1 AS n FROM t": "DELTA_STATEMENT_NOT_SUPPORTED",
    "SELECT * FROM t VERSION AS OF 1": "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
}


def test_other_views_change_nothing(enabled: SparkSession, view: str) -> None:
    for query, condition in OTHER_VIEWS.items():
        enabled.sql(f"CREATE OR REPLACE TEMP VIEW changed AS {query}")
        for statement in (
            "DELETE FROM changed WHERE id = 1",
            "UPDATE changed SET id = 5",
            "MERGE INTO changed USING range(5) r ON true WHEN MATCHED THEN DELETE",
        ):
            with raises(condition):
                enabled.sql(statement)
        with pytest.raises(DeltaError) as refused:
            enabled.sql("INSERT INTO changed VALUES (3, 'c')")
        assert refused.value.getCondition() == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "b")]


def test_a_temporary_view_of_a_permanent_view_changes_nothing(
    enabled: SparkSession, view: str
) -> None:
    enabled.sql("CREATE VIEW v AS SELECT * FROM t")
    enabled.sql("CREATE TEMP VIEW below AS SELECT * FROM v")
    enabled.sql("CREATE TEMP VIEW changed AS SELECT id, s FROM below WHERE id > 0")
    for name in ("below", view):
        for statement in (
            f"DELETE FROM {name} WHERE id = 1",
            f"UPDATE {name} SET id = 5",
            f"MERGE INTO {name} USING range(5) r ON true WHEN MATCHED THEN DELETE",
        ):
            with raises("DELTA_UNSUPPORTED_SOURCE"):
                enabled.sql(statement)
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "b")]


def test_a_view_of_some_rows_by_dataframe_changes_nothing(enabled: SparkSession, view: str) -> None:
    path = enabled.sql("DESCRIBE DETAIL t").collect()[0]["location"]
    version = enabled.read.format("delta").option("versionAsOf", "1").load(path)
    for rows, condition in (
        (enabled.table("t").where("id > 0"), "DELTA_UNEXPECTED_PARTIAL_SCAN"),
        (version, "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"),
    ):
        rows.createOrReplaceTempView(view)
        with raises(condition):
            enabled.sql("DELETE FROM changed")
        with raises(AnalysisException):
            rows.write.insertInto(view)
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "b")]


def test_fields_of_structs_are_other_columns(enabled: SparkSession, view: str) -> None:
    enabled.sql("CREATE TABLE u (id INT, a STRING, x STRUCT<a: STRING>) USING delta")
    enabled.sql("INSERT INTO u VALUES (1, 'of the table', named_struct('a', 'of the struct'))")
    try:
        for rows in (
            enabled.sql("SELECT id, x.a, x FROM u"),
            enabled.sql("SELECT id, x.*, x FROM u"),
            enabled.table("u").select("id", "x.a", "x"),
            enabled.table("u").alias("u").select("u.id", "u.x.a", "u.x"),
        ):
            rows.createOrReplaceTempView(view)
            with raises("DELTA_STATEMENT_NOT_SUPPORTED"):
                enabled.sql("DELETE FROM changed WHERE a = 'of the struct'")
        enabled.table("u").alias("u").select("u.x", "u.a", "u.id").createOrReplaceTempView(view)
        assert _rows(enabled.sql("UPDATE changed SET a = 'new' WHERE x.a = 'of the struct'")) == [
            (1,)
        ]
        assert _rows(enabled.table("u").select("id", "a")) == [(1, "new")]
    finally:
        enabled.sql("DROP TABLE u")


STATEMENTS_OF_TABLES = {
    "OPTIMIZE v": "OPTIMIZE",
    "VACUUM v": "VACUUM",
    "DESCRIBE DETAIL v": "DESCRIBE DETAIL",
    "DESC HISTORY v": "DESCRIBE HISTORY",
    "REORG TABLE v APPLY (PURGE)": "REORG",
    "GENERATE symlink_format_manifest FOR TABLE v": "GENERATE",
    "ALTER TABLE v ADD CONSTRAINT c CHECK (id > 0)": "ALTER TABLE ... ADD CONSTRAINT",
    "ALTER TABLE v DROP FEATURE deletionVectors": "ALTER TABLE ... DROP FEATURE",
}


def test_a_permanent_view_takes_no_statement_of_a_table(
    enabled: SparkSession, database: str
) -> None:
    enabled.sql("CREATE VIEW v AS SELECT * FROM t")
    for statement, operation in STATEMENTS_OF_TABLES.items():
        with pytest.raises(DeltaError) as refused:
            enabled.sql(statement)
        assert refused.value.getCondition() == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
        name = f"`spark_catalog`.`{database}`.`v`"
        parameters = {"viewName": name, "operation": operation}
        assert refused.value.getMessageParameters() == parameters
    with raises("DELTA_UNSUPPORTED_SOURCE"):
        enabled.sql("DELETE FROM v")
    with pytest.raises(DeltaError) as refused:
        enabled.sql("RESTORE TABLE v TO VERSION AS OF 0")
    assert refused.value.getCondition() == "DELTA_ONLY_OPERATION"
    assert _rows(enabled.table("t")) == [(1, "a"), (2, "b")]


def test_alter_view_of_a_table_and_columns_of_a_view_of_a_path_are_refused(
    enabled: SparkSession, database: str
) -> None:
    path = enabled.sql("DESCRIBE DETAIL t").collect()[0]["location"]
    for statement in (
        "ALTER VIEW t RENAME TO u",
        "ALTER VIEW t SET TBLPROPERTIES ('k' = 'v')",
        f"ALTER VIEW delta.`{path}` RENAME TO u",
    ):
        with raises("DELTA_ILLEGAL_OPTION"):
            enabled.sql(statement)
    with raises("DELTA_ILLEGAL_OPTION"):
        enabled.sql(f"CREATE TEMP VIEW v (id LONG) USING delta OPTIONS (path '{path}')")
    enabled.sql(f"CREATE TEMPORARY TABLE v USING delta OPTIONS (path '{path}')")
    assert _rows(enabled.table("v")) == [(1, "a"), (2, "b")]
    enabled.catalog.dropTempView("v")


@pytest.mark.classic("the server keeps the columns of the creation")
def test_a_view_keeps_the_columns_that_a_read_found(enabled: SparkSession, database: str) -> None:
    sql = enabled.sql
    sql("CREATE VIEW v WITH SCHEMA EVOLUTION AS SELECT * FROM t")
    sql("CREATE VIEW w WITH SCHEMA TYPE EVOLUTION AS SELECT id AS n FROM t")
    sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    sql("ALTER TABLE t ADD COLUMN z INT FIRST")
    columns = {"v": ["z int", "id bigint", "s string"], "w": ["n bigint"]}
    for name, now in columns.items():
        assert enabled.table(name).count() == 2
        assert [f"{row[0]} {row[1]}" for row in sql(f"DESCRIBE {name}").collect()] == now
        assert enabled.table(name).count() == 2
