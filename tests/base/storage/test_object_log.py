"""Tests of the contract of log stores over S3's protocol, with a server that the tests start
(moto).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from sparkdelta.base.protocol.log_files import data_directory, staging_directory
from sparkdelta.base.storage import object_log
from sparkdelta.base.storage.object_log import ObjectLogStore, open_objects
from sparkdelta.base.storage.s3_requests import open_s3
from sparkdelta.exceptions import InvalidArgumentError, StorageError, StoreNotWritableError
from tests.base.storage.test_log_writes import OUTSIDE, SPECIAL
from tests.support.commits import append, create, latest
from tests.support.memory_log import MemoryLog
from tests.support.s3_server import BUCKET

obstore = pytest.importorskip("obstore")
pytestmark = pytest.mark.full  # the server takes seconds to start


@pytest.fixture(
    params=["s3a", "standard library", "standard library, root of a bucket", "root of a bucket"]
)
def store(s3: dict[str, str], request: pytest.FixtureRequest) -> ObjectLogStore:
    """An empty log, by each client."""
    root = f"s3a://{BUCKET}" if "bucket" in request.param else f"s3a://{BUCKET}/a b/{uuid4()}"
    opened = open_s3 if "library" in request.param else open_objects
    found = ObjectLogStore(root, opened(root, s3))
    for entry in found.list_from():
        found.delete([entry.name])
    return found


def test_a_log_that_is_not_there(store: ObjectLogStore) -> None:
    assert store.list_from() == []
    assert store.list_directory("_sidecars") == []
    with pytest.raises(FileNotFoundError) as raised:
        store.read(["x"])
    assert raised.value.filename == "x"


@pytest.mark.parametrize("name", [*SPECIAL, "_sidecars/new.parquet"])
def test_an_object_is_put_once(store: ObjectLogStore, name: str) -> None:
    data = bytes(range(256)) * 300
    store.put_if_absent(name, iter([data[:100], data[100:]]))
    with pytest.raises(FileExistsError) as raised:
        store.put_if_absent(name, b"other")
    assert raised.value.filename == name
    assert store.read([name]) == [data]
    assert store.read_start(name, 100) == data[:100]
    assert store.read_start(name, len(data) + 1) == data
    assert store.read_from(name, 100) == data[100:]
    assert store.read_from(name, 0) == data
    assert ("/" in name) or [e.name for e in store.list_from()] == [name]
    store.overwrite(name, b"new")
    assert store.read([name]) == [b"new"]
    store.delete([name, "gone"])
    assert store.list_from() == []


def test_a_listing_is_in_order_and_has_no_directories(store: ObjectLogStore) -> None:
    for name in ("2.json", "1.json", "_last_checkpoint", "_sidecars/s.parquet"):
        store.put_if_absent(name, b"x" * len(name))
    assert [(e.name, e.size_bytes) for e in store.list_from("2")] == [
        ("2.json", 6), ("_last_checkpoint", 16),
    ]  # fmt: skip
    assert [e.name for e in store.list_directory("_sidecars")] == ["s.parquet"]
    assert store.list_from()[0].modification_time_ms > 1_700_000_000_000
    store.delete(["_sidecars/s.parquet"])


def test_a_file_is_published(store: ObjectLogStore) -> None:
    staging = staging_directory(str(uuid4()))
    store.put_if_absent(f"{staging}/a", b"a")
    store.put_if_absent(f"{staging}/d/b", b"b")
    store.publish(f"{staging}/a", "_sidecars/a")
    assert store.read(["_sidecars/a"]) == [b"a"]
    with pytest.raises(FileExistsError):
        store.publish(f"{staging}/d/b", "_sidecars/a")
    with pytest.raises(FileNotFoundError):
        store.publish(f"{staging}/a", "_sidecars/b")
    store.publish(f"{staging}/d/b", "_sidecars/b", is_new_name=True)
    assert store.read(["_sidecars/b"]) == [b"b"]
    assert store.list_directory(f"{staging}/d") == []
    with pytest.raises(FileNotFoundError):
        store.publish(f"{staging}/d/b", "_sidecars/c", is_new_name=True)
    store.put_if_absent(f"{staging}/d/e", b"e")
    store.delete_directory(staging)
    assert store.list_directory(f"{staging}/d") == []
    store.delete(["_sidecars/a", "_sidecars/b"])


def test_staging_directories_are_listed(store: ObjectLogStore) -> None:
    """And nothing else, be it named alike: what they hold may be deleted."""
    assert store.staging_directories() == []
    first, second = sorted(staging_directory(str(uuid4())) for _ in range(2))
    for name in (f"{second}/a", f"{first}/d/b", f"{first}/c", "_sidecars/s", f"{first}.tmp"):
        store.put_if_absent(name, b"x")
    found = store.staging_directories()
    assert [(entry.name, entry.size_bytes) for entry in found] == [(first, 0), (second, 0)]
    assert all(entry.modification_time_ms > 1_700_000_000_000 for entry in found)
    store.delete_directory(first)
    assert [entry.name for entry in store.staging_directories()] == [second]
    store.delete_directory(second)
    assert store.staging_directories() == []
    store.delete(["_sidecars/s", f"{first}.tmp"])


def test_a_staging_directory_is_as_new_as_what_is_in_it() -> None:
    """So that one in which a process still works is not taken for abandoned."""
    store = ObjectLogStore("memory:/t", obstore.store.MemoryStore())
    staging = staging_directory(str(uuid4()))

    def put(name: str) -> int:
        store.overwrite(f"{staging}/{name}", b"x")
        above, _, file = f"{staging}/{name}".rpartition("/")
        return next(e for e in store.list_directory(above) if e.name == file).modification_time_ms

    before = put("a")
    put("z")
    while (latest := put("d/b")) == before:
        pass
    (entry,) = store.staging_directories()
    assert entry.modification_time_ms == latest > before


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_log(store: ObjectLogStore, name: str) -> None:
    for verb in (
        lambda: store.put_if_absent(name, b""),
        lambda: store.overwrite(name, b""),
        lambda: store.publish("x", name),
        lambda: store.delete([name]),
        lambda: store.delete_directory(name),
    ):
        with pytest.raises(InvalidArgumentError):
            verb()


def test_a_commit_that_is_too_large(store: ObjectLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is sent, and no more of it than the limit is held."""
    monkeypatch.setattr(object_log, "MAX_COMMIT_BYTES", 10)
    taken: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in range(10):
            taken.append(number)
            yield b"1234"

    with pytest.raises(StoreNotWritableError):
        store.put_if_absent("0.json", lines())
    assert taken == [0, 1, 2]
    assert store.list_from() == []
    store.put_if_absent("0.json", iter([b"12345", b"67890"]))


def test_of_racing_writers_one_wins(store: ObjectLogStore) -> None:
    start = threading.Barrier(6)

    def put(number: int) -> list[str]:
        won = []
        for name in map(str, range(5)):
            start.wait()
            try:
                store.put_if_absent(name, b"%d" % number)
            except FileExistsError:
                continue
            won.append(name)
        return won

    with ThreadPoolExecutor(6) as pool:
        wins = list(pool.map(put, range(6)))
    assert sorted(name for won in wins for name in won) == list("01234")
    for number, won in enumerate(wins):
        assert store.read(won) == [b"%d" % number] * len(won)


def test_files_beside_the_log_are_noticed(s3: dict[str, str]) -> None:
    root = f"s3a://{BUCKET}/{uuid4()}"
    store = ObjectLogStore(root, open_objects(root, s3))
    assert store.is_alone()
    store.put_if_absent("0.json", b"")
    assert store.is_alone()
    store.objects.put(f"{data_directory(str(uuid4()))}/part-0", b"", use_multipart=False)
    assert store.is_alone()
    for beside in ("Part-0", "part-0"):  # before and after the log in the order of names
        store.objects.put(beside, b"", use_multipart=False)
        assert not store.is_alone()
        store.objects.delete(beside)


def test_writers_commit(store: ObjectLogStore) -> None:
    read_state = create(store)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: append(store, read_state, f"f{n}"), range(8)))
    assert latest(store).version == 8
    MemoryLog(files={e.name: store.read([e.name])[0] for e in store.list_from()}).commits()


def test_both_ways_must_lead_to_the_same_log(store: ObjectLogStore) -> None:
    store.put_if_absent("0.json", b"")
    there = ObjectLogStore(store.table_root, store.objects, reads=store)
    there.check_writable()
    for files in ({}, {"0.json": b"another table"}, {"1.json": b""}):
        elsewhere = ObjectLogStore(store.table_root, store.objects, reads=MemoryLog(files=files))
        with pytest.raises(StoreNotWritableError):
            elsewhere.check_writable()
    others = MemoryLog(files={"0.json": b"", "1.json": b""})  # who commit meanwhile
    ObjectLogStore(store.table_root, store.objects, reads=others).check_writable()


def test_a_server_that_is_not_there() -> None:
    settings = {
        "fs.s3a.endpoint": "http://127.0.0.1:1",
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "x",
    }
    objects = object_log.open_objects(
        f"s3a://{BUCKET}/t", settings, retry_config={"max_retries": 0}
    )
    store = ObjectLogStore(f"s3a://{BUCKET}/t", objects)
    for request in (
        lambda: store.put_if_absent("x", b""),
        lambda: store.overwrite("x", b""),
        lambda: store.publish("x", "y", is_new_name=True),
        lambda: store.delete(["x", "y"]),
        lambda: list(store.table_files().list_files()),
        lambda: store.table_files().stat("x"),
        lambda: store.table_files().delete(["x"]),
        lambda: store.table_files().copy("x", "y"),
    ):
        with pytest.raises(StorageError):
            request()
