"""Commits that name each file once need no reconciliation among themselves."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import Snapshot, load_snapshot
from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.table.listing import line_reader
from sparkdelta.table.log import state
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.snapshots import keys, raised_by
from tests.support.spark_jobs import counted_jobs, no_jobs, plan, shuffled_columns
from tests.support.table_builder import add, create, metadata, protocol, remove

VECTOR = {
    "storageType": "u", "pathOrInlineDv": "v", "offset": 1, "sizeInBytes": 1, "cardinality": 1
}  # fmt: skip

DISTINCT: dict[str, list[Any]] = {
    "nothing": [{"txn": {"appId": "a", "version": 1}}],
    "adds": [add("a"), add("b")],
    "a path with other characters": [add("p=1/a+b c~ü.parquet"), remove("A")],
    "other files than are removed": [add("a"), remove("b")],
    "statistics with a path": [add("a", stats=json.dumps({"minValues": {"path": "a"}}))],
    "vectors that are null": [add("a", deletionVector=None), remove("b", deletionVector=None)],
}
NOT_DISTINCT: dict[str, list[Any]] = {
    "added twice": [add("a"), add("a")],
    "added and removed": [add("a"), remove("a")],
    "another spelling": [add("a b"), remove("a%20b")],
    "an absolute path": [add("/a")],
    "a scheme": [add("s3://b/a")],
    "an escape of JSON": ['{"add":{"path":"\\u0061","partitionValues":{},"size":1}}'],
    "a vector": [remove("a", deletionVector=VECTOR)],
    "a partition column of that name": [add("a", partitionValues={"path": "b"})],
    "another order of fields": ['{"remove":{"deletionTimestamp":1,"path":"a"}}'],
    "two actions": [json.dumps({**add("a"), **remove("b")})],
    "a name with an escaped letter": [add("a"), '{"r\\u0065move":{"path":"b"}}'],
    "a name between apostrophes": [add("a"), "{'remove':{'path':'b'}}"],
    "a second action between apostrophes": ['{"add":{"path":"a"},"remove":{\'path\':\'b\'}}'],
}


def write_tail(table: Path, lines: list[Any]) -> None:
    create(table)
    texts = (
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines
    )
    (table / "_delta_log" / f"{1:020d}.json").write_text("\n".join(texts))


@pytest.mark.parametrize("name", [*DISTINCT, *NOT_DISTINCT])
def test_paths_in_the_text(spark: SparkSession, table: Path, name: str) -> None:
    """PROTOCOL.md#action-reconciliation: the driver reads them from the lines without a job."""
    write_tail(table, DISTINCT.get(name) or NOT_DISTINCT[name])
    snapshot = load_snapshot(spark, str(table))
    with no_jobs(spark):
        found = snapshot.log.commits.distinct_files
    assert (found is None) == (name in NOT_DISTINCT)
    if found is not None:
        adds = [row["path"] for row in found.to_pylist() if row["is_add"]]
        removes = [row["path"] for row in found.to_pylist() if not row["is_add"]]
        assert sorted(adds) == [path for path, _ in keys(snapshot.add_files())]
        assert sorted(removes) == [path for path, _ in keys(snapshot.remove_files())]


@pytest.mark.full
def test_later_commits(spark: SparkSession, table: Path) -> None:
    """Each snapshot knows of its own commits; those of an earlier one stay as they were."""
    opening = [protocol(), metadata(), add("a%20b"), add("c")]
    write_commit(table, 0, opening)
    write_checkpoint(table, 0, opening)
    (table / "_delta_log" / f"{1:020d}.json").write_bytes(b'{"remove":{"path":"a b"}}\r\n')
    first = load_snapshot(spark, str(table))
    cached = first.cache()
    assert keys(first.add_files()) == [("c", "")]
    write_commit(table, 2, [add("d")])
    second = first.refresh()
    assert keys(second.add_files()) == [("c", ""), ("d", "")]
    write_commit(table, 3, [add("a b"), remove("d")])
    third = second.refresh()
    for snapshot in (third, cached.refresh()):
        assert keys(snapshot.add_files()) == [("a b", ""), ("c", "")]
        assert keys(snapshot.scan().files()) == [("a b", ""), ("c", "")]
    found = [snapshot.log.commits.distinct_files for snapshot in (second, third)]
    assert [None if files is None else files.num_rows for files in found] == [2, None]
    cached.uncache()


def test_commits_that_change_while_they_are_read(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "DRIVER_LOG_BYTES", -1)
    write_tail(table, [add("a")])
    snapshot = load_snapshot(spark, str(table))
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(add("other")))
    assert snapshot.log.commits.distinct_files is None


@pytest.mark.parametrize("line", ['{"add":{"path":"b",,}}', '{"remove":{"path":"b"'])
@pytest.mark.parametrize("bound", [1 << 20, -1])
def test_a_damaged_line(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, line: str, bound: int
) -> None:
    monkeypatch.setattr(line_reader, "DRIVER_LOG_BYTES", bound)
    write_tail(table, [add("a"), line])
    write_checkpoint(table, 0, [protocol(), metadata(), remove("b")])
    for files in (Snapshot.add_files, Snapshot.remove_files):
        read = partial(lambda files: files(load_snapshot(spark, str(table))).collect(), files)
        assert isinstance(raised_by(read), MalformedLogFileError)


@pytest.mark.every_case
@pytest.mark.parametrize("reader", ["driver", "driver, many", "executors", "executors alone"])
def test_a_tail_of_distinct_files(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """The performance contract: nothing is shuffled or sorted; a job sends the keys if there are
    many.

    PROTOCOL.md#action-reconciliation
    """
    if reader != "driver":
        monkeypatch.setattr(state, "_MAX_NAMED_FILES", 0)
    if reader.startswith("executors"):
        monkeypatch.setattr(line_reader, "DRIVER_LOG_BYTES", -1)
    if reader == "executors alone":
        monkeypatch.setattr(line_reader, "DRIVER_SCAN_BYTES", -1)
    opening = [protocol(features=["deletionVectors"]), metadata()]
    files = [add("a"), add("b"), add("c", deletionVector=VECTOR), add("d", deletionVector=VECTOR)]
    gone = [remove("e"), remove("f", deletionVector=VECTOR), remove("g")]
    write_commit(table, 0, [*opening, *files, *gone])
    write_checkpoint(table, 0, [*opening, *files, *gone])
    write_commit(table, 1, [remove("a"), add("c"), add("e")])
    write_commit(table, 2, [add("x"), add("f"), remove("y")])
    snapshot = load_snapshot(spark, str(table))
    is_known = reader != "executors alone"
    assert (snapshot.log.commits.distinct_files is not None) == is_known
    adds, removes = snapshot.add_files(), snapshot.remove_files()
    vector = "uv@1"
    assert keys(adds) == [("b", ""), ("c", ""), ("d", vector), ("e", ""), ("f", ""), ("x", "")]
    assert keys(removes) == [("a", ""), ("f", vector), ("g", ""), ("y", "")]
    if is_known:
        assert shuffled_columns(adds) == []
        assert not any(node.name in ("Window", "Sort") for node in plan(adds))
        with counted_jobs(spark) as jobs:
            snapshot.add_files().select("path").collect()
        assert jobs.count == (1 if reader == "driver" else 2)
