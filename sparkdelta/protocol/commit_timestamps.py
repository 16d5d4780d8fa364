"""The times of commits, and the version that was the latest at a time.

References
----------
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from sparkdelta.protocol.log_files import Version


def utc_datetime(timestamp_ms: int) -> datetime:
    """A time in milliseconds since the epoch as an aware datetime.

    Examples
    --------
    >>> utc_datetime(1500).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)


def strictly_increasing(pairs: Sequence[tuple[Version, int]]) -> list[tuple[Version, int]]:
    """Versions with their file times in milliseconds, each at least 1 ms after the one before.

    File times may go backwards, by clocks or by copying; delta-spark corrects them the same way.

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
    """The last version committed at or before a time; None if all came later.

    Parameters
    ----------
    pairs
        Versions with strictly increasing times.
    """
    index = bisect_right([timestamp for _, timestamp in pairs], timestamp_ms)
    return pairs[index - 1][0] if index else None


def next_in_commit_timestamp(now_ms: int, previous_ms: int | None) -> int:
    """The in-commit timestamp of a commit that is attempted now.

    Parameters
    ----------
    previous_ms
        That of the commit before; where it has none, its file's modification time; None for the
        first commit of a table.

    Examples
    --------
    >>> next_in_commit_timestamp(100, 90), next_in_commit_timestamp(100, 100)
    (100, 101)

    References
    ----------
    PROTOCOL.md#writer-requirements-for-in-commit-timestamps
    """
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
