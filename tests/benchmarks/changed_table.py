"""A table with change data feed and deletion vectors whose commits are written without Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sparkdelta import write_delta
from tests.benchmarks.data import STORED, write_commit, write_vectors

COMMITS = 100
"""The commits that change rows; version 0 has as many files."""

OF_ONE_FILE = 5
"""The number of consecutive commits that change the same file."""

_SHARE = 200  # one row of this many is changed by a commit
_PROPERTIES = ("delta.enableDeletionVectors", "delta.enableChangeDataFeed")


def write_changed_table(spark: SparkSession, root: Path, *, rows: int) -> None:
    """Version 0 has 100 files. Each later one deletes or updates one row in 200 of one of them."""
    columns = (f"{sql} AS {name}" for name, (_, sql) in STORED.items())
    properties = {**dict.fromkeys(_PROPERTIES, "true"), "delta.checkpointInterval": "1000"}
    table = spark.range(0, rows, 1, COMMITS).selectExpr(*columns)
    write_delta(table, str(root), properties=properties)
    firsts = range(1, COMMITS, OF_ONE_FILE)
    for first, add in zip(firsts, _adds(root)[: len(firsts)], strict=True):
        _change_file(root, add, first)


def first_version_of(table: Path, copy: Path) -> None:
    """Make a table of links to the files of version 0."""
    (copy / "_delta_log").mkdir(parents=True)
    commit = Path("_delta_log", f"{0:020}.json")
    shutil.copy(table / commit, copy / commit)
    for add in _adds(table):
        (copy / add["path"]).parent.mkdir(exist_ok=True)
        (copy / add["path"]).hardlink_to(table / add["path"])


def _adds(table: Path) -> list[dict[str, Any]]:
    """The add actions of version 0."""
    lines = (table / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8").splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def _change_file(root: Path, add: dict[str, Any], first: int) -> None:
    """Write the versions that change rows of one file."""
    rows = pq.read_table(root / add["path"])
    deleted = np.empty(0, np.int64)
    for number in range(OF_ONE_FILE):
        changed = np.arange(number, rows.num_rows, _SHARE)
        deleted = np.union1d(deleted, changed)
        remove = {name: add.get(name) for name in ("path", "partitionValues", "size", "stats")}
        remove |= {"deletionTimestamp": 0, "dataChange": True, "extendedFileMetadata": True}
        remove |= {name: add[name] for name in ("deletionVector",) if name in add}
        [vector] = write_vectors(root, [deleted])
        stats = {"numRecords": rows.num_rows, "tightBounds": False}
        add = {**add, "deletionVector": vector, "stats": json.dumps(stats)}
        actions = [{"remove": remove}, {"add": add}]
        version = first + number
        if version % 2 == 0:
            actions += _updated(root, rows.take(changed), version)
        write_commit(root, version, actions)


def _updated(root: Path, old: pa.Table, version: int) -> list[dict[str, Any]]:
    """The new values of rows, and the change data of them."""
    note = old.schema.get_field_index("note")
    values = pa.repeat(pa.scalar("new"), old.num_rows)
    new = old.set_column(note, old.schema.field(note), values)
    images = [
        rows.append_column("_change_type", pa.repeat(pa.scalar(f"update_{kind}"), rows.num_rows))
        for rows, kind in ((old, "preimage"), (new, "postimage"))
    ]
    added = _written(root, f"part-{version}.parquet", new)
    added |= {"stats": json.dumps({"numRecords": new.num_rows}), "modificationTime": 0}
    changes = _written(root, f"_change_data/cdc-{version}.parquet", pa.concat_tables(images))
    return [{"add": added | {"dataChange": True}}, {"cdc": changes | {"dataChange": False}}]


def _written(root: Path, name: str, rows: pa.Table) -> dict[str, Any]:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows, path)
    return {"path": name, "partitionValues": {}, "size": path.stat().st_size}
