"""Versions by time, with the protocol's rules."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot
from sparkdelta.exceptions import (
    InvalidArgumentError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
)
from sparkdelta.table.log import commit_times
from sparkdelta.table.log.time_travel import timestamp_ms
from tests.support.errors import raises
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.spark_jobs import no_jobs
from tests.support.table_builder import add, metadata, protocol

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
START = 1_700_000_000_000


def at(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=START + milliseconds)


def version(spark: SparkSession, table: Path, milliseconds: int) -> int:
    return load_snapshot(spark, str(table), timestamp=at(milliseconds)).version


def by_files(table: Path, *times: int) -> None:
    for number, time in enumerate(times):
        actions = [protocol(), metadata()] if number == 0 else [add(f"f{number}")]
        write_commit(table, number, actions, time_ms=START + time)


class TestFileTimes:
    """PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps"""

    def test_the_latest_version_then(self, spark: SparkSession, table: Path) -> None:
        by_files(table, 0, 1000, 2000)
        assert [version(spark, table, t) for t in (0, 999, 1000, 1500, 2000)] == [0, 0, 1, 1, 2]

    @pytest.mark.parametrize(
        ("times", "found"),
        [((0, 0, 0), {0: 0, 1: 1, 2: 2}), ((100, 50, 60, 200), {100: 0, 101: 1, 102: 2, 200: 3})],
    )
    def test_times_are_made_strictly_increasing(
        self, spark: SparkSession, table: Path, times: tuple[int, ...], found: dict[int, int]
    ) -> None:
        by_files(table, *times)
        assert {t: version(spark, table, t) for t in found} == found

    def test_before_the_first(self, spark: SparkSession, table: Path) -> None:
        by_files(table, 0, 1000)
        with pytest.raises(TimestampEarlierThanCommitRetentionError) as raised:
            version(spark, table, -1)
        assert raised.value.earliest == at(0)

    def test_after_the_last(self, spark: SparkSession, table: Path) -> None:
        by_files(table, 0, 1000)
        with pytest.raises(TimestampGreaterThanCommitError) as raised:
            version(spark, table, 1001)
        assert raised.value.latest == at(1000)

    def test_commits_that_cannot_be_read_any_more(self, spark: SparkSession, table: Path) -> None:
        by_files(table, 0, 1000, 2000, 3000)
        write_checkpoint(table, 2, [protocol(), metadata(), add("f1"), add("f2")])
        for number in (0, 1):
            (table / "_delta_log" / f"{number:020d}.json").unlink()
        assert version(spark, table, 2500) == 2
        with pytest.raises(TimestampEarlierThanCommitRetentionError):
            version(spark, table, 1500)

    def test_without_a_job(self, spark: SparkSession, table: Path) -> None:
        by_files(table, 0, 1000)
        with no_jobs(spark):
            version(spark, table, 10)


def _info(time: int | None) -> dict[str, Any]:
    known = {} if time is None else {"inCommitTimestamp": START + time}
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE", **known}}


def in_commit(
    table: Path, *times: int | None, enabled_at: int | None = None, copied_at: int = 0
) -> None:
    """Commits with these in-commit timestamps and file times that say something else."""
    configuration = {"delta.enableInCommitTimestamps": "true"}
    if enabled_at is not None:
        configuration |= {
            "delta.inCommitTimestampEnablementVersion": str(enabled_at),
            "delta.inCommitTimestampEnablementTimestamp": str(START + (times[enabled_at] or 0)),
        }
    first = [protocol(features=["inCommitTimestamp"]), metadata()]
    for number, time in enumerate(times):
        actions = [_info(time), *(first if number == 0 else [])]
        if number == (enabled_at or 0):
            actions.append(metadata(configuration=configuration))
        actions = actions if enabled_at or number else [_info(time), first[0], actions[-1]]
        write_commit(table, number, actions, time_ms=START + copied_at + number * 10)


class TestInCommitTimestamps:
    """PROTOCOL.md#in-commit-timestamps"""

    @pytest.mark.full
    def test_enabled_from_the_start(self, spark: SparkSession, table: Path) -> None:
        in_commit(table, 5000, 6000, 7000, 8000)
        times = (5000, 5999, 6000, 7500, 8000)
        assert [version(spark, table, t) for t in times] == [0, 0, 1, 2, 3]
        snapshot = load_snapshot(spark, str(table))
        assert "timestamp" not in repr(snapshot)  # the commit would have to be read
        assert snapshot.timestamp_ms == START + 8000
        assert snapshot.timestamp == at(8000)
        assert "timestamp=2023-11-14T22:13:28.000Z" in repr(snapshot)
        with pytest.raises(TimestampEarlierThanCommitRetentionError) as early:
            version(spark, table, 4999)
        assert early.value.earliest == at(5000)
        with pytest.raises(TimestampGreaterThanCommitError) as late:
            version(spark, table, 8001)
        assert late.value.latest == at(8000)

    @pytest.mark.full
    def test_enabled_later(self, spark: SparkSession, table: Path) -> None:
        """Before the enablement, file times count; from it on, in-commit timestamps."""
        in_commit(table, None, None, 5000, 6000, enabled_at=2)
        times = (0, 9, 10, 4999, 5000, 5999, 6000)
        assert [version(spark, table, t) for t in times] == [0, 0, 1, 1, 2, 2, 3]
        assert load_snapshot(spark, str(table), version=1).timestamp_ms == START + 10
        assert load_snapshot(spark, str(table), version=2).timestamp_ms == START + 5000

    def test_enabled_later_in_a_copied_table(self, spark: SparkSession, table: Path) -> None:
        """File times are those of the copy: no moment leads to the versions that go by them."""
        in_commit(table, None, None, 5000, 6000, enabled_at=2, copied_at=90_000)
        with pytest.raises(TimestampEarlierThanCommitRetentionError) as early:
            version(spark, table, 4999)
        assert early.value.earliest == at(5000)
        assert load_snapshot(spark, str(table), timestamp=early.value.earliest).version == 2

    def test_a_property_without_its_feature_counts_for_nothing(
        self, spark: SparkSession, table: Path
    ) -> None:
        """PROTOCOL.md#active-features"""
        enabled = metadata(configuration={"delta.enableInCommitTimestamps": "true"})
        write_commit(table, 0, [_info(9999), protocol(), enabled], time_ms=START)
        assert load_snapshot(spark, str(table)).timestamp_ms == START

    def test_a_commit_without_one(self, spark: SparkSession, table: Path) -> None:
        in_commit(table, 5000, None)
        with raises("DELTA_MISSING_COMMIT_TIMESTAMP") as raised:
            _ = load_snapshot(spark, str(table)).timestamp
        assert raised.value.version == 1

    def test_one_that_is_not_in_the_first_line(self, spark: SparkSession, table: Path) -> None:
        """Against the protocol, and there all the same."""
        in_commit(table, 5000)
        write_commit(table, 1, [add("f"), _info(6000)])
        assert load_snapshot(spark, str(table)).timestamp_ms == START + 6000

    def test_of_a_large_commit_the_first_line_is_read(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_commit(table, 5000, 6000)
        monkeypatch.setattr(commit_times, "read_lines", None)
        assert version(spark, table, 5500) == 0

    def test_a_commit_without_a_commit_info(self, spark: SparkSession, table: Path) -> None:
        in_commit(table, 5000)
        write_commit(table, 1, [add("f")])
        with raises("DELTA_MISSING_COMMIT_INFO") as raised:
            _ = load_snapshot(spark, str(table)).timestamp
        assert raised.value.version == 1


@pytest.mark.parametrize(
    "text",
    ["2023-11-14T22:13:20Z", "2023-11-14 22:13:20", "2023-11-15T00:13:20+02:00",
     "2023-11-14T22:13:20.000", "2023-11-14 22:13:20 UTC", "2023-11-14 22:13:20.000000 +0000"],
)  # fmt: skip
def test_texts(spark: SparkSession, table: Path, text: str) -> None:
    by_files(table, -1, 0, 1)
    assert load_snapshot(spark, str(table), timestamp=text).version == 1


def test_a_moment_without_a_zone_is_utc(spark: SparkSession, table: Path) -> None:
    by_files(table, -1, 0, 1)
    naive = datetime(2023, 11, 14, 22, 13, 20)
    assert load_snapshot(spark, str(table), timestamp=naive).version == 1


def test_a_date_is_its_midnight_in_utc() -> None:
    assert timestamp_ms(date(2000, 1, 1)) == timestamp_ms("2000-01-01") == 946_684_800_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0001-01-01T00:00:00+18:00", -62_135_661_600_000),
     ("9999-12-31T23:59:59-18:00", 253_402_365_599_000)],
)  # fmt: skip
def test_a_moment_beyond_the_years_of_python(text: str, milliseconds: int) -> None:
    assert timestamp_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2023-13-01", "1700000000", "2023-11-14T25:00:00",
     "2023-11-14T22:13:20+24:00"],
)  # fmt: skip
def test_invalid_timestamps_are_refused(spark: SparkSession, table: Path, text: str) -> None:
    by_files(table, 0)
    with raises("DELTA_TIMESTAMP_INVALID"):
        load_snapshot(spark, str(table), timestamp=text)


def test_arguments(spark: SparkSession, table: Path) -> None:
    by_files(table, 0)
    with raises("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"):
        load_snapshot(spark, str(table), version=0, timestamp="2023-11-14")
    for wrong in ("0", 0.0, True):
        with pytest.raises(InvalidArgumentError):
            load_snapshot(spark, str(table), version=wrong)  # type: ignore[arg-type]
