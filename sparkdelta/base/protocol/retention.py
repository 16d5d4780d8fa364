"""Retention periods of tombstones, transaction identifiers and log files.

References
----------
PROTOCOL.md#checkpoints-1, PROTOCOL.md#action-reconciliation, PROTOCOL.md#checkpoints,
PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkdelta.exceptions import InvalidArgumentError

DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
TRUNCATED_HISTORY_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"

_UNITS_MS = {
    "week": 7 * 24 * 3_600_000,
    "day": 24 * 3_600_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
    "microsecond": 0.001,
}
_PART = re.compile(
    r"\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s+(?P<unit>" + "|".join(_UNITS_MS) + r")s?\b", re.IGNORECASE
)


def interval_ms(name: str, text: str) -> int:
    """Parse an interval of the table property `name` and return its length in milliseconds.

    Months and years are refused, because their length varies.
    """
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total, position = 0.0, 0
    while part := _PART.match(rest, position):
        total += float(part["number"]) * _UNITS_MS[part["unit"].lower()]
        position = part.end()
    if not position or rest[position:].strip() or total < 0:
        problem = f"{text!r} is not an interval of weeks, days, hours, minutes or seconds"
        error = InvalidArgumentError(argument=name, problem=problem)
        raise error.named("DELTA_INVALID_INTERVAL", interval=text)
    return int(total)


def deleted_file_retention_ms(configuration: Mapping[str, str]) -> int:
    """Return the retention period of tombstones in milliseconds, by default a week."""
    text = configuration.get(DELETED_FILE_RETENTION, "interval 1 week")
    return interval_ms(DELETED_FILE_RETENTION, text)


def transaction_retention_ms(configuration: Mapping[str, str]) -> int | None:
    """Return the retention period of transaction identifiers in milliseconds; None if unlimited.

    It begins with the last update.
    """
    text = configuration.get(SET_TRANSACTION_RETENTION)
    return None if text is None else interval_ms(SET_TRANSACTION_RETENTION, text)


def log_retention_ms(configuration: Mapping[str, str]) -> int:
    """Return the retention period of log files in milliseconds."""
    return interval_ms(LOG_RETENTION, log_retention(configuration))


def log_retention(configuration: Mapping[str, str]) -> str:
    """Return the retention period of log files, by default 30 days."""
    return configuration.get(LOG_RETENTION, "interval 30 days")


def truncated_history_retention_ms(configuration: Mapping[str, str]) -> int:
    """Return the period of `truncated_history_retention` in milliseconds."""
    return interval_ms(TRUNCATED_HISTORY_RETENTION, truncated_history_retention(configuration))


def truncated_history_retention(configuration: Mapping[str, str]) -> str:
    """Return the retention period of log files where a dropped feature truncates the history.

    It is a day by default: no transaction may take longer.
    """
    return configuration.get(TRUNCATED_HISTORY_RETENTION, "interval 24 hours")
