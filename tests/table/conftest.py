"""Every test here also asserts that the user's settings are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def unchanged_settings(spark: SparkSession) -> Iterator[None]:
    """What we read must not leave a trace in the session."""
    before = dict(spark.conf.getAll)
    yield
    after = dict(spark.conf.getAll)
    assert {k: v for k, v in after.items() if before.get(k) != v} == {}
    assert before.keys() == after.keys()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Where a test may make a table."""
    return tmp_path / "table"
