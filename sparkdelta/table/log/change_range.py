"""Versions whose changes are read, from the bounds that a user gives.

References
----------
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sparkdelta.base.protocol.arguments import checked_version
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.exceptions import (
    DeltaError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
)
from sparkdelta.table.log.commit_times import CommitHistory
from sparkdelta.table.log.commit_timestamp_rules import utc_datetime
from sparkdelta.table.log.time_travel import timestamp_ms

Moment = str | datetime | date


@dataclass(frozen=True, slots=True)
class ChangeBounds:
    """The bounds of a read of changes, both inclusive, each a version or a time.

    The constructor validates them.
    """

    start_version: Version | None = None
    end_version: Version | None = None
    start_timestamp: Moment | None = None
    end_timestamp: Moment | None = None

    def __post_init__(self) -> None:
        for bound, version, moment in (
            ("start", self.start_version, self.start_timestamp),
            ("end", self.end_version, self.end_timestamp),
        ):
            if version is not None and moment is not None:
                raise DeltaError.of("DELTA_MULTIPLE_CDC_BOUNDARY", bound=bound)
            checked_version(version, f"{bound}_version")
            if moment is not None:
                timestamp_ms(moment)
        if self.start_version is None and self.start_timestamp is None:
            raise DeltaError.of("DELTA_NO_START_FOR_CDC_READ")

    def versions(self, history: CommitHistory) -> tuple[Version, Version] | None:
        """Find the first and the last version; None if both bounds are times between two commits.

        An end after the latest version means the latest version.
        """
        path, latest = history.store.table_root, history.commits[-1].version

        if self.start_timestamp is not None:
            start = first_version_at(history, self.start_timestamp)
        else:
            assert self.start_version is not None
            start = self.start_version
            if start > latest:
                raise DeltaError.of(
                    "DELTA_CDC_START_VERSION_AFTER_LATEST", path=path, start=start, latest=latest
                )
        if self.end_timestamp is not None:
            version = history.newest_at(timestamp_ms(self.end_timestamp))
            if version is None:
                raise TimestampEarlierThanCommitRetentionError(
                    timestamp=self.end_timestamp,
                    earliest=utc_datetime(history.timestamp(0)),
                    path=path,
                )
            end = version
            if self.start_timestamp is not None and end == start - 1:
                in_order = timestamp_ms(self.start_timestamp) <= timestamp_ms(self.end_timestamp)
                if in_order:
                    return None
        else:
            end = latest if self.end_version is None else self.end_version
        if end < start:
            raise DeltaError.of("DELTA_INVALID_CDC_RANGE", path=path, start=start, end=end)
        return start, min(end, latest)


def first_version_at(history: CommitHistory, moment: Moment) -> Version:
    """Find the first version at or after a moment."""
    before = history.newest_at(timestamp_ms(moment) - 1)
    start = history.commits[0].version if before is None else before + 1
    if start > history.commits[-1].version:
        raise TimestampGreaterThanCommitError(
            timestamp=moment,
            latest=utc_datetime(history.timestamp(-1)),
            path=history.store.table_root,
        )
    return start
