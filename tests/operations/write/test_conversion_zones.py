"""The time zone in which values are converted to the types of columns: UTC by this library's own
functions, that of an enabled session by delta-spark's interfaces; the same for every way in.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import DeltaTable, read_delta, write_delta
from tests.support.settings import settings

_KOLKATA = "Asia/Kolkata"
_COLUMNS = """id INT, d DATE, s STRING, n TIMESTAMP_NTZ, t TIMESTAMP, u TIMESTAMP,
    st STRUCT<a: DATE, b: STRING>, l ARRAY<TIMESTAMP_NTZ>, m MAP<DATE, TIMESTAMP>"""
_MOMENT = "timestamp_micros(1710100000000000)"  # 19:46:40 in UTC is the next day in Kolkata
_VALUES = {
    "id": "1",
    "d": _MOMENT,
    "s": _MOMENT,
    "n": _MOMENT,
    "t": "TIMESTAMP_NTZ'2024-03-10 20:00:00'",
    "u": "DATE'2024-03-10'",
    "st": f"named_struct('a', {_MOMENT}, 'b', {_MOMENT})",
    "l": f"array({_MOMENT})",
    "m": f"map({_MOMENT}, DATE'2024-03-10')",
}
_TEXT = {"id": "1", "z": "'2024-03-10 20:00:00'"}
_SHOWN = """concat_ws('|', year(d), month(d), day(d), s, n, unix_seconds(t), unix_seconds(u),
    day(st.a), st.b, l[0], day(map_keys(m)[0]), unix_seconds(map_values(m)[0])) AS shown"""

Way = Callable[[SparkSession, str, DataFrame], object]


def expected(zone: str) -> str:
    """Return the values as text, converted by Python."""

    def seconds(*moment: int) -> int:
        return int(dt.datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp())  # type: ignore[misc]

    local = dt.datetime.fromtimestamp(1710100000, ZoneInfo(zone)).replace(tzinfo=None)
    midnight = seconds(2024, 3, 10)
    values: list[Any] = [
        local.year, local.month, local.day, local, local, seconds(2024, 3, 10, 20), midnight,
        local.day, local, local, local.day, midnight,
    ]  # fmt: skip
    return "|".join(map(str, values))


def merged_insert(spark: SparkSession, path: str, rows: DataFrame) -> None:
    merge = DeltaTable.forPath(spark, path).alias("t").merge(rows.alias("q"), "t.id = q.id")
    merge.whenNotMatchedInsertAll().execute()


def write_without_values(path: str, rows: DataFrame) -> None:
    partition = ["CAST(NULL AS DATE) AS d"] if "d" in rows.columns else []
    write_delta(rows.selectExpr("id", *partition), path, mode="append")


def merged_update(spark: SparkSession, path: str, rows: DataFrame) -> None:
    write_without_values(path, rows)
    merge = DeltaTable.forPath(spark, path).alias("t").merge(rows.alias("q"), "t.id = q.id")
    merge.whenMatchedUpdateAll().execute()


def updated(spark: SparkSession, path: str, rows: DataFrame) -> None:
    write_without_values(path, rows)
    values = _TEXT if "z" in rows.columns else _VALUES
    DeltaTable.forPath(spark, path).update(set=values)


def selected(spark: SparkSession, values: dict[str, str]) -> DataFrame:
    return spark.sql("VALUES (0)").selectExpr(*(f"{text} AS {n}" for n, text in values.items()))


def _statement(run: str, text: str) -> Way:
    def execute(spark: SparkSession, path: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("conversion_source")
        statement = text.format(table=f"delta.`{path}`", source="conversion_source")
        if run == "sparkdelta.sql":
            sparkdelta.sql(spark, statement)
        else:
            spark.sql(statement)

    return execute


_STATEMENTS = {
    "INSERT": "INSERT INTO {table} SELECT * FROM {source}",
    "INSERT BY NAME": "INSERT INTO {table} BY NAME SELECT * FROM {source}",
    "MERGE": "MERGE INTO {table} t USING {source} q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *",
    "REPLACE ON": "INSERT INTO {table} AS t REPLACE ON t.id = q.id (SELECT * FROM {source}) AS q",
    "REPLACE USING": "INSERT INTO {table} REPLACE USING (id) SELECT * FROM {source}",
}
_DELTA_TABLE: dict[str, Way] = {
    "merge, insert": merged_insert,
    "merge, update": merged_update,
    "update": updated,
}
_CONVERTS_STRINGS = {*_STATEMENTS, *_DELTA_TABLE, "insertInto"}
_OWN: dict[str, Way] = {
    "write_delta": lambda spark, path, rows: write_delta(rows, path, mode="append"),
    **_DELTA_TABLE,
    **{name: _statement("sparkdelta.sql", text) for name, text in _STATEMENTS.items()},
}
_ENABLED: dict[str, Way] = {
    "df.write": lambda spark, path, rows: rows.write.format("delta").mode("append").save(path),
    "insertInto": lambda spark, path, rows: rows.write.insertInto(f"delta.`{path}`"),
    "writeTo": lambda spark, path, rows: rows.writeTo(f"delta.`{path}`").append(),
    "replaceUsing": lambda spark, path, rows: (
        rows.write.format("delta").mode("overwrite").option("replaceUsing", "id").save(path)
    ),
    **_DELTA_TABLE,
    **{name: _statement("spark.sql", text) for name, text in _STATEMENTS.items()},
}


def stored(spark: SparkSession, path: str, way: Way) -> str:
    """Return the stored values as text, from a new table that is partitioned by `d`."""
    table = DeltaTable.create(spark).location(path)
    for column in _schema(spark, _COLUMNS):
        table = table.addColumn(column.name, column.dataType)
    table.partitionedBy("d").execute()
    way(spark, path, selected(spark, _VALUES))
    [row] = read_delta(spark, path).selectExpr(_SHOWN).collect()
    return str(row.shown)


def stored_text(spark: SparkSession, path: str, way: Way) -> int:
    """Return the seconds of the TIMESTAMP that is stored for a text without a time zone."""
    write_delta(spark.sql("SELECT 1 AS id, timestamp_seconds(0) AS z").limit(0), path)
    way(spark, path, selected(spark, _TEXT))
    [row] = read_delta(spark, path).selectExpr("unix_seconds(z) AS z").collect()
    return int(row.z)


def _schema(spark: SparkSession, ddl: str) -> Any:
    return spark.createDataFrame([], ddl).schema


@pytest.mark.parametrize("name", _OWN)
def test_own_functions_convert_in_utc(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": _KOLKATA}):
        assert stored(spark, str(tmp_path / "t"), _OWN[name]) == expected("UTC")
        if name in _CONVERTS_STRINGS:
            assert stored_text(spark, str(tmp_path / "z"), _OWN[name]) == 1710100800


@pytest.mark.parametrize("name", _ENABLED)
def test_delta_sparks_interfaces_convert_in_the_zone_of_an_enabled_session(
    enabled: SparkSession, tmp_path: Path, name: str
) -> None:
    with settings(enabled, {"spark.sql.session.timeZone": _KOLKATA}):
        assert stored(enabled, str(tmp_path / "t"), _ENABLED[name]) == expected(_KOLKATA)
        if name in _CONVERTS_STRINGS:
            assert stored_text(enabled, str(tmp_path / "z"), _ENABLED[name]) == 1710081000


@pytest.mark.slow
def test_own_functions_convert_in_utc_in_an_enabled_session(
    enabled: SparkSession, tmp_path: Path
) -> None:
    with settings(enabled, {"spark.sql.session.timeZone": _KOLKATA}):
        for name in ("write_delta", "MERGE"):
            assert stored(enabled, str(tmp_path / name), _OWN[name]) == expected("UTC")


@pytest.mark.parametrize("is_enabled", [False, True], ids=["usual", "enabled"])
def test_rules_of_a_table_follow_the_zone_of_enabled_sessions_alone(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, is_enabled: bool
) -> None:  # fmt: skip
    """A generated day is that of the time zone in which a value beside it is converted."""
    path = str(tmp_path)
    session: SparkSession = request.getfixturevalue("enabled") if is_enabled else spark
    table = DeltaTable.create(session).location(path).addColumn("at", "TIMESTAMP")
    table = table.addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
    table.addColumn("d", "DATE").execute()
    with settings(session, {"spark.sql.session.timeZone": _KOLKATA}):
        source = session.sql(f"SELECT {_MOMENT} AS at, {_MOMENT} AS d")
        merge = DeltaTable.forPath(session, path).merge(source, "false")
        merge.whenNotMatchedInsert(values={"at": "at", "d": "d"}).execute()
    [row] = read_delta(session, path).selectExpr("day(day) AS day", "day(d) AS d").collect()
    assert (row.day, row.d) == ((11, 11) if is_enabled else (10, 10))


def test_overwritten_partition_is_that_of_its_converted_value(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The condition of INSERT OVERWRITE has the value that its rows get."""
    path = str(tmp_path)
    write_delta(
        spark.sql("SELECT DATE'2024-03-10' AS d, 1 AS v UNION ALL SELECT DATE'2024-03-11', 2"),
        path,
        partition_by=["d"],
    )
    with settings(spark, {"spark.sql.session.timeZone": _KOLKATA}):
        moment = "TIMESTAMP'2024-03-10 19:46:40Z'"
        sparkdelta.sql(
            spark, f"INSERT OVERWRITE delta.`{path}` PARTITION (d = {moment}) SELECT 3 AS v"
        )
    rows = read_delta(spark, path).selectExpr("day(d) AS d", "v").collect()
    assert sorted(map(tuple, rows)) == [(10, 3), (11, 2)]


_KEYS = {
    "d": ("DATE'2024-03-11'", _MOMENT),
    "s": ("'2024-03-11 01:16:40'", _MOMENT),
    "st": ("named_struct('a', DATE'2024-03-11')", f"named_struct('a', {_MOMENT})"),
}
"""A stored value of each key, and a value of another type that is stored as the same."""


@pytest.mark.full
@pytest.mark.parametrize("way", ["REPLACE USING", "replaceUsing"])
def test_replaced_rows_are_those_equal_to_the_stored_values(
    enabled: SparkSession, tmp_path: Path, way: str
) -> None:
    """The values of the source are converted before they are compared, each by its column."""
    with settings(enabled, {"spark.sql.session.timeZone": _KOLKATA}):
        for key in _KEYS:
            path = str(tmp_path / key)
            old = selected(enabled, {name: value for name, (value, _) in _KEYS.items()})
            write_delta(old.withColumn("v", F.lit(1)), path)
            new = selected(enabled, {name: value for name, (_, value) in _KEYS.items()})
            rows = new.withColumn("v", F.lit(2))
            if way == "replaceUsing":
                replacing = rows.write.format("delta").mode("overwrite")
                replacing.option("replaceUsing", key).save(path)
            else:
                rows.createOrReplaceTempView("replacing")
                enabled.sql(f"INSERT INTO delta.`{path}` REPLACE USING ({key}) TABLE replacing")
            assert [row.v for row in read_delta(enabled, path).collect()] == [2], key
