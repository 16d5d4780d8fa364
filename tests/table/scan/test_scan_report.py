"""Tests of the report on the files that a scan reads, and of its cost."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import Snapshot, load_snapshot, write_checkpoint
from sparkdelta.base.skipping.file_mark_frames import (
    KEPT_BY_PARTITION_VALUES,
    KEPT_BY_STATISTICS,
    FileMarks,
)
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from sparkdelta.table.scan.scan_report import _NOT_COUNTED, _READ_ALL, FileCount, ScanReport
from tests.support.log_writer import write_checkpoint as write_classic_checkpoint
from tests.support.log_writer import write_checksum, write_commit
from tests.support.spark_jobs import counted_jobs, plan
from tests.support.table_builder import add, field, metadata, protocol, remove

DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
GENERATED = {"delta.generationExpression": "CAST(at AS DATE)"}
WHERE = "day = '2024-01-01' AND id > 70"


def _file(number: int) -> dict[str, Any]:
    """Ten ids and 1,000 bytes; its day is one of three in turn."""
    first = number * 10
    statistics = {
        "numRecords": 10,
        "minValues": {"id": first},
        "maxValues": {"id": first + 9},
        "nullCount": {"id": 0},
    }
    values = {"day": DAYS[number % 3]}
    return add(f"f{number}", partitionValues=values, size=1000, stats=json.dumps(statistics))


def _metadata() -> dict[str, Any]:
    columns = (field("id", "long"), field("name", "string"), field("at", "timestamp"))
    day = field("day", "date", metadata=GENERATED)
    return metadata(*columns, day, partitioned_by=["day"])


def _table(table: Path, *, checksum: bool = True, features: Sequence[str] = ()) -> Path:
    """Twelve files in a checkpoint; a commit after it adds one and removes one."""
    opening = [protocol(features=features) if features else protocol(1, 4), _metadata()]
    write_classic_checkpoint(table, 0, [*opening, *(_file(number) for number in range(12))])
    write_commit(table, 1, [_file(12), remove("f3")])
    if checksum:
        write_checksum(table, 1, {"numFiles": 12, "tableSizeBytes": 12_000})
    return table


@pytest.fixture(scope="module")
def snapshot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return load_snapshot(spark, str(_table(tmp_path_factory.mktemp("reports") / "table")))


def _counts(report: ScanReport) -> list[int | None]:
    steps = (
        report.snapshot, report.after_partition_values, report.after_statistics,
        report.after_row_filter,
    )  # fmt: skip
    assert all(step is None or step.size_bytes == step.files * 1000 for step in steps)
    return [None if step is None else step.files for step in steps]


# For each condition the files of each step, by report() and by report(full=True).
COUNTS: dict[str | None, tuple[list[int | None], list[int | None]]] = {
    WHERE: ([12, None, 2, None], [12, 4, 2, None]),
    "day = '2024-01-01'": ([12, 4, 4, None], [12, 4, 4, None]),
    "id > 70": ([12, 12, 6, None], [12, 12, 6, None]),
    "name LIKE '%x'": ([12, 12, 12, None], [12, 12, 12, None]),
    "id > 1000 AND day IS NULL": ([12, None, 0, None], [12, 0, 0, None]),
    "day = '2024-01-01' OR id > 110": ([12, 12, 5, None], [12, 12, 5, None]),
    None: ([12, 12, 12, 12], [12, 12, 12, 12]),
}


@pytest.mark.slow
def test_the_report_counts_files_after_each_step(snapshot: Snapshot) -> None:
    scans = {where: snapshot.scan(where) for where in COUNTS}
    found = {
        where: (_counts(scan.report()), _counts(scan.report(full=True)))
        for where, scan in scans.items()
    }
    assert found == COUNTS


def test_without_a_checksum_the_table_is_not_counted(spark: SparkSession, table: Path) -> None:
    snapshot = load_snapshot(spark, str(_table(table, checksum=False)))
    assert _counts(snapshot.scan("id > 70").report()) == [None, None, 6, None]
    assert _counts(snapshot.scan("name LIKE '%x'").report()) == [12, 12, 12, None]


@pytest.mark.full
def test_the_tags_of_a_checkpoint_tell_where_it_is_the_newest_of_the_log(
    spark: SparkSession, table: Path
) -> None:
    """PROTOCOL.md#sidecar-file-information"""
    _table(table, checksum=False, features=["v2Checkpoint"])
    write_checkpoint(spark, str(table), kind="v2-json", adds_per_sidecar=4)
    snapshot = load_snapshot(spark, str(table))
    assert _counts(snapshot.scan(WHERE).report()) == [12, None, 2, None]
    write_commit(table, 2, [_file(15)])
    assert _counts(snapshot.refresh().scan(WHERE).report()) == [None, None, 3, None]


@pytest.mark.full
def test_sidecars_that_do_not_say_how_large_their_files_are(
    spark: SparkSession, table: Path
) -> None:
    _table(table, checksum=False, features=["v2Checkpoint"])
    written = write_checkpoint(spark, str(table), kind="v2-json")
    (file,) = table.glob(f"_delta_log/{written.version:020}.checkpoint.*.json")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if "sidecar" in line:
            del line["sidecar"]["tags"]["sparkdelta.addBytes"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (table / "_delta_log" / "_last_checkpoint").unlink()  # it repeats the tags
    snapshot = load_snapshot(spark, str(table))
    assert _counts(snapshot.scan(WHERE).report()) == [None, None, 2, None]


@pytest.mark.full
def test_a_cached_snapshot_tells_the_same(spark: SparkSession, table: Path) -> None:
    _table(table)
    cached = load_snapshot(spark, str(table)).cache()
    write_commit(table, 2, [_file(15)])
    for snapshot, counts in ((cached, [12, 4, 2, None]), (cached.refresh(), [13, 5, 3, None])):
        assert _counts(snapshot.scan(WHERE).report(full=True)) == counts
        assert _counts(snapshot.scan(WHERE).report())[2:] == counts[2:]
    cached.uncache()


def test_a_full_report_is_one_query_that_reads_the_log_once(
    spark: SparkSession, snapshot: Snapshot
) -> None:
    scan = snapshot.scan(WHERE)
    state, skipping = scan._state, scan._skipping
    assert skipping is not None
    marked = state.scan_files(
        "size", KEPT_BY_PARTITION_VALUES, KEPT_BY_STATISTICS, skipping=FileMarks(skipping)
    )
    assert [node.name for node in plan(marked)].count("FileScan") == 1
    plain = state.scan_files("size").groupBy().count()
    with counted_jobs(spark) as usual:
        plain.collect()
    with counted_jobs(spark) as full:
        scan.report(full=True)
    assert full.count == usual.count


def test_a_plain_report_costs_what_counting_the_files_does(
    spark: SparkSession, snapshot: Snapshot
) -> None:
    scan = snapshot.scan(WHERE)
    counted = scan.files().groupBy().count()
    with counted_jobs(spark) as usual:
        counted.collect()
    with counted_jobs(spark) as report:
        scan.report()
    assert report.count == usual.count


def test_the_report_shows_the_use_of_each_condition(snapshot: Snapshot) -> None:
    where = (
        "day = '2024-01-01' AND id > 70 AND (day > '2020-01-01' OR id < 3) AND name LIKE '%x' "
        "AND hash(id) = 2 AND at >= TIMESTAMP'2024-01-01 12:00:00Z'"
    )
    printed = str(snapshot.scan(where).report())
    _, table_of_uses = printed.split("\n\n")[1:3]
    unknown = "row filter only: no minimum, maximum or null count tells"
    lines = [line.split("  ") for line in table_of_uses.splitlines()[1:]]
    assert [(line[0], line[-1].strip()) for line in lines] == [
        ("day = DATE'2024-01-01'", "partition values"),
        ("id > 70", "statistics"),
        ("day > DATE'2020-01-01' OR id < 3", "both"),
        ("name LIKE '%x'", unknown),
        ("hash(id) = 2", "row filter only: hash is not supported"),
        ("at >= TIMESTAMP'2024-01-01 12:00:00Z'", "statistics"),
        (
            "implied: day IS NULL OR day >= CAST(TIMESTAMP_NTZ'2023-12-31 18:00:00' AS DATE)",
            "partition values",
        ),
    ]


def test_the_report_prints_a_table(snapshot: Snapshot) -> None:
    scan = snapshot.scan(WHERE)
    assert str(scan.report()).splitlines() == [
        "Scan of version 1",
        "",
        "                          files      size  of all files",
        "in the table                 12  11.7 KiB         100 %",
        "after partition values  skipped",
        "after statistics              2   2.0 KiB          17 %",
        "",
        "condition               used for",
        "day = DATE'2024-01-01'  partition values",
        "id > 70                 statistics",
        "",
        "A read chooses its files at once, by `where`.",
        _NOT_COUNTED,
    ]
    full = str(scan.report(full=True)).splitlines()
    assert full[4] == "after partition values      4   3.9 KiB          33 %"
    assert full[-1] == _READ_ALL


def test_as_a_dict(snapshot: Snapshot) -> None:
    found = snapshot.scan(WHERE).report().as_dict()
    assert json.loads(json.dumps(found)) == {
        "version": 1,
        "snapshot": {"files": 12, "size_bytes": 12_000},
        "after_partition_values": None,
        "after_statistics": {"files": 2, "size_bytes": 2_000},
        "after_row_filter": None,
        "conditions": [
            {
                "condition": "day = DATE'2024-01-01'",
                "by_partition_values": True,
                "by_statistics": False,
                "reason": None,
                "is_implied": False,
            },
            {
                "condition": "id > 70",
                "by_partition_values": False,
                "by_statistics": True,
                "reason": None,
                "is_implied": False,
            },
        ],
        "listing": "at once, by `where`",
        "is_full": False,
    }


@pytest.mark.full
def test_the_picture(snapshot: Snapshot) -> None:
    """Bars in proportion; what was skipped is an outline; a condition cannot break out of it."""
    where = f"{WHERE} AND name <> '<script>'"
    scan = snapshot.scan(where)
    counted, full = (_bars(scan.report(full=is_full)) for is_full in (False, True))
    assert counted == [("in the table", 1.0), ("after partition values", None),
                       ("after statistics", pytest.approx(2 / 12, abs=0.01))]  # fmt: skip
    assert full[1] == ("after partition values", pytest.approx(4 / 12, abs=0.01))
    assert "<script>" not in scan.report()._repr_html_()


def _bars(report: ScanReport) -> list[tuple[str | None, float | None]]:
    """The name of each bar, and its part of the longest; None for an outline."""
    root = ET.fromstring(report._repr_html_())
    names = [text.text for text in root.iter("text") if text.get("x") == "0"]
    rects = list(root.iter("rect"))
    longest = max(float(rect.get("width", 0)) for rect in rects)
    parts = [
        None if rect.get("fill") == "none" else float(rect.get("width", 0)) / longest
        for rect in rects
    ]
    return list(zip(names, parts, strict=True))


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 1024**4, "5.0 TiB"),
     (3000 * 1024**5, "3,000.0 PiB")],
)  # fmt: skip
def test_sizes_are_humane(size_bytes: int, text: str) -> None:
    count = FileCount(1, size_bytes)
    assert text in str(
        ScanReport(0, count, count, count, None, (), FileListingMode.LATE, is_full=True)
    )


@pytest.mark.parametrize(
    ("files", "share"),
    [(0, "0 %"), (1, "< 0.01 %"), (500, "0.05 %"), (12_345, "1.23 %"), (1_000_000, "100 %")],
)
def test_shares(files: int, share: str) -> None:
    everything, kept = FileCount(1_000_000, 1), FileCount(files, 1)
    report = ScanReport(
        0, everything, everything, kept, None, (), FileListingMode.LATE, is_full=True
    )
    assert str(report).splitlines()[5].endswith(f"  {share}")
