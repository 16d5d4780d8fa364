"""Every golden table reads to the row, at every version, or is refused for the right reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import load_snapshot, read_delta
from sparkdelta.table.listing import line_reader as log_text
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from tests.golden.cases import GoldenCase, GoldenRead, golden_cases
from tests.golden.expected import comparable
from tests.support.distributed import distributed_scans
from tests.support.rows import assert_same_rows, parquet_rows, spark_rows
from tests.support.snapshots import keys, raised_by

CASES = golden_cases()
REFUSALS: dict[str, tuple[str, ...]] = {
    "truncated log": ("DELTA_VERSION_NOT_FOUND", "DELTA_TRUNCATED_TRANSACTION_LOG"),
    "missing data file": ("DELTA_FILE_NOT_FOUND",),
}


# What a reader may see otherwise, with the reason; COMPATIBILITY.md says more.
DIFFERENT_ON_PURPOSE = {"char-varchar": "read_delta returns CHAR as stored, delta-spark pads it"}

if pyspark.__version__.startswith("4.0."):
    DIFFERENT_ON_PURPOSE |= dict.fromkeys(
        ("variant", "variant-preview", "variant-shredded", "variant-shredded-stable"),
        "Spark 4.0's own Parquet reader fails on files with Parquet's variant annotation",
    )


def _name(case: GoldenCase) -> str:
    return case.name


def _parameters() -> list[Any]:
    """All cases; those with a feature that no case before has are not slow."""
    seen: set[str] = set()
    found = []
    for case in CASES:
        marks = [pytest.mark.slow] if case.features <= seen else []
        seen |= case.features
        found.append(pytest.param(case, id=case.name, marks=[pytest.mark.every_case, *marks]))
    return found


def test_there_are_golden_tables() -> None:
    assert len(CASES) >= 69


@pytest.mark.parametrize("case", _parameters())
def test_latest_version(
    spark: SparkSession, case: GoldenCase, request: pytest.FixtureRequest
) -> None:
    """The facts of the snapshot, and the last of its reads."""
    snapshot = load_snapshot(spark, str(case.table))
    _assert_facts(snapshot, case)
    read = case.reads[-1]
    assert read.version == case.latest
    _expect_difference(case, [read], request)
    columns = list(read.columns) if read.columns else None
    _assert_read(read, lambda: snapshot.scan(columns=columns).to_df())


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_other_reads(spark: SparkSession, case: GoldenCase, request: pytest.FixtureRequest) -> None:
    _expect_difference(case, case.reads[:-1], request)
    wrong = []
    for read in case.reads[:-1]:
        columns = list(read.columns) if read.columns else None
        options: dict[str, Any] = {"version": read.version, "columns": columns}
        try:
            _assert_read(read, lambda o=options: read_delta(spark, str(case.table), **o))
        except AssertionError as error:
            wrong.append(f"version {read.version}, columns {columns}: {error}")
    assert not wrong, "\n".join(wrong)


def _expect_difference(
    case: GoldenCase, reads: Sequence[GoldenRead], request: pytest.FixtureRequest
) -> None:
    if case.name in DIFFERENT_ON_PURPOSE and any(read.num_rows for read in reads):
        reason = DIFFERENT_ON_PURPOSE[case.name]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def _assert_read(read: GoldenRead, rows: Callable[[], DataFrame]) -> None:
    if read.expect_error is not None:
        error = raised_by(lambda: rows().collect())
        assert error.getCondition() in REFUSALS[read.expect_error]
        return
    assert read.rows_file is not None
    expected = parquet_rows(read.rows_file)
    assert expected.num_rows == read.num_rows
    assert_same_rows(comparable(rows()), expected)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_last_rows_of_a_distributed_scan(spark: SparkSession, case: GoldenCase) -> None:
    """A distributed scan returns the columns, types and rows that Spark's own reader does."""
    read = case.reads[-1]
    ours = _distributed_read(spark, case, read)
    if ours is not None:
        columns = list(read.columns) if read.columns else None
        native = read_delta(spark, str(case.table), version=read.version, columns=columns)
        assert ours.schema == native.schema


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_all_rows_of_a_distributed_scan(spark: SparkSession, case: GoldenCase) -> None:
    for read in case.reads:
        _distributed_read(spark, case, read)


def _distributed_read(spark: SparkSession, case: GoldenCase, read: GoldenRead) -> DataFrame | None:
    columns = list(read.columns) if read.columns else None

    def scan() -> DataFrame:
        return read_delta(spark, str(case.table), version=read.version, columns=columns)

    with distributed_scans():
        if read.expect_error is not None:
            error = raised_by(lambda: scan().collect())
            assert error.getCondition() in REFUSALS[read.expect_error]
            return None
        ours = scan()
    if case.name in DIFFERENT_ON_PURPOSE:
        assert_same_rows(comparable(ours), spark_rows(comparable(scan())))
    else:
        assert read.rows_file is not None
        assert_same_rows(comparable(ours), parquet_rows(read.rows_file))
    return ours


def _assert_facts(snapshot: Snapshot, case: GoldenCase) -> None:
    reader, writer, *features = case.facts["protocol"]
    assert snapshot.version == case.latest
    assert list(snapshot.metadata.partition_columns) == case.facts["partition_columns"]
    assert snapshot.add_files().count() == case.facts["num_files"]
    assert snapshot.protocol.min_reader_version == reader
    assert snapshot.protocol.min_writer_version == writer
    if writer == 7:
        named = {*(snapshot.protocol.reader_features or ()), *snapshot.protocol.writer_features}
        assert named == set(features)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_who_reads_the_log_does_not_matter(
    spark: SparkSession, case: GoldenCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version checksum is left out: it would give protocol and metaData to both."""
    checksum = f"{case.latest:020d}.crc"
    found = []
    for limit in (1 << 40, -1):
        for bound in ("DRIVER_LOG_BYTES", "DRIVER_SCAN_BYTES"):
            monkeypatch.setattr(log_text, bound, limit)
        snapshot = open_snapshot(spark, str(case.table), without=[checksum])
        assert snapshot.log.commits.is_local == (limit > 0)
        found.append((snapshot.protocol, snapshot.metadata, keys(snapshot.add_files())))
    by_driver, by_executors = found
    assert by_executors == by_driver


@pytest.mark.parametrize(
    "case", [case for case in CASES if "commit_timestamps" in case.facts], ids=_name
)
def test_time_travel_by_in_commit_timestamp(spark: SparkSession, case: GoldenCase) -> None:
    """Versions have the timestamps within commits, which survive a copy; file times do not."""
    for version, milliseconds in case.facts["commit_timestamps"].items():
        assert (
            load_snapshot(spark, str(case.table), version=int(version)).timestamp_ms == milliseconds
        )


def test_no_file_is_a_leftover_of_the_local_file_system() -> None:
    tables = Path(__file__).parent / "tables"
    assert not list(tables.rglob(".*.crc"))
    assert not [path for path in tables.rglob("*") if path.is_symlink()]
