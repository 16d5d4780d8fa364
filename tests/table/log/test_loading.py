"""Tests of the costs of loading, and of what is read again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaError, DeltaTable, load_snapshot, read_delta
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.exceptions import LogFileNotFoundError, MalformedLogFileError
from sparkdelta.table.listing import line_reader as log_text
from sparkdelta.table.log import loading
from sparkdelta.table.log.log_reader import FileLists
from tests.support.errors import raises
from tests.support.log_writer import (
    log_directory,
    set_time,
    write_checkpoint,
    write_checksum,
    write_commit,
    write_compaction,
    write_last_checkpoint,
    write_v2_checkpoint,
)
from tests.support.reference_model import compaction, replay
from tests.support.settings import HOSTILE, settings
from tests.support.snapshots import expected, paths, raised_by, replayed, rows
from tests.support.spark_jobs import counted_jobs, counted_tasks, no_jobs
from tests.support.table_builder import (
    ID,
    add,
    create,
    field,
    ids,
    metadata,
    protocol,
    remove,
    write_data,
)
from tests.table.log.histories import COMMITS, write_history


def test_a_tiny_table_and_its_files_cost_no_job(spark: SparkSession, table: Path) -> None:
    create(table, add("f0"))
    for version in range(1, 10):
        write_commit(table, version, [add(f"f{version}")])
    with no_jobs(spark):
        snapshot = load_snapshot(spark, str(table))
        assert snapshot.metadata.id == "0"
        assert snapshot.timestamp is not None
    with no_jobs(spark):
        files = snapshot.add_files()
        snapshot.remove_files()
        snapshot.transactions()
        snapshot.domain_metadata()
        assert len(files.collect()) == 10


def test_a_full_read_lists_its_files_in_one_job(spark: SparkSession, table: Path) -> None:
    create(table, write_data(table, "f", ids(0, 3)), write_data(table, "g", ids(3, 5)))
    with counted_jobs(spark) as jobs:
        frame = read_delta(spark, str(table))
    assert jobs.count <= 1
    assert rows(frame) == [(0,), (1,), (2,), (3,), (4,)]


def test_files_that_are_only_added_are_listed_without_a_job(
    spark: SparkSession, table: Path
) -> None:
    first, second = write_data(table, "f", ids(0, 3)), write_data(table, "g", ids(3, 5))
    create(table, first)
    write_commit(table, 1, [second])
    frame = read_delta(spark, str(table))
    with counted_jobs(spark) as jobs:
        assert rows(frame) == [(0,), (1,), (2,), (3,), (4,)]
    assert jobs.count == 1
    write_commit(table, 2, [second])  # as when statistics are computed
    frame = read_delta(spark, str(table))
    with counted_jobs(spark) as jobs:
        assert rows(frame) == [(0,), (1,), (2,), (3,), (4,)]
    assert jobs.count == 2


_VECTOR = {
    "storageType": "u", "pathOrInlineDv": "v", "offset": 1, "sizeInBytes": 1, "cardinality": 1,
}  # fmt: skip
ADDED: dict[str, list[list[dict[str, Any]]]] = {
    "files of their own": [[add("a"), add("p=1/a")], [add("b")], []],
    "one again": [[add("a"), add("b")], [add("a", size=2)]],
    "twice in a commit": [[add("a"), add("a")]],
    "two spellings": [[add("a b")], [add("a%20b", size=2)], [add("a%2520b")]],
    "absolute paths": [[add("/k"), add("k")], [add("file:/k", size=2)]],
    "a deletion vector": [[add("a")], [add("a", deletionVector=_VECTOR)]],
    "escaped": [[add("\u00e9")], [add("\u00e9", size=2), add("e\u0301")]],
    "a column of that name": [[add("a", partitionValues={"path": "b"})], [add("b")]],
    "another order": [
        [{"add": dict(reversed(add("a")["add"].items()))}],
        [{"add": dict(reversed(add("a", size=2)["add"].items()))}],
    ],
    "removed": [[add("a"), add("b")], [remove("a")]],
}


@pytest.mark.parametrize("name", ADDED)
def test_commits_that_only_add_files(spark: SparkSession, table: Path, name: str) -> None:
    """Their files are the live ones, unless one is added again.

    PROTOCOL.md#action-reconciliation
    """
    start = [protocol(features=["deletionVectors"]), metadata()]
    commits = dict(enumerate([start, *ADDED[name]]))
    for version, actions in commits.items():
        write_commit(table, version, actions)
    snapshot, wanted = load_snapshot(spark, str(table)), replay(commits)
    assert replayed(snapshot) == expected(wanted)
    found = [tuple(row) for row in snapshot.state.scan_files("path", "size").collect()]
    assert sorted(found) == sorted(
        (live["path"], live["size"], None) for live in wanted.adds.values()
    )


@pytest.mark.parametrize("is_file_list", [True, False])
def test_local_data_is_collected_as_spark_gives_it(
    spark: SparkSession, *, is_file_list: bool
) -> None:
    """Without a job, if it has the types of a list of files."""
    columns = [
        "id", "CAST(id AS INT) AS i", "nullif(id = 1, FALSE) AS b",
        "if(id = 1, struct(nullif('\U0001f600', '') AS s, CAST(NULL AS INT) AS n), NULL) AS t",
    ]  # fmt: skip
    if not is_file_list:
        columns += ["timestamp_millis(id) AS at", "map('k', id) AS m", "CAST(id AS DECIMAL(38, 2))"]
    for where in ("TRUE", "FALSE"):
        data = spark.createDataFrame(pa.table({"id": [1, 2]}))
        frame = data.selectExpr(*columns).filter(where)
        with counted_jobs(spark) as jobs:
            found = read_table(frame, what="rows", bound=2)
        assert jobs.count == (0 if is_file_list else 1)
        assert found.equals(frame.toArrow())


CHECKSUM: dict[str, Any] = {
    "tableSizeBytes": 1, "numFiles": 1, "numMetadata": 1, "numProtocol": 1,
    "metadata": metadata(table_id="from the checksum")["metaData"],
    "protocol": protocol()["protocol"],
}  # fmt: skip


class TestVersionChecksum:
    """PROTOCOL.md#version-checksum-file"""

    def test_a_complete_one_gives_protocol_and_metadata(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create(table, add("a"))
        write_checksum(table, 0, CHECKSUM)
        monkeypatch.setattr(loading, "_in_commits", None)  # calling it would fail
        snapshot = load_snapshot(spark, str(table))
        assert snapshot.metadata.id == "from the checksum"

    @pytest.mark.parametrize(
        "change",
        [
            {"numMetadata": 2}, {"numProtocol": 0}, {"numMetadata": None}, {"metadata": None},
            {"protocol": None}, {"protocol": {"minReaderVersion": 1}},
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
            {"metadata": {**CHECKSUM["metadata"], "schemaString": None}},
            {"metadata": {k: v for k, v in CHECKSUM["metadata"].items() if k != "configuration"}},
            {"metadata": {k: v for k, v in CHECKSUM["metadata"].items() if k != "format"}},
            {"metadata": {**CHECKSUM["metadata"], "partitionColumns": None}},
        ],
    )  # fmt: skip
    def test_an_incomplete_one_does_not(
        self, spark: SparkSession, table: Path, change: dict[str, Any]
    ) -> None:
        create(table, add("a"))
        write_checksum(table, 0, {**CHECKSUM, **change})
        assert load_snapshot(spark, str(table)).metadata.id == "0"

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", json.dumps(CHECKSUM)[:-9]])
    def test_one_that_does_not_parse_is_nothing(
        self, spark: SparkSession, table: Path, text: str
    ) -> None:
        create(table, add("a"))
        write_checksum(table, 0, text)
        assert load_snapshot(spark, str(table)).metadata.id == "0"

    def test_only_that_of_the_version_counts(self, spark: SparkSession, table: Path) -> None:
        create(table, add("a"))
        write_checksum(table, 0, CHECKSUM)
        write_commit(table, 1, [add("b")])
        assert load_snapshot(spark, str(table)).metadata.id == "0"


def _force(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    limit = {"driver": 1 << 40, "executors": -1}[where]
    for bound in ("DRIVER_LOG_BYTES", "DRIVER_SCAN_BYTES"):
        monkeypatch.setattr(log_text, bound, limit)


@pytest.mark.full
@pytest.mark.parametrize(
    ("where", "group"),
    [("driver", None), ("driver", "plans"), *(("executors", group) for group in [None, *HOSTILE])],
)
def test_who_reads_the_log_does_not_matter(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, where: str, group: str | None
) -> None:
    _force(monkeypatch, where)
    state = replay(COMMITS, until=2)
    write_history(table)
    write_checkpoint(table, 2, state.checkpoint())
    write_compaction(table, 3, 4, compaction([COMMITS[3], COMMITS[4]]))
    with settings(spark, HOSTILE.get(group or "", {})):
        snapshot = load_snapshot(spark, str(table))
        assert snapshot.log.commits.is_local == (where == "driver")
        assert replayed(snapshot) == expected(replay(COMMITS))


def test_a_long_log_is_listed_by_few_tasks(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own way is a task for each file, from 33 files on."""
    _force(monkeypatch, "executors")
    create(table, add("f0"))
    for version in range(1, 40):
        write_commit(table, version, [add(f"f{version}")])
    with counted_tasks(spark) as tasks:
        load_snapshot(spark, str(table)).add_files()
    assert 0 < max(tasks) <= 2 * spark.sparkContext.defaultParallelism


@pytest.mark.parametrize("write", [write_commit, write_checkpoint])
def test_the_error_of_a_protocol_without_its_versions_names_the_table(
    spark: SparkSession, table: Path, write: Callable[..., Path]
) -> None:
    """PROTOCOL.md#protocol-evolution"""
    write(table, 0, [{"protocol": {"minReaderVersion": 1}}, metadata(), add("a")])
    with raises("DELTA_INVALID_PROTOCOL") as caught:
        load_snapshot(spark, str(table))
    assert caught.value.path == f"file:{table}"


@pytest.mark.parametrize("where", ["driver", "executors"])
def test_a_torn_commit_is_an_error(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    _force(monkeypatch, where)
    create(table, add("a"))
    file = write_commit(table, 1, [add("b"), add("c")])
    file.write_bytes(file.read_bytes()[:-20])

    def query() -> object:
        snapshot = load_snapshot(spark, str(table))
        return snapshot.add_files().count()

    assert isinstance(raised_by(query), MalformedLogFileError)
    assert isinstance(raised_by(lambda: read_delta(spark, str(table))), MalformedLogFileError)


@pytest.mark.parametrize("where", ["driver", "executors"])
def test_bytes_that_are_no_text_are_an_error(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    _force(monkeypatch, where)
    create(table, add("a"))
    file = write_commit(table, 1, [add("bbbb")])
    file.write_bytes(file.read_bytes().replace(b"bbbb", b"b\xff\xfeb"))

    def query() -> object:
        return paths(load_snapshot(spark, str(table)))

    assert isinstance(raised_by(query), MalformedLogFileError)


@pytest.mark.parametrize("where", ["driver", "executors"])
def test_lines_end_with_a_line_feed_only(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Other line ends of Unicode may stand in a JSON text."""
    _force(monkeypatch, where)
    create(table)
    name = "a\u2028b\u0085c"
    text = json.dumps(add(name), ensure_ascii=False)
    write_commit(table, 1, f"{text}\r\n\n{json.dumps(add('x'))}")
    assert paths(load_snapshot(spark, str(table))) == [name, "x"]


class Spy:
    """Remembers what was read from the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.listings: list[str] = []
        read, list_from = LocalLogStore.read, LocalLogStore.list_from

        def spying_read(store: LocalLogStore, names: Sequence[str]) -> list[bytes]:
            self.names += names
            return read(store, names)

        def spying_list(store: LocalLogStore, start: str = "") -> Any:
            self.listings.append(start)
            return list_from(store, start)

        monkeypatch.setattr(LocalLogStore, "read", spying_read)
        monkeypatch.setattr(LocalLogStore, "list_from", spying_list)


@pytest.mark.parametrize(
    ("hinted", "version", "starts"),
    [(4, None, [4]), (4, 5, [4]), (4, 4, [4]), (4, 2, [None]), (5, None, [5, None]),
     (None, None, [None])],
)  # fmt: skip
def test_the_log_is_listed_from_the_hinted_checkpoint(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch,
    hinted: int | None, version: int | None, starts: list[int | None],
) -> None:  # fmt: skip
    """PROTOCOL.md#last-checkpoint-file; whole where that is newer than the version, or not there"""
    write_history(table)
    write_checkpoint(table, 4, replay(COMMITS, until=4).checkpoint())
    if hinted is not None:
        write_last_checkpoint(table, {"version": hinted, "size": 1})
    spy = Spy(monkeypatch)
    snapshot = load_snapshot(spark, str(table), version=version)
    assert snapshot.version == (6 if version is None else version)
    assert spy.listings == ["" if start is None else f"{start:020d}" for start in starts]


class TestLoadingAgain:
    """A log whose listing has not changed is not read again."""

    def test_costs_the_listing_and_no_job(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_history(table)
        write_checkpoint(table, 4, replay(COMMITS, until=4).checkpoint())
        _make_old(table)
        first = load_snapshot(spark, str(table))
        spy = Spy(monkeypatch)
        with no_jobs(spark):
            again = load_snapshot(spark, str(table))
        assert spy.names == ["_last_checkpoint"]
        assert len(spy.listings) == 1
        assert again.metadata == first.metadata
        assert replayed(again) == expected(replay(COMMITS))

    @pytest.mark.full
    def test_nor_are_its_files_listed_again(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last short lists are kept, each for its condition, until there is a new version."""
        described = metadata(ID, field("p", "long"), partitioned_by=["p"])

        def data(name: str, start: int, part: str | None) -> dict[str, Any]:
            return write_data(table, name, ids(start, start + 1), {"p": part})

        gone = add("gone", partitionValues={"p": None})  # so that there is something to reconcile
        write_commit(table, 0, [protocol(), described, data("a", 0, "1"), gone])
        write_commit(table, 1, [data("b", 1, "2"), data("c", 2, None), remove("gone")])
        _make_old(table)

        def jobs_and_ids(where: str | None) -> tuple[int, list[int]]:
            with counted_jobs(spark) as jobs:
                frame = read_delta(spark, str(table), where=where)
                found = sorted(row["id"] for row in frame.collect())
            return jobs.count, found

        wanted = {None: [0, 1, 2], "p = 1": [0], "p = 2": [1], "p IS NULL": [2], "p = 3": []}
        first = {where: jobs_and_ids(where) for where in wanted}
        again = {where: jobs_and_ids(where) for where in wanted}
        assert {where: found for where, (_, found) in first.items()} == wanted
        assert {where: found for where, (_, found) in again.items()} == wanted
        assert all(again[where][0] == jobs - 1 for where, (jobs, _) in first.items())
        write_commit(table, 2, [data("d", 3, "1")])
        assert jobs_and_ids("p = 1") == (2, [0, 3])
        _make_old(table)
        monkeypatch.setattr(FileLists, "MAX_FILES", 1)
        assert [jobs_and_ids("p = 1") for _ in range(2)] == [(2, [0, 3])] * 2

    @pytest.mark.parametrize("is_old", [True, False])
    def test_reads_a_file_that_was_replaced_by_one_of_the_same_size(
        self, spark: SparkSession, table: Path, is_old: bool
    ) -> None:
        """Unless it is old, the time of the new file may be that of the one before."""
        create(table, add("a"))
        first = log_directory(table) / f"{0:020d}.json"
        if is_old:
            _make_old(table)
        else:
            set_time(first, time.time_ns() // 1_000_000 + 60_000)
        assert paths(load_snapshot(spark, str(table))) == ["a"]
        then = first.stat().st_mtime_ns
        first.write_text(first.read_text().replace('"a"', '"b"'))
        if not is_old:
            os.utime(first, ns=(then, then))
        assert paths(load_snapshot(spark, str(table))) == ["b"]

    def test_misses_a_sidecar_that_is_gone(self, spark: SparkSession, table: Path) -> None:
        """PROTOCOL.md#sidecar-files"""
        head = [protocol(features=["v2Checkpoint"]), metadata()]
        write_v2_checkpoint(table, 6, head, sidecars=[[add("a")]])
        _make_old(table)
        assert paths(load_snapshot(spark, str(table))) == ["a"]
        (sidecar,) = (log_directory(table) / "_sidecars").iterdir()
        sidecar.unlink()
        with pytest.raises(LogFileNotFoundError):
            load_snapshot(spark, str(table))


def _make_old(table: Path) -> None:
    for file in log_directory(table).rglob("*.*"):
        set_time(file, 1_700_000_000_000)


class TestRefresh:
    def test_only_new_commits_are_read(
        self, spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_history(table, last=3)
        snapshot = load_snapshot(spark, str(table))
        write_history(table, first=4)
        spy = Spy(monkeypatch)
        newer = snapshot.refresh()
        assert [name for name in spy.names if name.endswith(".json")] == [
            f"{version:020d}.json" for version in (4, 5, 6)
        ]
        assert spy.listings == [f"{3:020d}"]  # which shows if the table was created anew
        assert replayed(newer) == expected(replay(COMMITS))
        assert snapshot.version == 3
        assert replayed(snapshot) == expected(replay(COMMITS, until=3))

    def test_without_news_it_is_the_same(self, spark: SparkSession, table: Path) -> None:
        create(table, add("a"))
        snapshot = load_snapshot(spark, str(table))
        assert snapshot.refresh() is snapshot

    def test_over_a_new_checkpoint(self, spark: SparkSession, table: Path) -> None:
        write_history(table, last=2)
        snapshot = load_snapshot(spark, str(table))
        write_history(table, first=3)
        write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
        newer = snapshot.refresh()
        assert newer.segment.checkpoint is not None
        assert replayed(newer) == expected(replay(COMMITS))

    def test_from_a_checkpoint_on(self, spark: SparkSession, table: Path) -> None:
        write_history(table, last=3)
        write_checkpoint(table, 2, replay(COMMITS, until=2).checkpoint())
        snapshot = load_snapshot(spark, str(table))
        write_history(table, first=4)
        assert replayed(snapshot.refresh()) == expected(replay(COMMITS))

    def test_a_new_protocol_is_checked(self, spark: SparkSession, table: Path) -> None:
        create(table, add("a"))
        snapshot = load_snapshot(spark, str(table))
        write_commit(table, 1, [protocol(features=["fromTheFuture"])])
        with pytest.raises(DeltaError, match="fromTheFuture"):
            snapshot.refresh()


class TestCache:
    def test_planning_again_reads_no_log(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        snapshot = load_snapshot(spark, str(table)).cache()
        try:
            assert snapshot.scan().files().count() == 5
            for file in (table / "_delta_log").iterdir():
                file.write_text("torn")
            kept = snapshot.scan().files().select("path").collect()
            assert sorted(row["path"] for row in kept) == sorted(replay(COMMITS).adds)
        finally:
            assert snapshot.uncache().scan().files().storageLevel.useMemory is False

    def test_later_commits_are_reconciled_with_it(self, spark: SparkSession, table: Path) -> None:
        write_history(table, last=3)
        snapshot = load_snapshot(spark, str(table)).cache()
        snapshot.scan().files().count()
        write_history(table, first=4)
        try:
            found = snapshot.refresh().scan().files().select("path").collect()
            assert sorted(row["path"] for row in found) == sorted(replay(COMMITS).adds)
        finally:
            snapshot.uncache()

    def test_nothing_is_cached_unasked(self, spark: SparkSession, table: Path) -> None:
        write_history(table)
        snapshot = load_snapshot(spark, str(table))
        assert not snapshot.scan().files().storageLevel.useMemory
        assert snapshot.uncache() is snapshot


def test_a_snapshot_is_pinned(spark: SparkSession, table: Path) -> None:
    create(table, write_data(table, "f", ids(0, 2)))
    snapshot, frame = load_snapshot(spark, str(table)), read_delta(spark, str(table))
    lazy = snapshot.add_files()
    following = DeltaTable.forPath(spark, str(table))
    write_commit(table, 1, [remove("f"), write_data(table, "g", ids(7, 8))])
    assert rows(frame) == rows(snapshot.scan().to_df()) == [(0,), (1,)]
    assert [row["path"] for row in lazy.collect()] == ["f"]
    assert rows(following.toDF()) == [(7,)]


def test_a_checkpoint_that_vanishes_is_looked_for_once_more(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint may vanish because log cleanup runs meanwhile."""
    state = replay(COMMITS, until=3)
    old = write_checkpoint(table, 3, state.checkpoint())
    find, found = loading.find_log_segment, []

    def find_then_clean(*args: Any, **kwargs: Any) -> Any:
        found.append(find(*args, **kwargs))
        if len(found) == 1:
            old.unlink()
            write_checkpoint(table, 6, replay(COMMITS).checkpoint())
        return found[-1]

    monkeypatch.setattr(loading, "find_log_segment", find_then_clean)
    snapshot = load_snapshot(spark, str(table))
    assert len(found) == 2
    assert snapshot.version == 6
    assert replayed(snapshot) == expected(replay(COMMITS))


def test_and_only_once(spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(table, add("a"))
    segment = loading.find_log_segment
    calls = []

    def find_what_is_gone(*args: Any, **kwargs: Any) -> Any:
        write_commit(table, 1, [])
        calls.append(1)
        found = segment(*args, **kwargs)
        (table / "_delta_log" / f"{1:020d}.json").unlink()
        return found

    monkeypatch.setattr(loading, "find_log_segment", find_what_is_gone)
    with pytest.raises(LogFileNotFoundError) as raised:
        load_snapshot(spark, str(table))
    assert len(calls) == 2
    assert raised.value.file == f"{1:020d}.json"


def test_commits_that_vanish_while_the_executors_read_them(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found when the job runs, not when it is planned."""
    _force(monkeypatch, "executors")
    write_history(table)
    in_commits, calls = loading._in_commits, []

    def clean_first(commits: Any) -> Any:
        calls.append(commits.files)
        if len(calls) == 1:
            write_checkpoint(table, 5, replay(COMMITS, until=5).checkpoint())
            for version in range(5):
                (table / "_delta_log" / f"{version:020d}.json").unlink()
        return in_commits(commits)

    monkeypatch.setattr(loading, "_in_commits", clean_first)
    snapshot = load_snapshot(spark, str(table))
    assert [files[0].version for files in calls] == [0, 6]
    assert replayed(snapshot) == expected(replay(COMMITS))


def test_live_files_are_joined_with_themselves(spark: SparkSession, table: Path) -> None:
    """Two frames of live files are planned as one, and can be joined all the same."""
    create(table, add("a", size=1), add("b", size=2))
    snapshot = load_snapshot(spark, str(table))
    one, other = snapshot.add_files(), snapshot.add_files()
    assert one.join(other, one.path == other.path).count() == 2
    assert one.join(other, one.size < other.size).count() == 1


@pytest.mark.parametrize("frame", ["add_files", "transactions"])
def test_a_checkpoint_that_vanishes_under_a_snapshot(
    spark: SparkSession, table: Path, frame: str
) -> None:
    """The error names the file, the version and log cleanup as the likely cause."""
    write_history(table)
    file = write_checkpoint(table, 3, replay(COMMITS, until=3).checkpoint())
    snapshot = load_snapshot(spark, str(table))
    file.unlink()
    error = raised_by(lambda: getattr(snapshot, frame)().collect())
    assert isinstance(error, LogFileNotFoundError)
    assert file.name in error.file
    assert error.version == 6


def test_a_checkpoint_that_vanishes_before_a_read_is_planned(
    spark: SparkSession, table: Path
) -> None:
    write_history(table)
    file = write_checkpoint(table, 3, replay(COMMITS, until=3).checkpoint())
    snapshot = load_snapshot(spark, str(table))
    file.unlink()
    error = raised_by(lambda: snapshot.scan().to_df())
    assert isinstance(error, LogFileNotFoundError)
    assert file.name in error.file


@pytest.mark.parametrize(
    "name", ["a b", "a%20b", "a+b", "x[1]", "{a,b}", "a#b", "a?b", "é€", "p=1", "a*", "_x", ".x"]
)
def test_tables_in_odd_places(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = tmp_path / name
    create(table, write_data(table, "p=1/f g.parquet", ids(0, 2), {}))
    write_commit(table, 1, [write_data(table, "h.parquet", ids(2, 3))])
    write_checkpoint(table, 0, [protocol(), metadata(), add("p=1/f%20g.parquet")])
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,)]
    assert rows(read_delta(spark, f"file://{table}")) == [(0,), (1,), (2,)]
