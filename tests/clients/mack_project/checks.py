"""mack's functions change, copy and describe Delta tables."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import mack
import pytest
from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.sql import SparkSession

BUILDER = SparkSession.builder.config(
    "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
).config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")


@pytest.fixture
def spark() -> SparkSession:
    return configure_spark_with_delta_pip(BUILDER).getOrCreate()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "table")
    rows = [(1, "a"), (2, "b"), (3, "b"), (4, "c")]
    spark.createDataFrame(rows, "id INT, name STRING").write.format("delta").save(path)
    return DeltaTable.forPath(spark, path)


def rows(table: DeltaTable) -> list[tuple[object, ...]]:
    return sorted(map(tuple, table.toDF().collect()))


def test_an_upsert_of_type_2_keeps_the_history(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "history")
    first, second = datetime(2019, 1, 1), datetime(2020, 1, 1)
    schema = (
        "pkey INT, attr STRING, is_current BOOLEAN, effective_time TIMESTAMP, end_time TIMESTAMP"
    )
    old = spark.createDataFrame([(1, "a", True, first, None), (2, "b", True, first, None)], schema)
    old.write.format("delta").save(path)
    updates = spark.createDataFrame(
        [(2, "z", second), (3, "c", second)], "pkey INT, attr STRING, effective_time TIMESTAMP"
    )
    table = DeltaTable.forPath(spark, path)
    mack.type_2_scd_upsert(table, updates, "pkey", ["attr"])
    assert sorted(map(tuple, table.toDF().collect()), key=str) == [
        (1, "a", True, first, None),
        (2, "b", False, first, second),
        (2, "z", True, second, None),
        (3, "c", True, second, None),
    ]


def test_duplicates_are_removed(table: DeltaTable) -> None:
    mack.drop_duplicates_pkey(table, "id", ["name"])
    assert rows(table) == [(1, "a"), (2, "b"), (4, "c")]
    mack.kill_duplicates(table, ["name"])
    assert rows(table) == [(1, "a"), (2, "b"), (4, "c")]


def test_all_rows_that_are_duplicates_are_removed(table: DeltaTable) -> None:
    mack.kill_duplicates(table, ["name"])
    assert rows(table) == [(1, "a"), (4, "c")]


def test_a_table_is_copied(table: DeltaTable, spark: SparkSession, tmp_path: Path) -> None:
    mack.copy_table(table, target_path=str(tmp_path / "copy"))
    assert rows(DeltaTable.forPath(spark, str(tmp_path / "copy"))) == rows(table)


def test_an_append_is_validated(table: DeltaTable, spark: SparkSession) -> None:
    more = spark.createDataFrame([(5, "e", "x")], "id INT, name STRING, note STRING")
    with pytest.raises(TypeError, match="optional_cols"):
        mack.validate_append(table, more, ["id"], [])
    mack.validate_append(table, more, ["id", "name"], ["note"])
    assert table.toDF().columns == ["id", "name", "note"]
    assert table.toDF().where("note = 'x'").count() == 1


def test_an_append_leaves_out_rows_that_exist(table: DeltaTable, spark: SparkSession) -> None:
    more = spark.createDataFrame([(4, "d"), (5, "e"), (5, "e")], "id INT, name STRING")
    mack.append_without_duplicates(table, more, ["id"])
    assert rows(table) == [(1, "a"), (2, "b"), (3, "b"), (4, "c"), (5, "e")]


def test_a_table_is_described(table: DeltaTable) -> None:
    assert mack.latest_version(table) == 0
    assert mack.delta_file_sizes(table)["number_of_files"] >= 1
    assert mack.is_composite_key_candidate(table, ["id"])
    assert not mack.is_composite_key_candidate(table, ["name"])
    assert mack.find_composite_key_candidates(table) == ["id"]


def test_rows_that_break_a_constraint_are_kept_apart(
    table: DeltaTable, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    spark.createDataFrame([], "id INT, name STRING").write.format("delta").save(
        str(tmp_path / "apart")
    )
    apart = DeltaTable.forPath(spark, str(tmp_path / "apart"))
    more = spark.createDataFrame([(5, "e"), (-1, "f")], "id INT, name STRING")
    mack.constraint_append(DeltaTable.forPath(spark, path), more, apart)
    assert rows(apart) == [(-1, "f")]
    assert rows(table)[-1] == (5, "e")


def test_a_table_gets_a_name(table: DeltaTable, spark: SparkSession) -> None:
    mack.rename_delta_table(table, "named_by_mack")
    assert rows(DeltaTable.forName(spark, "named_by_mack")) == rows(table)
