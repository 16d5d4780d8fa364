"""Every test here also asserts that the user's settings are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def unchanged_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test with Spark that leaves another setting in the session."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = _settings(spark)
    yield
    after = _settings(spark)
    if before != after:  # on classic Spark, compared in the JVM: Python would ask for each setting
        assert dict(after) == dict(before)


def _settings(spark: SparkSession) -> Any:
    is_classic = "connect" not in type(spark).__module__
    return spark.conf._jconf.getAllAsJava() if is_classic else spark.conf.getAll
