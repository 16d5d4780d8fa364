"""The calls of MIGRATING.md, run side by side: both columns of a table leave the same rows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta.api.delta_table import DeltaTable

TEXT = (Path(__file__).parents[2] / "MIGRATING.md").read_text(encoding="utf-8")
CALLS = [
    tuple(re.sub("^(`+)(.*)\\1$", r"\2", cell.strip()) for cell in line.strip("| ").split(" | "))
    for line in TEXT.splitlines()
    if line.startswith("| `")
]

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table with two versions and change data."""
    path = tmp_path_factory.mktemp("migrating") / "table"
    sparkdelta.enable(spark)
    feed = {"delta.enableChangeDataFeed": "true"}
    sparkdelta.write_delta(spark.range(3).coalesce(1), str(path), properties=feed)
    sparkdelta.write_delta(spark.range(3, 5).coalesce(1), str(path), mode="append")
    yield path
    sparkdelta.disable(spark)


def test_there_are_two_tables_of_calls() -> None:
    assert len([left for left, _ in CALLS if "deltalake" in left]) == 14
    assert len(CALLS) == 33


@pytest.mark.filterwarnings("ignore")  # delta-rs warns of its own doings
@pytest.mark.parametrize(("left", "right"), CALLS)
def test_both_do_the_same(
    spark: SparkSession, table: Path, tmp_path: Path, left: str, right: str
) -> None:
    found = []
    for number, code in enumerate((left, right)):
        path = tmp_path / str(number)
        shutil.copytree(table, path)
        result = _run(code, spark, str(path))
        rows = sparkdelta.read_delta(spark, str(path))
        found.append((_answer(result), sorted(row["id"] for row in rows.collect())))
    assert found[0] == found[1]


def _run(code: str, spark: SparkSession, path: str) -> Any:
    deltalake = pytest.importorskip("deltalake")
    more = spark.range(7, 9)
    names = {
        "spark": spark, "path": path, "more": more, "arrow": more.toArrow(),
        "sparkdelta": sparkdelta, "DeltaTable": DeltaTable, "deltalake": deltalake,
    }  # fmt: skip
    return eval(code, names)


def _answer(result: Any) -> Any:
    """Rows that a call returned, if it is one that reads; the columns of a stream."""
    if isinstance(result, DataFrame):
        if result.isStreaming:
            return result.columns
        result = result.toArrow()
    if hasattr(result, "column_names") and "id" in result.column_names:
        return sorted(result.column("id").to_pylist())
    return None
