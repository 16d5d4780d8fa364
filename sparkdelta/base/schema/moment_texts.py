"""SQL that formats dates and timestamps alike under any settings of the sessions that analyze and
run it.

Spark's own casts and functions depend on more than the value: CAST of a TIMESTAMP on the time zone
of the session that analyzes it; CAST of a DATE, `to_csv`, `to_json` and `date_format` on
``spark.sql.legacy.timeParserPolicy`` of the session that runs it. With ``LEGACY`` that one turns
5 to 14 October 1582 into the 15th.

References
----------
PROTOCOL.md#partition-value-serialization, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def date_text(value: str) -> str:
    """Return SQL for a DATE as text, ``yyyy-MM-dd``; years outside of 0 to 9999 have a sign."""
    year, month, day = (f"{part}({value})" for part in ("year", "month", "day"))
    return (
        f"concat(IF({year} BETWEEN 0 AND 9999, lpad(CAST({year} AS STRING), 4, '0'), "
        f"format_string('%+05d', {year})), '-', lpad(CAST({month} AS STRING), 2, '0'), '-', "
        f"lpad(CAST({day} AS STRING), 2, '0'))"
    )


def in_utc(value: str) -> str:
    """Return SQL for the date and time of a TIMESTAMP in UTC, a TIMESTAMP_NTZ."""
    return f"timestampadd(MICROSECOND, unix_micros({value}), {_EPOCH})"


def time_text(value: str) -> str:
    """Return SQL for a TIMESTAMP_NTZ as text, ``yyyy-MM-dd HH:mm:ss.SSSSSS``."""
    text = f"CAST({value} AS STRING)"  # without fraction, or trailing zeros of it
    return f"concat(split_part({text}, '.', 1), '.', rpad(split_part({text}, '.', 2), 6, '0'))"
