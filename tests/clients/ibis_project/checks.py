"""ibis reads and writes Delta tables with its backend of PySpark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pytest
from delta.pip_utils import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

BUILDER = (
    SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
FRAME = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "b"]})


@pytest.fixture
def con() -> Any:
    con = ibis.pyspark.connect(configure_spark_with_delta_pip(BUILDER).getOrCreate())
    con.drop_table("of_ibis", force=True)
    return con


def rows(table: Any) -> list[list[object]]:
    return table.order_by("id").to_pandas().values.tolist()


def test_a_table_is_written_to_and_read_from_a_path(con: Any, tmp_path: Path) -> None:
    con.to_delta(ibis.memtable(FRAME), tmp_path / "t")
    assert (tmp_path / "t" / "_delta_log").is_dir()
    assert rows(con.read_delta(tmp_path / "t")) == [[1, "a"], [2, "b"], [3, "b"]]


def test_an_expression_replaces_a_table_and_an_earlier_version_stays(
    con: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    con.to_delta(ibis.memtable(FRAME), path)
    table = con.read_delta(path)
    con.to_delta(table.filter(table.id > 1), path, mode="overwrite")
    assert rows(con.read_delta(path)) == [[2, "b"], [3, "b"]]
    assert rows(con.read_delta(path, versionAsOf=0)) == [[1, "a"], [2, "b"], [3, "b"]]


def test_a_table_of_the_catalog_is_created_from_rows(con: Any) -> None:
    table = con.create_table("of_ibis", FRAME, format="delta", partition_by="name")
    assert "of_ibis" in con.list_tables()
    counts = table.group_by("name").agg(n=table.count()).order_by("name")
    assert counts.to_pandas().to_dict("list") == {"name": ["a", "b"], "n": [1, 2]}
    replaced = con.create_table("of_ibis", FRAME[:1], format="delta", overwrite=True)
    assert rows(replaced) == [[1, "a"]]


def test_a_table_of_the_catalog_is_created_from_a_schema_and_filled(con: Any) -> None:
    table = con.create_table("of_ibis", schema={"id": "int64", "name": "string"}, format="delta")
    con.insert("of_ibis", FRAME)
    con.insert("of_ibis", pd.DataFrame({"id": [4], "name": ["d"]}))
    assert rows(table) == [[1, "a"], [2, "b"], [3, "b"], [4, "d"]]
    con.insert("of_ibis", FRAME[:1], overwrite=True)
    assert rows(table) == [[1, "a"]]


def test_a_join_and_a_view_of_delta_tables(con: Any, tmp_path: Path) -> None:
    con.to_delta(ibis.memtable(FRAME), tmp_path / "t")
    table = con.create_table("of_ibis", FRAME[1:], format="delta")
    joined = con.read_delta(tmp_path / "t").join(table, "id").select("id", "name")
    view = con.create_view("view_of_ibis", joined, overwrite=True)
    assert rows(view) == [[2, "b"], [3, "b"]]
