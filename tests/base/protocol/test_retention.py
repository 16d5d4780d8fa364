"""Intervals of table properties."""

from __future__ import annotations

import pytest

from sparkdelta.base.protocol.retention import (
    deleted_file_retention_ms,
    interval_ms,
    transaction_retention_ms,
)
from sparkdelta.exceptions import InvalidArgumentError

DAY = 24 * 3_600_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("interval 1 week", 7 * DAY),
        ("INTERVAL 30 DAYS", 30 * DAY),
        ("2 weeks 3 days", 17 * DAY),
        ("interval 36 hours 30 minutes", 36 * 3_600_000 + 30 * 60_000),
        ("interval 1.5 seconds", 1_500),
        ("interval 7 milliseconds", 7),
        ("interval 2000 microseconds", 2),
        ("interval 0 hours", 0),
    ],
)
def test_intervals(text: str, wanted: int) -> None:
    assert interval_ms("p", text) == wanted


@pytest.mark.parametrize(
    "text", ["", "interval", "1 month", "interval 1 year", "7", "week", "1 week x", "-1 day"]
)
def test_malformed_intervals_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        interval_ms("delta.x", text)
    assert raised.value.argument == "delta.x"


def test_tombstones_are_kept_for_a_week_by_default() -> None:
    """PROTOCOL.md#checkpoints"""
    assert deleted_file_retention_ms({}) == 7 * DAY
    one_day = {"delta.deletedFileRetentionDuration": "interval 1 day"}
    assert deleted_file_retention_ms(one_day) == DAY


def test_transactions_are_kept_for_ever_by_default() -> None:
    assert transaction_retention_ms({}) is None
    one_day = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    assert transaction_retention_ms(one_day) == DAY
