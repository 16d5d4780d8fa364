"""Checkpoints that take over sidecars of the last one, and are the same as full ones."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import Snapshot, load_snapshot
from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.operations.checkpoint import checkpoint_writing as checkpointer
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.operations.checkpoint.checkpoint_writing import WrittenCheckpoint, checkpoint_table
from sparkdelta.table.checkpoint.checkpoint_reader import CheckpointReader
from sparkdelta.table.rows.removed_files import files_of_partitions
from tests.operations.checkpoint.test_checkpoint_writing import only_checkpoint
from tests.support.log_writer import (
    Action,
    json_lines,
    log_directory,
    write_checkpoint,
    write_commit,
    write_v2_checkpoint,
)
from tests.support.reference_model import State, replay
from tests.support.snapshots import expected, replayed
from tests.support.spark_jobs import no_jobs
from tests.support.table_builder import add, field, metadata, protocol, removal_of, remove

NOW = 1_700_000_000_000
WEEK = 7 * 24 * 3_600_000
DOMAIN = "delta.clustering"
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]
COLUMNS = [field("id", "integer"), field("day", "date")]


def file(number: int, day: int, **fields: Any) -> Action:
    stats = f'{{"numRecords":1,"minValues":{{"id":{number}}},"maxValues":{{"id":{number}}}}}'
    return add(f"f{number}", partitionValues={"day": DAYS[day]}, stats=stats, **fields)


FILES = [file(number, number // 5) for number in range(20)]


def start(table: Path, *more: Action, configuration: dict[str, str] | None = None) -> None:
    """Five files of each of four days."""
    features = protocol(features=["v2Checkpoint", "deletionVectors"])
    opening = metadata(*COLUMNS, partitioned_by=["day"], configuration=configuration)
    write_commit(table, 0, [features, opening, *FILES, *more])


def write(
    spark: SparkSession, table: Path, *, version: int | None = None, now_ms: int = NOW, **more: Any
) -> WrittenCheckpoint:
    options = CheckpointOptions(**{"kind": "v2-json", "adds_per_sidecar": 5, **more})
    with engine_of(spark).log_session() as session:
        return checkpoint_table(session, str(table), options, version=version, now_ms=now_ms)


def sidecars(spark: SparkSession, table: Path) -> dict[str, dict[str, str]]:
    """The tags of each sidecar of the checkpoint in use, by its name."""
    return {one.path: dict(one.tags) for one in load_snapshot(spark, str(table)).log.sidecars}


def commits(*written: Sequence[Action]) -> State:
    opening = [protocol(features=["v2Checkpoint", "deletionVectors"]), metadata(), *FILES]
    return replay(dict(enumerate([opening, *written])))


def files_of(snapshot: Snapshot) -> Any:
    state = replayed(snapshot)
    return state["adds"], state["removes"]


@pytest.mark.full
def test_a_partition_is_looked_for_in_its_sidecars(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#sidecar-files: tags tell which ones cannot hold files of a partition, as OPTIMIZE
    and others choose them.
    """
    start(table)
    write(spark, table)
    adds = files_of_partitions(load_snapshot(spark, str(table)), f"day = DATE'{DAYS[1]}'")
    assert sorted(row["path"] for row in adds.collect()) == ["f5", "f6", "f7", "f8", "f9"]
    wanted = {
        name
        for name, tags in sidecars(spark, table).items()
        if DAYS[1] in tags["sparkdelta.partitionValues"]
    }
    read = {file.rpartition("/")[2] for file in adds.inputFiles()}
    assert len(wanted) == 1
    assert {name for name in read if name.endswith(".parquet")} == wanted


@pytest.mark.slow
def test_only_touched_sidecars_are_rewritten(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Touched sidecars are found by tags, and by keys in those files alone that tags leave."""
    start(table)
    full = write(spark, table)
    assert full.num_sidecars == 4
    assert full.bytes_written == full.size_in_bytes
    before = sidecars(spark, table)
    times = {f: f.stat().st_mtime_ns for f in (log_directory(table) / "_sidecars").iterdir()}
    commit = [
        removal_of(FILES[7], deletionTimestamp=NOW, partitionValues={"day": DAYS[1]}),
        file(30, 1, dataChange=True),
    ]
    write_commit(table, 1, commit)
    looked, keys_of = [], CheckpointReader.sidecar_keys

    def recorded(reader: CheckpointReader, action: str, files: Sequence[Sidecar]) -> DataFrame:
        keys = keys_of(reader, action, files)
        looked.append((action, [one.path for one in files], keys.columns))
        return keys

    monkeypatch.setattr(CheckpointReader, "sidecar_keys", recorded)
    second = write(spark, table)
    after = sidecars(spark, table)
    touched = [
        name for name, tags in before.items() if DAYS[1] in tags["sparkdelta.partitionValues"]
    ]
    assert set(before) - set(after) == set(touched)
    assert len(touched) == 1
    assert looked == [("add", touched, ["path", "deletionVector", "file"])]
    assert (second.num_adds, second.num_removes, second.num_reused_sidecars) == (20, 1, 3)
    assert second.bytes_written < second.size_in_bytes
    assert all(f.stat().st_mtime_ns == time for f, time in times.items())
    only_checkpoint(table, 1)
    wanted = expected(commits(commit))
    assert files_of(load_snapshot(spark, str(table))) == (wanted["adds"], wanted["removes"])


@pytest.mark.full
def test_removes_without_partition_values_are_found(spark: SparkSession, table: Path) -> None:
    """Removes without partition values may be of any sidecar, so all sidecars are looked into."""
    start(table)
    write(spark, table)
    commit = [remove("f12", deletionTimestamp=NOW), remove("unknown", deletionTimestamp=NOW)]
    write_commit(table, 1, commit)
    second = write(spark, table)
    assert (second.num_adds, second.num_removes, second.num_reused_sidecars) == (19, 2, 3)
    only_checkpoint(table, 1)
    wanted = expected(commits(commit))
    assert files_of(load_snapshot(spark, str(table))) == (wanted["adds"], wanted["removes"])


@pytest.mark.full
def test_a_dead_file_with_what_is_no_partition_value(spark: SparkSession, table: Path) -> None:
    """A removed file may be of any sidecar, and its invalid value fails nothing.

    PROTOCOL.md#action-reconciliation
    """
    start(table)
    write(spark, table)
    values = {"day": "not a day"}
    write_commit(table, 1, [add("bad", partitionValues=values)])
    gone = [remove("bad", deletionTimestamp=NOW, partitionValues=values)]
    write_commit(table, 2, [*gone, remove("f12", deletionTimestamp=NOW)])
    second = write(spark, table)
    assert (second.num_adds, second.num_removes, second.num_reused_sidecars) == (19, 2, 3)


@pytest.mark.full
def test_an_add_that_cancels_a_tombstone_touches_it(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#action-reconciliation"""
    start(table, remove("back", deletionTimestamp=NOW), remove("gone", deletionTimestamp=NOW))
    write(spark, table)
    commit = [add("back", partitionValues={"day": DAYS[0]})]
    write_commit(table, 1, commit)
    second = write(spark, table)
    assert (second.num_adds, second.num_removes, second.num_reused_sidecars) == (21, 1, 4)
    only_checkpoint(table, 1)
    assert files_of(load_snapshot(spark, str(table)))[1] == [("gone", "")]


@pytest.mark.full
def test_expired_tombstones_are_dropped_without_the_adds(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#checkpoints"""
    start(table, remove("x", deletionTimestamp=NOW), remove("y", deletionTimestamp=NOW + 5))
    write(spark, table)
    partly = write(spark, table, now_ms=NOW + WEEK)
    assert (partly.num_removes, partly.num_reused_sidecars) == (2, 5), "carried until it is merged"
    later = write(spark, table, now_ms=NOW + WEEK + 5)
    assert (later.num_adds, later.num_removes, later.num_reused_sidecars) == (20, 0, 4)
    assert later.num_sidecars == 4


@pytest.mark.full
@pytest.mark.parametrize("change", ["schema", "property", "layout"])
def test_a_full_checkpoint_where_types_or_layout_differ(
    spark: SparkSession, table: Path, change: str
) -> None:
    start(table)
    write(spark, table)
    columns, configuration, options = COLUMNS, {}, {}
    if change == "schema":
        columns = [*COLUMNS, field("more", "string")]
    elif change == "property":
        configuration = {"delta.checkpoint.writeStatsAsJson": "false"}
    else:
        options = {"layout": "hash"}
    opening = metadata(*columns, partitioned_by=["day"], configuration=configuration)
    write_commit(table, 1, [opening])
    second = write(spark, table, **options)
    assert (second.num_adds, second.num_reused_sidecars) == (20, 0)


def clustered_by(*columns: str) -> Action:
    """The action that ALTER TABLE ... CLUSTER BY commits. PROTOCOL.md#clustered-table"""
    said = {"clusteringColumns": [[column] for column in columns], "domainName": DOMAIN}
    return {
        "domainMetadata": {"domain": DOMAIN, "configuration": json.dumps(said), "removed": False}
    }


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["clustered", "hash"])
def test_a_full_checkpoint_where_clustering_columns_changed(
    spark: SparkSession, table: Path, layout: str
) -> None:
    """PROTOCOL.md#clustered-table"""
    features = ["v2Checkpoint", "domainMetadata", "clustering"]
    columns = [field(name, "integer") for name in "abc"]
    write_commit(table, 0, [protocol(features=features), metadata(*columns), clustered_by("b")])
    write_commit(table, 1, [grid(number) for number in range(16)])
    write(spark, table, layout=layout)
    write_commit(table, 2, [grid(16)])
    assert write(spark, table, layout=layout).num_reused_sidecars > 0
    write_commit(table, 3, [clustered_by("c"), grid(17)])
    third = write(spark, table, layout=layout)
    if layout == "hash":  # which follows no columns
        assert third.num_reused_sidecars > 0
        return
    assert (third.num_adds, third.num_reused_sidecars) == (18, 0)
    assert all(bounds(tags) == {"c"} for tags in sidecars(spark, table).values())
    write_commit(table, 4, [grid(18)])
    assert write(spark, table).num_reused_sidecars > 0


def grid(number: int) -> Action:
    values = f'{{"a":0,"b":{number % 4},"c":{number // 4}}}'
    stats = f'{{"numRecords":1,"minValues":{values},"maxValues":{values}}}'
    return add(f"g{number}", stats=stats)


def bounds(tags: dict[str, str]) -> set[str]:
    return set(json.loads(tags["sparkdelta.stats"])["minValues"])


@pytest.mark.slow
def test_an_older_version_is_written_in_full(spark: SparkSession, table: Path) -> None:
    """No sidecars are taken over, as those that an older checkpoint names may be about to be
    deleted.
    """
    start(table)
    write(spark, table)
    for version in (1, 2):
        write_commit(table, version, [file(30 + version, 0)])
    assert write(spark, table).num_reused_sidecars == 4
    assert write(spark, table, version=1).num_reused_sidecars == 0


@pytest.mark.full
@pytest.mark.parametrize("at", [1, 2])
def test_a_sidecar_that_goes_meanwhile(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before the checkpoint has its name, and after: then it is taken back."""
    start(table)
    write(spark, table)
    write_commit(table, 1, [file(30, 0)])
    log, calls, look = log_directory(table), [], checkpointer.damaged_sidecars

    def damaged(*arguments: Any) -> dict[str, str]:
        calls.append(arguments)
        return {"one": "is missing"} if len(calls) == at else look(*arguments)

    monkeypatch.setattr(checkpointer, "damaged_sidecars", damaged)
    before = {file.name for file in (log / "_sidecars").iterdir()}
    second = write(spark, table)
    assert (second.num_adds, second.num_reused_sidecars) == (21, 0)
    tops = [file.name for file in log.glob(f"{1:020d}.checkpoint.*")]
    assert tops == [second.file]
    new = {file.name for file in (log / "_sidecars").iterdir()} - before
    assert new == set(sidecars(spark, table))
    assert len(calls) == at


@pytest.mark.full
def test_a_sidecar_that_is_gone(spark: SparkSession, table: Path) -> None:
    """A checkpoint that lacks a sidecar cannot be read: the next is made from the commits."""
    start(table)
    write(spark, table)
    write_commit(table, 1, [file(30, 0)])
    of_day = next(n for n, t in sidecars(spark, table).items() if DAYS[2] in str(t))
    (log_directory(table) / "_sidecars" / of_day).unlink()
    second = write(spark, table)
    assert (second.num_adds, second.num_reused_sidecars) == (21, 0)
    assert load_snapshot(spark, str(table)).add_files().count() == 21


@pytest.mark.full
@pytest.mark.classic("makes the storage of this process answer otherwise")
@pytest.mark.parametrize("kind", ["v2-json", "v2-classic"])
def test_an_answer_that_is_lost(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A storage that did what it was asked, and says that the file is there: it is ours."""
    start(table)
    publish = LocalLogStore.publish

    def lost(store: LocalLogStore, source: str, name: str, *, is_new_name: bool) -> None:
        publish(store, source, name)
        raise FileExistsError(errno.EEXIST, "already in the log", name)

    monkeypatch.setattr(LocalLogStore, "publish", lost)
    written = write(spark, table, kind=kind)
    assert written.is_written == (kind == "v2-json")
    monkeypatch.undo()
    snapshot = load_snapshot(spark, str(table))
    assert len(snapshot.log.sidecars) == 4
    assert snapshot.add_files().count() == 20


@pytest.mark.slow
def test_counts_without_a_version_checksum(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts that follow from the tags and the commits are compared with what was written."""
    start(table)
    write(spark, table)
    write_commit(table, 1, [removal_of(FILES[3], deletionTimestamp=NOW), file(30, 1)])
    touched = "sparkdelta.operations.checkpoint.sidecar_reuse._touched"
    monkeypatch.setattr(touched, lambda *_: (set(list(sidecars(spark, table))[:1]), 1))
    second = write(spark, table)
    assert (second.num_adds, second.num_reused_sidecars) == (20, 0)


@pytest.mark.full
def test_a_wrong_count_leads_to_a_full_checkpoint(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full checkpoint is written where the count is wrong, as if tags had missed the sidecar that
    a commit touches.
    """
    start(table)
    write(spark, table)
    write_commit(table, 1, [removal_of(FILES[3], deletionTimestamp=NOW)])
    (log_directory(table) / f"{1:020d}.crc").write_text('{"numFiles":19,"tableSizeBytes":19}')
    monkeypatch.setattr("sparkdelta.operations.checkpoint.sidecar_reuse._near", lambda *_: set())
    second = write(spark, table)
    assert (second.num_adds, second.num_reused_sidecars) == (19, 0)


@pytest.mark.full
def test_a_scan_opens_the_sidecars_that_matter(spark: SparkSession, table: Path) -> None:
    """The others may even be gone. PROTOCOL.md#sidecar-file-information"""
    start(table, remove("gone", deletionTimestamp=NOW))
    write(spark, table)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.log.checkpoint.stored_add_type() is not None  # from any of them
    for name, tags in sidecars(spark, table).items():
        if DAYS[2] not in tags.get("sparkdelta.partitionValues", ""):
            (log_directory(table) / "_sidecars" / name).unlink()
    with no_jobs(spark):
        kept = snapshot.log.checkpoint.matching(snapshot.scan(f"day = DATE'{DAYS[2]}'")._skipping)
    assert len(kept.chosen or ()) == 1
    for where in (f"day = DATE'{DAYS[2]}'", "id BETWEEN 11 AND 13"):
        files = snapshot.scan(where).files()
        assert {row["path"] for row in files.select("path").collect()} <= {
            f"f{number}" for number in range(10, 15)
        }
    assert snapshot.scan("id = 12").files().count() == 1
    assert snapshot.scan("id = 99").files().count() == 0


@pytest.mark.full
@pytest.mark.parametrize("as_json", [True, False])
def test_sidecars_of_others_are_read_in_full(
    spark: SparkSession, table: Path, as_json: bool
) -> None:
    """PROTOCOL.md#sidecar-file-information"""
    features = protocol(features=["v2Checkpoint", "deletionVectors"])
    opening = [features, metadata(*COLUMNS, partitioned_by=["day"])]
    gone = remove("gone", deletionTimestamp=NOW)
    parts = [FILES[:5], FILES[5:10], FILES[10:15], [*FILES[15:], gone]]
    write_v2_checkpoint(table, 0, opening, sidecars=parts, as_json=as_json)
    others = set(sidecars(spark, table))
    commit = [removal_of(FILES[7], deletionTimestamp=NOW), file(30, 0)]
    write_commit(table, 1, commit)
    written = write(spark, table)
    assert (written.num_adds, written.num_removes, written.num_reused_sidecars) == (20, 2, 0)
    assert not others & set(sidecars(spark, table))
    only_checkpoint(table, 1)
    wanted = expected(commits([gone], commit))
    assert files_of(load_snapshot(spark, str(table))) == (wanted["adds"], wanted["removes"])


@pytest.mark.slow
@pytest.mark.parametrize(("number", "reused"), [(7, 2), (12, 3)], ids=["beside it", "in it"])
def test_a_sidecar_without_tags_is_rewritten(
    spark: SparkSession, table: Path, number: int, reused: int
) -> None:
    """Whatever commits touch; those with tags are kept. PROTOCOL.md#sidecar-file-information"""
    start(table)
    first = write(spark, table)
    before, top = sidecars(spark, table), log_directory(table) / str(first.file)
    actions = [json.loads(line) for line in top.read_text().splitlines()]
    named = [action["sidecar"] for action in actions if "sidecar" in action]
    (bare,) = (one for one in named if DAYS[2] in one["tags"]["sparkdelta.partitionValues"])
    del bare["tags"]
    top.write_text(json_lines(actions))
    (log_directory(table) / "_last_checkpoint").unlink()  # it has the tags, too
    commit = [removal_of(FILES[number], deletionTimestamp=NOW), file(30, 0)]
    write_commit(table, 1, commit)
    second = write(spark, table)
    after = sidecars(spark, table)
    assert (second.num_adds, second.num_removes, second.num_reused_sidecars) == (20, 1, reused)
    assert len(set(before) & set(after)) == reused
    assert bare["path"] not in after
    assert all(tags["sparkdelta.schema"] for tags in after.values())
    only_checkpoint(table, 1)
    wanted = expected(commits(commit))
    assert files_of(load_snapshot(spark, str(table))) == (wanted["adds"], wanted["removes"])


def test_a_checkpoint_without_sidecars_is_read_in_full(spark: SparkSession, table: Path) -> None:
    write_checkpoint(table, 0, [protocol(features=["v2Checkpoint"]), metadata(), add("a")])
    write_commit(table, 1, [add("b")])
    written = write(spark, table)
    assert (written.num_adds, written.num_reused_sidecars) == (2, 0)
