"""Rebasing of dates and timestamps in files that Spark 2 wrote with the hybrid calendar.

The hybrid calendar is Julian up to 1582-10-04, so that the same number of days is another date than
in the proleptic Gregorian calendar. Such files are recognized by metadata in their footers.

References
----------
PROTOCOL.md#delta-data-type-to-parquet-type-mappings
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_VERSION = b"org.apache.spark.version"
_ZONE = b"org.apache.spark.timeZone"
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
# Spark compares versions as strings.
_FIRST_WITH_NEW_DATES = b"3.0.0"
_FIRST_WITH_NEW_INT96 = b"3.1.0"

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu")
_GREGORIAN_FROM = -141_427  # 1582-10-15, in days since the epoch
DAY_MICROS = 86_400_000_000
_SAME_IN_ALL_ZONES_FROM = -2_208_988_800_000_000  # 1900-01-01, in microseconds


class NotConvertibleError(ValueError):
    """The error for values of a data file that cannot be converted exactly to a table's types.

    Attributes
    ----------
    column
        The name of the column, once known.
    """

    column: str = "of any name"


@dataclass(frozen=True, slots=True)
class Calendars:
    """The use of the hybrid calendar in a file.

    Attributes
    ----------
    dates
        True if dates, and timestamps other than INT96, are in the hybrid calendar.
    int96
        True if INT96 timestamps are in the hybrid calendar.
    zone
        The writer's time zone; None if unknown.
    """

    dates: bool = False
    int96: bool = False
    zone: str | None = None


def calendars(metadata: Mapping[bytes, bytes] | None) -> Calendars:
    """Return the calendars of a file, from the key-value metadata of its footer.

    Files that Spark did not write are in the proleptic Gregorian calendar, as in Spark's rebase
    mode CORRECTED.
    """
    entries = metadata or {}
    version = entries.get(_VERSION)
    if version is None:
        return Calendars()
    zone = entries.get(_ZONE)
    return Calendars(
        dates=version < _FIRST_WITH_NEW_DATES or _LEGACY_DATES in entries,
        int96=version < _FIRST_WITH_NEW_INT96 or _LEGACY_INT96 in entries,
        zone=None if zone is None else zone.decode(),
    )


def rebased_days(days: Integers) -> Integers:
    """Rebase days since the epoch from the hybrid to the proleptic Gregorian calendar.

    The result is the same date. A date that does not exist in the Gregorian calendar, such as
    1000-02-29, becomes the next day.
    """
    old = days < _GREGORIAN_FROM
    if not old.any():
        return days
    rebased: Integers = days.copy()
    year, month, day = _julian_date(days[old])
    rebased[old] = _gregorian_days(year, month) + day - 1
    return rebased


def rebased_micros(micros: Integers, zone: str | None) -> Integers:
    """Rebase microseconds since the epoch from the hybrid to the proleptic Gregorian calendar.

    Timestamps before 1900 in other zones than UTC are refused: their local time depends on the time
    zone rules of the writer's JVM.
    """
    if zone in _UTC:
        day, time = np.divmod(micros, DAY_MICROS)
        rebased: Integers = rebased_days(day) * DAY_MICROS + time
        return rebased
    if micros.size and np.min(micros) < _SAME_IN_ALL_ZONES_FROM:
        raise NotConvertibleError(
            "it contains timestamps before 1900 written with Spark 2's hybrid calendar in time "
            f"zone {zone or 'unknown'}"
        )
    return micros


def _julian_date(days: Integers) -> tuple[Integers, Integers, Integers]:
    # Years start in March, from 4801 BC, so that a leap day is the last day of its year.
    since = days + 2_440_588 + 32_082
    year = (4 * since + 3) // 1461
    day_of_year = since - 1461 * year // 4
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return year - 4800 + month // 10, month + 3 - 12 * (month // 10), day


def _gregorian_days(year: Integers, month: Integers) -> Integers:
    """Return the first day of a month, in days since the epoch."""
    before_march = (14 - month) // 12
    years = year + 4800 - before_march
    months = month + 12 * before_march - 3
    days = (153 * months + 2) // 5 + 365 * years + years // 4 - years // 100 + years // 400
    first: Integers = days + 1 - 32_045 - 2_440_588
    return first
