"""SQL scripts and SQL functions that read and change Delta tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from tests.support.errors import raises


@pytest.fixture
def table(enabled: SparkSession) -> Iterator[str]:
    """A table of the current database with the ids 1 and 2."""
    enabled.sql("CREATE TABLE of_scripts (id INT) USING delta")
    enabled.sql("INSERT INTO of_scripts VALUES (1), (2)")
    yield "of_scripts"
    enabled.sql("DROP TABLE of_scripts")


def _ids(enabled: SparkSession, query: str = "TABLE of_scripts") -> list[int]:
    return sorted(row[0] for row in enabled.sql(query).collect())


def test_script_runs_its_statements_and_returns_its_last_query(
    enabled: SparkSession, table: str
) -> None:
    enabled.sql("DECLARE OR REPLACE VARIABLE n STRING DEFAULT 'of the session'")
    result = enabled.sql(
        f"""
        BEGIN
          DECLARE n INT DEFAULT 1;
          SET n = n + (SELECT max(id) FROM {table});
          INSERT INTO {table} VALUES (n), (CASE WHEN n > 9 THEN 0 ELSE 4 END);
          BEGIN
            DECLARE n STRING DEFAULT 'inner;';
            SELECT n FROM {table};
          END;
          SELECT count(*) AS c FROM {table} WHERE id >= n;
          DELETE FROM {table} WHERE id = n;
        END;
        """
    )
    assert [tuple(row) for row in result.collect()] == [(2,)]
    assert _ids(enabled) == [1, 2, 4]
    assert enabled.sql("SELECT n").first() == ("of the session",)
    enabled.sql("DROP TEMPORARY VARIABLE n")
    with pytest.raises(PySparkException, match="no_such"):
        enabled.sql(f"BEGIN DECLARE left_over INT; DELETE FROM {table} WHERE no_such = 1; END")
    with pytest.raises(AnalysisException, match="left_over"):
        enabled.sql("SELECT left_over")


def test_script_branches_and_repeats(enabled: SparkSession, table: str) -> None:
    result = enabled.sql(
        f"""
        BEGIN
          DECLARE i INT DEFAULT 10;
          rounds: WHILE (SELECT count(*) FROM {table}) < 100 DO
            SET i = i + 1;
            IF i = 12 THEN ITERATE rounds; ELSEIF i > 13 THEN LEAVE rounds; END IF;
            INSERT INTO {table} VALUES (i);
          END WHILE;
          REPEAT SET i = i + 1; UNTIL i > 20 END REPEAT;
          endless: LOOP
            LEAVE endless;
          END LOOP endless;
          FOR r AS SELECT id FROM {table} WHERE id < 3 ORDER BY id DO
            INSERT INTO {table} VALUES (r.id + 100), (id + 200);
          END FOR;
          CASE i WHEN 20 THEN SELECT 'wrong'; WHEN 21 THEN SELECT 'simple'; END CASE;
          CASE WHEN i IS NULL THEN SELECT 'wrong'; ELSE SELECT i; END CASE;
        END
        """
    )
    assert [tuple(row) for row in result.collect()] == [(21,)]
    assert _ids(enabled) == [1, 2, 11, 13, 101, 102, 201, 202]


_HANDLED = {
    "EXIT leaves the block": (
        (
            "BEGIN DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO INSERT INTO {t} VALUES (8); "
            "SELECT 1 / 0; INSERT INTO {t} VALUES (9); END; INSERT INTO {t} VALUES (7);"
        ),
        [7, 8],
    ),
    "the most specific one runs": (
        (
            "DECLARE zero CONDITION FOR SQLSTATE VALUE '22012'; "
            "DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO {t} VALUES (6); "
            "DECLARE EXIT HANDLER FOR NOT FOUND INSERT INTO {t} VALUES (5); "
            "DECLARE EXIT HANDLER FOR zero INSERT INTO {t} VALUES (7); "
            "DECLARE EXIT HANDLER FOR CAST_INVALID_INPUT, DIVIDE_BY_ZERO "
            "INSERT INTO {t} VALUES (8); "
            "SELECT 1 / 0;"
        ),
        [8],
    ),
    "outer blocks handle errors of handlers": (
        (
            "DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO {t} VALUES (7); "
            "BEGIN DECLARE n INT DEFAULT 8; "
            "DECLARE EXIT HANDLER FOR SQLEXCEPTION "
            "BEGIN INSERT INTO {t} VALUES (n); SELECT 1 / 0; END; "
            "SELECT 1 / 0; END; INSERT INTO {t} VALUES (9);"
        ),
        [7, 8],
    ),
    "errors of Delta tables are handled": (
        (
            "DECLARE EXIT HANDLER FOR DELTA_METADATA_MISMATCH "
            "INSERT INTO {t} VALUES (8); "
            "INSERT INTO {t} SELECT 1 AS id, 2 AS b;"
        ),
        [8],
    ),
}


@pytest.mark.parametrize("name", _HANDLED)
def test_handlers_run_after_errors_of_their_block(
    enabled: SparkSession, table: str, name: str
) -> None:
    script, added = _HANDLED[name]
    enabled.sql(f"BEGIN {script.format(t=table)} END")
    assert _ids(enabled) == [1, 2, *added]


def test_errors_without_a_handler_end_the_script(enabled: SparkSession, table: str) -> None:
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        enabled.sql(
            f"BEGIN DECLARE EXIT HANDLER FOR NOT FOUND INSERT INTO {table} VALUES (8); "
            f"INSERT INTO {table} VALUES (7); SELECT 1 / 0; END"
        )
    assert _ids(enabled) == [1, 2, 7]


def test_scripts_with_cursors_are_refused_before_anything_runs(
    enabled: SparkSession, table: str
) -> None:
    with raises("DELTA_STATEMENT_NOT_SUPPORTED"):
        enabled.sql(
            f"BEGIN INSERT INTO {table} VALUES (3); "
            f"BEGIN DECLARE c CURSOR FOR SELECT id FROM {table}; END; END"
        )
    assert _ids(enabled) == [1, 2]


@pytest.mark.classic("temporary functions stay at their version on Spark Connect")
def test_temporary_functions_read_current_rows(enabled: SparkSession, table: str) -> None:
    enabled.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION at_least(low INT) RETURNS BIGINT "
        f"RETURN (SELECT count(*) FROM {table} WHERE id >= low)"
    )
    assert enabled.sql("SELECT at_least(2)").first() == (1,)
    enabled.sql(f"INSERT INTO {table} VALUES (7)")
    assert enabled.sql("SELECT at_least(2), at_least(7)").first() == (2, 1)


def test_temporary_functions_return_values_and_rows(enabled: SparkSession, table: str) -> None:
    sql = enabled.sql
    sql(f"INSERT INTO {table} VALUES (7)")
    sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION at_least(low INT) RETURNS BIGINT "
        f"RETURN (SELECT count(*) FROM {table} WHERE id >= low)"
    )
    sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION ids_from(low INT) RETURNS TABLE (id INT) "
        f"RETURN SELECT t.id FROM {table} AS t WHERE t.id >= low AND '{{' <> '}}'"
    )
    assert sql("SELECT at_least(2), at_least(7)").first() == (2, 1)
    with pytest.raises(AnalysisException, match="at_least"):  # it is there, and stays as it is
        sql(
            "CREATE TEMPORARY FUNCTION at_least(low INT) RETURNS BIGINT "
            f"RETURN (SELECT -count(*) FROM {table} VERSION AS OF 0)"
        )
    assert sql("SELECT at_least(2), at_least(7)").first() == (2, 1)
    assert _ids(enabled, "SELECT id FROM ids_from(2)") == [2, 7]
    assert _ids(enabled, f"SELECT t.id FROM {table} t WHERE at_least(t.id) = 3") == [1]


def test_script_reads_views_and_executes_texts(enabled: SparkSession, table: str) -> None:
    enabled.sql(f"CREATE VIEW of_scripts_view AS SELECT id FROM {table}")
    try:
        result = enabled.sql("BEGIN DECLARE n INT DEFAULT 1; TABLE of_scripts_view; END")
        assert _ids(enabled, "TABLE of_scripts_view") == sorted(row[0] for row in result.collect())
    finally:
        enabled.sql("DROP VIEW of_scripts_view")
    result = enabled.sql(
        f"BEGIN DECLARE q STRING; SET q = 'INSERT INTO {table} VALUES (?)';"
        " EXECUTE IMMEDIATE q USING 5; END"
    )
    assert (result.columns, _ids(enabled)) == ([], [1, 2, 5])
    if not enabled.version.startswith("4.0."):  # which has no handlers
        handler = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN VALUES (7); END"
        handled = f"BEGIN {handler}; EXECUTE IMMEDIATE 'VALUES (5)'; VALUES (6); END"
        assert _ids(enabled, handled) == [6], "Spark runs a script that names no Delta table"
