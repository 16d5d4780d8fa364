"""Days of the calendar of Spark 2 against a walk through both calendars, day by day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import numpy as np
import pytest

from sparkdelta.base.parquet.legacy_calendar_workers import (
    Calendars,
    NotConvertibleError,
    calendars,
    rebased_days,
    rebased_micros,
)

_EPOCH = dt.date(1970, 1, 1)
_DAY = 86_400_000_000
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _julian_dates() -> Iterator[tuple[int, int, int]]:
    """Dates of the Julian calendar from 0001-01-01 on."""
    for year in range(1, 1583):
        for month, length in enumerate(_LENGTHS, 1):
            for day in range(1, length + 1 + (month == 2 and year % 4 == 0)):
                yield year, month, day


def test_every_day_shows_the_date_that_it_showed() -> None:
    last = (dt.date(1582, 10, 15) - _EPOCH).days - 1
    dates = [date for date in _julian_dates() if date <= (1582, 10, 4)]
    days = np.arange(last + 1 - len(dates), last + 1)
    rebased = rebased_days(days).tolist()
    for (year, month, day), found in zip(dates, rebased, strict=True):
        # 1000-02-29 is no date of the new calendar: the day after the 28th.
        wanted = (dt.date(year, month, 1) - _EPOCH).days + day - 1
        assert found == wanted, (year, month, day)


def test_later_days_stay() -> None:
    days = np.array([-141_427, 0, 20_000])
    assert rebased_days(days).tolist() == days.tolist()


def test_moments_in_utc_keep_their_time_of_day() -> None:
    micros = np.array([-141_428 * _DAY + 1, -141_427 * _DAY, 5, -719_164 * _DAY - 1])
    rebased = rebased_micros(micros, "UTC")
    assert (rebased % _DAY == micros % _DAY).all()
    assert (rebased // _DAY == rebased_days(micros // _DAY)).all()


@pytest.mark.parametrize("zone", ["America/New_York", None])
def test_other_zones_only_since_1900(zone: str | None) -> None:
    start = (dt.date(1900, 1, 1) - _EPOCH).days * _DAY
    assert rebased_micros(np.array([start, 0]), zone).tolist() == [start, 0]
    assert rebased_micros(np.array([], np.int64), zone).tolist() == []
    with pytest.raises(NotConvertibleError):
        rebased_micros(np.array([start - 1, 0]), zone)


@pytest.mark.parametrize(
    ("footer", "wanted"),
    [
        (None, Calendars()),
        ({}, Calendars()),
        ({"version": "2.4.8"}, Calendars(dates=True, int96=True)),
        ({"version": "3.0.3"}, Calendars(dates=False, int96=True)),
        ({"version": "3.1.0"}, Calendars()),
        ({"version": "4.2.0", "legacyDateTime": ""}, Calendars(dates=True)),
        (
            {"version": "4.2.0", "legacyINT96": "", "timeZone": "UTC"},
            Calendars(int96=True, zone="UTC"),
        ),
        ({"legacyDateTime": "", "legacyINT96": ""}, Calendars()),
    ],
)  # fmt: skip
def test_footers(footer: dict[str, str] | None, wanted: Calendars) -> None:
    metadata = footer and {f"org.apache.spark.{k}".encode(): v.encode() for k, v in footer.items()}
    found = calendars(metadata)
    assert (found.dates, found.int96) == (wanted.dates, wanted.int96)
    assert wanted.zone is None or found.zone == wanted.zone
