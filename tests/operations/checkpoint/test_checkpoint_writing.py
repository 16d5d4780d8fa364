"""Checkpoints that are written: what they hold, how they are named, and what a crash leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta import load_snapshot, write_checkpoint, write_version_checksum
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.exceptions import CheckpointMismatchError, InvalidArgumentError
from sparkdelta.operations.checkpoint import (
    checkpoint_contents,
    checkpoint_files,
    checkpoint_writing,
    sidecar_files,
    sidecar_reuse,
)
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.operations.checkpoint.checkpoint_writing import WrittenCheckpoint, checkpoint_table
from sparkdelta.table.checkpoint.sidecar_tag_rules import parse_sidecar_tags
from sparkdelta.table.listing import line_reader
from sparkdelta.table.listing.last_checkpoint_rules import parse_last_checkpoint
from sparkdelta.table.log import loading
from sparkdelta.table.snapshot import listed_actions
from tests.support.errors import raises
from tests.support.log_writer import (
    log_directory,
    write_checksum,
    write_commit,
    write_last_checkpoint,
)
from tests.support.reference_model import replay
from tests.support.settings import HOSTILE, settings
from tests.support.snapshots import expected, replayed
from tests.support.spark_jobs import counted_jobs
from tests.support.table_builder import add, create, field, metadata, protocol, remove
from tests.table.log.histories import COMMITS, write_history

LAST = 6
NOW = 1_700_000_000_000
"""Long after every tombstone of the history, so a retention of ages keeps them."""
KINDS = ["classic", "v2-classic", "v2-json", "v2-parquet"]
KEEP = {"delta.deletedFileRetentionDuration": "interval 5000 weeks"}


def write_kept_history(table: Path, **configuration: str) -> None:
    """The history, with nothing expired."""
    write_history(table)
    kept = {**KEEP, **configuration}
    for version in (0, 4):
        actions = [
            {"metaData": {**a["metaData"], "configuration": kept}} if "metaData" in a else a
            for a in COMMITS[version]
        ]
        write_commit(table, version, actions)


def only_checkpoint(table: Path, version: int) -> None:
    """Leave nothing of the log that the checkpoint of a version replaces."""
    for file in log_directory(table).glob("*.json"):
        if "checkpoint" not in file.name and int(file.name[:20]) <= version:
            file.unlink()


def names(table: Path) -> list[str]:
    """The files of the log but for commits."""
    log = log_directory(table)
    files = (file for file in log.rglob("*") if file.is_file())
    return sorted(
        str(file.relative_to(log)) for file in files if len(file.name) != len(f"{0:020d}.json")
    )


def write(
    spark: SparkSession, table: Path, *, version: int | None = None, **options: Any
) -> WrittenCheckpoint:
    chosen = CheckpointOptions(**options)
    with engine_of(spark).log_session() as session:
        return checkpoint_table(session, str(table), chosen, version=version, now_ms=NOW)


@pytest.mark.classic("counts Spark's jobs")
@pytest.mark.parametrize(("kind", "most"), [("classic", 1), ("v2-json", 3)])
@pytest.mark.full
def test_a_small_checkpoint_takes_few_jobs(
    spark: SparkSession, table: Path, kind: str, most: int
) -> None:
    """A job writes the files; for V2 one reads what was written, and another writes the file that
    names them.
    """
    write_kept_history(table)
    write_version_checksum(spark, str(table))
    with counted_jobs(spark) as jobs:
        write_checkpoint(spark, str(table), kind=kind)
    assert jobs.count <= most


@pytest.mark.classic("counts Spark's jobs")
def test_a_checkpoint_after_another_takes_few_jobs(spark: SparkSession, table: Path) -> None:
    """A job sends the keys of the commits to the tasks, and one writes the file: the footer of the
    last checkpoint has its schema, and says that it has no tombstones, transactions and domains.
    """
    write_commit(table, 0, [protocol(), metadata(), add("a")])
    write_checkpoint(spark, str(table))
    write_commit(table, 1, [add("b")])
    write_version_checksum(spark, str(table))
    with counted_jobs(spark) as jobs:
        written = write_checkpoint(spark, str(table))
    assert written.num_adds == 2
    assert jobs.count <= 2


@pytest.mark.parametrize("has_statistics", [True, False])
def test_a_checkpoint_keeps_what_the_last_one_has(
    spark: SparkSession, table: Path, has_statistics: bool
) -> None:
    """PROTOCOL.md#action-reconciliation, whatever the footer of the last checkpoint says."""
    write_kept_history(table)
    first = log_directory(table) / str(write(spark, table, kind="classic").file)
    pq.write_table(pq.read_table(first), first, write_statistics=has_statistics)
    write_commit(table, LAST + 1, [add("last")])
    written = write(spark, table, kind="classic")
    only_checkpoint(table, LAST + 1)
    state = replay({**COMMITS, LAST + 1: [add("last")]}, until=LAST + 1)
    assert (written.num_adds, written.num_removes) == (len(state.adds), len(state.removes))
    assert replayed(load_snapshot(spark, str(table))) == expected(state)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [*((kind, "clustered") for kind in KINDS), ("classic", "hash"), ("v2-json", "hash")],
)
def test_every_kind_holds_the_whole_state(
    spark: SparkSession, table: Path, kind: str, layout: Any
) -> None:
    """PROTOCOL.md#action-reconciliation"""
    write_kept_history(table)
    written = write(spark, table, kind=kind, layout=layout)
    state = replay(COMMITS, until=LAST)
    assert (written.num_adds, written.num_removes) == (len(state.adds), len(state.removes))
    only_checkpoint(table, LAST)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is not None
    assert [file.name for file in snapshot.segment.checkpoint.files] == [written.file]
    assert replayed(snapshot) == expected(state)
    assert len(snapshot.log.sidecars) == written.num_sidecars == (0 if kind == "classic" else 2)


def test_a_classic_checkpoint_row_by_row(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#checkpoints-1, PROTOCOL.md#v1-spec"""
    write_kept_history(table)
    info = {"commitInfo": {"operation": "WRITE"}}
    cdc = {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}
    write_commit(table, 7, [info, cdc, add("last", stats='{"numRecords":3}')])
    written = write(spark, table, kind="classic")
    rows = pq.read_table(log_directory(table) / str(written.file)).to_pylist()
    kinds = [[name for name, value in row.items() if value is not None] for row in rows]
    assert {kind for (kind,) in kinds} == {
        "protocol", "metaData", "txn", "domainMetadata", "add", "remove"
    }  # fmt: skip
    assert written.num_actions == len(rows)
    counts = {kind: kinds.count([kind]) for (kind,) in kinds}
    assert (counts["protocol"], counts["metaData"], counts["txn"]) == (1, 1, 2)
    files = [row["add"] or row["remove"] for row in rows if row["add"] or row["remove"]]
    assert not any(action["dataChange"] for action in files)
    assert not {"stats", "tags"} & set(next(row["remove"] for row in rows if row["remove"]))
    (last,) = (row["add"] for row in rows if row["add"] and row["add"]["path"] == "last")
    assert last["stats"] == '{"numRecords":3}'
    assert last["stats_parsed"]["numRecords"] == 3
    (first,) = (row["protocol"] for row in rows if row["protocol"])
    assert set(first["writerFeatures"]) == {"deletionVectors", "v2Checkpoint", "domainMetadata"}


def test_features_are_null_in_tables_without_them(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#checkpoint-schema"""
    create(table, add("a"))
    written = write_checkpoint(spark, str(table))
    rows = pq.read_table(log_directory(table) / str(written.file)).to_pylist()
    (found,) = (row["protocol"] for row in rows if row["protocol"])
    assert found == {
        "minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None,
        "writerFeatures": None,
    }  # fmt: skip


STATS = {"numRecords": 1, "minValues": {"id": 5}, "maxValues": {"id": 6}, "nullCount": {"id": 0}}


@pytest.mark.parametrize("kind", ["classic", "v2-json"])
@pytest.mark.parametrize(
    ("off", "wanted"),
    [
        ("Json", {"stats_parsed": STATS, "partitionValues_parsed": {"day": date(2024, 1, 1)}}),
        ("Struct", {"stats": json.dumps(STATS)}),
    ],
)
def test_statistics_are_in_the_form_that_is_on(
    spark: SparkSession, table: Path, kind: str, off: str, wanted: dict[str, Any]
) -> None:
    """PROTOCOL.md#checkpoints-1"""
    columns = [field("id", "integer"), field("day", "date")]
    configuration = {f"delta.checkpoint.writeStatsAs{off}": "false"}
    opening = metadata(*columns, partitioned_by=["day"], configuration=configuration)
    one = add("a", partitionValues={"day": "2024-01-01"}, stats=json.dumps(STATS))
    write_commit(table, 0, [protocol(features=["v2Checkpoint"]), opening, one])
    written = write(spark, table, kind=kind)
    rows = pq.read_table(file_of_adds(table, written)).to_pylist()
    (found,) = (row["add"] for row in rows if row["add"])
    forms = {"stats", "stats_parsed", "partitionValues_parsed"}
    assert {name: value for name, value in found.items() if name in forms} == wanted


def file_of_adds(table: Path, written: WrittenCheckpoint) -> Path:
    """The one file of a checkpoint that has them."""
    log = log_directory(table)
    files = list((log / "_sidecars").iterdir()) if written.num_sidecars else []
    (file,) = files or [log / str(written.file)]
    return file


@pytest.mark.parametrize("kind", ["classic", "v2-json"])
def test_files_are_in_order_and_in_small_row_groups(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Predicates on bounds skip some of the row groups. PROTOCOL.md#per-file-statistics"""
    monkeypatch.setattr(checkpoint_contents, "ROW_GROUP_BYTES", 1024)
    numbers = list(range(400))
    Random(0).shuffle(numbers)
    stats = ({"numRecords": 1, "minValues": {"id": n}, "maxValues": {"id": n}} for n in numbers)
    files = [add(f"f{n}", stats=json.dumps(s)) for n, s in zip(numbers, stats, strict=True)]
    write_commit(table, 0, [protocol(features=["v2Checkpoint"]), metadata(), *files])
    written = write(spark, table, kind=kind)
    file = pq.ParquetFile(file_of_adds(table, written))
    paths = [file.schema.column(number).path for number in range(len(file.schema))]
    column = paths.index("add.stats_parsed.minValues.id")
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    bounds = [(s.min, s.max) for s in (group.column(column).statistics for group in groups)]
    assert len(bounds) > 1
    assert all(one[1] < other[0] for one, other in pairwise(bounds))
    adds = [row["add"] for row in file.read().to_pylist() if row["add"]]
    assert [one["path"] for one in adds] == [f"f{number}" for number in sorted(numbers)]
    encoded = {path: groups[0].column(number).encodings for number, path in enumerate(paths)}
    in_dictionaries = {path for path, kinds in encoded.items() if "PLAIN_DICTIONARY" in kinds}
    assert "add.stats_parsed.numRecords" in in_dictionaries
    for name in ("path", "stats", "stats_parsed.minValues.id"):  # of which each differs
        assert f"add.{name}" not in in_dictionaries


def test_the_top_level_of_a_v2_checkpoint(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#v2-spec, PROTOCOL.md#checkpoint-metadata, PROTOCOL.md#checkpoint-metadata-tags,
    PROTOCOL.md#sidecar-file-information
    """
    write_kept_history(table)
    written = write(spark, table, kind="v2-json")
    lines = (log_directory(table) / str(written.file)).read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    assert all(len(action) == 1 for action in actions)
    assert not any({"add", "remove"} & set(action) for action in actions)
    (metadata,) = (a["checkpointMetadata"] for a in actions if "checkpointMetadata" in a)
    assert metadata["version"] == LAST
    assert metadata["tags"]["numOfAddFiles"] == str(written.num_adds)
    assert metadata["tags"]["sidecarNumActions"] == str(written.num_adds + written.num_removes)
    sidecars = [action["sidecar"] for action in actions if "sidecar" in action]
    sizes = [sidecar["sizeInBytes"] for sidecar in sidecars]
    assert metadata["tags"]["sidecarSizeInBytes"] == str(sum(sizes))
    stored = spark.read.parquet(str(log_directory(table) / "_sidecars")).schema
    assert StructType.fromJson(json.loads(metadata["tags"]["sidecarFileSchema"])) == stored
    for sidecar in sidecars:
        file = log_directory(table) / "_sidecars" / sidecar["path"]
        assert sidecar["sizeInBytes"] == file.stat().st_size
        assert sidecar["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
    # Adds and removes are in sidecars of their own.
    names = ("sparkdelta.numAdds", "sparkdelta.numRemoves")
    counts = [tuple(sidecar["tags"][name] for name in names) for sidecar in sidecars]
    assert sorted(counts) == [("0", str(written.num_removes)), (str(written.num_adds), "0")]


@pytest.mark.parametrize("kind", ["classic", "v2-json", "v2-parquet", "v2-classic"])
def test_the_hint_follows_and_nothing_else_is_left(
    spark: SparkSession, table: Path, kind: str
) -> None:
    """PROTOCOL.md#last-checkpoint-file-schema"""
    write_kept_history(table)
    written = write(spark, table, kind=kind)
    data = (log_directory(table) / "_last_checkpoint").read_bytes()
    assert parse_last_checkpoint(data) == LAST
    document = json.loads(data)
    counts = [document[name] for name in ("size", "numOfAddFiles", "sizeInBytes")]
    assert counts == [written.num_actions, written.num_adds, written.size_in_bytes]
    log = log_directory(table)
    sidecars = sorted(file.name for file in (log / "_sidecars").glob("*"))
    assert ("checkpointSchema" in document) == (kind != "v2-json")
    if kind != "v2-json":
        columns = [field["name"] for field in document["checkpointSchema"]["fields"]]
        assert {"add", "remove", "metaData", "protocol", "txn"} <= set(columns)
    if kind == "classic":
        assert written.size_in_bytes == (log / str(written.file)).stat().st_size
    else:
        v2 = document["v2Checkpoint"]
        assert v2["path"] == written.file
        assert sorted(sidecar["path"] for sidecar in v2["sidecarFiles"]) == sidecars
        assert {"protocol", "metaData"} <= {k for a in v2["nonFileActions"] for k in a}
    top = {file.name for file in log.iterdir() if not file.name.endswith(".json")}
    own = {"_last_checkpoint", *(["_sidecars"] if sidecars else [])}
    if not str(written.file).endswith(".json"):
        own.add(str(written.file))
    assert top == own, "no staging directory, and no checksum file of Hadoop"


def test_a_text_with_unusual_line_ends_is_in_the_hint(spark: SparkSession, table: Path) -> None:
    """JSON has them as they are. PROTOCOL.md#last-checkpoint-file-schema"""
    text = "one\u2028two\u0085three"
    described = metadata()
    described["metaData"]["description"] = text
    write_commit(table, 0, [protocol(features=["v2Checkpoint"]), described, add("f")])
    write(spark, table, kind="v2-json")
    hint = json.loads((log_directory(table) / "_last_checkpoint").read_bytes())
    actions = hint["v2Checkpoint"]["nonFileActions"]
    assert [a["metaData"]["description"] for a in actions if "metaData" in a] == [text]


@pytest.mark.full
def test_the_hint_never_goes_back(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#last-checkpoint-file"""
    write_kept_history(table)
    write(spark, table)
    hint = (log_directory(table) / "_last_checkpoint").read_bytes()
    older = write(spark, table, version=3)
    assert older.is_written
    assert (log_directory(table) / "_last_checkpoint").read_bytes() == hint
    assert load_snapshot(spark, str(table), version=3).segment.deltas == ()


@pytest.mark.full
def test_an_empty_table_gets_one_checkpoint_of_a_version(spark: SparkSession, table: Path) -> None:
    properties = {"delta.checkpointPolicy": "v2"}
    write_commit(
        table, 0, [protocol(features=["v2Checkpoint"]), metadata(configuration=properties)]
    )
    written = [write(spark, table) for _ in range(3)]
    assert [one.is_written for one in written].count(True) <= 2  # of the classic name once
    assert not written[-1].is_written


def test_a_hint_to_what_is_not_there_is_replaced(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#last-checkpoint-file"""
    write_kept_history(table)
    write_last_checkpoint(table, {"version": 999})
    written = write(spark, table)
    hint = parse_last_checkpoint((log_directory(table) / "_last_checkpoint").read_bytes())
    assert hint == written.version


def test_expired_tombstones_and_transactions_are_dropped(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#checkpoints"""
    retention = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    commit = [
        {"txn": {"appId": "old", "version": 1, "lastUpdated": NOW - 25 * 3_600_000}},
        {"txn": {"appId": "new", "version": 1, "lastUpdated": NOW - 23 * 3_600_000}},
        remove("expired", deletionTimestamp=NOW - 7 * 24 * 3_600_000),
        remove("kept", deletionTimestamp=NOW - 7 * 24 * 3_600_000 + 1),
    ]
    create(table, *commit, configuration=retention)
    written = write(spark, table)
    rows = pq.read_table(log_directory(table) / str(written.file)).to_pylist()
    assert [row["remove"]["path"] for row in rows if row["remove"]] == ["kept"]
    assert [row["txn"]["appId"] for row in rows if row["txn"]] == ["new"]


def test_an_existing_checkpoint_is_not_replaced(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#classic-checkpoint"""
    write_kept_history(table)
    first = write(spark, table, kind="v2-classic")
    before = names(table)
    content = (log_directory(table) / str(first.file)).read_bytes()
    for kind in ("classic", "v2-classic"):
        assert not write(spark, table, kind=kind).is_written
    assert names(table) == before
    assert (log_directory(table) / str(first.file)).read_bytes() == content


@pytest.mark.full
def test_the_kind_follows_the_policy(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints"""
    write_kept_history(table, **{"delta.checkpointPolicy": "v2"})
    kinds = [write(spark, table).kind]
    write_commit(table, LAST + 1, [add("new")])
    kinds.append(write(spark, table).kind)
    assert kinds == ["v2-classic", "v2-json"]
    assert not write(spark, table).is_written, "nothing has changed"


@pytest.mark.full
@pytest.mark.parametrize(("most", "kind"), [(2, "v2-json"), (1, "v2-parquet")])
def test_the_kind_follows_the_number_of_sidecars(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, most: int, kind: str
) -> None:
    """PROTOCOL.md#v2-spec"""
    monkeypatch.setattr(checkpoint_writing, "MAX_JSON_SIDECARS", most)
    write_kept_history(table, **{"delta.checkpointPolicy": "v2"})
    assert write(spark, table, version=LAST - 1).kind == "v2-classic"
    written = write(spark, table)
    assert (written.num_sidecars, written.kind) == (2, kind)
    assert str(written.file).endswith(kind.removeprefix("v2-"))


@pytest.mark.parametrize("kind", ["classic", "v2-json"])
def test_a_checkpoint_that_contradicts_the_checksum_is_not_published(
    spark: SparkSession, table: Path, kind: str
) -> None:
    """PROTOCOL.md#state-validation"""
    write_kept_history(table)
    write_checksum(table, LAST, {"numFiles": 3, "tableSizeBytes": 3})
    before = names(table)
    with pytest.raises(CheckpointMismatchError) as raised:
        write(spark, table, kind=kind)
    assert (raised.value.expected, raised.value.found) == (3, 5)
    assert names(table) == before


def test_a_table_of_unknown_features_is_refused(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#table-features"""
    unknown = protocol(features=["v2Checkpoint"])
    unknown["protocol"]["writerFeatures"].append("futureFeature")
    write_commit(table, 0, [unknown, metadata(), add("a")])
    before = names(table)
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as raised:
        write_checkpoint(spark, str(table))
    assert raised.value.features == ("futureFeature",)
    assert names(table) == before


@pytest.mark.full
@pytest.mark.classic("makes the storage of this process fail")
@pytest.mark.parametrize("failing", [2, 3])
def test_a_failure_leaves_the_old_checkpoint_in_use(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """At the second sidecar, and at the checkpoint's own file."""
    write_kept_history(table)
    write(spark, table, version=3, kind="v2-json")
    before, publish, calls = names(table), LocalLogStore.publish, []

    def failing_publish(store: LocalLogStore, source: str, name: str, **facts: bool) -> None:
        calls.append(name)
        if len(calls) == failing:
            raise OSError("the storage is gone")
        publish(store, source, name, **facts)

    monkeypatch.setattr(LocalLogStore, "publish", failing_publish)
    with pytest.raises(OSError, match="is gone"):
        write(spark, table, kind="v2-json", incremental=False)
    left = set(names(table)) - set(before)
    assert all(name.startswith("_sidecars/") for name in left)
    # Whether the checkpoint's own file has its name is then not known: its sidecars stay.
    assert len(left) == (2 if failing == 3 else 0)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == 3
    assert replayed(snapshot) == expected(replay(COMMITS, until=LAST))


def test_nothing_of_the_log_passes_the_driver(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds = [add(f"f{number}", stats='{"numRecords":1}') for number in range(500)]
    gone = [remove(f"g{number}", deletionTimestamp=NOW) for number in range(500)]
    write_commit(table, 0, [protocol(features=["v2Checkpoint"]), metadata(), *adds, *gone])
    rows: list[int] = []
    for module in (listed_actions, checkpoint_files, sidecar_files, sidecar_reuse, loading):
        original = module.read_rows

        def counted(*args: Any, read: Any = original, **named: Any) -> Any:
            found = read(*args, **named)
            rows.append(len(found))
            return found

        monkeypatch.setattr(module, "read_rows", counted)
    written = write(spark, table, kind="v2-parquet", adds_per_sidecar=100)
    assert (written.num_adds, written.num_removes) == (500, 500)
    assert rows
    assert written.num_sidecars == 6
    assert max(rows) == written.num_actions - 1000, "what the hint repeats of its own file"


@pytest.mark.full
@pytest.mark.parametrize("is_searched", [True, False])
def test_sidecars_are_as_many_as_the_actions_need(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, is_searched: bool
) -> None:
    """However long their lines are, and whether or not the driver looks through them."""
    if not is_searched:
        for bound in ("DRIVER_LOG_BYTES", "DRIVER_SCAN_BYTES"):
            monkeypatch.setattr(line_reader, bound, 0)
    files = [add(f"f{number}", tags={"note": "n" * number}) for number in range(300)]
    write_commit(table, 0, [protocol(features=["v2Checkpoint"]), metadata(), *files])
    write_commit(table, 1, [remove(f"g{number}", deletionTimestamp=NOW) for number in range(100)])
    written = write(spark, table, kind="v2-json", adds_per_sidecar=50)
    sidecars = load_snapshot(spark, str(table)).log.sidecars
    tags = [parse_sidecar_tags(sidecar.tags) for sidecar in sidecars]
    adds = [one.num_adds for one in tags if one is not None and one.num_adds]
    assert (sum(adds), len(adds)) == (written.num_adds, 6) == (300, 6)


@pytest.mark.full
@pytest.mark.parametrize("before", ["none", "json", "struct", "both"])
@pytest.mark.parametrize("after", ["none", "json", "struct", "both"])
def test_sidecars_have_their_shares_in_whatever_form_statistics_are(
    spark: SparkSession, table: Path, before: str, after: str
) -> None:
    """PROTOCOL.md#per-file-statistics"""

    def opening(form: str) -> list[Any]:
        configuration = {
            "delta.checkpoint.writeStatsAsJson": str(form in ("json", "both")).lower(),
            "delta.checkpoint.writeStatsAsStruct": str(form in ("struct", "both")).lower(),
        }
        columns = [field("id", "integer"), field("p", "integer")]
        table_of_form = metadata(*columns, partitioned_by=["p"], configuration=configuration)
        return [protocol(features=["v2Checkpoint"]), table_of_form]

    numbers = list(range(60))
    Random(0).shuffle(numbers)
    stats = [{"numRecords": 1, "minValues": {"id": n}, "maxValues": {"id": n}} for n in numbers]
    files = [
        add(f"f{n}", partitionValues={"p": str(n // 40)}, stats=json.dumps(one))
        for n, one in zip(numbers, stats, strict=True)
    ]
    write_commit(table, 0, [*opening(before), *files])
    write(spark, table, kind="v2-json")
    # What is no partition value fails replay, but not once its file is dead.
    write_commit(table, 1, [*opening(after), add("dead", partitionValues={"p": "none"})])
    write_commit(table, 2, [remove("dead", deletionTimestamp=NOW)])
    written = write(spark, table, kind="v2-json", adds_per_sidecar=10, incremental=False)
    assert written.num_adds == 60
    sidecars = load_snapshot(spark, str(table)).log.sidecars
    tags = [parse_sidecar_tags(sidecar.tags) for sidecar in sidecars]
    adds = [one.num_adds for one in tags if one is not None and one.num_adds]
    assert len(adds) == 6
    assert max(adds) <= 11


@pytest.mark.classic("looks into the JVM")
@pytest.mark.full
@pytest.mark.parametrize("group", ["time zone, no ANSI", "Parquet"])
def test_settings_change_nothing(spark: SparkSession, table: Path, group: str) -> None:
    """The types and values in the files are the same under any settings, and the same session is
    active afterwards.
    """
    columns = [field("at", "timestamp"), field("id", "integer"), field("p", "date")]
    stats = json.dumps({"numRecords": 1, "minValues": {"at": "1500-06-01T12:34:56.789Z", "id": 1}})
    one = add("a", partitionValues={"p": "1500-01-01"}, stats=stats)
    configuration = {"delta.checkpoint.writeStatsAsJson": "false"}
    create_with(table, columns, one, partitioned_by=["p"], configuration=configuration)
    written_with = {
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.files.maxRecordsPerFile": "1",
        "spark.sql.parquet.compression.codec": "zstd",
    }
    with settings(spark, {**HOSTILE[group], **written_with}):
        written = write_checkpoint(spark, str(table))
        active = SparkSession.getActiveSession()
        assert active is not None
        assert active._jsparkSession.equals(spark._jsparkSession)
        with ThreadPoolExecutor(1) as thread:  # which has none
            thread.submit(write_checkpoint, spark, str(table), layout="hash").result()
            assert thread.submit(SparkSession.getActiveSession).result() is None
    file = pq.ParquetFile(log_directory(table) / str(written.file))
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    rows = file.read().to_pylist()
    (found,) = (row["add"] for row in rows if row["add"])
    low = found["stats_parsed"]["minValues"]
    assert (low["id"], low["at"].isoformat()) == (1, "1500-06-01T12:34:56.789000+00:00")
    assert found["partitionValues_parsed"]["p"].isoformat() == "1500-01-01"


def create_with(table: Path, columns: Sequence[Any], *actions: Any, **fields: Any) -> None:
    write_commit(table, 0, [protocol(), metadata(*columns, **fields), *actions])


def test_physical_names_under_column_mapping(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#checkpoint-schema"""
    columns = [
        field(name, "integer", metadata={
            "delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"
        })
        for number, name in enumerate(["id", "day"], 1)
    ]  # fmt: skip
    stats = json.dumps({"numRecords": 2, "minValues": {"col-1": 5}, "maxValues": {"col-1": 6}})
    action = add("a", partitionValues={"col-2": "7"}, stats=stats)
    mapped = {"delta.columnMapping.mode": "name"}
    start = metadata(*columns, partitioned_by=["day"], configuration=mapped)
    write_commit(table, 0, [protocol(2, 5), start, action])
    written = write_checkpoint(spark, str(table))
    rows = pq.read_table(log_directory(table) / str(written.file)).to_pylist()
    (found,) = (row["add"] for row in rows if row["add"])
    assert found["partitionValues_parsed"] == {"col-2": 7}
    assert found["stats_parsed"]["minValues"] == {"col-1": 5}
    only_checkpoint(table, 0)
    assert load_snapshot(spark, str(table)).scan("id > 6").files().count() == 0
    assert load_snapshot(spark, str(table)).scan("id = 6 AND day = 7").files().count() == 1


@pytest.mark.parametrize(
    "arguments",
    [{"layout": "x"}, {"kind": "x"}, {"adds_per_sidecar": 0}, {"version": "1"},
     {"incremental": "false"}, {"compression": "zip"}],
)  # fmt: skip
def test_wrong_arguments(spark: SparkSession, table: Path, arguments: dict[str, Any]) -> None:
    create(table, add("a"))
    with pytest.raises(InvalidArgumentError) as raised:
        write_checkpoint(spark, str(table), **arguments)
    assert raised.value.argument == next(iter(arguments))
