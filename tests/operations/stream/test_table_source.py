"""The batches of streams of a table: their ends, their files, and the commits that end a query."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, write_delta
from sparkdelta.base.storage.stream_source import ReadLimit
from sparkdelta.exceptions import (
    InvalidArgumentError,
    MissingStreamSnapshotError,
    TimestampGreaterThanCommitError,
    VersionNotFoundError,
)
from sparkdelta.operations.stream import indexed_files, stream_batches, stream_commits
from sparkdelta.operations.stream.admission import Admission
from sparkdelta.operations.stream.read_stream import TableStream
from sparkdelta.operations.stream.stream_commits import between_offsets
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.table.listing import line_reader
from sparkdelta.table.log.commit_range import CommitRange
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.spark_jobs import no_jobs
from tests.support.table_builder import field, metadata, protocol

FIELDS = (field("id", "long"), field("p", "string"))
ALL = ReadLimit()


def add(path: str, size: int = 10, time: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "add": {
            "path": path, "partitionValues": {}, "size": size, "modificationTime": time,
            "dataChange": True, **fields,
        }
    }  # fmt: skip


def remove(path: str, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0, **fields}}


def table(path: Path, *commits: list[dict[str, Any]], **configuration: str) -> None:
    """A log of commits after one that creates the table."""
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    write_commit(path, 0, [protocol(), metadata(*FIELDS, configuration=properties)])
    for version, actions in enumerate(commits, 1):
        write_commit(path, version, actions)


def stream(spark: SparkSession, path: Path, **options: Any) -> TableStream:
    return TableStream(load_snapshot(spark, str(path)), StreamOptions(**options))


def ends(source: TableStream, start: str | None = None) -> Iterator[str]:
    """The ends of the batches, until there is nothing to read."""
    while True:
        end = source.latest_offset("q", start, source.limit)
        if end == start or end is None:
            return
        yield end
        start = end


def place(offset: str) -> tuple[int, int, bool]:
    found = json.loads(offset)
    return found["reservoirVersion"], found["index"], found["isStartingVersion"]


def files(source: TableStream, start: str | None, end: str) -> list[str]:
    """The files of a batch, as another process plans it."""
    other = TableStream(source.opened, source.options)
    begin = other._begin_of(other._parsed(end)) if start is None else other._parsed(start)
    plan = other._planner.plan(other._state("q"), begin, ALL, other._parsed(end))
    other.stop("q")
    return [file.rpartition("/")[2] for part in plan.files for file in part["file"].to_pylist()]


def batches(source: TableStream) -> list[tuple[tuple[int, int, bool], list[str]]]:
    """The end and the files of each batch."""
    found, start = [], None
    for end in ends(source):
        found.append((place(end), files(source, start, end)))
        start = end
    return found


SNAPSHOT = [add("c", time=1), add("b", time=2), add("a", time=1)]
COMMIT = [add("z"), {"commitInfo": {"operation": "WRITE"}}, add("y"), add("x", dataChange=False)]


@pytest.mark.classic("looks into the JVM")
@pytest.mark.parametrize("bound", [100_000, pytest.param(1, marks=pytest.mark.full)])
def test_batches(spark: SparkSession, table_path: str, bound: int) -> None:
    """A table's files come by modification time and path, those of a commit in its order; long
    lists of files, and commits that are large for the driver, stay with Spark.
    """
    path = Path(table_path)
    table(path, SNAPSHOT)
    spark.catalog.clearCache()  # of other tests
    source = stream(spark, path, max_files_per_trigger=2)
    for version, actions in ((2, COMMIT), (3, [add("o", dataChange=False)]), (4, [add("n")])):
        write_commit(path, version, actions)
    driver_bytes = 4 << 20 if bound > 1 else 10
    with (
        patch.object(indexed_files, "MAX_DRIVER_FILES", bound),
        patch.object(stream_commits, "DRIVER_LOG_BYTES", driver_bytes),
        patch.object(line_reader, "DRIVER_LOG_BYTES", driver_bytes),
    ):
        assert batches(source) == [
            ((1, 1, True), ["a", "c"]),
            ((2, 0, False), ["b", "z"]),
            ((5, -1, False), ["y", "n"]),
        ]
    source.stop("q")
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


@pytest.mark.parametrize("wanted", [None, 3])
def test_a_batch_without_a_limit_is_bounded(
    spark: SparkSession, table_path: str, wanted: int | None
) -> None:
    """It has at most `MAX_DRIVER_FILES`, unless `max_files_per_trigger` is larger."""
    path = Path(table_path)
    table(path, [add("a"), add("b"), add("c"), add("d")])
    source = stream(spark, path, max_files_per_trigger=wanted)
    with patch.object(stream_batches, "MAX_DRIVER_FILES", 2):
        sizes = [len(names) for _, names in batches(source)]
    assert sizes == ([2, 2] if wanted is None else [3, 1])


def test_a_limit_of_bytes(spark: SparkSession, table_path: str) -> None:
    """A batch ends with the file that reaches it, and has one file at least."""
    path = Path(table_path)
    table(path, [add("a", size=6), add("b", size=4), add("c", size=40), add("d", size=1)])
    source = stream(spark, path, max_bytes_per_trigger=7)
    assert [names for _, names in batches(source)] == [["a", "b"], ["c"], ["d"]]
    both = stream(spark, path, max_bytes_per_trigger=7, max_files_per_trigger=1)
    assert both.limit == ReadLimit(1, 7)
    assert len(list(ends(both))) == 4
    assert stream(spark, path).limit == ReadLimit(1000)


def test_many_commits_take_no_job(spark: SparkSession, table_path: str) -> None:
    """The driver reads small ones in one go, and Spark parses them."""
    path = Path(table_path)
    table(path, *([add(f"f{n}")] for n in range(30)))
    source = stream(spark, path, starting_version=1)
    with no_jobs(spark):
        [end] = ends(source)
    assert place(end) == (31, -1, False)
    assert len(files(source, None, end)) == 30


def test_where_a_query_starts(spark: SparkSession, table_path: str) -> None:
    path = Path(table_path)
    table(path, [add("a")], [add("b")])
    [end] = ends(stream(spark, path, starting_version=2))
    assert (place(end), files(stream(spark, path, starting_version=2), None, end)) == (
        (3, -1, False), ["b"],
    )  # fmt: skip
    moment = "2023-11-14T22:30:00Z"  # between versions 0 and 1
    assert files(stream(spark, path, starting_timestamp=moment), None, end) == ["a", "b"]
    with pytest.raises(TimestampGreaterThanCommitError):
        list(ends(stream(spark, path, starting_timestamp="2040-01-01")))
    with pytest.raises(VersionNotFoundError):
        list(ends(stream(spark, path, starting_version=9)))
    latest = stream(spark, path, starting_version="latest")
    first = latest.latest_offset("q", None, ALL)
    assert first is not None
    assert place(first) == (3, -1, False)
    assert latest.batch("q", None, first) is None
    assert latest.latest_offset("q", first, ALL) == first
    write_commit(path, 3, [add("c")])
    # A process that starts now does not know what was the latest then.
    end = stream(spark, path, starting_version="latest").latest_offset("q", first, ALL)
    assert end is not None
    assert files(latest, first, end) == ["c"]
    with raises("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"):
        StreamOptions(starting_version=1, starting_timestamp=moment)
    for wrong in (-1, "newest", True):
        with pytest.raises(InvalidArgumentError):
            StreamOptions(starting_version=wrong)


def test_available_now_ends_where_it_began(spark: SparkSession, table_path: str) -> None:
    path = Path(table_path)
    table(path, [add("a"), add("b")])
    source = stream(spark, path, max_files_per_trigger=1)
    source.read_available("q")
    first = source.latest_offset("q", None, source.limit)
    write_commit(path, 2, [add("c")])
    assert [place(end) for end in ends(source, first)] == [(2, -1, False)]
    assert [place(end) for end in ends(stream(spark, path), first)] == [(3, -1, False)]


REMOVALS = {
    "delete": (
        [remove("a")],
        "DELTA_SOURCE_IGNORE_DELETE",
        ["ignore_deletes", "skip_change_commits"],
    ),
    "update": (
        [add("b"), remove("a")],
        "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        ["skip_change_commits"],
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", REMOVALS)
@pytest.mark.parametrize("driver_bytes", [4 << 20, pytest.param(10, marks=pytest.mark.full)])
def test_commits_that_remove_rows(
    spark: SparkSession, table_path: str, kind: str, driver_bytes: int
) -> None:
    """Commits that remove rows end the query, unless an option allows them; those that only
    rearrange rows do not.
    """
    actions, error, allowing = REMOVALS[kind]
    path = Path(table_path)
    rearranged = [add("z", dataChange=False), remove("y", dataChange=False)]
    table(path, [add("a")], rearranged, actions, [add("c")])
    with (
        patch.object(stream_commits, "DRIVER_LOG_BYTES", driver_bytes),
        patch.object(line_reader, "DRIVER_LOG_BYTES", driver_bytes),
    ):
        source = stream(spark, path, starting_version=1)
        with raises(error) as raised:
            list(ends(source))
        assert (raised.value.version, raised.value.file) == (3, "a")
        before = stream(spark, path, starting_version=1, max_files_per_trigger=1)
        assert place(next(ends(before))) == (2, -1, False)  # up to there it goes
        for option in allowing:
            [end] = ends(stream(spark, path, starting_version=1, **{option: True}))
            assert files(stream(spark, path, starting_version=1, **{option: True}), None, end) == [
                "a", "c",
            ]  # fmt: skip
        again = stream(spark, path, starting_version=1, ignore_changes=True)
        [end] = ends(again)
        assert files(again, None, end) == ["a", *(["b"] if kind == "update" else []), "c"]


def test_excluded_files_keep_their_place(spark: SparkSession, table_path: str) -> None:
    path = Path(table_path)
    table(path, [add("tmp_a"), add("b")], [add("c"), add("x_tmp"), add("d")])
    source = stream(spark, path, exclude_regex="tmp", max_files_per_trigger=2)
    assert [place(end)[:2] for end in ends(source)] == [(2, 1), (2, 3), (3, -1)]


MAPPED = {"columnMapping.mode": "name"}


def renamed(name: str, physical: str, number: int) -> dict[str, Any]:
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return field(name, "long", metadata=ids)


def test_schemas_that_a_stream_cannot_follow(spark: SparkSession, table_path: str) -> None:
    path = Path(table_path)
    table(path, [add("a")])
    source = stream(spark, path)
    write_commit(path, 2, [add("b")])
    write_commit(path, 3, [metadata(*FIELDS, field("more", "long")), add("c")])
    # The batch before the change is whole; then the query ends.
    limited = TableStream(source.opened, StreamOptions(max_files_per_trigger=2))
    assert place(next(ends(limited))) == (3, -1, False)
    with raises("DELTA_SCHEMA_CHANGED_WITH_VERSION") as raised:
        list(ends(source))
    assert (raised.value.version, raised.value.read_version) == (3, 1)
    with raises("DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"):
        list(ends(TableStream(source.opened, StreamOptions(starting_version=1))))
    assert [place(end)[:2] for end in ends(stream(spark, path))] == [(4, -1)]
    [end] = ends(stream(spark, path, starting_version=1))
    assert files(stream(spark, path, starting_version=1), None, end) == ["a", "b", "c"]
    # A query that goes on after a change that its DataFrame does not know.
    after = json.dumps({**json.loads(end), "reservoirVersion": 4})
    source.stop("q")
    with raises("DELTA_SCHEMA_CHANGED_WITH_VERSION"):
        list(ends(source, after))
    # A narrower schema helps nobody.
    write_commit(path, 4, [metadata(field("id", "long"))])
    with raises("DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"):
        list(ends(stream(spark, path, starting_version=1)))
    write_commit(path, 5, [metadata(*FIELDS, table_id="another")])
    with raises("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        list(ends(stream(spark, path), end))


def test_columns_that_are_renamed(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#column-mapping"""
    path = Path(table_path)
    configuration = {"delta.columnMapping.mode": "name"}
    for version, name in enumerate(("a", "b")):
        fields = [renamed(name, "col-1", 1)]
        write_commit(
            path, version,
            [protocol(2, 5), metadata(*fields, configuration=configuration), add(f"f{version}")],
        )  # fmt: skip
    with raises("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG") as raised:
        list(ends(stream(spark, path, starting_version=0)))
    assert raised.value.getCondition().startswith("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE")
    assert len(list(ends(stream(spark, path)))) == 1


def test_column_mapping_that_comes_or_goes(spark: SparkSession, tmp_path: Path) -> None:
    """Files from before have the names of columns, or names that no column has any more.

    PROTOCOL.md#column-mapping
    """
    mapped = {"delta.columnMapping.mode": "name"}
    tables = {
        "enabled": [(field("a", "long"), {}), (renamed("a", "a", 1), mapped)],
        "removed": [(renamed("a", "col-1", 1), mapped), (field("a", "long"), {})],
    }
    for name, versions in tables.items():
        for version, (column, configuration) in enumerate(versions):
            actions = [protocol(2, 5), metadata(column, configuration=configuration), add(name)]
            write_commit(tmp_path / name, version, actions)
    assert len(list(ends(stream(spark, tmp_path / "enabled", starting_version=0)))) == 1
    with raises("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"):
        list(ends(stream(spark, tmp_path / "removed", starting_version=0)))


@pytest.mark.full
def test_commits_that_are_gone(spark: SparkSession, table_path: str) -> None:
    path = Path(table_path)
    write_delta(spark.range(1), table_path, properties={"delta.checkpointInterval": "2"})
    for _ in range(4):
        write_delta(spark.range(1), table_path, mode="append")
    source = stream(spark, path, max_files_per_trigger=1)
    start = next(ends(source))
    end = list(ends(source))[-1]
    at_two = json.dumps({**json.loads(start), "reservoirVersion": 2, "isStartingVersion": False})
    initial = json.dumps({**json.loads(start), "reservoirVersion": 1, "isStartingVersion": True})
    os.unlink(path / "_delta_log" / f"{0:020d}.json")
    # Version 1 cannot be reconstructed, but its commit is there.
    assert len(list(ends(stream(spark, path, starting_version=1)))) == 1
    for version in range(1, 3):
        os.unlink(path / "_delta_log" / f"{version:020d}.json")
    with raises("DELTA_MISSING_FILES_UNEXPECTED_VERSION") as raised:
        list(ends(source, at_two))
    assert (raised.value.version, raised.value.earliest) == (2, 3)
    careless = TableStream(source.opened, StreamOptions(fail_on_data_loss=False))
    assert [place(one)[:2] for one in ends(careless, at_two)] == [(5, -1)]
    with pytest.raises(MissingStreamSnapshotError):
        list(ends(stream(spark, path), initial))
    for version in (3, 4):
        os.unlink(path / "_delta_log" / f"{version:020d}.json")
    with raises("DELTA_STREAMING_TRAILING_COMMIT_MISSING"):
        source.batch("p", at_two, json.dumps({**json.loads(end), "reservoirVersion": 4}))


@pytest.mark.slow
def test_changes_are_whole_commits(spark: SparkSession, table_path: str) -> None:
    """However many files a commit changes.

    PROTOCOL.md#change-data-files
    """
    path = Path(table_path)
    cdc = {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}
    vectors = [add("a"), remove("a")]
    table(path, [add("a")], vectors, [cdc, add("d"), remove("e")], [add("f")], [add("g")],
          enableChangeDataFeed="true")  # fmt: skip
    options = {"read_change_feed": True, "starting_version": 1, "max_files_per_trigger": 2}
    for driver_bytes in (4 << 20, 10):
        with (
            patch.object(stream_commits, "DRIVER_LOG_BYTES", driver_bytes),
            patch.object(line_reader, "DRIVER_LOG_BYTES", driver_bytes),
        ):
            source = stream(spark, path, **options)
            assert [place(end) for end in ends(source)] == [
                (2, -1, False), (3, -1, False), (5, -1, False), (6, -1, False),
            ]  # fmt: skip
    # As delta-spark divides the changes of the second commit: an add, and then a remove.
    whole = next(ends(source))
    within = json.dumps({**json.loads(whole), "index": 0})
    plans = [
        source._planner.plan(source._state("q"), source._parsed(a), ALL, source._parsed(b))
        for a, b in ((whole, within), (within, list(ends(source))[1]))
    ]
    for plan, kind in zip(plans, ("add", "remove"), strict=True):
        changed = plan.changed
        assert changed is not None
        commits = CommitRange.read(source.opened.log.reader, changed.commits)
        lines = between_offsets(commits, changed.begin, changed.end).local_lines
        assert lines is not None
        assert [next(iter(json.loads(line))) for line in lines["line"].to_pylist()] == [kind]
    with (
        patch.object(line_reader, "DRIVER_LOG_BYTES", 10),
        raises("DELTA_STREAM_OFFSET_WITHIN_CHANGES"),
    ):
        source._planner.rows(plans[0])
    write_commit(path, 6, [metadata(*FIELDS)])
    with raises("DELTA_MISSING_CHANGE_DATA"):
        list(ends(source))


def test_admission() -> None:
    limits = Admission.of(ReadLimit(), most=3)
    sizes = pa.chunked_array([[1, 2, 3, 4]])
    assert limits.admit(sizes) == 3
    assert limits.is_full
    limits = Admission.of(ReadLimit(max_bytes=3), most=100)
    assert limits.admit(sizes.slice(0, 1)) == 1
    assert not limits.admit_all(1, 3)
    assert limits.admit_all(1, 2)
    assert limits.is_full
    assert Admission.of(ReadLimit(max_bytes=3), most=100).admit_all(1000, 1000)
