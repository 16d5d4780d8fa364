"""The other engines."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.delta_spark import DeltaSpark, DeltaSparkUnavailable

SEEDS_VARIABLE = "SPARKDELTA_ORACLE_SEEDS"
DEFAULT_SEEDS = 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with a ``seed`` as many as the environment asks for."""
    if "seed" in metafunc.fixturenames:
        count = int(os.environ.get(SEEDS_VARIABLE, DEFAULT_SEEDS))
        metafunc.parametrize("seed", range(count))


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    """delta-spark in a JVM of its own; skips by name where it cannot be had."""
    worker = DeltaSpark()
    try:
        worker.start()
    except DeltaSparkUnavailable as unavailable:
        pytest.skip(f"delta-spark: {unavailable}")
    yield worker
    worker.stop()
