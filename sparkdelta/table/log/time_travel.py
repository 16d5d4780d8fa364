"""Time travel: the version of a table that was the latest at a moment.

References
----------
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.exceptions import (
    DeltaError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
)
from sparkdelta.table.listing.listing import list_log_files, open_log
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_times import (
    CommitHistory,
    commit_timestamp,
    file_times,
    in_commit_timestamp,
)
from sparkdelta.table.log.commit_timestamp_rules import (
    strictly_increasing,
    utc_datetime,
)
from sparkdelta.table.log.loading import load_log

_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?"
)


def timestamp_ms(value: str | datetime | date) -> int:
    """Convert a moment to milliseconds since the epoch.

    Without a zone it is UTC; a date is its midnight.

    Examples
    --------
    >>> timestamp_ms("1970-01-01 00:00:01.5"), timestamp_ms("1970-01-01T01:00:00+01:00")
    (1500, 0)
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    moment = value if isinstance(value, datetime) else _parse(value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def _parse(text: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise DeltaError.of("DELTA_TIMESTAMP_INVALID", value=f"'{text}'")
    year, month, day = map(int, match["date"].split("-"))
    micros = int((match["fraction"] or "0").ljust(6, "0")[:6])
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    zone, offset = match["zone"], timedelta(0)
    if zone not in (None, "Z", "UTC"):
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        offset = -offset if zone[0] == "-" else offset
    try:
        return datetime(year, month, day, hour, minute, second, micros, timezone(offset))
    except ValueError as error:  # an offset of a day or more, too
        raise DeltaError.of("DELTA_TIMESTAMP_INVALID", value=f"'{text}'") from error


def version_at_timestamp(
    spark: SparkSession, path: str, timestamp: str | datetime | date
) -> Version:
    """Find the version that was the latest at a moment."""
    moment = timestamp_ms(timestamp)
    store = open_log(spark, path)
    loaded = load_log(spark, store, None, {})
    in_commit = loaded.configuration.in_commit_timestamps
    latest = commit_timestamp(loaded.log, in_commit, loaded.checksum)
    version = loaded.log.segment.version
    listing = [file for file in list_log_files(store) if file.version <= version]
    commits = readable_commits(listing, path=store.table_root)
    if not commits:
        raise DeltaError.of("DELTA_NO_COMMITS_FOUND", path=store.table_root)
    history = CommitHistory(spark, store, commits, in_commit)
    inside, outside = history.by_kind_of_time()
    times = strictly_increasing(file_times(outside))
    if not inside and times:
        latest = times[-1][1]
    if latest is not None and moment > latest:
        raise TimestampGreaterThanCommitError(
            timestamp=timestamp, latest=utc_datetime(latest), path=store.table_root
        )
    newest = history.newest_at(moment)
    if newest is None:
        bound = in_commit.enablement_timestamp
        # File times of a copied table are those of the copy, after the in-commit timestamps.
        by_file = bool(times) and (not inside or bound is None or times[0][1] < bound)
        earliest = times[0][1] if by_file else in_commit_timestamp(spark, store, inside[0])
        raise TimestampEarlierThanCommitRetentionError(
            timestamp=timestamp, earliest=utc_datetime(earliest), path=store.table_root
        )
    return newest
