"""Every test here also asserts that the user's settings are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def unchanged_settings(spark: SparkSession) -> Iterator[None]:
    """Fail a test that leaves another setting in the session."""
    before = _settings(spark)
    yield
    after = _settings(spark)
    if not before.equals(after):  # compared in the JVM: Python would ask for each setting
        assert dict(after) == dict(before)


def _settings(spark: SparkSession) -> Any:
    return spark.conf._jconf.getAllAsJava()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The path at which a test may make a table."""
    return tmp_path / "table"
