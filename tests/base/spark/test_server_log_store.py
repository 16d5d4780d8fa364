"""The log store of Spark Connect, with operations that run in this process instead of a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from sparkdelta.base.protocol.log_files import staging_directory
from sparkdelta.base.spark import server_store
from sparkdelta.base.spark.connect_storage import BinaryFiles
from sparkdelta.base.spark.server_store import ServerLogStore
from sparkdelta.base.storage import server_store_workers
from sparkdelta.base.storage.server_store_workers import Item, StoreOperation
from sparkdelta.exceptions import StoreNotWritableError


class _Session:
    """A session of a server on a cluster."""

    conf = SimpleNamespace(get=lambda name, default=None: {"spark.master": "spark://h"}.get(name))


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations that ran."""
    ran: list[str] = []

    def on_server(_: Any, function: Callable[[], list[Item]], *, what: str) -> list[Item]:
        assert isinstance(function, StoreOperation)
        ran.append(function.function.__name__)
        return function()

    monkeypatch.setattr(server_store, "on_server", on_server)
    return ran


def store_of(tmp_path: Path) -> ServerLogStore:
    session: Any = _Session()
    return ServerLogStore(session, f"file:{tmp_path}")


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_disk_that_the_driver_does_not_see_is_refused(
    operations: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_seen: bool
) -> None:
    monkeypatch.setattr(BinaryFiles, "shows", lambda *_: is_seen)
    store = store_of(tmp_path)
    if is_seen:
        store.check_writable()
        store.check_writable()
        assert operations == ["put_probe", "delete_probe"], "once for a session and a table"
    else:
        with pytest.raises(StoreNotWritableError):
            store.check_writable()
    assert not (tmp_path / "_delta_log").exists()


def test_storages_without_a_safe_put_are_refused_before_any_request(operations: list[str]) -> None:
    session: Any = _Session()
    with pytest.raises(StoreNotWritableError):
        ServerLogStore(session, "wasbs://host/t").check_writable()
    assert not operations


def test_a_commit_that_no_request_can_hold_is_sent_in_parts(
    operations: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server_store, "_MAX_MESSAGE_BYTES", 10)
    store = store_of(tmp_path)
    store.put_if_absent("0.json", iter([b"12345678", b"90", b"1234567890123"]))
    assert operations == ["overwrite"] * 3 + ["join_if_absent", "delete"]
    assert store.read_start("0.json", 100) == b"12345678901234567890123"
    with pytest.raises(FileExistsError):
        store.put_if_absent("0.json", b"another writer's commit")
    assert [path.name for path in (tmp_path / "_delta_log").iterdir()] == ["0.json"]


def test_the_hint_the_listing_and_new_commits_take_one_task(
    operations: list[str], tmp_path: Path
) -> None:
    store = store_of(tmp_path)
    for name in ("0.json", "1.json", "1.crc", "_last_checkpoint"):
        store.put_if_absent(name, name.encode())
    operations.clear()
    assert store.read(["_last_checkpoint"]) == [b"_last_checkpoint"]
    names = [entry.name for entry in store.list_from("1")]
    assert names == ["1.crc", "1.json", "_last_checkpoint"]
    assert store.read(["1.crc"]) == [b"1.crc"]
    assert store.read(["0.json", "1.json"]) == [b"0.json", b"1.json"]
    assert operations == ["survey"]
    store.put_if_absent("2.json", b"")
    assert "2.json" in [entry.name for entry in store.list_from()], "each listing is of its time"


def test_a_commit_and_its_checksum_take_one_task(operations: list[str], tmp_path: Path) -> None:
    store, log = store_of(tmp_path), tmp_path / "_delta_log"
    store.expect_put("0.crc", b"checksum", after="0.json")
    store.put_if_absent("0.json", b"commit")
    assert (log / "0.crc").read_bytes() == b"checksum"
    store.put_if_absent("0.crc", b"checksum")
    assert operations == ["put_if_absent"]
    with pytest.raises(FileExistsError):
        store.put_if_absent("0.crc", b"another checksum")
    assert len(operations) == 2, "a task is left out once, and only for what it would create"


def test_a_commit_deletes_the_staging_directory_in_its_task(
    operations: list[str], tmp_path: Path
) -> None:
    store, log, name = store_of(tmp_path), tmp_path / "_delta_log", staging_directory(str(uuid4()))
    for commit, has_conflict in (("0.json", True), ("1.json", False)):
        (log / name).mkdir(parents=True)
        (log / name / "part").write_bytes(b"staged")
        store.expect_deletion(name)
        if has_conflict:
            (log / commit).write_bytes(b"another writer's")
            with pytest.raises(FileExistsError):
                store.put_if_absent(commit, b"commit")
            store.put_if_absent("other.json", b"of another operation")
            assert (log / name / "part").exists(), "it is needed until its own commit"
        else:
            store.put_if_absent(commit, b"commit")
            assert not (log / name).exists()
        store.delete_directory(name)
        assert not (log / name).exists()
    assert operations == ["put_if_absent"] * 2 + ["delete_directory"] + ["put_if_absent"]
    store.delete_directory(name)
    assert operations[-1] == "delete_directory", "a task is left out once"


def test_the_checksum_of_a_lost_race_is_not_written(operations: list[str], tmp_path: Path) -> None:
    store, log = store_of(tmp_path), tmp_path / "_delta_log"
    log.mkdir()
    (log / "0.json").write_bytes(b"another writer's")
    store.expect_put("0.crc", b"checksum", after="0.json")
    with pytest.raises(FileExistsError):
        store.put_if_absent("0.json", b"commit")
    store.expect_put("0.crc", b"checksum", after="0.json")
    store.put_if_absent("1.json", b"commit")
    assert sorted(path.name for path in log.iterdir()) == ["0.json", "1.json"]
    store.expect_put("0.crc", b"checksum", after="2.json")
    (log / "0.crc").write_bytes(b"of a commit that was taken back")
    store.put_if_absent("2.json", b"commit")
    with pytest.raises(FileExistsError):
        store.put_if_absent("0.crc", b"checksum")
    assert (log / "0.crc").read_bytes() == b"of a commit that was taken back"


def test_staged_files_that_are_small_are_listed_and_read_in_one_task(
    operations: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = f"{staging_directory(str(uuid4()))}/part"
    for directory in (part, "_sidecars"):
        (tmp_path / "_delta_log" / directory).mkdir(parents=True)
        (tmp_path / "_delta_log" / directory / "1.parquet").write_bytes(b"rows")
    for bound, name, tasks in ((4, part, 1), (3, part, 2), (4, "_sidecars", 2)):
        monkeypatch.setattr(server_store_workers, "_MAX_KNOWN_BYTES", bound)
        store = store_of(tmp_path)
        operations.clear()
        assert [entry.name for entry in store.list_directory(name)] == ["1.parquet"]
        assert store.read([f"{name}/1.parquet"]) == [b"rows"]
        assert len(operations) == tasks
