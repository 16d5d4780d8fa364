"""Small inputs of frames, and sessions that try to change their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.schema.action_schemas import ACTIONS
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from tests.support.log_writer import Action, json_lines
from tests.support.settings import HOSTILE, settings

ROOT = "file:/t"

Commits = Mapping[int, Sequence[Action]]


@pytest.fixture(params=["as is", *HOSTILE])
def hostile(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Run under every group of hostile settings."""
    with settings(spark, HOSTILE.get(request.param, {})):
        yield


@pytest.fixture
def lines(spark: SparkSession) -> Callable[..., DataFrame]:
    """A frame of log lines, one for each text, of version 0."""

    def make(*texts: str, version: int = 0) -> DataFrame:
        return spark.createDataFrame(
            [(version, text) for text in texts], "version LONG, line STRING"
        )

    return make


@pytest.fixture
def actions(spark: SparkSession) -> Callable[[Commits], DataFrame]:
    """The actions of commits, as frames see them."""

    def make(commits: Commits) -> DataFrame:
        rows: list[tuple[Any, ...]] = [
            (version, line)
            for version, commit in commits.items()
            for line in json_lines(commit).splitlines()
        ]
        frame = spark.createDataFrame(rows, "version LONG, line STRING")
        return parse_log_lines(frame, actions=ACTIONS)

    return make
