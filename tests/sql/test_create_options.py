"""OPTIONS of CREATE TABLE, and locations of tables that exist."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, load_snapshot
from tests.support.errors import raises


def test_options_of_a_new_table_are_properties(enabled: SparkSession, tmp_path: Path) -> None:
    name, table = f"delta.`{tmp_path}/table`", str(tmp_path / "table")
    options = "OPTIONS (overwriteSchema 'true', own.option = 1, delta.appendOnly 'true')"
    enabled.sql(f"CREATE TABLE {name} (id INT) USING delta {options} TBLPROPERTIES ('p' = 'q')")
    assert load_snapshot(enabled, table).properties == {
        "p": "q",
        "overwriteSchema": "true", "option.overwriteSchema": "true",
        "own.option": "1", "option.own.option": "1",
        "delta.appendOnly": "true", "option.delta.appendOnly": "true",
    }  # fmt: skip
    enabled.sql(f"CREATE OR REPLACE TABLE delta.`{table}2` (id INT) USING delta {options}")
    assert load_snapshot(enabled, f"{table}2").properties == {}


def test_options_of_a_query_are_those_of_the_write(enabled: SparkSession, tmp_path: Path) -> None:
    name, table = f"delta.`{tmp_path}/table`", str(tmp_path / "table")
    query = "AS SELECT id FROM range(0, 3, 1, 1)"
    options = "OPTIONS (overwriteSchema true, header true, maxRecordsPerFile 2, compression 'GZIP')"
    enabled.sql(f"CREATE OR REPLACE TABLE {name} USING delta {options} {query}")
    snapshot = load_snapshot(enabled, table)
    assert snapshot.properties == {}
    files = [row["path"] for row in snapshot.add_files().select("path").collect()]
    assert len(files) == 2
    assert all(file.endswith(".gz.parquet") for file in files)


def test_a_writer_creates_a_table_at_the_path_of_its_options(
    enabled: SparkSession, tmp_path: Path
) -> None:
    name, place, rows = "at_a_path", str(tmp_path / "place"), enabled.range(2)
    try:
        rows.writeTo(name).using("delta").option("PATH", place).create()
        rows.writeTo(name).using("delta").option("path", place).replace()
        assert load_snapshot(enabled, place).version == 1
        with raises("DELTA_TABLE_LOCATION_MISMATCH"):
            rows.writeTo(name).using("delta").option("path", f"{place}2").createOrReplace()
    finally:
        enabled.sql(f"DROP TABLE {name}")
    assert load_snapshot(enabled, place).version == 1  # the table was not managed


def test_a_table_that_exists_stays_at_its_location(enabled: SparkSession, tmp_path: Path) -> None:
    first, other = str(tmp_path / "first"), tmp_path / "other"
    name, at = "stays_there", f"USING delta LOCATION '{other}'"
    enabled.sql(f"CREATE TABLE {name} (id INT) USING delta LOCATION '{first}'")
    try:
        enabled.sql(f"CREATE TABLE IF NOT EXISTS {name} (other INT) {at}")
        enabled.sql(f"CREATE TABLE IF NOT EXISTS {name} {at} AS SELECT 1 AS other")
        enabled.sql(f"CREATE TABLE IF NOT EXISTS {name} LIKE {name} LOCATION '{other}'")
        enabled.sql(
            f"CREATE TABLE IF NOT EXISTS {name} SHALLOW CLONE delta.`{first}` LOCATION '{other}'"
        )
        builder = DeltaTable.createIfNotExists(enabled).tableName(name).location(str(other))
        builder.addColumn("other", "INT").execute()
        assert not other.exists()
        assert enabled.table(name).columns == ["id"]
        assert load_snapshot(enabled, first).version == 0
        for clauses in (f"(id INT) {at}", f"{at} AS SELECT 1 AS id"):
            with raises("DELTA_TABLE_LOCATION_MISMATCH"):
                enabled.sql(f"CREATE OR REPLACE TABLE {name} {clauses}")
            with raises("DELTA_TABLE_ALREADY_EXISTS"):
                enabled.sql(f"CREATE TABLE {name} {clauses}")
        path = f"delta.`{first}`"
        enabled.sql(f"CREATE TABLE IF NOT EXISTS {path} (id INT) {at}")
        with raises("DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE"):
            enabled.sql(f"CREATE OR REPLACE TABLE {path} (id INT) {at}")
        with raises("DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE"):
            enabled.sql(f"CREATE TABLE IF NOT EXISTS delta.`{first}2` (id INT) {at}")
        assert not other.exists()
    finally:
        enabled.sql(f"DROP TABLE {name}")
