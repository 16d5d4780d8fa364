"""A catalog and a pipeline of kedro with datasets of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from delta import DeltaTable, configure_spark_with_delta_pip
from kedro.io import DataCatalog, DatasetError
from kedro.pipeline import node, pipeline
from kedro.runner import SequentialRunner
from pyspark.sql import DataFrame, SparkSession

BUILDER = SparkSession.builder.config(
    "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
).config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")


@pytest.fixture
def spark() -> SparkSession:
    return configure_spark_with_delta_pip(BUILDER).getOrCreate()


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> DataCatalog:
    for name in ("named", "frames"):
        spark.sql(f"DROP TABLE IF EXISTS of_kedro_{name}")
    path = str(tmp_path / "people")
    named = {"type": "databricks.ManagedTableDataset"}
    return DataCatalog.from_config(
        {
            "frame": {"type": "spark.SparkDataset", "filepath": path, "file_format": "delta"},
            "first": {
                "type": "spark.SparkDataset",
                "filepath": path,
                "file_format": "delta",
                "load_args": {"versionAsOf": 0},
            },
            "other": {
                "type": "spark.SparkDataset",
                "filepath": str(tmp_path / "other"),
                "file_format": "delta",
                "save_args": {"mode": "overwrite", "partitionBy": ["name"]},
            },
            "table": {"type": "spark.DeltaTableDataset", "filepath": path},
            "named": {**named, "table": "of_kedro_named", "write_mode": "overwrite"},
            "more": {**named, "table": "of_kedro_named", "write_mode": "append"},
            "upserted": {
                **named,
                "table": "of_kedro_named",
                "write_mode": "upsert",
                "primary_key": "id",
            },
            "frames": {
                **named,
                "table": "of_kedro_frames",
                "write_mode": "overwrite",
                "dataframe_type": "pandas",
            },
        }
    )


@pytest.fixture
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING")


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_a_saved_frame_is_loaded_as_rows_and_as_a_table(
    catalog: DataCatalog, people: DataFrame
) -> None:
    assert not catalog.exists("table")
    catalog.save("frame", people)
    assert catalog.exists("frame")
    assert catalog.exists("table")
    assert rows(catalog.load("frame")) == [(1, "a"), (2, "b")]
    assert isinstance(catalog.load("table"), DeltaTable)
    with pytest.raises(DatasetError):
        catalog.save("frame", people)


def test_a_pipeline_updates_a_table(catalog: DataCatalog, people: DataFrame) -> None:
    def upsert(table: DeltaTable, frame: DataFrame) -> DataFrame:
        merge = table.alias("t").merge(
            frame.selectExpr("id + 1 id", "name").alias("s"), "t.id = s.id"
        )
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        return table.toDF()

    catalog.save("frame", people)
    steps = pipeline([node(upsert, ["table", "first"], "other")])
    SequentialRunner().run(steps, catalog)
    assert rows(catalog.load("other")) == [(1, "a"), (2, "a"), (3, "b")]
    assert rows(catalog.load("first")) == [(1, "a"), (2, "b")]


def test_named_tables_are_overwritten_appended_to_and_merged(
    catalog: DataCatalog, people: DataFrame, spark: SparkSession
) -> None:
    catalog.save("named", people)
    catalog.save("more", spark.createDataFrame([(3, "c")], "id INT, name STRING"))
    assert rows(catalog.load("named")) == [(1, "a"), (2, "b"), (3, "c")]
    catalog.save("upserted", spark.createDataFrame([(3, "z"), (4, "d")], "id INT, name STRING"))
    assert rows(catalog.load("named")) == [(1, "a"), (2, "b"), (3, "z"), (4, "d")]
    catalog.save("named", people)
    assert rows(catalog.load("named")) == [(1, "a"), (2, "b")]


def test_a_frame_of_pandas_is_saved_and_loaded(catalog: DataCatalog) -> None:
    assert not catalog.exists("frames")
    catalog.save("frames", pd.DataFrame({"id": [1, 2], "name": ["a", "b"]}))
    assert catalog.exists("frames")
    frame = catalog.load("frames").sort_values("id")
    assert frame.to_dict("list") == {"id": [1, 2], "name": ["a", "b"]}
