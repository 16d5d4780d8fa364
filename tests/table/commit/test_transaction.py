"""Transactions whose file actions are DataFrames, and commits that are too large to be values."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.predicates.predicate_rules import And, Column, Comparison, Literal
from sparkdelta.base.protocol.action_lines import action_line
from sparkdelta.base.protocol.actions import Metadata, Protocol, TransactionIdentifier
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.schema.action_schemas import actions as action_types
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    MetadataChangedException,
)
from sparkdelta.table.commit import spark_conflict_detection as large_commits
from sparkdelta.table.commit import staged_lines, transaction
from sparkdelta.table.commit.conflict_frames import CONFLICT, SUBJECT, conflicting_files
from sparkdelta.table.commit.conflict_rules import ReadSet, WinningCommit, file_conflicts
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from tests.support.errors import raises
from tests.support.memory_log import MemoryLog
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import counted_jobs

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "v", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)
APPEND = Operation("WRITE", {"mode": "Append"}, is_blind_append=True)
DELETE = Operation("DELETE")


def where(p: str) -> Comparison:
    return Comparison("=", Column(("p",)), Literal(p, "string"))


def add(name: str, p: str | None = None) -> AddFile:
    return AddFile(name, {"p": p}, 1, 1, True, '{"numRecords":1}')


def store_of(path: str) -> LocalLogStore:
    return LocalLogStore(f"file:{path}")


@pytest.fixture
def table(spark: SparkSession, table_path: str) -> str:
    """A table of the files a (p = 1) and b (p = 2), by a transaction."""
    staged = StagedActions(
        protocols=(Protocol(1, 2),),
        metadata=(Metadata("id", schema_string=SCHEMA, partition_columns=("p",)),),
        adds=(add("a", "1"), add("b", "2")),
    )
    done = Transaction(
        spark=SparkSession.active(), store=store_of(table_path), snapshot=None,
        operation=Operation("CREATE TABLE"), staged=staged,
    ).commit()  # fmt: skip
    assert (done.version, done.attempts) == (0, 1)
    return table_path


def commit(path: str, snapshot: Snapshot, operation: Operation = APPEND, **what: object) -> int:
    change = Transaction(
        spark=SparkSession.active(),
        store=store_of(path),
        snapshot=snapshot,
        operation=operation,
        **what,
    )  # type: ignore[arg-type]
    return change.commit().version


def adds_frame(spark: SparkSession, count: int) -> DataFrame:
    name = F.concat(F.lit("f%20"), F.col("id").cast("string"))
    return spark.range(count).select(
        F.struct(
            name.alias("path"),
            F.create_map(F.lit("p"), F.when(F.col("id") > 0, F.col("id").cast("string"))).alias(
                "partitionValues"
            ),
            F.lit(1).alias("size"),
            F.lit(2).cast("long").alias("modificationTime"),
            F.lit(True).alias("dataChange"),
            F.concat(F.lit('{"numRecords":'), "id", F.lit("}")).alias("stats"),
        ).alias("add")
    )


def removes_frame(spark: SparkSession, *names: str) -> DataFrame:
    rows = spark.createDataFrame([(name,) for name in names], "path STRING")
    return rows.select(
        F.struct("path", F.lit(5).alias("deletionTimestamp"), F.lit(True).alias("dataChange"))
        .alias("remove")
    )  # fmt: skip


def live(spark: SparkSession, path: str) -> list[str]:
    return sorted(r["path"] for r in open_snapshot(spark, path).add_files().collect())


LARGE = pytest.mark.parametrize("large", [False, True], ids=["values", "staged"])


@pytest.fixture
def few(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 0)
        monkeypatch.setattr(large_commits, "DRIVER_LOG_BYTES", 0)


@LARGE
@pytest.mark.usefixtures("few")
@pytest.mark.full
def test_file_actions_from_a_frame(spark: SparkSession, table: str, large: bool) -> None:
    snapshot = open_snapshot(spark, table)
    assert commit(table, snapshot, file_actions=adds_frame(spark, 3)) == 1
    lines = Path(table, "_delta_log", f"{1:020d}.json").read_text().splitlines()
    info, *adds = map(json.loads, lines)
    assert info["commitInfo"]["operation"] == "WRITE"
    assert sorted((a["add"] for a in adds), key=lambda a: a["path"])[0] == {
        "path": "f%200",
        "partitionValues": {"p": None},  # a key for every partition column
        "size": 1,
        "modificationTime": 2,
        "dataChange": True,
        "stats": '{"numRecords":0}',
    }
    assert live(spark, table) == ["a", "b", "f%200", "f%201", "f%202"]
    gone = removes_frame(spark, "a", "f%201")
    assert commit(table, snapshot.refresh(), DELETE, file_actions=gone) == 2
    assert live(spark, table) == ["b", "f%200", "f%202"]


@LARGE
@pytest.mark.usefixtures("few")
@pytest.mark.full
def test_change_files_from_a_frame(spark: SparkSession, table: str, large: bool) -> None:
    """PROTOCOL.md#add-cdc-file: a change file may be one that is added; replay ignores it."""
    snapshot = open_snapshot(spark, table)
    fields = ("path", "partitionValues", "size", F.lit(False).alias("dataChange"))
    cdc = adds_frame(spark, 2).select("add.*").select(F.struct(*fields).alias("cdc"))
    both = adds_frame(spark, 1).unionByName(cdc, allowMissingColumns=True)
    with raises("DELTA_INVALID_COMMIT"):
        commit(table, snapshot, Operation("UPDATE"), file_actions=both)
    upgrade = StagedActions(protocols=(Protocol(1, 4),))
    commit(table, snapshot, Operation("UPDATE"), staged=upgrade, file_actions=both)
    lines = Path(table, "_delta_log", f"{1:020d}.json").read_text().splitlines()
    changes = [a["cdc"] for a in map(json.loads, lines) if "cdc" in a]
    assert sorted(changes, key=lambda a: a["path"])[0] == {
        "path": "f%200", "partitionValues": {"p": None}, "size": 1, "dataChange": False,
    }  # fmt: skip
    assert len(changes) == 2
    assert live(spark, table) == ["a", "b", "f%200"]


def test_few_file_actions_cost_one_job(spark: SparkSession, table: str) -> None:
    snapshot = open_snapshot(spark, table)
    with counted_jobs(spark) as jobs:
        commit(table, snapshot, file_actions=adds_frame(spark, 3).coalesce(1))
    assert jobs.count == 1


def test_a_million_actions_are_streamed(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit is ever whole in the driver's memory: the store gets it in pieces."""
    monkeypatch.setattr(transaction, "MAX_VALUE_ACTIONS", 10)
    monkeypatch.setattr(staged_lines, "LINES_PER_FILE", 10)
    sizes = []
    put = LocalLogStore.put_if_absent

    def watched(self: LocalLogStore, name: str, data: object) -> None:
        def pieces() -> object:
            for piece in data:  # type: ignore[attr-defined]
                sizes.append(len(piece))
                yield piece

        put(self, name, pieces())  # type: ignore[arg-type]

    monkeypatch.setattr(LocalLogStore, "put_if_absent", watched)
    commit(table, open_snapshot(spark, table), file_actions=adds_frame(spark, 200))
    assert max(sizes) <= 2_500
    assert len(sizes) > 20
    assert open_snapshot(spark, table).add_files().count() == 202
    assert not [p for p in Path(table, "_delta_log").iterdir() if p.is_dir()]  # nothing stays


def tracked(spark: SparkSession, path: str) -> Snapshot:
    """An empty table whose rows up to the id 9 are taken."""
    staged = StagedActions(
        protocols=(Protocol(1, 7, None, ("domainMetadata", "rowTracking")),),
        metadata=(Metadata("id", schema_string=SCHEMA, partition_columns=("p",)),),
        adds=(replace(add("old"), stats='{"numRecords":10}'),),
    )
    new = Transaction(
        spark=SparkSession.active(),
        store=store_of(path),
        snapshot=None,
        operation=APPEND,
        staged=staged,
    )
    new.commit()
    return open_snapshot(spark, path)


@LARGE
@pytest.mark.usefixtures("few")
@pytest.mark.full
def test_row_ids_of_many_files(
    spark: SparkSession, table_path: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writer Requirements for Row Tracking: fresh ids, no row's twice, with each attempt anew; a
    file that is committed again keeps its own.
    """
    monkeypatch.setattr(staged_lines, "LINES_PER_FILE", 7)
    snapshot = tracked(spark, table_path)
    new = adds_frame(spark, 40).repartition(3)  # of 0, 1, 2 ... rows
    again = new.filter("add.path = 'f%203'").select(
        F.col("add").withField("path", F.lit("again")).withField("baseRowId", F.lit(2).cast("long"))
        .withField("defaultRowCommitVersion", F.lit(0).cast("long")).alias("add")
    )  # fmt: skip
    actions = new.unionByName(again, allowMissingColumns=True)
    removed = removes_frame(spark, "old")
    commit(table_path, snapshot, staged=StagedActions(adds=(add("first"),)))  # wins the race
    late = Transaction(
        spark=SparkSession.active(), store=store_of(table_path), snapshot=snapshot,
        operation=APPEND,
        staged=StagedActions(adds=(add("mine"),)),
        file_actions=actions.unionByName(removed, allowMissingColumns=True),
    )  # fmt: skip
    done = late.commit()
    assert (done.version, done.attempts) == (2, 1)
    text = Path(table_path, "_delta_log", f"{2:020d}.json").read_text()
    documents = [json.loads(line) for line in text.splitlines()]
    adds = {d["add"]["path"]: d["add"] for d in documents if "add" in d}
    assert sum("remove" in d for d in documents) == 1
    kept = adds.pop("again")
    assert (kept["baseRowId"], kept["defaultRowCommitVersion"]) == (2, 0)
    assert len(adds) == 41
    assert {a["defaultRowCommitVersion"] for a in adds.values()} == {2}
    rows = [
        row
        for a in adds.values()
        for row in range(a["baseRowId"], a["baseRowId"] + json.loads(a["stats"])["numRecords"])
    ]
    taken = 11  # by the table and the winner
    assert sorted(rows) == list(range(taken, taken + 1 + sum(range(40))))
    [domain] = [d["domainMetadata"] for d in documents if "domainMetadata" in d]
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": max(rows)}


@LARGE
@pytest.mark.usefixtures("few")
def test_a_file_whose_rows_nobody_counted(
    spark: SparkSession, table_path: str, large: bool
) -> None:
    """Writer Requirements for Row Tracking"""
    snapshot = tracked(spark, table_path)
    uncounted = adds_frame(spark, 2).select(
        F.col("add").withField("stats", F.lit("{}")).alias("add")
    )
    with raises("DELTA_INVALID_COMMIT", match="numRecords"):
        commit(table_path, snapshot, file_actions=uncounted)
    assert open_snapshot(spark, table_path).version == 0


@LARGE
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("names", [("a", "a"), ("%61", "a")])
def test_a_file_that_is_named_twice(
    spark: SparkSession, table: str, names: tuple[str, ...], large: bool
) -> None:
    with raises("DELTA_INVALID_COMMIT"):
        commit(table, open_snapshot(spark, table), file_actions=removes_frame(spark, *names))
    assert open_snapshot(spark, table).version == 0


@LARGE
@pytest.mark.usefixtures("few")
def test_an_append_only_table(spark: SparkSession, table: str, large: bool) -> None:
    snapshot = open_snapshot(spark, table)
    properties = {"delta.appendOnly": "true"}
    metadata = Metadata(
        "id", schema_string=SCHEMA, partition_columns=("p",), configuration=properties
    )
    commit(table, snapshot, staged=StagedActions(metadata=(metadata,)))
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        commit(table, snapshot.refresh(), DELETE, file_actions=removes_frame(spark, "a"))


V_IS_5 = Comparison("=", Column(("v",)), Literal(5, "bigint"))
SEVEN = '{"numRecords":2,"minValues":{"v":7},"maxValues":{"v":7},"nullCount":{"v":0}}'
FIVE_AND_SEVEN = SEVEN.replace('"minValues":{"v":7}', '"minValues":{"v":5}')


def appended(*stats: str | None) -> dict[str, object]:
    """New files of partition 1, with statistics."""
    names = zip("xyz", stats, strict=False)
    return {"adds": tuple(replace(add(name, "1"), stats=text) for name, text in names)}


@LARGE
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("first", "read", "error"),
    [
        ({"adds": (add("n", "1"),)}, {"predicates": (where("1"),)}, ConcurrentAppendException),
        ({"adds": (add("n", "2"),)}, {"predicates": (where("1"),)}, None),
        ({"adds": (add("n", "2"),)}, {"whole_table": True}, ConcurrentAppendException),
        (appended(SEVEN), {"predicates": (V_IS_5,)}, None),
        (appended(FIVE_AND_SEVEN), {"predicates": (V_IS_5,)}, ConcurrentAppendException),
        (appended(SEVEN), {"predicates": (V_IS_5,), "whole_table": True},
         ConcurrentAppendException),
        ({"removes": (RemoveFile("b", 1, True),)}, {"files": frozenset({("b", None)})},
         ConcurrentDeleteReadException),
        ({"removes": (RemoveFile("b", 1, True),)}, {"files": frozenset({("c", None)})}, None),
        ({"removes": (RemoveFile("b", 1, True),)},
         {"files": frozenset({("c", None)}), "leaves_rows": True}, ConcurrentDeleteReadException),
        ({"removes": (RemoveFile("%61", 1, True),)}, {}, ConcurrentDeleteDeleteException),
        ({"transactions": (TransactionIdentifier("x", 1),)}, {"app_ids": frozenset("x")},
         ConcurrentTransactionException),
        ({"metadata": (Metadata("id", schema_string=SCHEMA, partition_columns=("p",)),)}, {},
         MetadataChangedException),
    ],
)  # fmt: skip
def test_conflicts(spark, table, first, read, error, large) -> None:  # type: ignore[no-untyped-def]
    """A delete of a, after another commit."""
    snapshot = open_snapshot(spark, table)
    commit(table, snapshot, Operation("FIRST"), staged=StagedActions(**first))
    late = {"file_actions": removes_frame(spark, "a"), "read": ReadSet(**read)}
    if error is None:
        assert commit(table, snapshot, DELETE, **late) == 2
        return
    with pytest.raises(error) as raised:
        commit(table, snapshot, DELETE, **late)
    assert (raised.value.version, raised.value.operation) == (1, "FIRST")
    assert open_snapshot(spark, table).version == 1


def test_read_files_may_be_a_frame(spark: SparkSession, table: str) -> None:
    snapshot = open_snapshot(spark, table)
    commit(table, snapshot, DELETE, staged=StagedActions(removes=(RemoveFile("b", 1, True),)))
    read = snapshot.add_files().select("path")
    with pytest.raises(ConcurrentDeleteReadException):
        commit(table, snapshot, read_files=read, staged=StagedActions(adds=(add("n", "1"),)))
    assert commit(table, snapshot, read_files=read.filter("path = 'a'")) == 2


def test_added_files_match_by_statistics(spark: SparkSession, table: str) -> None:
    """PROTOCOL.md#per-file-statistics: without reliable ones, a file may hold any row."""
    snapshot = open_snapshot(spark, table)
    wide = SEVEN.replace('"numRecords":2', '"numRecords":2,"tightBounds":false')
    no_rows = '{"numRecords":1,"nullCount":{"v":1}}'
    maybe = ["", "{", None, "[7]", "{}", FIVE_AND_SEVEN, SEVEN.replace("7}", '"x"}'), SEVEN[:-9]]
    stats = [SEVEN, wide, no_rows, *maybe]
    adds = [replace(add(str(number), "1"), stats=text) for number, text in enumerate(stats)]
    elsewhere = replace(add("elsewhere", "2"), stats=FIVE_AND_SEVEN)
    staged = StagedActions(adds=(*adds, elsewhere))
    commit(table, snapshot, staged=staged)
    read = ReadSet((And((where("1"), V_IS_5)),))
    late = Transaction(
        spark=spark, store=store_of(table), snapshot=snapshot, operation=DELETE, read=read
    )
    detector = late._detector(None)
    assert isinstance(detector, large_commits.SparkConflictDetector)
    with counted_jobs(spark) as jobs, settings(spark, HOSTILE["time zone, no ANSI"]):
        found = detector.small.may_match(WinningCommit(1, adds=staged.adds))
    assert jobs.count == 0
    assert [int(file.path) for file in found] == list(range(3, len(stats)))


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "blind"), [(False, True), (True, False)])
def test_frames_and_values_find_the_same(
    spark: SparkSession, table: str, whole: bool, blind: bool
) -> None:
    """The value form is the oracle of the other."""
    snapshot = open_snapshot(spark, table)
    read = ReadSet((where("1"),), frozenset({("a b", None)}), whole)
    mine = frozenset({("c%", None)})
    names = ("a%20b", "c%25", "d", "a b")
    commits = [
        (),
        *[(RemoveFile(name, 1, True),) for name in names],
        (add("n", "1"),), (add("n", "2"),), (add("n"),), (add("m", "2"), add("n", "1")),
        (RemoveFile("d", 1, True), RemoveFile("c%25", 1, False), add("n", "1")),
    ]  # fmt: skip
    lazily = Transaction(
        spark=SparkSession.active(),
        store=store_of(table),
        snapshot=snapshot,
        operation=APPEND,
        read=read,
    )
    detector = lazily._detector(None)
    assert isinstance(detector, large_commits.SparkConflictDetector)
    for actions in commits:
        winner = WinningCommit(
            1,
            commit_info={"isBlindAppend": blind},
            adds=tuple(a for a in actions if isinstance(a, AddFile)),
            removes=tuple(a for a in actions if isinstance(a, RemoveFile)),
        )
        wanted = file_conflicts(
            winner, read=read, removes=mine,
            partition_types={"p": ("p", "string")}, table_root=snapshot.path,
        )  # fmt: skip
        lines = spark.createDataFrame([(action_line(a),) for a in actions], "line STRING")
        parsed = lines.select(F.from_json("line", action_types("add", "remove")).alias("a"))
        found = conflicting_files(
            parsed.select("a.*"),
            reads_whole_table=whole,
            leaves_rows=False,
            skipping=detector.skipping,
            read_files=spark.createDataFrame([("a b",)], "key STRING"),
            removed_files=spark.createDataFrame([("c%",)], "key STRING"),
            is_blind_append=blind,
            table_root=snapshot.path,
        ).collect()
        assert {r[CONFLICT] for r in found} == {f.name for f in wanted}
        assert len(found) == len(wanted)
        assert all(r[SUBJECT] for r in found)


def test_threads_of_one_session(spark: SparkSession, table: str) -> None:
    snapshot = open_snapshot(spark, table)

    def append(writer: int) -> int:
        path = F.concat(F.lit(f"{writer}-"), "add.path")
        adds = adds_frame(spark, 2).select(F.col("add").withField("path", path).alias("add"))
        return commit(table, snapshot, file_actions=adds)

    with ThreadPoolExecutor(6) as pool:
        versions = sorted(pool.map(append, range(6)))
    assert versions == list(range(1, 7))
    assert len(live(spark, table)) == 14


class TwoPuts(MemoryLog):
    """A store that can write a commit and its checksum in one request."""

    def expect_put(self, name: str, data: bytes, *, after: str) -> None:
        self.files[f"{name} after {after}"] = data

    def expect_deletion(self, directory: str) -> None: ...


@pytest.mark.parametrize("version", [0, 1])
def test_a_checksum_is_known_right_after_the_version_that_was_read(version: int) -> None:
    """PROTOCOL.md#version-checksum-file: a first attempt may follow a commit of another thread."""
    store = TwoPuts()
    create = Transaction(spark=None, store=store, snapshot=None, operation=APPEND)  # type: ignore[arg-type]
    actions = (Protocol(1, 2), Metadata("id", schema_string=SCHEMA), add("f"))
    lines = "".join(
        f"{line}\n" for line in ['{"commitInfo":{"operation":"WRITE"}}', *map(action_line, actions)]
    )
    create._combine_requests(version, lines.encode())
    name = f"{0:020d}"
    assert [*store.files] == ([] if version else [f"{name}.crc after {name}.json"])
