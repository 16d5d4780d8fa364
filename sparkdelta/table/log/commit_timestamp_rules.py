"""Timestamps of commits, and the latest version at a given time.

References
----------
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from sparkdelta.base.protocol.log_files import Version


def utc_datetime(timestamp_ms: int) -> datetime:
    """Convert milliseconds since the epoch to a timezone-aware datetime in UTC.

    Examples
    --------
    >>> utc_datetime(1500).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)


def strictly_increasing(pairs: Sequence[tuple[Version, int]]) -> list[tuple[Version, int]]:
    """Adjust modification times so that each is at least 1 ms after the previous one.

    Modification times of commit files can decrease because of clock skew or copying; delta-spark
    corrects them in the same way.

    Examples
    --------
    >>> strictly_increasing([(0, 10), (1, 5), (2, 11), (3, 20)])
    [(0, 10), (1, 11), (2, 12), (3, 20)]
    """
    adjusted: list[tuple[Version, int]] = []
    for version, timestamp in pairs:
        earliest = adjusted[-1][1] + 1 if adjusted else timestamp
        adjusted.append((version, max(timestamp, earliest)))
    return adjusted


def version_at_or_before(pairs: Sequence[tuple[Version, int]], timestamp_ms: int) -> Version | None:
    """Return the last version committed at or before a time, or None if all are later."""
    index = bisect_right([timestamp for _, timestamp in pairs], timestamp_ms)
    return pairs[index - 1][0] if index else None


def next_in_commit_timestamp(now_ms: int, previous_ms: int | None) -> int:
    """Return the in-commit timestamp for a commit that is attempted now.

    Parameters
    ----------
    previous_ms
        The in-commit timestamp of the previous commit, or the modification time of its file if it
        has none; None for the first commit of a table.

    Examples
    --------
    >>> next_in_commit_timestamp(100, 90), next_in_commit_timestamp(100, 100)
    (100, 101)
    """
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
