"""Offsets of streams, as delta-spark writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkdelta.operations.stream.stream_offset_rules import BEFORE_FILES, StreamOffset
from tests.support.errors import raises

OF_DELTA_SPARK = (
    '{"sourceVersion":1,"reservoirId":"a1","reservoirVersion":3,"index":7,"isStartingVersion":true}'
)


def parse(text: str) -> StreamOffset:
    return StreamOffset.parse(text, table_id="a1", path="/t")


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(OF_DELTA_SPARK), **fields})


def test_the_text_is_delta_sparks() -> None:
    offset = parse(OF_DELTA_SPARK)
    assert offset == StreamOffset("a1", 3, 7, is_initial=True)
    assert offset.json == OF_DELTA_SPARK
    assert parse(StreamOffset("a1", 4).json) == StreamOffset("a1", 4, BEFORE_FILES)


@pytest.mark.parametrize(("version", "index"), [(3, -100), (3, -20), (3, -19), (1, -1)])
def test_marks_before_the_first_file(version: int, index: int) -> None:
    """delta-spark marks places of schema changes; all files of the version come after them."""
    found = parse(changed(sourceVersion=version, index=index, isStartingVersion=False))
    assert (found.version, found.index) == (3, BEFORE_FILES)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("7", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("[" * 100_000, "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (
            '{"logOffset":3}',
            "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        ),
        (
            changed(index="x"),
            "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        ),
        (changed(sourceVersion=0), "DELTA_INVALID_SOURCE_VERSION"),
        (changed(sourceVersion=2), "DELTA_INVALID_SOURCE_VERSION"),
        (
            changed(sourceVersion=4),
            "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
        ),
        (
            changed(reservoirId="b"),
            "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        ),
    ],
)
def test_other_texts(text: str, error: str) -> None:
    with raises(error):
        parse(text)
