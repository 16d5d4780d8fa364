"""Counts and bounds of tables, which both engines take from the log where they can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

MODULE = "tests.oracle.test_logged_aggregates_oracle"

ROWS = """VALUES
    (1L, 3, DATE '2024-05-01', CAST('NaN' AS DOUBLE), 99999999999999999999999999999999999999BD,
     TIMESTAMP '2024-05-01 12:00:00.123456', 'b', 1),
    (2L, NULL, NULL, 0.5D, -99999999999999999999999999999999999999BD, NULL, NULL, NULL),
    (-9L, -3, DATE '1400-01-01', -1.5D, NULL, TIMESTAMP '1900-01-01', 'a', 7)
    AS t(id, n, d, x, m, t, s, p)"""
COLUMNS = "id BIGINT, n INT, d DATE, x DOUBLE, m DECIMAL(38, 0), t TIMESTAMP, s STRING, p INT"
NAMES = ("id", "n", "d", "x", "m", "t", "s", "p")
BOUNDS = [f"min({name}), max({name})" for name in NAMES]


def _create(*properties: str, columns: str = COLUMNS, partitioned: str = "") -> str:
    listed = ", ".join(properties) or "'a' = 'b'"
    return f"CREATE TABLE {{t}} ({columns}) USING delta {partitioned} TBLPROPERTIES ({listed})"


def _insert(columns: str = "", values: str = "*") -> str:
    return f"INSERT INTO {{t}} {columns} SELECT {values} FROM {ROWS}"


GENERATED = COLUMNS.replace("n INT", "n INT GENERATED ALWAYS AS (CAST(id AS INT))")
LATER = "n INT, d DATE, x DOUBLE, m DECIMAL(38, 0), t TIMESTAMP, s STRING"
TABLES: dict[str, list[str]] = {
    "empty": [_create()],
    "plain": [_create(), _insert(), _insert()],
    "partitioned": [_create(partitioned="PARTITIONED BY (p)"), _insert()],
    "vectors": [
        _create("'delta.enableDeletionVectors' = 'true'"),
        _insert(),
        "DELETE FROM {t} WHERE id = 1",
    ],
    "mapped": [
        _create("'delta.columnMapping.mode' = 'name'"),
        _insert(),
        "ALTER TABLE {t} RENAME COLUMN n TO old",
        "ALTER TABLE {t} RENAME COLUMN p TO n",
        "ALTER TABLE {t} RENAME COLUMN old TO p",
        _insert("(id, n, d, x, m, t, s, p)"),
    ],
    "few statistics": [_create("'delta.dataSkippingNumIndexedCols' = '1'"), _insert()],
    "no statistics": [
        _create(),
        _insert(),
        "SET spark.databricks.delta.stats.collect = false",
        _insert(),
        "RESET spark.databricks.delta.stats.collect",
    ],
    "evolved": [
        _create(columns="id BIGINT, p INT"),
        "INSERT INTO {t} VALUES (1, 2), (NULL, 3)",
        f"ALTER TABLE {{t}} ADD COLUMNS ({LATER})",
        _insert("(id, n, d, x, m, t, s, p)"),
    ],
    "generated": [
        _create(columns=GENERATED),
        _insert("(id, d, x, m, t, s, p)", "id, d, x, m, t, s, p"),
    ],
}
"""The statements that make each table."""

QUICK = "vectors"


def make_table(spark: SparkSession, root: str, *, name: str) -> None:
    """Make a table; runs in the worker."""
    for statement in TABLES[name]:
        spark.sql(statement.format(t=f"delta.`{root}`"))


def aggregates(spark: SparkSession, root: str) -> list[str]:
    """Return aggregates as texts; runs in the processes of both engines."""
    lists = ["count(*)", f"count(1), {', '.join(BOUNDS)}", *BOUNDS]
    found = [str(spark.sql(f"SELECT {each} FROM delta.`{root}`").collect()) for each in lists]
    return [*found, str(spark.read.format("delta").load(root).count())]


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == QUICK else pytest.mark.slow) for n in TABLES]
)
def test_both_engines_answer_the_same(
    enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    """PROTOCOL.md#per-file-statistics"""
    there: dict[str, Any] = {"root": str(tmp_path)}
    delta_spark.run(f"{MODULE}:make_table", **there, name=name)
    rows = enabled.read.format("delta").load(str(tmp_path))
    assert aggregates(enabled, **there) == delta_spark.run(f"{MODULE}:aggregates", **there)
    before = rows.count()
    enabled.sql(f"INSERT INTO delta.`{tmp_path}` (id) VALUES (100)")
    delta_spark.run(f"{MODULE}:insert", **there)
    assert rows.count() == before + 2


def insert(spark: SparkSession, root: str) -> None:
    """Commit after the other engine; runs in the worker."""
    spark.sql(f"INSERT INTO delta.`{root}` (id) VALUES (-100)")
