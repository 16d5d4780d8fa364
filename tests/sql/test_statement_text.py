"""SQL on Delta tables: what it changes, returns and refuses."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta import DeltaError, load_snapshot, write_delta
from sparkdelta.api import delta_table
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.exceptions import InvalidArgumentError, TableNotFoundError, VersionNotFoundError
from sparkdelta.operations.vacuum.vacuum import RETENTION_CHECK
from sparkdelta.sql.statements import inserted_rows, queries, statement_text
from sparkdelta.sql.statements.statement_text import run_sql
from tests.support.errors import raises
from tests.support.settings import settings
from tests.support.spark_jobs import no_jobs


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.both_kinds
def test_queries(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(3).write.format("delta").save(table_path)
    sql(f"INSERT INTO {t} VALUES (7)")
    assert _rows(sql(f"SELECT * FROM {t} VERSION AS OF 0 WHERE id > :least", {"least": 1})) == [
        (2,)
    ]
    assert _rows(sql(f"SELECT id FROM delta.`{table_path}@v0` WHERE id IN (?, ?)", [0, 7])) == [
        (0,)
    ]
    query = f"""
        WITH c AS (SELECT id FROM {t}) -- '{{' and `{t}`
        SELECT c.id, '{{}} delta.`/p`' AS text FROM c JOIN {t} VERSION AS OF 0 AS x USING (id)
        WHERE id NOT IN (SELECT id FROM {t} y WHERE y.id > 1)"""
    assert _rows(sql(query)) == [(0, "{} delta.`/p`"), (1, "{} delta.`/p`")]
    other = enabled.range(7, 9)
    assert _rows(sql(f"SELECT a.id FROM {t} a, {{other}} b WHERE a.id = b.id", other=other)) == [
        (7,)
    ]
    assert _rows(sql(f"FROM {t} |> WHERE id = {{n}}", n=7)) == [(7,)]
    assert _rows(sparkdelta.sql(enabled, f"TABLE {t} UNION SELECT 1")) == [(0,), (1,), (2,), (7,)]
    now = "current_timestamp() + INTERVAL 0 DAYS"
    with pytest.raises(DeltaError):
        sql(f"SELECT * FROM {t} TIMESTAMP AS OF {now}")  # after the latest commit
    with pytest.raises(VersionNotFoundError):
        sql(f"SELECT * FROM {t} VERSION AS OF 9")
    sql(f"CREATE OR REPLACE TEMP VIEW sql_view (n) AS SELECT id FROM {t}")
    assert _rows(sql("SELECT max(n) FROM sql_view")) == [(7,)]
    enabled.catalog.dropTempView("sql_view")


@pytest.mark.full
def test_changes_of_rows(spark: SparkSession, table_path: str) -> None:
    """Statements change rows on a session that is not enabled, too."""
    t = f"delta.`{table_path}`"

    def sql(text: str, *args: Any, **kwargs: Any) -> DataFrame:
        return sparkdelta.sql(spark, text, *args, **kwargs)

    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id INT, v STRING")
    sparkdelta.write_delta(rows, table_path, properties={"delta.enableChangeDataFeed": "true"})
    assert _rows(sql(f"DELETE FROM {t} AS x WHERE x.id = :id", {"id": 3})) == [(1,)]
    updated = sql(f"UPDATE {t} SET v = upper(v), id = id + ? WHERE v = ?", [10, "a"])
    assert (updated.columns, _rows(updated)) == (["num_affected_rows"], [(1,)])
    source = spark.createDataFrame([(2, "z", 1), (5, "e", 2)], "id INT, v STRING, more INT")
    merged = sql(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {t} AS t USING {{source}} AS s ON t.id = s.id
        WHEN MATCHED AND s.v = 'z' THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT (id, v, more) VALUES (s.id, '{{{{}}}}', s.more)
        WHEN NOT MATCHED BY SOURCE THEN DELETE""",
        source=source,
    )
    assert _rows(merged) == [(3, 1, 1, 1)]
    assert merged.columns == [
        "num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows",
    ]  # fmt: skip
    assert _rows(sql(f"SELECT * FROM {t}")) == [(2, "z", 1), (5, "{}", 2)]
    changes = sql(f"SELECT id, _change_type FROM table_changes_by_path('{table_path}', 1, 2) c")
    assert _rows(changes) == [
        (1, "update_preimage"), (11, "update_postimage"), (3, "delete"),
    ]  # fmt: skip
    history = sql(f"DESCRIBE HISTORY {t} LIMIT 2").select("operation")
    assert [row[0] for row in history.collect()] == ["MERGE", "UPDATE"]
    assert sql(f"DESC DETAIL '{table_path}'").select("numFiles").collect()[0][0] >= 1
    assert sql(f"RESTORE {t} TO VERSION AS OF 0").columns[0] == "table_size_after_restore"
    assert _rows(sql(f"SELECT id FROM {t}")) == [(1,), (2,), (3,)]
    assert sql(f"OPTIMIZE {t}").columns == ["path", "metrics"]
    assert _rows(sql(f"VACUUM {t} RETAIN 1000 HOURS"))[0][0].endswith(table_path)


@pytest.mark.slow
def test_a_session_may_allow_vacuum_any_retention(enabled: SparkSession, table_path: str) -> None:
    """A retention that is too short is allowed where delta-spark's setting says so; our own
    function has an argument instead.
    """
    enabled.range(3).write.format("delta").save(table_path)
    statement = f"VACUUM delta.`{table_path}` RETAIN 0 HOURS DRY RUN"
    with raises("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
        enabled.sql(statement)
    with settings(enabled, {RETENTION_CHECK: "false"}):
        assert _rows(enabled.sql(statement)) == []
        sparkdelta.DeltaTable.forPath(enabled, table_path).vacuum(0)
        with raises("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
            sparkdelta.vacuum(enabled, table_path, retention_hours=0)


def test_a_retention_that_is_too_short_is_the_property_in_enabled_sessions(
    enabled: SparkSession, table_path: str
) -> None:
    """delta-spark ignores all but 0 hours; a longer one keeps more files here."""
    enabled.range(3).write.format("delta").save(table_path)
    enabled.range(2).write.format("delta").mode("overwrite").save(table_path)
    name = f"delta.`{table_path}`"
    with settings(enabled, {RETENTION_CHECK: "false"}):
        enabled.sql(f"VACUUM {name} RETAIN 0.0001 HOURS")
    enabled.sql(f"VACUUM {name} RETAIN 1 HOURS")
    sparkdelta.DeltaTable.forPath(enabled, table_path).vacuum(1)
    assert enabled.sql(f"SELECT * FROM {name} VERSION AS OF 0").count() == 3
    with raises("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
        sparkdelta.sql(enabled, f"VACUUM {name} RETAIN 1 HOURS")


def test_inserts(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    rows = enabled.sql(
        "SELECT 1 AS a, named_struct('x', 1, 'y', 'one') AS s, DATE '2024-01-01' AS d"
    )
    rows.write.format("delta").partitionBy("d").save(table_path)
    result = sql(f"INSERT INTO {t} SELECT 2L AS d, named_struct('y', 2, 'x', 'two'), '2024-01-02'")
    assert (result.columns, result.count()) == ([], 0)
    sql(f"INSERT INTO {t} (d, a) VALUES (:day, 3)", {"day": date(2024, 1, 3)})
    sql(f"INSERT INTO {t} BY NAME SELECT DATE '2024-01-03' AS d, 4 AS a")
    sql(f"INSERT INTO {t} PARTITION (d = '2024-01-04') SELECT 5, NULL")
    table = f"SELECT a, s.x, s.y, day(d) FROM {t}"
    assert _rows(sql(table)) == [
        (1, 1, "one", 1), (2, 2, "two", 2), (3, None, None, 3), (4, None, None, 3),
        (5, None, None, 4),
    ]  # fmt: skip
    sql(f"INSERT OVERWRITE {t} PARTITION (d = '2024-01-03') SELECT 6, NULL")
    sql(f"INSERT INTO {t} REPLACE WHERE d < '2024-01-03' SELECT 7, NULL, DATE '2024-01-01'")
    assert _rows(sql(f"SELECT a FROM {t}")) == [(5,), (6,), (7,)]
    sql(f"INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT 8, NULL, DATE '2024-01-01', 'n' AS more")
    sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE a > 6")
    sql(f"INSERT INTO {t} (a) VALUES (9)")  # in the partition of nulls
    assert _rows(sql(f"SELECT a, more FROM {t}")) == [(7, None), (8, "n"), (9, None)]
    with raises("DELTA_INSERT_COLUMN_ARITY_MISMATCH"):
        sql(f"INSERT INTO {t} VALUES (1)")


def test_options_of_tables(enabled: SparkSession, table_path: str) -> None:
    """Unknown options are ignored, as in delta-spark."""
    sql, t = enabled.sql, f"delta.`{table_path}`"
    on = {"delta.enableChangeDataFeed": "true"}
    write_delta(enabled.range(2).coalesce(1), table_path, properties=on)
    sql(f"DELETE FROM {t} WHERE id = 0")
    feed = "WITH ('readChangeFeed' = 'true', startingVersion = 1)"
    kinds = f"SELECT c.id, c._change_type, t.id FROM {t} {feed} AS c, {t} WITH (versionAsOf 0) AS t"
    assert _rows(sql(kinds)) == [(0, "delete", 0), (0, "delete", 1)]
    assert _rows(sql(f"SELECT id FROM {t} WITH ('readChangeFeed' = 'false')")) == [(1,)]
    wide = "('mergeSchema' = 'true', 'txnAppId' = 'a', 'txnVersion' = '1', 'userMetadata' = 'mine')"
    for _ in range(2):  # of which the second is the same transaction
        sql(f"INSERT INTO {t} WITH {wide} SELECT 5, 6 AS p")
    [last] = sql(f"DESCRIBE HISTORY {t} LIMIT 1").collect()
    assert (last["version"], last["userMetadata"]) == (2, "mine")
    assert _rows(sql(f"TABLE {t}")) == [(1, None), (5, 6)]
    sql(f"INSERT OVERWRITE {t} WITH ('replaceWhere' = 'id > 1') VALUES (7, 8)")
    assert _rows(sql(f"TABLE {t}")) == [(1, None), (7, 8)]
    assert _rows(sql(f"SELECT * FROM {t} WITH ('nothing' = 'x')")) == [(1, None), (7, 8)]
    refused = "DELTA_STATEMENT_NOT_SUPPORTED"
    for text, error in (
        (f"SELECT * FROM {t} VERSION AS OF 1 {feed}", InvalidArgumentError),
        (f"SELECT * FROM {t} VERSION AS OF 1 WITH ('versionAsOf' = 0)",
         "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
        (f"INSERT INTO {t} WITH ('mergeSchema' = 'x') VALUES (1, 2)", InvalidArgumentError),
        (f"INSERT INTO {t} WITH ('compression' = 'zstd') REPLACE USING (id) SELECT 1, 2", refused),
        (f"INSERT INTO {t} WITH ('replaceWhere' = 'id > 1') REPLACE WHERE id > 2 TABLE u", refused),
    ):  # fmt: skip
        with raises(error):
            sql(text)
    assert load_snapshot(enabled, table_path).version == 3
    assert _rows(sql(f"SELECT id FROM {t} VERSION AS OF 1 WITH ('nothing' = 'x')")) == [(1,)]
    sql(f"INSERT INTO {t} WITH ('replaceWhere' = 'id = 1', 'overwriteSchema' = true) VALUES (9, 9)")
    assert _rows(sql(f"TABLE {t}")) == [(1, None), (7, 8), (9, 9)]
    sql(f"INSERT OVERWRITE {t} WITH ('overwriteSchema' = true) SELECT 5, 6, 'z' AS n")
    assert _rows(sql(f"SELECT id, p, n FROM {t}")) == [(5, 6, "z")]


@pytest.mark.full
def test_inserts_that_replace(enabled: SparkSession, table_path: str) -> None:
    """Nulls equal nothing; names in the condition are those of the table and of the query."""
    sql, t = enabled.sql, f"delta.`{table_path}`"
    sql(f"CREATE TABLE {t} (name STRING, country STRING, id INT DEFAULT 7) USING delta")
    rows = "('Dylan', 'US', 1), ('Doug', 'UK', 2), ('Julia', 'IT', 3), ('Adam', NULL, 4)"
    sql(f"INSERT INTO {t} VALUES {rows}")
    new = "VALUES ('Peter', 'FR', 5), ('Jennie', 'UK', 6), ('Eva', NULL, DEFAULT)"
    sql(f"INSERT INTO {t} REPLACE USING (Country) {new}")
    assert _rows(sql(f"SELECT id FROM {t}")) == [(1,), (3,), (4,), (5,), (6,), (7,)]
    # By position, the query's own `country` is a name.
    swapped = "SELECT id AS country, name AS id, country + 10 AS name FROM q"
    query = f"WITH q AS (SELECT 'FR' AS name, 'Paul' AS id, 90 AS country) {swapped}"
    text = f"INSERT INTO TABLE {t} AS x REPLACE ON x.country = s.id AND x.id < ? ({query}) s"
    sql(text, [6])
    assert _rows(sql(f"SELECT name, id FROM {t} WHERE country = 'FR'")) == [("Paul", 100)]
    sql(f"INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME REPLACE USING (id) "
        "SELECT 100 AS id, 'n' AS more")  # fmt: skip
    assert _rows(sql(f"SELECT * FROM {t} WHERE id = 100")) == [(None, None, 100, "n")]
    version = load_snapshot(enabled, table_path).version
    assert version == 4
    for text in (
        "REPLACE USING (id) SELECT 1",
        "REPLACE USING (other) SELECT 'x', 'y', 1, 'z'",
        "REPLACE ON id IN (SELECT 1) SELECT 'x', 'y', 1, 'z'",
        "(id) REPLACE USING (id) SELECT 1",
        "AS x REPLACE WHERE x.id = 1 SELECT 'x', 'y', 1, 'z'",
        "AS x SELECT 'x', 'y', 1, 'z'",
    ):
        with pytest.raises(DeltaError):
            sql(f"INSERT INTO {t} {text}")
    with raises("DELTA_METADATA_MISMATCH"):
        sql(f"INSERT INTO {t} BY NAME REPLACE USING (id) SELECT 1 AS id, 2 AS other")
    assert load_snapshot(enabled, table_path).version == version


@pytest.mark.classic("counts what Spark Connect does more often")
def test_each_statement_is_understood_once(
    enabled: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text becomes tokens once, and again where literals take the place of parameters; each of
    its tables is looked up once.
    """
    enabled.range(3).write.format("delta").save(table_path)
    t, calls = f"delta.`{table_path}`", list[str]()
    for module, name in (
        (statement_text, "tokenize"),
        (inserted_rows, "tokenize"),
        (statement_text, "parse"),
        (queries, "table_or_view"),
    ):
        found = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, f=found, n=name: (calls.append(n), f(*given))[1]
        )
    enabled.sql(f"SELECT * FROM {t} WHERE id = 1")
    assert calls == ["tokenize", "parse", "table_or_view"]
    calls.clear()
    enabled.sql(f"DELETE FROM {t} WHERE id = :id", {"id": 7})
    assert calls == ["tokenize", "tokenize", "parse"]
    calls.clear()
    enabled.sql(f"INSERT INTO {t} SELECT id + 5 FROM {t} WHERE id = 1")
    assert calls == ["tokenize", "parse", "table_or_view"]


def test_a_change_lists_the_log_once_and_parses_its_expressions_once(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark parses an expression beforehand only where its last word may be an alias; the errors
    of others are those of its parser, too.
    """
    write_delta(spark.range(3), table_path)
    texts, listings = list[str](), list[object]()
    listed = delta_table.find_log_segment
    monkeypatch.setattr(
        delta_table, "find_log_segment", lambda *given: (listings.append(given), listed(*given))[1]
    )

    def sql(text: str) -> DataFrame:
        def run(text: str, **kwargs: Any) -> DataFrame:
            texts.append(text)
            return spark.sql(text, **kwargs)

        table = f"delta.`{table_path}`"
        return run_sql(spark, run, text.format(t=table), None, {}, time_zone="UTC")

    for text in (
        "UPDATE {t} SET id = id + 1 WHERE (id = 1)",
        "DELETE FROM {t} AS x WHERE x.id = abs(-2)",
        "OPTIMIZE {t}",
    ):
        sql(text)
    assert (texts, listings) == ([], [])
    version = load_snapshot(spark, table_path).version
    for condition in ("id = 1 LIMIT", "id = 1 (x)", "id = 1 AND", "id = = 1", "id IS NULL (x)"):
        with pytest.raises(ParseException):
            sql("DELETE FROM {t} WHERE " + condition)
    assert all(text.startswith("EXPLAIN") for text in texts)
    assert load_snapshot(spark, table_path).version == version


@pytest.mark.full
def test_partitions_of_inserts(enabled: SparkSession, table_path: str) -> None:
    """A value of PARTITION is one of the column's type: 5 is '5', and not '05'."""
    sql, t = enabled.sql, f"delta.`{table_path}`"
    rows = enabled.sql("SELECT * FROM VALUES (1, '5'), (2, '05'), (3, 'x'), (4, NULL) AS v(a, p)")
    rows.write.format("delta").partitionBy("p").save(table_path)
    sql(f"INSERT OVERWRITE {t} PARTITION (P = 5) VALUES (6)")
    sql(f"INSERT OVERWRITE {t} PARTITION (p = NULL) SELECT 7")
    assert _rows(sql(f"SELECT * FROM {t}")) == [(2, "05"), (3, "x"), (6, "5"), (7, None)]
    for text in (
        f"INSERT OVERWRITE {t} PARTITION (a = 2) SELECT 'x'",
        f"INSERT INTO {t} PARTITION (q) SELECT 1, 'x'",
        f"INSERT INTO {t} PARTITION (p = 'y') BY NAME SELECT 1 AS a, 'x' AS p",
        f"UPDATE {t} SET a = 1, A = 2",
        f"SELECT * FROM table_changes_by_path('{table_path}' || 'x', 0)",
    ):
        with pytest.raises(DeltaError):
            sql(text)
    with pytest.raises(DeltaError):
        rows.write.format("delta").mode("append").partitionBy("a").save(table_path)
    assert load_snapshot(enabled, table_path).version == 2
    sql(f"DELETE FROM {t} WHERE a = 2-? AND p = 'x' -- 2--1 would be a comment", [-1])
    assert _rows(sql(f"SELECT a FROM {t}")) == [(2,), (6,), (7,)]
    sql(f"DELETE FROM {t} -- ; and WHERE\n WHERE p = ';' OR p = '05'")
    sql(f"CREATE TEMP VIEW sql_quoted (`a b`) AS SELECT a FROM {t}")
    assert _rows(sql("SELECT `a b` FROM sql_quoted")) == [(6,), (7,)]
    enabled.catalog.dropTempView("sql_quoted")


def test_names_and_queries_as_spark_has_them(enabled: SparkSession, table_path: str) -> None:
    """Names by IDENTIFIER, in variables and with digits first; WITH before a change; variables."""
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(3).write.format("delta").save(table_path)
    sql(f"CREATE TABLE 2024_sales USING delta OPTIONS (path '{table_path}')")
    try:
        sql("DELETE FROM IDENTIFIER(:t) WHERE id = 0", {"t": "2024_sales"})
        sql("WITH c AS (SELECT id + 5 AS id FROM 2024_sales) INSERT INTO 2024_sales TABLE c")
        sql("""WITH c AS (SELECT 1L AS k, 9L AS v) MERGE INTO IDENTIFIER('2024' || '_sales') AS t
            USING (TABLE c) AS s (k, w) ON t.id = s.k WHEN MATCHED THEN UPDATE SET id == s.w""")
        [merged] = sql("DESCRIBE HISTORY 2024_sales LIMIT 1").collect()
        assert merged["operationParameters"]["matchedPredicates"] == '[{"actionType":"update"}]'
        sql("COMMENT ON TABLE 2024_sales IS 'a\\nb'")
        sql("ALTER TABLE 2024_sales ADD COLUMNS v STRING, w INT")
        sql("ALTER TABLE 2024_sales ALTER COLUMN w FIRST, id DROP NOT NULL, v COMMENT 'c'")
        [changed] = sql("DESCRIBE HISTORY 2024_sales LIMIT 1").collect()
        assert changed["operation"] == "CHANGE COLUMNS"
        assert json.loads(changed["operationParameters"]["columns"]) == [
            {"name": "w", "type": "integer", "nullable": True, "metadata": {}, "position": "FIRST"},
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "v", "type": "string", "nullable": True, "metadata": {"comment": "c"}},
        ]
    finally:
        sql("DROP TABLE 2024_sales")
    with settings(enabled, {"own.path": table_path}):
        assert _rows(sql("SELECT id FROM delta.`${own.path}` WHERE id <> 2")) == [(6,), (7,), (9,)]
    sql("DECLARE OR REPLACE VARIABLE sql_largest BIGINT")
    sql(f"SET VAR sql_largest = (SELECT max(id) FROM {t})")
    assert _rows(sql("SELECT sql_largest")) == [(9,)]
    assert _rows(sql(f"DESCRIBE QUERY SELECT id FROM {t}")) == [("id", "bigint", None)]
    query = f"SELECT id FROM (WITH c AS (SELECT 1) TABLE c) JOIN {t} AS c WHERE id = 2"
    assert _rows(sql(query)) == [(2,)]
    sql(f"CREATE TABLE sql_named USING delta LOCATION '{table_path}'")
    try:
        limited = "WITH RECURSIVE sql_named (n) MAX RECURSION LEVEL 9 AS (SELECT 5) TABLE sql_named"
        for query in (
            "WITH sql_named (SELECT 5 AS n) SELECT n FROM sql_named",
            *([] if enabled.version.startswith("4.0.") else [limited]),  # syntax of Spark 4.1
            "SELECT sql_named FROM {rows} LATERAL VIEW explode(map(1, 5)) e AS k, sql_named",
            "SELECT int(trim(FROM sql_named)) FROM (SELECT ' 5' AS sql_named)",
        ):
            rows = {"rows": enabled.range(1)} if "{" in query else {}
            assert _rows(sql(query, **rows)) == [(5,)]
    finally:
        sql("DROP TABLE sql_named")
    snapshot = load_snapshot(enabled, table_path)
    assert (snapshot.version, snapshot.metadata.description) == (6, "a\nb")
    assert snapshot.schema.names == ["w", "id", "v"]


def test_refused_statements_change_nothing(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(3).write.format("delta").save(table_path)
    for text in (
        f"DELETE FROM {t} WHERE id = 1 LIMIT 5 AND",
        f"UPDATE {t} SET id = 1 AND WHERE",
        f"DELETE FROM {t} WHERE id = 1 LIMIT",
        f"UPDATE {t} SET id = 1 other",
        f"OPTIMIZE {t} WHERE id = 1 FULL",
        f"MERGE INTO {t} t USING {t} s ON t.id = s.id other WHEN MATCHED THEN DELETE",
        f"MERGE INTO {t} USING {t} s ON true WHEN MATCHED THEN UPDATE SET * WHEN OTHER THEN DELETE",
    ):
        with pytest.raises(Exception, match=r"syntax|SYNTAX"):
            sql(text)
    for text in (
        f"DELETE FROM {t} WHERE id IN (SELECT id FROM range(1))",
        f"MERGE INTO {t} t USING {t} s ON t.id = (SELECT 1) WHEN MATCHED THEN DELETE",
        f"ALTER TABLE {t} ADD CONSTRAINT c CHECK (id IN (SELECT id FROM {t}))",
    ):
        with raises("DELTA_UNSUPPORTED_SUBQUERY"):
            sql(text)
    twice, source = f"{t} SET id = 1, id = 2", f"{t} t USING {t} s ON t.id = s.id"
    inserts = "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)"
    updates = "WHEN MATCHED THEN UPDATE SET id = 1, id = 2"
    for text, error in (
        (f"UPDATE {twice}", "DELTA_CONFLICT_SET_COLUMN"),
        (f"MERGE INTO {source} {updates}", "DELTA_CONFLICT_SET_COLUMN"),
        (f"MERGE INTO {source} {inserts}", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
        (
            f"SELECT * FROM delta.`{table_path}@v0` VERSION AS OF 0",
            "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        ),
        (f"SELECT * FROM {t} TIMESTAMP AS OF rand()", "DELTA_TIMESTAMP_INVALID"),
        ("ALTER TABLE sd_missing DROP FEATURE deletionVectors", TableNotFoundError),
        (f"CREATE INDEX i ON {t} (id)", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        (f"DROP INDEX IF EXISTS i ON {t}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
    ):  # fmt: skip
        with raises(error):
            sql(text)
    for text in (
        f"DELETE FROM {t} WHERE id = (SELECT 1)",
        f"UPDATE {t} SET id = 1 WHERE id = (SELECT 1)",
        f"UPDATE {t} SET id = (SELECT max(k) FROM range(3) AS r (k) WHERE r.k = id)",
        f"UPDATE {t} SET id = CASE WHEN id IN (SELECT 1) THEN 1 ELSE 2 END",
    ):
        with raises("DELTA_UNSUPPORTED_SUBQUERY"):
            sql(text)
    assert load_snapshot(enabled, table_path).version == 0


@pytest.mark.full
def test_explain_shows_the_plan_of_a_change_that_is_not_made(
    enabled: SparkSession, table_path: str
) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(3).write.format("delta").save(table_path)
    for text, command, within in (
        (f"DELETE FROM {t} WHERE id <> 17", "Delete", "17"),
        (f"UPDATE {t} AS a SET id = 18 WHERE a.id > 1", "Update", "18"),
        (f"UPDATE {t} SET id = DEFAULT", "Update", "id"),
        (f"MERGE INTO {t} a USING {t} b ON a.id = b.id WHEN MATCHED THEN DELETE", "Merge", "Join"),
        (f"WITH q AS (TABLE {t}) MERGE INTO {t} a USING q ON a.id = q.id + 19", "Merge", "19"),
        (f"INSERT INTO {t} SELECT id + 20 FROM {t}", "Write", "20"),
        (f"WITH q AS (SELECT 21L AS k) INSERT OVERWRITE {t} TABLE q", "Write", "21"),
    ):
        for kind in ("", "EXTENDED", "FORMATTED"):
            answer = sql(f"EXPLAIN {kind} {text}")
            [(plan,)] = answer.collect()
            assert answer.columns == ["plan"]
            assert f"== Physical Plan ==\nExecute {command}" in plan
            assert within in plan
    for text, command, within in (
        (f"CREATE TABLE new USING delta AS SELECT id + 22 FROM {t}", "AtomicCreate", "22"),
        (f"CREATE OR REPLACE TABLE {t} AS SELECT id + 23 FROM {t}", "AtomicReplace", "23"),
        ("CREATE TABLE new (id INT) USING delta", "CreateTable", ""),
    ):
        [(plan,)] = sql(f"EXPLAIN {text}").collect()
        assert f"== Physical Plan ==\n{command}" in plan
        assert within in plan
    assert not enabled.catalog.tableExists("new")
    answer = sql(f"EXPLAIN DELETE FROM {t} WHERE nope = 1").collect()
    assert any("UNRESOLVED_COLUMN" in plan for (plan,) in answer)
    assert load_snapshot(enabled, table_path).version == 0


@pytest.mark.full
def test_from_with_several_inserts_fills_each_table(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(4).write.format("delta").save(table_path)
    sql("CREATE TABLE sql_low (id LONG) USING delta")
    sql("CREATE TABLE sql_high (id LONG, n INT) USING parquet")
    try:
        sql(
            f"FROM (SELECT id FROM {t} WHERE id > 0) AS f "
            "INSERT INTO sql_low SELECT id WHERE id < 2 "
            "INSERT INTO TABLE sql_high SELECT f.id, 7 WHERE id >= 2 "
            "INSERT INTO sql_low (id) SELECT max((SELECT 40L) + id) GROUP BY id % 1"
        )
        assert _rows(sql("TABLE sql_low")) == [(1,), (43,)]
        assert _rows(sql("TABLE sql_high")) == [(2, 7), (3, 7)]
        sql(f"FROM {t} INSERT OVERWRITE sql_low SELECT id + 5 WHERE id = 0")
        assert _rows(sql("TABLE sql_low")) == [(5,)]
        sql(
            f"WITH w AS (SELECT id FROM {t}) FROM w INSERT OVERWRITE sql_low SELECT id + 6 "
            "WHERE id = 1 INSERT INTO sql_high SELECT id, 8 WHERE id = 3"
        )
        assert _rows(sql("TABLE sql_low")) == [(7,)]
        assert _rows(sql("SELECT id FROM sql_high WHERE n = 8")) == [(3,)]
    finally:
        sql("DROP TABLE IF EXISTS sql_low")
        sql("DROP TABLE IF EXISTS sql_high")


@pytest.mark.full
def test_execute_immediate_runs_statements_on_delta_tables(
    enabled: SparkSession, table_path: str
) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(3).write.format("delta").save(table_path)
    assert _rows(sql(f"EXECUTE IMMEDIATE 'SELECT count(*) FROM {t}'")) == [(3,)]
    assert _rows(sql(f"EXECUTE IMMEDIATE 'DELETE FROM {t} WHERE id = ?' USING 1 + 1")) == [(1,)]
    sql(f"EXECUTE IMMEDIATE 'INSERT INTO {t} VALUES (:a), (:b)' USING 8 AS a, (4 + 5) AS b")
    sql(f"DECLARE OR REPLACE VARIABLE sql_text STRING DEFAULT 'SELECT sum(id) FROM {t}'")
    sql("DECLARE OR REPLACE VARIABLE sql_sum BIGINT")
    assert _rows(sql("EXECUTE IMMEDIATE sql_text")) == [(18,)]
    sql("EXECUTE IMMEDIATE sql_text INTO sql_sum")
    assert _rows(sql("SELECT sql_sum")) == [(18,)]
    assert _rows(sql("EXECUTE IMMEDIATE 'SELECT ? + 1' USING 41")) == [(42,)], "Spark runs it"
    with pytest.raises(AnalysisException, match="nope"):
        sql("EXECUTE IMMEDIATE nope")


@pytest.mark.full
def test_update_takes_values_of_subqueries(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    sql(f"CREATE TABLE {t} (id INT, s STRING, b BINARY, d DECIMAL(5, 2), at TIMESTAMP) USING delta")
    sql(f"INSERT INTO {t} VALUES (1, \"it's\", X'0AFF', 1.5, TIMESTAMP '2024-03-10 02:30:00Z')")
    sql(f"INSERT INTO {t} (id) VALUES (2)")
    with settings(enabled, {"spark.sql.session.timeZone": "America/New_York"}):
        changed = sql(
            f"UPDATE {t} SET s = concat((SELECT max(s) FROM {t}), '!'),"
            f" b = (SELECT max(b) FROM {t}), d = (SELECT sum(d) FROM {t}) + 1,"
            f" at = (SELECT max(at) FROM {t}),"
            " id = id + (WITH q AS (SELECT 5 AS k) SELECT k FROM q) WHERE id = 2"
        )
    assert _rows(changed) == [(1,)]
    one, two = sql(f"SELECT id, s, b, d, at FROM {t} ORDER BY id").collect()
    assert (two["id"], two["s"], bytes(two["b"])) == (7, "it's!", b"\x0a\xff")
    assert (two["d"] - one["d"], two["at"]) == (1, one["at"])
    sql(f"UPDATE {t} SET s = (SELECT s FROM {t} WHERE id = 99) WHERE id = 1")
    assert _rows(sql(f"SELECT s FROM {t} WHERE id = 1")) == [(None,)]
    with pytest.raises(SPARK_ERRORS, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        sql(f"UPDATE {t} SET id = (SELECT id FROM {t})")


def test_merge_takes_values_of_subqueries(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v (id, s)").write.format("delta").save(
        table_path
    )
    source = "(VALUES (1, 'x'), (7, 'y')) AS u (id, s) ON t.id = u.id"
    sql(
        f"MERGE INTO {t} AS t USING {source}"
        f" WHEN MATCHED THEN UPDATE SET s = concat((SELECT max(s) FROM {t}), u.s)"
        f" WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id + (SELECT count(*) FROM {t}), 'n')"
    )
    assert _rows(sql(f"TABLE {t}")) == [(1, "bx"), (2, "b"), (9, "n")]
    for clause in (
        f"WHEN MATCHED THEN UPDATE SET s = (SELECT max(s) FROM {t} x WHERE x.id = t.id)",
        "WHEN MATCHED AND u.id IN (SELECT 1) THEN DELETE",
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (1, u.id IN (SELECT 1))",
    ):
        with raises("DELTA_UNSUPPORTED_SUBQUERY"):
            sql(f"MERGE INTO {t} AS t USING {source} {clause}")


def test_stream_reads_a_table_as_it_grows(enabled: SparkSession, table_path: str) -> None:
    if enabled.version.startswith("4.0."):
        pytest.skip("STREAM is a keyword of Spark 4.1")
    sql, t = enabled.sql, f"delta.`{table_path}`"
    enabled.range(2).write.format("delta").save(table_path)
    enabled.range(5, 6).write.format("delta").mode("append").save(table_path)
    for number, (text, ids) in enumerate(
        (
            (f"SELECT * FROM STREAM {t} AS s WHERE s.id > 0", [(1,), (5,)]),
            (f"SELECT id FROM STREAM({t})", [(0,), (1,), (5,)]),
            (f"FROM STREAM {t} WITH ('startingVersion' = '1')", [(5,)]),
        )
    ):
        rows = sql(text)
        assert rows.isStreaming
        name = f"sql_streamed_{number}"
        query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True)
        query.start().awaitTermination()
        assert _rows(enabled.table(name)) == ids


def test_insert_takes_defaults_of_a_select(enabled: SparkSession, table_path: str) -> None:
    sql, t = enabled.sql, f"delta.`{table_path}`"
    sql(
        f"CREATE TABLE {t} (id INT, n INT DEFAULT 7, s STRING DEFAULT 'x') USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    sql(f"INSERT INTO {t} SELECT max(id), DEFAULT, default FROM range(3)")
    sql(f"INSERT INTO {t} (s, id) SELECT DEFAULT, coalesce(NULL, 5)")
    assert _rows(sql(f"TABLE {t}")) == [(2, 7, "x"), (5, 7, "x")]
    for query in (
        "SELECT 1, 2, 'y' UNION ALL SELECT 2, DEFAULT, 'z'",
        "SELECT 1, DEFAULT + 1, 'y'",
    ):
        with pytest.raises(AnalysisException):
            sql(f"INSERT INTO {t} {query}")


def test_a_table_is_created_without_columns(enabled: SparkSession) -> None:
    sql = enabled.sql
    sql("CREATE TABLE sql_bare USING delta COMMENT 'later'")
    try:
        assert sql("DESCRIBE sql_bare").collect() == []
        assert enabled.table("sql_bare").columns == []
        for bare in (enabled.table("sql_bare"), sql("SELECT * FROM sql_bare")):
            with pytest.raises(PySparkException, match="DELTA_READ_TABLE_WITHOUT_COLUMNS"):
                bare.collect()
        rows = enabled.createDataFrame([(3,)], "id INT").write.format("delta")
        rows.mode("append").option("mergeSchema", "true").saveAsTable("sql_bare")
        sql("ALTER TABLE sql_bare ADD COLUMNS (n INT)")
        sql("INSERT INTO sql_bare VALUES (4, 5)")
        assert _rows(sql("TABLE sql_bare")) == [(3, None), (4, 5)]
    finally:
        sql("DROP TABLE sql_bare")


def test_the_rest_is_sparks(enabled: SparkSession, tmp_path: Path) -> None:
    sql, path = enabled.sql, tmp_path / "parquet"
    sql(f"CREATE TABLE sql_other (a INT) USING parquet LOCATION '{path}'")
    try:
        for number, query in enumerate(("", "AS SELECT clone FROM (SELECT 1 clone) AS one")):
            columns, place = "" if query else "(a INT, clone STRING)", tmp_path / f"{number}"
            sql(f"CREATE TABLE sql_clone {columns} USING parquet LOCATION '{place}' {query}")
            sql("DROP TABLE sql_clone")
        sql("INSERT INTO sql_other SELECT :a", {"a": 1})
        assert _rows(sql("SELECT sql_other.a FROM sql_other WHERE a = ?", [1])) == [(1,)]
    finally:
        sql("DROP TABLE sql_other")
    assert sql("DESCRIBE DATABASE default").count() > 2
    with pytest.raises(Exception, match="sql_missing"):
        sql("DELETE FROM sql_missing WHERE x")
    for text in ("OPTIMIZE sql_missing", "SELECT * FROM table_changes('sql_missing', 0)"):
        with pytest.raises(TableNotFoundError):
            sql(text)


def test_other_statements_cost_no_job(enabled: SparkSession, table_path: str) -> None:
    """The parser looks whether a statement is about Delta tables; Spark runs nothing for that."""
    enabled.range(3).write.format("delta").save(table_path)
    text = "SELECT a.id FROM range(5) a JOIN range(6) b ON a.id = b.id WHERE a.id > 1 -- delta"
    with no_jobs(enabled):
        frame = enabled.sql(text)
    assert sorted(row[0] for row in frame.collect()) == [2, 3, 4]
