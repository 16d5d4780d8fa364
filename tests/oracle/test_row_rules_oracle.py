"""Tables of delta-spark with rules for their rows: we append, delta-spark reads and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta, write_delta
from tests.support.delta_spark import DeltaSpark
from tests.support.errors import raises

pytestmark = pytest.mark.oracle

COLUMNS = (
    "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), v INT NOT NULL DEFAULT"
    " 42, twice INT GENERATED ALWAYS AS (v * 2), day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),"
    " at TIMESTAMP, code VARCHAR(3), codes ARRAY<STRUCT<c: VARCHAR(3)>>"
)


def make(spark: SparkSession, table: str) -> None:
    """Make a table with rules for its rows; runs in the process of delta-spark."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({COLUMNS}) USING delta PARTITIONED BY (day)"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT positive CHECK (v > 0)")
    spark.sql(f"INSERT INTO delta.`{table}` (v, at) VALUES (1, '2024-01-01 10:00:00')")


def go_on(spark: SparkSession, table: str) -> dict[str, Any]:
    """Read a table after an append, change it and return what was read; runs in the process of
    delta-spark.
    """
    spark.sql(f"INSERT INTO delta.`{table}` (v, at) VALUES (7, NULL)")
    rows = spark.read.format("delta").load(table).orderBy("id").collect()
    spark.sql(f"UPDATE delta.`{table}` SET v = 8 WHERE v = 7")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE v = 1")
    return {
        "ids": [row["id"] for row in rows],
        "rows": sorted(str((row["v"], row["twice"], row["day"], row["code"])) for row in rows),
        "predicates": [
            row["operationParameters"].get("predicate")
            for row in spark.sql(f"DESCRIBE HISTORY delta.`{table}`").orderBy("version").collect()
        ],
    }


def test_rules_of_delta_spark(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    delta_spark.run("tests.oracle.test_row_rules_oracle:make", table=table)
    new = "SELECT TIMESTAMP'2024-01-02 10:00:00Z' AS at, 'abc' AS code, {} AS codes"
    codes = ("array(named_struct('c', 'abc'))", "array(named_struct('c', 'abcd'))")
    write_delta(spark.sql(new.format(codes[0])), table, mode="append")
    with raises("DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        write_delta(spark.sql(new.format(codes[1])), table, mode="append")
    write_delta(spark.sql("SELECT 5L AS v, 10L AS twice"), table, mode="append")
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        write_delta(spark.sql("SELECT 0 AS v"), table, mode="append")
    write_delta(
        spark.sql("SELECT 6 AS v"), table, mode="overwrite", replace_where="v BETWEEN 5 AND 6"
    )
    told = delta_spark.run("tests.oracle.test_row_rules_oracle:go_on", table=table)
    assert told["rows"] == [
        "(1, 2, datetime.date(2024, 1, 1), None)",
        "(42, 84, datetime.date(2024, 1, 2), 'abc')",
        "(6, 12, None, None)",
        "(7, 14, None, None)",
    ]
    assert len(set(told["ids"])) == 4
    assert all(value >= 10 and value % 5 == 0 for value in told["ids"])
    assert "v BETWEEN 5 AND 6" in told["predicates"]
    ours = read_delta(spark, table).collect()
    assert sorted((row["v"], row["twice"]) for row in ours) == [(6, 12), (8, 16), (42, 84)]
    write_delta(spark.sql("SELECT 9 AS v"), table, mode="append")
    ids = [row["id"] for row in read_delta(spark, table).collect()]
    assert max(ids) not in told["ids"]
    assert len(set(ids)) == 4
