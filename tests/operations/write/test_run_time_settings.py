"""Settings that Spark reads when a job runs, not when its plan is analyzed: a table's session that
analyzed the plan does not help.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, optimize, read_delta, sql, write_delta
from tests.support.errors import raises
from tests.support.settings import RUN_TIME, settings

_DAYS = ("1582-10-04", "1582-10-06", "1582-10-10", "1582-10-15", "0001-01-01", "2024-02-29")
_PARTS = ["d", "t", "n"]
_ROWS = " UNION ALL ".join(
    f"SELECT {number} AS id, DATE'{day}' AS d, timestamp_micros(unix_micros(TIMESTAMP'{day} "
    f"12:00:00.25Z')) AS t, TIMESTAMP_NTZ'{day} 12:00:00' AS n, map({number}L, 'x') AS m, "
    f"DATE'{day}' AS s, CAST('a' AS BINARY) AS b"
    for number, day in enumerate(_DAYS)
)
INEXACT = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
_SHOWN = [
    "id", "datediff(d, DATE'1970-01-01') AS d", "unix_micros(t) AS t", "CAST(n AS STRING) AS n",
    "m", "s", "hex(b) AS b",
]  # fmt: skip


def values(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, read_delta(spark, path).selectExpr(*_SHOWN).collect()), key=str)


def new_table(spark: SparkSession, path: str) -> None:
    table = DeltaTable.create(spark).location(path).addColumn("id", "INT").addColumn("d", "DATE")
    table = table.addColumn("t", "TIMESTAMP").addColumn("n", "TIMESTAMP_NTZ")
    table = table.addColumn("m", "MAP<INT, STRING>").addColumn("s", "STRING")
    table.addColumn("b", "BINARY").partitionedBy(*_PARTS).execute()


def write_in_every_way(spark: SparkSession, path: str) -> None:
    """Append twice, merge, update, optimize and overwrite partitions."""
    new_table(spark, path)
    rows = spark.sql(_ROWS)
    write_delta(rows.filter("id < 5"), path, mode="append")
    write_delta(rows.filter("id < 5").selectExpr("id + 10 AS id", "* EXCEPT (id)"), path,
                mode="append")  # fmt: skip
    table = DeltaTable.forPath(spark, path)
    merge = table.alias("x").merge(rows.alias("y"), "x.id = y.id")
    merge.whenMatchedUpdateAll("x.id = 1").whenNotMatchedInsertAll().execute()
    table.update("id = 2", {"id": "id + 100", "s": "d"})
    optimize(spark, path)
    write_delta(
        rows.filter("id = 3").selectExpr("200 AS id", "* EXCEPT (id)"),
        path,
        mode="overwrite",
        partition_overwrite_mode="dynamic",
    )


def refused_for(spark: SparkSession) -> set[str]:
    """The settings of Spark Connect before 4.2 by which rows cannot be staged."""
    is_classic = "connect" not in type(spark).__module__
    return set() if is_classic or hasattr(spark, "cloneSession") else {*INEXACT}


@pytest.mark.full
def test_staged_rows_keep_days_and_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of the source of a MERGE are staged in the user's session on Spark Connect."""
    new_table(spark, str(tmp_path))
    rows = spark.sql(_ROWS).selectExpr("* EXCEPT (t)", "t + INTERVAL '0.000001' SECOND AS t")
    table, refused = DeltaTable.forPath(spark, str(tmp_path)), refused_for(spark)
    merge = table.alias("x").merge(rows.alias("y"), "x.id = y.id").whenNotMatchedInsertAll()
    for setting in refused:
        with settings(spark, {setting: INEXACT[setting]}), raises("DELTA_ILLEGAL_OPTION"):
            merge.execute()
    with settings(spark, {} if refused else INEXACT):
        merge.execute()
    expected = rows.selectExpr("* EXCEPT (s)", "CAST(s AS STRING) AS s").selectExpr(*_SHOWN)
    assert values(spark, str(tmp_path)) == sorted(map(tuple, expected.collect()), key=str)


@pytest.mark.slow
def test_writes_do_not_depend_on_settings_of_the_running_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    usual, other = str(tmp_path / "usual"), str(tmp_path / "other")
    write_in_every_way(spark, usual)
    others = {name: value for name, value in RUN_TIME.items() if name not in refused_for(spark)}
    with settings(spark, others):
        write_in_every_way(spark, other)
    written = values(spark, usual)
    assert values(spark, other) == written
    texts = {row[0]: row[5] for row in written}
    assert texts[102] == "1582-10-10"
    assert texts[11] == "1582-10-06"
    assert len(written) == 10


@pytest.mark.parametrize("policy", ["EXCEPTION", "LAST_WIN"])
def test_map_keys_that_become_equal_are_an_error(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    new_table(spark, str(tmp_path))
    rows = spark.sql(_ROWS).filter("id = 1")
    rows = rows.selectExpr("* EXCEPT (m)", "map(1.2BD, 'a', 1.4BD, 'b') AS m")
    refused = raises("DELTA_WRITE_FAILED", match="DUPLICATED_MAP_KEY")
    with settings(spark, {"spark.sql.mapKeyDedupPolicy": policy}), refused:
        sql(spark, f"INSERT INTO delta.`{tmp_path}` BY NAME SELECT * FROM {{rows}}", rows=rows)
    assert read_delta(spark, str(tmp_path)).count() == 0
