"""The bounds of a read of changes.

PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from sparkdelta.base.protocol.log_files import parse_log_file
from sparkdelta.base.protocol.table_properties import InCommitTimestamps
from sparkdelta.exceptions import (
    DeltaError,
    InvalidArgumentError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
)
from sparkdelta.table.log.change_range import ChangeBounds
from sparkdelta.table.log.commit_times import CommitHistory
from tests.support.errors import raises


class _Store:
    table_root = "file:/t"


def versions(**bounds: Any) -> tuple[int, int] | None:
    """The versions within bounds, of a log with versions 2 to 4, committed at 20, 30 and 40 seconds
    after midnight.
    """
    files = [
        parse_log_file(f"{v:020d}.json", size_bytes=1, modification_time_ms=v * 10_000)
        for v in (2, 3, 4)
    ]
    commits = [file for file in files if file is not None]
    without = InCommitTimestamps(enabled=False)
    # File times are known without a session.
    history = CommitHistory(cast("Any", None), cast("Any", _Store()), commits, without)
    return ChangeBounds(**bounds).versions(history)


def at(second: float) -> str:
    return f"1970-01-01 00:00:{second}"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"start_version": 2}, (2, 4)),
        ({"start_version": 3, "end_version": 3}, (3, 3)),
        ({"start_version": 3, "end_version": 99}, (3, 4)),
        ({"start_timestamp": at(20), "end_timestamp": at(30)}, (2, 3)),
        ({"start_timestamp": at(20.001), "end_timestamp": at(39.999)}, (3, 3)),
        ({"start_timestamp": at(1), "end_timestamp": at(59)}, (2, 4)),
        ({"start_timestamp": at(31), "end_timestamp": at(39)}, None),
        ({"start_version": 2, "end_timestamp": at(35)}, (2, 3)),
        ({"start_timestamp": at(25), "end_version": 4}, (3, 4)),
    ],
)
def test_inclusive_bounds(bounds: dict[str, Any], expected: tuple[int, int] | None) -> None:
    assert versions(**bounds) == expected


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"end_version": 3}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"start_version": 2, "start_timestamp": at(20)}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
        (
            {"start_version": 2, "end_version": 3, "end_timestamp": at(20)},
            "DELTA_MULTIPLE_CDC_BOUNDARY",
        ),
        ({"start_version": 4, "end_version": 3}, "DELTA_INVALID_CDC_RANGE"),
        ({"start_timestamp": at(39), "end_timestamp": at(31)}, "DELTA_INVALID_CDC_RANGE"),
        ({"start_timestamp": at(39), "end_timestamp": at(20)}, "DELTA_INVALID_CDC_RANGE"),
        ({"start_version": 5}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"start_timestamp": at(41)}, TimestampGreaterThanCommitError),
        ({"start_version": 2, "end_timestamp": at(19)}, TimestampEarlierThanCommitRetentionError),
        ({"start_timestamp": "yesterday"}, "DELTA_TIMESTAMP_INVALID"),
        ({"start_version": "2"}, InvalidArgumentError),
        ({"start_version": 2, "end_version": True}, InvalidArgumentError),
    ],
)
def test_refused_bounds(bounds: dict[str, Any], error: str | type[DeltaError]) -> None:
    with raises(error):
        versions(**bounds)
