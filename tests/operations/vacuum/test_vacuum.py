"""VACUUM: which files go, by a listing and by the log; refusals, commits, crashes and races.

PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    optimize,
    read_delta,
    vacuum,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.base.protocol.log_files import staged_data_directory
from sparkdelta.base.storage.worker_files import ArrowFiles, WorkerFiles
from sparkdelta.exceptions import InvalidArgumentError, StorageError
from sparkdelta.operations.vacuum import file_deletion, unneeded_files
from sparkdelta.operations.vacuum import vacuum as command
from sparkdelta.table.commit import transaction
from sparkdelta.table.snapshot import directory_listing
from sparkdelta.table.snapshot.staging import Staging
from tests.support.crashing_store import dying_writer
from tests.support.drawn import drawn
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.memory_log import Crash
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import shuffled_columns
from tests.support.table_builder import (
    add,
    create,
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_data,
    write_vectors,
)

HOUR = 3600
NOW = time.time()
OLD, YOUNG = NOW - 10 * HOUR, NOW - 60
AN_HOUR: dict[str, Any] = {"retention_hours": 1, "check_retention": False, "progress": False}
AT_ONCE: dict[str, Any] = {**AN_HOUR, "retention_hours": 0}


def ms(seconds: float) -> int:
    return int(seconds * 1000)


def put(table: Path, name: str, moment: float = OLD) -> Path:
    """A file of a byte."""
    file = table / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    os.utime(file, (moment, moment))
    return file


def commit(table: Path, version: int, *actions: Any, moment: float = OLD) -> None:
    write_commit(table, version, list(actions))
    os.utime(table / "_delta_log" / f"{version:020d}.json", (moment, moment))


def below(table: Path) -> set[str]:
    """The files and links of a table, without its log."""
    found = (f.relative_to(table) for f in table.rglob("*") if f.is_symlink() or f.is_file())
    return {str(file) for file in found if file.parts[0] != "_delta_log"}


# One vacuum of many random files.

DIRECTORIES = ["a", "_p=1", "p=x%20y é", "_hidden", ".dot", "_change_data", "_delta_index", "data",
               "metadata", "_q=1"]  # fmt: skip
NAMES = ["f.parquet", "_f", ".f", "a b+c%20d.parquet", "_p=2", "_change_data.x", "é'\"\\.bin"]
REFERENCES = [
    "",
    "live",
    "tombstone",
    "expired",
    "absolute",
    "uri",
    "linked",
    "slashes",
    "elsewhere",
    "inner",
]
FILES = st.tuples(
    st.lists(st.sampled_from(DIRECTORIES), max_size=3),
    st.sampled_from(NAMES),
    st.sampled_from(REFERENCES),
    st.booleans(),
)


def is_hidden(name: str) -> bool:
    kept = ("_delta_index", "_change_data", "_p=", "p=")
    return name[0] in "_." and not name.startswith(kept)


@pytest.mark.parametrize("group", [None, pytest.param("Parquet", marks=pytest.mark.full)])
@pytest.mark.slow
def test_random_trees(spark: SparkSession, tmp_path: Path, group: str | None) -> None:
    """Exactly the old, visible files that nothing needs go, and nothing outside the root.

    PROTOCOL.md#add-file-and-remove-file: paths are URIs, relative or absolute.
    """
    table, other = tmp_path / "my table", tmp_path / "other"
    (tmp_path / "link").symlink_to(table)
    (table / "a").mkdir(parents=True)
    (table / "inner").symlink_to(table / "a")
    actions, expected = [], set()
    for number, (directories, name, reference, is_old) in enumerate(drawn(FILES, 300)):
        path = "/".join([*directories, f"{name}.{number}"])
        put(table, path, OLD if is_old else YOUNG)
        uri = quote(path, safe="/=")
        if reference in ("tombstone", "expired"):
            moment = YOUNG if reference == "tombstone" else OLD
            actions.append(remove(uri, deletionTimestamp=ms(moment)))
        elif reference == "elsewhere":
            put(other, path)
            actions.append(add(f"{other}/{uri}"))
        elif reference == "inner":
            actions.append(add(f"inner/{uri[2:]}" if uri.startswith("a/") else uri))
        elif reference:
            start = {
                "live": "",
                "absolute": f"{quote(str(table))}/",
                "uri": f"file://{quote(str(table))}/",
                "linked": f"file:{tmp_path}/link/",
                "slashes": ".//",
            }[reference]
            actions.append(add(f"{start}{uri}"))
        is_needed = reference not in ("", "expired", "elsewhere")
        if is_needed or not is_old or any(map(is_hidden, path.split("/"))):
            expected.add(path)
    outside = {"f", "g"}
    for name in outside:
        put(other, name)
    put(table, "x/y").rename(other / "moved")
    (table / "x/z").symlink_to(other)
    (table / "linked file").symlink_to(other / "f")
    for name in ("empty/inner", "_empty", "young"):
        (table / name).mkdir(parents=True)
    for directory in table.rglob("*"):
        if directory.is_dir() and directory.name != "young" and not directory.is_symlink():
            os.utime(directory, (OLD, OLD))
    fields = (field(name, "string") for name in ("id", "_p", "p"))
    write_commit(table, 0, [protocol(), metadata(*fields, partitioned_by=["_p", "p"]), *actions])
    expected |= {"x/z", "linked file", "inner"}
    elsewhere = below(other)
    with (
        settings(spark, HOSTILE[group] if group else {}),
        patch.object(directory_listing, "FIRST_BUDGET", 50),
        patch.object(directory_listing, "BUDGET", 100),
    ):
        planned = vacuum(spark, str(table), **AN_HOUR, dry_run=True)
        before = below(table)
        result = vacuum(spark, str(table), **AN_HOUR)
    assert below(table) == expected
    assert below(other) == elsewhere
    gone = before - expected
    assert {*planned.files} == gone | {"empty/inner"}
    assert (result.deleted.count, result.deleted.bytes) == (len(gone), len(gone))
    assert result.num_deleted_directories == 1
    assert (table / "_empty").is_dir()
    assert (table / "young").is_dir()
    assert (table / "empty").is_dir()
    assert sum(kept.count for kept in result.kept.values()) + len(gone) <= len(before)


@pytest.mark.slow
@pytest.mark.parametrize("has_link", [False, pytest.param(True, marks=pytest.mark.full)])
def test_vectors_and_change_data(spark: SparkSession, tmp_path: Path, has_link: bool) -> None:
    """PROTOCOL.md#deletion-vector-files: they are needed as long as an action that names them.

    A vector of a live file lies in the file of one that is not; PROTOCOL.md#change-data-files:
    change data has no action in the state, so that its age alone counts.
    """
    table = tmp_path / "table"
    files = {name: write_data(table, f"{name}.parquet", ids(0, 9)) for name in "abcd"}
    without_vectors = [files["a"], files["d"]]
    vectors = {
        "a": write_vectors(table, [0], [1], number=1),
        "b": write_vectors(table, [2], number=2, prefix="p%"),
        "c": write_vectors(table, [3], number=3),
    }
    absolute = write_vectors(table, [4], number=4)[0]
    place = next(table.glob("*000004.bin"))
    absolute |= {"storageType": "p", "pathOrInlineDv": f"file:{place}"}
    write_commit(table, 0, [protocol(features=["deletionVectors"]), metadata(), *without_vectors])
    live, gone = vectors["a"]
    expired, kept = ms(OLD), ms(YOUNG)
    actions = [
        add("a.parquet", deletionVector=live),
        remove("e.parquet", deletionVector=gone, deletionTimestamp=expired),
        remove("b.parquet", deletionVector=vectors["b"][0], deletionTimestamp=kept),
        remove("c.parquet", deletionVector=vectors["c"][0], deletionTimestamp=expired),
        add("d.parquet", deletionVector=absolute),
        add("i.parquet", deletionVector=inline_vector([1])),
    ]
    for action in actions:
        action.get("add", {}).update(stats=json.dumps({"numRecords": 9}))
    write_commit(table, 1, actions)
    put(table, "_change_data/p=1/old.parquet")
    put(table, "_change_data/p=1/young.parquet", YOUNG)
    for file in below(table) - {"_change_data/p=1/young.parquet"}:
        os.utime(table / file, (OLD, OLD))
    if has_link:
        (table / "link").symlink_to(tmp_path / "elsewhere")
    with settings(spark, HOSTILE["plans"]):
        result = vacuum(spark, str(table), **AN_HOUR)
    names = {1: "a", 2: "b", 3: "c", 4: "d"}
    left = {names[int(Path(file).stem[-1])] for file in below(table) if file.endswith(".bin")}
    assert left == {"a", "b", "d"}
    others = {file for file in below(table) - {"link"} if not file.endswith(".bin")}
    assert others == {"a.parquet", "b.parquet", "d.parquet", "_change_data/p=1/young.parquet"}
    assert {reason: n.count for reason, n in result.kept.items()} == {
        "live": 2, "removed": 1, "deletion vector": 3, "young": 1,
    }  # fmt: skip
    assert "2 files" in str(result)
    assert "live" in result.as_dict()["kept"]


@pytest.mark.full
def test_one_line_with_two_actions(spark: SparkSession, tmp_path: Path) -> None:
    """No writer makes one; the files of both are kept."""
    table = tmp_path / "table"
    create(table, add("b"))
    line = {**add("a"), **remove("b", deletionTimestamp=ms(YOUNG))}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(line))
    for name in ("a", "b", "x" * 252):  # of the longest names, no checksum can be
        put(table, name)
    vacuum(spark, str(table), **AN_HOUR)
    assert below(table) == {"a", "b"}


# By the log.


def lite_table(table: Path, *, moment: float = OLD) -> None:
    """Ten files and a change data file; versions 1 to 3 remove three of them."""
    for n in range(10):
        put(table, f"{n}.parquet", YOUNG)  # whose age does not matter
    put(table, "_change_data/c.parquet", YOUNG)
    create(table, *(add(f"{n}.parquet") for n in range(10)))
    os.utime(table / "_delta_log" / f"{0:020d}.json", (moment, moment))
    for n in (1, 2, 3):
        changes = [{"cdc": {"path": "_change_data/c.parquet", "partitionValues": {}, "size": 1,
                            "dataChange": False}}]  # fmt: skip
        removal = remove(f"{n}.parquet", size=1, deletionTimestamp=ms(moment))
        commit(table, n, removal, *(changes if n == 3 else ()), moment=moment)


def info(table: Path) -> Any:
    return json.loads((table / "_delta_log/_last_vacuum_info").read_text())


@pytest.mark.full
def test_lite(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files: what commits before the retention period removed, since the last
    run, but for what is there again, or elsewhere.
    """
    table = tmp_path / "table"
    lite_table(table)
    commit(table, 4, add("2.parquet"))
    (tmp_path / "outside").write_text("x")
    for path in ("_delta_log/00000000000000000000.json", f"file:{tmp_path}/outside", "gone"):
        version = len(list((table / "_delta_log").glob("*.json")))
        commit(table, version, remove(path, deletionTimestamp=ms(OLD)))
    commit(table, 8, remove("5.parquet", deletionTimestamp=ms(YOUNG)), moment=YOUNG)
    put(table, "orphan")
    result = vacuum(spark, str(table), mode="lite", **AN_HOUR)
    assert {f"{n}.parquet" for n in range(10)} - below(table) == {"1.parquet", "3.parquet"}
    assert "_change_data/c.parquet" not in below(table)
    assert "orphan" in below(table)
    assert (tmp_path / "outside").exists()
    assert (result.unneeded.count, result.deleted.count, result.versions) == (4, 3, (9, 10))
    assert (result.covered_version, info(table)) == (
        7, {"latestCommitVersionOutsideOfRetentionWindow": 7},
    )  # fmt: skip
    put(table, "1.parquet")
    assert vacuum(spark, str(table), mode="lite", **AN_HOUR).unneeded.count == 0
    assert vacuum(spark, str(table), mode="lite", **AT_ONCE).deleted.count == 1
    assert "5.parquet" not in below(table)
    vacuum(spark, str(table), **AN_HOUR)
    assert {"orphan", "1.parquet"}.isdisjoint(below(table))
    assert info(table)["latestCommitVersionOutsideOfRetentionWindow"] >= 10


@pytest.mark.slow
@pytest.mark.parametrize("group", [None, pytest.param("plans", marks=pytest.mark.slow)])
def test_lite_of_random_files(spark: SparkSession, tmp_path: Path, group: str | None) -> None:
    """Exactly the removed files go that the table does not have under another spelling.

    PROTOCOL.md#add-file-and-remove-file: paths are URIs, relative or absolute.
    """
    table, other = tmp_path / "my table", tmp_path / "other"
    (tmp_path / "link").symlink_to(table)
    removes, adds, expected = [], [], set()
    for number, (directories, name, reference, _) in enumerate(drawn(FILES, 300)):
        path = "/".join([*directories, f"{name}.{number}"])
        put(table, path)
        uri = quote(path, safe="/=")
        starts = {
            "live": "",
            "absolute": f"{quote(str(table))}/",
            "uri": f"file://{quote(str(table))}/",
            "linked": f"file:{tmp_path}/link/",
            "slashes": ".//",
            "elsewhere": f"{other}/",
        }
        if reference in starts:
            adds.append(add(f"{starts[reference]}{uri}"))
        if reference != "":
            moment = YOUNG if reference == "tombstone" else OLD
            removes.append(remove(uri, size=1, deletionTimestamp=ms(moment)))
        is_log = directories[:1] == ["_delta_log"]
        if reference not in ("expired", "elsewhere", "inner") and not is_log:
            expected.add(path)
    before = below(table)
    fields = (field(name, "string") for name in ("id", "_p", "p"))
    commit(table, 0, protocol(), metadata(*fields, partitioned_by=["_p", "p"]), *removes)
    commit(table, 1, *adds)
    write_checkpoint(spark, str(table))
    with settings(spark, HOSTILE[group] if group else {}):
        result = vacuum(spark, str(table), mode="lite", **AN_HOUR)
    assert below(table) == expected
    assert result.deleted.count == len(before - expected) > 0
    assert "live" in result.kept


@pytest.mark.classic("looks into plans")
@pytest.mark.slow
def test_lite_passes_other_files_over(spark: SparkSession, tmp_path: Path) -> None:
    """The performance contract: files that no commit removed are neither staged nor shuffled."""
    table = tmp_path / "table"
    lite_table(table)
    write_checkpoint(spark, str(table), version=0)
    commit(table, 4, add("2.parquet"))
    written = {}
    write = Staging.write_parquet

    outcomes = unneeded_files.outcomes

    def counted(stage: Staging, rows: DataFrame, part: str, options: Any) -> Any:
        written[part] = rows.count()
        return write(stage, rows, part, options)

    def checked(entries: DataFrame, needed: DataFrame, **options: Any) -> DataFrame:
        assert needed.count() == 1
        assert not shuffled_columns(needed)
        return outcomes(entries, needed, **options)

    with (
        patch.object(Staging, "write_parquet", counted),
        patch.object(unneeded_files, "outcomes", checked),
    ):
        vacuum(spark, str(table), mode="lite", **AN_HOUR)
    assert written == {"entries": 4, "outcomes": 4}


@pytest.mark.slow
@pytest.mark.parametrize("gone", [(0, 1), (1,)], ids=["cleaned up", "cut short"])
def test_lite_without_the_log(spark: SparkSession, tmp_path: Path, gone: tuple[int, ...]) -> None:
    """PROTOCOL.md#metadata-cleanup: the tombstones of the oldest checkpoint stand for commits, and
    for those that a cleanup left behind.
    """
    table = tmp_path / "table"
    lite_table(table)
    write_checkpoint(spark, str(table), version=2)
    for version in gone:
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    (table / "_delta_log/_last_vacuum_info").write_text("{}")
    result = vacuum(spark, str(table), mode="lite", **AN_HOUR)
    assert {f"{n}.parquet" for n in range(10)} - below(table) == {"1.parquet", "2.parquet",
                                                                 "3.parquet"}  # fmt: skip
    assert result.missing_versions == (0, 1)
    assert "versions 0 to 1" in str(result)


@pytest.mark.slow
def test_a_longer_retention_period(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#checkpoints: they may lack tombstones that are older than the table's period."""
    table = tmp_path / "table"
    retention = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
    create(table, add("live"), add("gone"), configuration=retention)
    commit(table, 1, remove("gone", deletionTimestamp=ms(OLD)))
    for name in ("live", "gone", "orphan"):
        put(table, name, OLD - 20 * HOUR)
    write_checkpoint(spark, str(table))
    assert load_snapshot(spark, str(table)).remove_files().count() == 0
    vacuum(spark, str(table), retention_hours=20, progress=False)
    assert below(table) == {"live", "gone"}
    (table / f"_delta_log/{1:020d}.json").unlink()
    with pytest.raises(InvalidArgumentError, match="no longer tells"):
        vacuum(spark, str(table), retention_hours=20)
    assert below(table) == {"live", "gone"}


# Arguments.


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#vacuum-protocol-check: a table that cannot be written is not vacuumed."""
    table = tmp_path / "table"
    create(table, configuration={"delta.deletedFileRetentionDuration": "interval 150 minutes"})
    orphan = put(table, "orphan")
    with raises("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT") as raised:
        DeltaTable.forPath(spark, str(table)).vacuum(2)
    assert raised.value.least_hours == 3
    with raises("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"):
        vacuum(spark, str(table), retention_hours=-1, check_retention=False)
    for wrong in (
        {"mode": "light"}, {"retention_hours": "1"}, {"deletes_per_second": 0}, {"dry_run": 1},
        {"mode": "lite", "inventory": spark.range(1)}, {"retention_hours": float("nan")},
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError):
            vacuum(spark, str(table), **wrong)  # type: ignore[arg-type]
    with raises("DELTA_INVALID_INVENTORY_SCHEMA"):
        vacuum(spark, str(table), inventory=spark.range(1).selectExpr("'a' AS path"))
    features = ["vacuumProtocolCheck", "vacuumProtocolCheckOfTheFuture"]
    write_commit(table, 1, [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features[:1],
                      "writerFeatures": features}}
    ])  # fmt: skip
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        vacuum(spark, str(table), **AT_ONCE)
    assert orphan.exists()
    assert len(list((table / "_delta_log").iterdir())) == 2


@pytest.mark.full
def test_inventory(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files"""
    table = tmp_path / "table"
    create(table, add("live%20file"))
    unfinished = f"{staged_data_directory(str(uuid4()))}/_temporary/0/_temporary/attempt/f"
    names = ["live file", "old", "young", "_hidden/f", "d/old", unfinished,
             f"_temporary/{unfinished}", "not listed"]  # fmt: skip
    for name in names:
        put(table, name)
    put(tmp_path, "table2")
    rows = [(f"file:{table}/{name}", 1, False, ms(YOUNG if name == "young" else OLD))
            for name in names[:-1]]  # fmt: skip
    rows += [(f"file:{tmp_path}/table2", 1, False, 1), (f"file://{table}//d", 0, True, 1)]
    rows += [(f"file:{table}/old", 1, False, 1)]
    inventory = spark.createDataFrame(
        rows, "path STRING, length LONG, isDir BOOLEAN, modificationTime LONG"
    )
    vacuum(spark, str(table), inventory=inventory.withColumn("more", inventory.path), **AN_HOUR)
    assert set(names) - below(table) == {"old", "d/old", unfinished}
    assert (tmp_path / "table2").exists()
    assert not (table / "_delta_log/_last_vacuum_info").exists()


# Commits.


@pytest.mark.slow
def test_commits_and_the_empty_result(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#commit-provenance-information: two versions without actions, or none."""
    table = tmp_path / "table"
    create(table, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    for name in ("a", "b"):
        put(table, name)
    assert vacuum(spark, str(table), dry_run=True, progress=False).files == ("a", "b")
    assert not DeltaTable.forPath(spark, str(table)).vacuum().columns
    commits = [
        [json.loads(line) for line in (table / f"_delta_log/{v:020d}.json").read_text().splitlines()
         if line] for v in (1, 2)
    ]  # fmt: skip
    (start,), (end,) = commits
    info = start["commitInfo"]
    assert (info["operation"], info["operationParameters"]) == (
        "VACUUM START", {"retentionCheckEnabled": True, "defaultRetentionMillis": 0},
    )  # fmt: skip
    assert info["operationMetrics"] == {"numFilesToDelete": "2", "sizeOfDataToDelete": "2"}
    info = end["commitInfo"]
    assert (info["operation"], info["operationParameters"]) == (
        "VACUUM END", {"status": "COMPLETED"},
    )  # fmt: skip
    assert info["operationMetrics"] == {"numDeletedFiles": "2", "numVacuumedDirectories": "1"}
    put(table, "a")
    assert vacuum(spark, str(table), log_runs=False, progress=False).versions == ()
    assert load_snapshot(spark, str(table)).version == 2
    assert below(table) == set()


@pytest.mark.full
def test_files_that_cannot_be_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files: the others are deleted; the next run deletes the rest."""
    table = tmp_path / "table"
    create(table)
    for name in ("good", "bad"):
        put(table, name)
    delete = ArrowFiles.delete

    def fails(self: WorkerFiles, path: str, *, is_directory: bool) -> bool:
        if path.endswith("bad"):
            raise PermissionError(13, "Permission denied")
        return delete(self, path, is_directory=is_directory)

    with (
        patch.object(ArrowFiles, "delete", fails),
        pytest.raises(StorageError, match=r"1 of 2.*bad: Permission denied"),
    ):
        vacuum(spark, str(table), **AN_HOUR)
    assert below(table) == {"bad"}
    history = DeltaTable.forPath(spark, str(table)).history(1).collect()
    assert history[0].operationParameters == {"status": "FAILED"}
    assert not (table / "_delta_log/_last_vacuum_info").exists()
    assert vacuum(spark, str(table), **AN_HOUR).deleted.count == 1


# Races.


@pytest.mark.slow
def test_a_file_that_comes_back_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files: what a commit adds after the listing is kept, however old."""
    table = tmp_path / "table"
    create(table, write_data(table, "live.parquet", ids(0, 1)))
    action = write_data(table, "back.parquet", ids(1, 2))
    put(table, "orphan")
    os.utime(table / "back.parquet", (OLD, OLD))
    list_files = command.from_listing

    def listed(*arguments: Any) -> Any:
        found = list_files(*arguments)
        write_commit(table, 1, [action])
        return found

    with patch.object(command, "from_listing", listed):
        result = vacuum(spark, str(table), **AN_HOUR)
    assert result.versions == (2, 3)
    assert "orphan" not in below(table)
    assert read_delta(spark, str(table)).count() == 2


@pytest.mark.full
def test_the_driver_lists_and_deletes(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files: where workers cannot, as on HDFS."""
    table = tmp_path / "a table"
    create(table, add("a%20b/live"))
    for name in ("a b/live", "a b/old", "é/old"):
        put(table, name)
    put(table, "a b/young", YOUNG)
    with (
        patch.object(unneeded_files, "is_near_workers", lambda _: False),
        patch.object(file_deletion, "is_near_workers", lambda _: False),
        patch.object(file_deletion, "MAX_DRIVER_PATHS", 2),
        patch.object(directory_listing, "_DRIVER_BATCHES", 1),
    ):
        result = vacuum(spark, str(table), **AN_HOUR, deletes_per_second=1000)
    assert below(table) == {"a b/live", "a b/young"}
    assert (result.deleted.count, result.deleted.bytes, result.num_directories) == (2, 2, 2)


@pytest.mark.slow
def test_a_reader_and_a_writer_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#data-files: a query of an older version within the retention period goes on, and
    a write that began before commits afterwards.
    """
    table = str(tmp_path / "table")
    write_delta(spark.range(0, 10, 1, 2), table)
    reader = read_delta(spark, table)
    write_delta(spark.range(10, 20, 1, 2), table, mode="overwrite")
    write = transaction.Transaction.commit

    def late(self: transaction.Transaction, *arguments: Any) -> Any:
        if self.operation.name == "WRITE":
            assert vacuum(spark, table, **AN_HOUR).deleted.count == 0
        return write(self, *arguments)

    with patch.object(transaction.Transaction, "commit", late):
        done = write_delta(spark.range(20, 30, 1, 2), table, mode="append")
    assert (done.version, reader.count(), read_delta(spark, table).count()) == (4, 10, 20)
    assert verify(spark, table).is_clean


@pytest.mark.slow
@pytest.mark.classic("stops a writer that creates files itself")
@pytest.mark.parametrize("mode", ["full", "lite"])
def test_a_crash_at_any_change(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """PROTOCOL.md#data-files: rows stay, and the next run deletes what is left."""
    before = tmp_path / "before"
    lite_table(before)
    vacuumed = {f"{n}.parquet" for n in (0, 4, 5, 6, 7, 8, 9)}
    for file in below(before):
        os.utime(before / file, (OLD, OLD))
    nth, died = 0, True
    while died:
        nth, died = nth + 1, False
        for when in ("before", "after"):
            table = tmp_path / f"{nth}-{when}"
            shutil.copytree(before, table)
            with dying_writer(nth, when) as death:
                try:
                    vacuum(spark, str(table), mode=mode, **AN_HOUR)
                except Crash:
                    died = True
            assert vacuumed <= below(table)
            assert len(death.calls) <= nth
            vacuum(spark, str(table), mode=mode, **AN_HOUR)
            assert below(table) == vacuumed
    assert nth == 5  # the commits, the record of the run, the staging directory


@pytest.mark.full
@pytest.mark.classic("stops a writer that creates files itself")
@pytest.mark.parametrize("verb", ["move", "put_if_absent"])
def test_a_write_that_died(spark: SparkSession, tmp_path: Path, verb: str) -> None:
    """PROTOCOL.md#data-files: its file is found, and its directory gone after the next run."""
    table = tmp_path / "table"
    write_delta(spark.range(0, 10, 1, 1), str(table))
    nth = {"move": 2, "put_if_absent": 4}[verb]
    with dying_writer(nth, "before") as death, pytest.raises(Crash):
        write_delta(spark.range(0, 10, 1, 1), str(table), mode="append")
    assert death.calls[-1] == verb
    assert len(below(table)) == 2
    for path in (*table.rglob("*"), table):
        os.utime(path, (OLD, OLD))
    assert vacuum(spark, str(table), **AN_HOUR).deleted.count == 1
    assert len(below(table)) == 1
    directories = [*table.glob("_sparkdelta-*")]
    assert len(directories) == (verb == "move")
    for path in directories:
        os.utime(path, (OLD, OLD))
    assert vacuum(spark, str(table), **AN_HOUR).num_deleted_directories == len(directories)
    assert {path.name for path in table.iterdir() if path.is_dir()} == {"_delta_log"}
    assert read_delta(spark, str(table)).count() == 10


CHANGES_OF_FILES: dict[str, Any] = {
    "overwrite": lambda table, rows: write_delta(rows, table, mode="overwrite"),
    "replace_where": lambda table, rows: write_delta(
        rows, table, mode="overwrite", replace_where="id < 9"
    ),
    "update": lambda table, rows: DeltaTable.forPath(rows.sparkSession, table).update(
        "id = 3", {"id": "30"}
    ),
    "optimize": lambda table, rows: optimize(rows.sparkSession, table),
}


@pytest.mark.parametrize("operation", CHANGES_OF_FILES)
def test_retention_begins_once_the_new_files_are_written(
    spark: SparkSession, table_path: str, operation: str
) -> None:
    """Until then the removed ones are live, however long it takes."""
    rows = spark.range(0, 8, 1, 2)
    write_delta(rows, table_path)
    CHANGES_OF_FILES[operation](table_path, rows)
    lines = Path(table_path, "_delta_log", f"{1:020d}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    written = [action["add"]["modificationTime"] for action in actions if "add" in action]
    removed = [a["remove"]["deletionTimestamp"] for a in actions if "remove" in a]
    assert written
    assert removed
    assert min(removed) >= max(written)
    assert max(removed) <= actions[0]["commitInfo"]["timestamp"]
