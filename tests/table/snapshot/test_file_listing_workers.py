"""The files below a table's root as workers list them, on a local disk and on S3.

PROTOCOL.md#data-files
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from sparkdelta.base.protocol.log_files import data_directory, staged_data_directory
from sparkdelta.base.storage.object_log import open_objects
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.exceptions import StorageError
from sparkdelta.operations.vacuum.vacuum_rules import visible_paths
from sparkdelta.table.snapshot.file_listing_workers import Directory, FileLister

WRITTEN = data_directory(str(uuid4()))
UNFINISHED = f"{WRITTEN}/_temporary/0/_temporary/attempt/p"
STAGED = f"{staged_data_directory(str(uuid4()))}/_temporary/0/p"
SHOWN = ["f", "a b/c%20d/g", "a b/h", "_p=1/i", "_change_data/é", UNFINISHED, STAGED]
HIDDEN = ["_delta_log/0.json", "_h", ".k/l", "a b/_m/n", "_temporary/o", f"_temporary/{WRITTEN}/q"]


def lister(root: str, settings: dict[str, str] | None = None) -> FileLister:
    files = ArrowFiles(settings or {})
    return FileLister(files=files, root=root, visible=visible_paths(["_p"], {}))


def listed(of: FileLister, *directories: Directory, budget: int = 1000) -> list[dict[str, Any]]:
    batches = [*of.list_below(directories, budget)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def test_a_local_disk(tmp_path: Path) -> None:
    for name in (*SHOWN, *HIDDEN):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("xy")
    (tmp_path / "empty").mkdir()
    rows = listed(lister(f"file:{tmp_path}"), ("", None))
    assert {row["path"] for row in rows if not row["isDir"]} == {*SHOWN}
    directories = {row["path"]: row["isEmpty"] for row in rows if row["isDir"]}
    assert directories == {
        "a b": False, "a b/c%20d": False, "_p=1": False, "_change_data": False, "empty": True,
        **{str(p): False for file in (UNFINISHED, STAGED) for p in [*Path(file).parents][:-1]},
    }  # fmt: skip
    assert {row["length"] for row in rows if not row["isDir"]} == {2}
    with pytest.raises(StorageError, match="cannot be listed"):
        listed(lister(f"file:{tmp_path}"), ("f", None))


def test_tasks_leave_directories_beyond_their_budget(tmp_path: Path) -> None:
    """Each entry is listed once, whatever the budgets of the tasks."""
    for number in range(40):
        file = tmp_path / f"{number % 7}" / f"{number % 3}" / str(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    of = lister(f"file:{tmp_path}")
    whole = listed(of, ("", None))
    rows, pending = [], [("", None)]
    while pending:
        found = listed(of, *pending, budget=5)
        rows += [row for row in found if not row["isPending"]]
        pending = [(row["path"], row["modificationTime"]) for row in found if row["isPending"]]
    assert sorted(rows, key=str) == sorted(whole, key=str)
    assert len(rows) == 40 + 7 + 21


@pytest.mark.full
def test_s3(s3: dict[str, str]) -> None:
    root = f"s3a://bucket/{uuid4()}/my table"
    objects = open_objects(root, s3)
    for name in (*SHOWN, *HIDDEN):
        objects.put(name, b"xy")
    rows = listed(lister(root, s3), ("", None))
    files = [row for row in rows if not row["isDir"]]
    assert {row["path"] for row in files} == {*SHOWN}
    assert all(row["modificationTime"] > 0 for row in files)
    assert not any(row["isEmpty"] for row in rows)
    assert listed(lister(f"{root}/gone", s3), ("", None)) == []
