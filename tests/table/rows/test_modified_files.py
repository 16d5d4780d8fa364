"""Files whose rows are deleted: their deletion vectors, and the rows of those to be rewritten.

PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta
from sparkdelta.base.protocol.table_properties import max_deleted_share
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows import modified_file_rows, modified_files
from sparkdelta.table.rows.modified_files import (
    ModifiedFiles,
    keyed_positions,
    modify_files,
    whole_files,
)
from sparkdelta.table.scan.scan_request import MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging
from tests.support.log_writer import write_commit
from tests.support.snapshots import raised_by, rows
from tests.support.table_builder import (
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    write_data,
    write_vectors,
)

POSITIONS = f"`{MetadataColumn.FILE.value}` STRING, `{MetadataColumn.ROW_POSITION.value}` LONG"
ALL_VECTORS = 1.0


@pytest.fixture(params=["driver", "executors"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The process that writes the vectors."""
    if request.param == "executors":
        monkeypatch.setattr(modified_files, "MAX_READ_FILES", 0)
        monkeypatch.setattr(modified_files, "MAX_TOUCHED_FILES", 1)
        monkeypatch.setattr(modified_file_rows, "MAX_DRIVER_FILES", 0)
    return str(request.param)


def create(table: Path, *actions: Any, **fields: Any) -> None:
    schema = fields.pop("schema", ())
    first = [protocol(features=["deletionVectors"]), metadata(*schema, **fields)]
    write_commit(table, 0, [*first, *actions])


def positions(deleted: Mapping[str, Sequence[int]]) -> list[tuple[str, int]]:
    return [(file, row) for file, found in deleted.items() for row in found]


def touched(
    spark: SparkSession,
    snapshot: Snapshot,
    deleted: Mapping[str, Sequence[int]],
    share: float | None,
) -> Iterator[ModifiedFiles]:
    """The touched files, while what is staged is there."""
    with staging(spark, snapshot.log.store) as stage:
        named = {f"file:{Path(snapshot.path[5:]) / name}": found for name, found in deleted.items()}
        frame = spark.createDataFrame(positions(named), POSITIONS)
        yield modify_files(snapshot, keyed_positions(frame), stage, max_deleted_share=share)


def commit(spark: SparkSession, snapshot: Snapshot, found: ModifiedFiles) -> None:
    Transaction(
        spark=spark,
        store=snapshot.log.store,
        snapshot=snapshot,
        operation=Operation("DELETE"),
        staged=StagedActions(adds=found.adds, removes=found.removes),
        file_actions=found.actions,
    ).commit()


def counts(found: ModifiedFiles) -> dict[str, Any]:
    return {
        name: value
        for name in found.__slots__
        if name.startswith("num_") and (value := getattr(found, name)) != 0
    }


def survivors(snapshot: Snapshot, found: ModifiedFiles, name: str = "id") -> list[Any]:
    """The rows of the files to be rewritten, in order."""
    assert found.rewritten is not None
    frame = snapshot.scan()._rows(found.rewritten, None)
    return [row[name] for row in frame.collect()]


def test_every_outcome(spark: SparkSession, table: Path, writer: str) -> None:
    """A file without other rows is removed; old vectors are united with; numRecords that the log
    does not know comes from the footer; rows of other files stay.

    PROTOCOL.md#writer-requirement-for-deletion-vectors
    """
    old = write_vectors(table, [0, 1], [2], number=1)
    full = {
        "numRecords": 10,
        "nullCount": {"id": 0, "x": 8},
        "minValues": {"id": 10},
        "new": [1.10],
    }
    actions = [
        write_data(table, "gone", ids(0, 3)),
        write_data(table, "old +%", ids(10, 20), deletionVector=old[0], tags={"a": "b"}),
        write_data(table, "inline", ids(20, 30), deletionVector=inline_vector([2, 9])),
        write_data(table, "all left gone", ids(30, 33), deletionVector=old[1]),
        write_data(table, "unknown", ids(40, 50)),
        write_data(table, "untouched", ids(60, 63)),
    ]
    actions[1]["add"]["stats"] = json.dumps(full)
    del actions[4]["add"]["stats"]
    create(table, *actions)
    snapshot = load_snapshot(spark, str(table))
    deleted = {
        "gone": [2, 0, 1, 2],
        "old +%": [5, 5],
        "inline": [3],
        "all left gone": [0, 1],
        "unknown": [9],
    }
    for found in touched(spark, snapshot, deleted, ALL_VECTORS):
        assert counts(found) == {
            "num_files": 5,
            "num_rows": 8,
            "num_file_rows": 31,
            "num_removed_files": 2,
            "num_removed_bytes": actions[0]["add"]["size"] + actions[3]["add"]["size"],
            "num_vectors_added": 3,
            "num_vectors_removed": 3,
            "num_vectors_updated": 2,
        }
        assert found.rewritten is None
        if writer == "driver":
            assert found.paths is not None
            assert sorted(found.paths) == sorted(f"{snapshot.path}/{name}" for name in deleted)
        assert (found.actions is None) == (writer == "driver")
        if found.actions is not None:
            assert rows(found.actions) == rows(found.actions)
        commit(spark, snapshot, found)
    expected = {*range(12, 20), *range(20, 29), *range(40, 49), *range(60, 63)} - {15, 22, 23}
    assert rows(read_delta(spark, str(table))) == [(n,) for n in sorted(expected)]
    after = load_snapshot(spark, str(table))
    adds = {row["path"]: row for row in after.add_files().collect()}
    stats = {path: json.loads(row["stats"]) for path, row in adds.items()}
    assert stats["old%20+%25"] == {
        **full, "nullCount": {"id": 0, "x": 10}, "tightBounds": False
    }  # fmt: skip
    assert stats["unknown"] == {"numRecords": 10, "tightBounds": False}
    assert stats["untouched"] == {"numRecords": 3}
    assert adds["old%20+%25"]["tags"] == {"a": "b"}
    assert {p: row["deletionVector"]["cardinality"] for p, row in adds.items() if row[7]} == {
        "old%20+%25": 3,
        "inline": 3,
        "unknown": 1,
    }
    removed = {row["path"]: row["deletionVector"] for row in after.remove_files().collect()}
    assert {path: vector and vector["cardinality"] for path, vector in removed.items()} == {
        "gone": None, "old%20+%25": 2, "inline": 2, "all%20left%20gone": 1, "unknown": None,
    }  # fmt: skip


def test_rewritten_files_lose_no_other_row(spark: SparkSession, table: Path, writer: str) -> None:
    """Partitioned, with mapped columns, and in a table without deletion vectors."""
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c-id"}
    by = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "c p"}
    schema = [field("id", "long", metadata=mapped), field("p", "string", metadata=by)]
    data = [pa.table({"c-id": range(10 * n, 10 * n + 10)}) for n in range(4)]
    values = ["a b", None, "é%", "z"]
    actions = [
        write_data(table, f"c%20p={n}/f", part, {"c p": value})
        for n, (part, value) in enumerate(zip(data, values, strict=True))
    ]
    mode = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    kind = metadata(*schema, partitioned_by=["p"], configuration=mode)
    write_commit(table, 0, [protocol(features=["columnMapping"]), kind, *actions])
    snapshot = load_snapshot(spark, str(table))
    assert max_deleted_share(snapshot.protocol, snapshot.properties) == 0
    deleted = {f"c%20p={n}/f": [1, 5, 7] for n in range(3)}
    for found in touched(spark, snapshot, deleted, 0.0):
        assert counts(found) == {
            "num_files": 3,
            "num_rows": 9,
            "num_file_rows": 30,
            "num_removed_files": 3,
            "num_removed_bytes": sum(action["add"]["size"] for action in actions[:3]),
            "num_copied_rows": 21,
        }
        assert isinstance(found.rewritten, pa.Table) == (writer == "driver")
        read = snapshot.scan()._rows(found.rewritten, None)
        assert rows(read) == sorted(
            [(10 * n + i, values[n]) for n in range(3) for i in range(10) if i not in (1, 5, 7)],
            key=repr,
        )
        if found.actions is None:
            assert (found.adds, len(found.removes)) == ((), 3)
        else:
            assert [row["add"] for row in found.actions.collect()] == [None] * 3
    assert not list(table.glob("deletion_vector_*"))


@pytest.mark.slow
def test_a_file_that_loses_most_rows_is_rewritten(spark: SparkSession, table: Path) -> None:
    """The share of all deleted rows decides, those of the earlier vector among them; the file has
    many chunks.
    """
    before = inline_vector(range(100_000))
    create(
        table,
        write_data(table, "a", ids(0, 300_000), deletionVector=before),
        write_data(table, "b", ids(0, 4)),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    snapshot = load_snapshot(spark, str(table))
    deleted = {"a": range(150_000, 200_001), "b": [0, 3]}
    for found in touched(spark, snapshot, deleted, None):
        assert (found.num_vectors_added, found.num_copied_rows) == (1, 149_999)
        assert survivors(snapshot, found) == [*range(100_000, 150_000), *range(200_001, 300_000)]


def test_rows_that_a_file_does_not_have(spark: SparkSession, table: Path, writer: str) -> None:
    create(table, write_data(table, "f", ids(0, 3)))
    snapshot = load_snapshot(spark, str(table))
    failing = touched(spark, snapshot, {"f": [1, 3]}, ALL_VECTORS)
    assert (
        raised_by(lambda: list(failing)).getCondition() == "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX"
    )


@pytest.mark.full
def test_files_that_are_not_in_the_table(spark: SparkSession, table: Path, writer: str) -> None:
    create(table, write_data(table, "f", ids(0, 3)))
    snapshot = load_snapshot(spark, str(table))
    failing = touched(spark, snapshot, {"f": [1], "g": [0]}, ALL_VECTORS)
    assert raised_by(lambda: list(failing)).getCondition() == "DELTA_DATA_FILE_NOT_READ"


def test_nothing_to_delete(spark: SparkSession, table: Path) -> None:
    create(table, write_data(table, "f", ids(0, 3)))
    snapshot = load_snapshot(spark, str(table))
    assert list(touched(spark, snapshot, {}, ALL_VECTORS)) == [ModifiedFiles()]
    nothing = snapshot.add_files().filter("false")
    assert whole_files(snapshot, nothing) == ModifiedFiles()


def test_whole_files(spark: SparkSession, table: Path) -> None:
    vector = inline_vector([1])
    actions = [
        write_data(table, "a", ids(0, 3), deletionVector=vector),
        write_data(table, "b", ids(0, 5)),
        write_data(table, "c", ids(0, 7)),
    ]
    del actions[2]["add"]["stats"]
    create(table, *actions)
    snapshot = load_snapshot(spark, str(table))
    known = whole_files(snapshot, snapshot.add_files().filter("path <> 'c'"))
    assert counts(known) == {
        "num_files": 2,
        "num_rows": 7,
        "num_removed_files": 2,
        "num_removed_bytes": actions[0]["add"]["size"] + actions[1]["add"]["size"],
        "num_vectors_removed": 1,
    }
    assert known.actions is not None
    removed = {row["remove"]["path"]: row["remove"] for row in known.actions.collect()}
    assert {path: action["deletionVector"] is None for path, action in removed.items()} == {
        "a": False,
        "b": True,
    }
    assert whole_files(snapshot, snapshot.add_files()).num_rows is None
