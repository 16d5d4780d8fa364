"""pandera validates DataFrames of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pandera.pyspark as pa
import pyspark.sql.types as T
import pytest
from pyspark.sql import DataFrame, SparkSession


class Orders(pa.DataFrameModel):
    id: T.LongType() = pa.Field(gt=0)
    customer: T.StringType() = pa.Field(str_startswith="c", nullable=True)


@pytest.fixture
def spark() -> SparkSession:
    return SparkSession.builder.master("local[2]").getOrCreate()


def saved(spark: SparkSession, path: Path, *rows: tuple[int, str | None]) -> DataFrame:
    frame = spark.createDataFrame(list(rows), "id BIGINT, customer STRING")
    frame.write.format("delta").save(str(path))
    return spark.read.format("delta").load(str(path))


def test_valid_rows_have_no_errors(spark: SparkSession, tmp_path: Path) -> None:
    frame = saved(spark, tmp_path / "t", (1, "c1"), (2, None))
    validated = Orders.validate(frame)
    assert not validated.pandera.errors
    assert sorted(validated.collect()) == [(1, "c1"), (2, None)]


def test_invalid_rows_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    errors = Orders.validate(saved(spark, tmp_path / "t", (0, "c1"), (2, "x"))).pandera.errors
    failed = {each["column"]: each["check"] for each in errors["DATA"]["DATAFRAME_CHECK"]}
    assert failed == {"id": "greater_than(0)", "customer": "str_startswith('c')"}


def test_another_type_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).selectExpr("CAST(id AS INT) id", "'c' customer").write.format("delta").save(
        str(tmp_path / "t")
    )
    errors = Orders.validate(spark.read.format("delta").load(str(tmp_path / "t"))).pandera.errors
    assert "WRONG_DATATYPE" in errors["SCHEMA"]


def test_a_validated_frame_is_written(spark: SparkSession, tmp_path: Path) -> None:
    frame = saved(spark, tmp_path / "t", (1, "c1"))
    Orders.validate(frame.withColumn("id", frame.id + 1)).write.format("delta").mode("append").save(
        str(tmp_path / "t")
    )
    assert sorted(frame.collect()) == [(1, "c1"), (2, "c1")]


def test_a_table_of_the_catalog_is_validated(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS of_pandera")
    spark.sql("CREATE TABLE of_pandera (id BIGINT, customer STRING) USING delta")
    spark.sql("INSERT INTO of_pandera VALUES (1, 'c1'), (-1, 'c2')")
    errors = Orders.validate(spark.table("of_pandera")).pandera.errors
    assert [each["column"] for each in errors["DATA"]["DATAFRAME_CHECK"]] == ["id"]
