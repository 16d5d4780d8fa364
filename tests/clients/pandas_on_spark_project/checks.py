"""pandas on Spark reads and writes Delta tables."""

from __future__ import annotations

from pathlib import Path

import pyspark.pandas as ps
import pytest


@pytest.fixture
def path(tmp_path: Path) -> str:
    frame = ps.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]})
    frame.to_delta(str(tmp_path / "table"))
    return str(tmp_path / "table")


def rows(frame: ps.DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.to_spark().collect())


def test_a_written_table_has_its_rows(path: str) -> None:
    frame = ps.read_delta(path)
    assert frame.columns.to_list() == ["id", "name"]
    assert rows(frame) == [(1, "a"), (2, "b"), (3, None)]


def test_an_append_adds_rows(path: str) -> None:
    ps.DataFrame({"id": [4], "name": ["d"]}).to_delta(path, mode="append")
    assert rows(ps.read_delta(path)) == [(1, "a"), (2, "b"), (3, None), (4, "d")]


def test_an_overwrite_of_some_rows_keeps_the_others(path: str) -> None:
    ps.DataFrame({"id": [3], "name": ["c"]}).to_delta(
        path, mode="overwrite", replaceWhere="id >= 3"
    )
    assert rows(ps.read_delta(path)) == [(1, "a"), (2, "b"), (3, "c")]


def test_an_earlier_version_is_read(path: str) -> None:
    ps.DataFrame({"id": [4], "name": ["d"]}).to_delta(path, mode="append")
    assert len(ps.read_delta(path, version="0")) == 3
    assert len(ps.read_delta(path, version="1")) == 4


def test_a_partitioned_table_is_computed_with(path: str, tmp_path: Path) -> None:
    other = str(tmp_path / "partitioned")
    ps.DataFrame({"k": ["a", "a", "b"], "v": [1, 2, 3]}).to_delta(other, partition_cols="k")
    assert (Path(other) / "_delta_log").is_dir()
    sums = ps.read_delta(other).groupby("k")["v"].sum().to_pandas()
    assert sums.to_dict() == {"a": 3, "b": 3}


def test_an_index_column_is_read_back(tmp_path: Path) -> None:
    other = str(tmp_path / "indexed")
    ps.DataFrame({"v": [1.5, 2.5]}, index=[10, 20]).to_delta(other, index_col="k")
    frame = ps.read_delta(other, index_col="k").sort_index()
    assert frame.index.name == "k"
    assert frame["v"].to_pandas().to_dict() == {10: 1.5, 20: 2.5}


def test_a_table_of_the_catalog_is_read_and_written(path: str) -> None:
    ps.read_delta(path).spark.to_table("of_pandas", format="delta", mode="overwrite")
    assert rows(ps.read_table("of_pandas")) == [(1, "a"), (2, "b"), (3, None)]
    assert rows(ps.sql("SELECT id, name FROM of_pandas WHERE id > 1")) == [(2, "b"), (3, None)]
