"""Dates and timestamps of files that were written in the calendar of Spark 2.

Up to 1582-10-04 that calendar is the Julian one, which Spark's types do not know: a stored day
stands for another date than its number says. The footer tells such files.

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
# Spark compares versions as texts.
_FIRST_WITH_NEW_DATES = b"3.0.0"
_FIRST_WITH_NEW_INT96 = b"3.1.0"

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu")
_GREGORIAN_FROM = -141_427  # 1582-10-15, in days since the epoch
_DAY_MICROS = 86_400_000_000
_SAME_IN_ALL_ZONES_FROM = -2_208_988_800_000_000  # 1900-01-01, in microseconds


class NotConvertibleError(ValueError):
    """Why values of a data file cannot be turned into those of the table exactly."""

    column: str = "of any name"


@dataclass(frozen=True, slots=True)
class Calendars:
    """What of a file is in the old calendar.

    Attributes
    ----------
    dates
        Whether dates are, and timestamps other than INT96.
    int96
        Whether INT96 timestamps are.
    zone
        The time zone in which timestamps were turned into numbers.
    """

    dates: bool = False
    int96: bool = False
    zone: str | None = None


def calendars(metadata: Mapping[bytes, bytes] | None) -> Calendars:
    """The calendars of a file, from the key-value metadata of its footer.

    Files that no Spark has written follow the new calendar, as Spark assumes where it is told
    CORRECTED.
    """
    known = metadata or {}
    version = known.get(_VERSION)
    if version is None:
        return Calendars()
    zone = known.get(_ZONE)
    return Calendars(
        dates=version < _FIRST_WITH_NEW_DATES or _LEGACY_DATES in known,
        int96=version < _FIRST_WITH_NEW_INT96 or _LEGACY_INT96 in known,
        zone=None if zone is None else zone.decode(),
    )


def rebased_days(days: Integers) -> Integers:
    """Days since the epoch that show the date which these days show in the old calendar.

    A date that is none in the new calendar, as 1000-02-29, becomes the day after the last one
    before it.
    """
    old = days < _GREGORIAN_FROM
    if not old.any():
        return days
    rebased: Integers = days.copy()
    year, month, day = _julian_date(days[old])
    rebased[old] = _gregorian_days(year, month) + day - 1
    return rebased


def rebased_micros(micros: Integers, zone: str | None) -> Integers:
    """As `rebased_days`, for microseconds since the epoch.

    Raises
    ------
    NotConvertibleError
        There are moments before 1900 and the zone is not UTC: what they show depends on the zone's
        rules as the writer's Java knew them.
    """
    if zone in _UTC:
        day, time = np.divmod(micros, _DAY_MICROS)
        rebased: Integers = rebased_days(day) * _DAY_MICROS + time
        return rebased
    if micros.size and micros.min() < _SAME_IN_ALL_ZONES_FROM:
        raise NotConvertibleError(
            "it contains timestamps before 1900 written with Spark 2's hybrid calendar in time "
            f"zone {zone or 'unknown'}"
        )
    return micros


def _julian_date(days: Integers) -> tuple[Integers, Integers, Integers]:
    # Years are counted from March of 4801 BC, so that a leap day is the last day of its year.
    since = days + 2_440_588 + 32_082
    year = (4 * since + 3) // 1461
    day_of_year = since - 1461 * year // 4
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return year - 4800 + month // 10, month + 3 - 12 * (month // 10), day


def _gregorian_days(year: Integers, month: Integers) -> Integers:
    """The first day of a month."""
    before_march = (14 - month) // 12
    years = year + 4800 - before_march
    months = month + 12 * before_march - 3
    days = (153 * months + 2) // 5 + 365 * years + years // 4 - years // 100 + years // 400
    first: Integers = days + 1 - 32_045 - 2_440_588
    return first
