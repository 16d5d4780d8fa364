"""Tests of the contract of writing a log, by every store.

Hadoop is tested on HDFS (with the oracles) and on the local disk, whose rename through Hadoop is
not atomic between processes: there, only a test allows it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.jvm import hadoop_log
from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.base.protocol.log_files import (
    data_directory,
    staged_data_directory,
    staging_directory,
)
from sparkdelta.base.spark.connect_storage import BinaryFiles
from sparkdelta.base.storage import local_log
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import InvalidArgumentError, StoreNotWritableError
from tests.support.spark_jobs import no_jobs
from tests.support.stored_logs import FILES, ON_HDFS, Directory, put_time, uri

SPECIAL = ["7.json", "a b.json", "%20.json", "[x]{y}*.json", "ü.json", "#?&+=.json", "_x", ".y"]
OUTSIDE = ["..", "../x", "a/../b", "/etc/x", "", ".", "a//b", "./a", "a/", "a\0b"]


@pytest.fixture
def store(
    kind: str, log: Directory, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> LogStore:
    """A store of each kind, with the same log."""
    root = uri(log.parent)
    if kind == "local":
        return LocalLogStore(root)
    if kind == "hadoop":
        monkeypatch.setattr(hadoop_log, "ATOMIC_RENAME", {"file"})
    return HadoopLogStore(SessionHadoop(request.getfixturevalue("spark")), root, {})


def leftovers(log: Directory) -> list[str]:
    return [p.name for p in log.rglob("*") if p.name.endswith((".tmp", ".tmp.crc"))]


@pytest.mark.parametrize("name", [*SPECIAL, "_sidecars/new.parquet", "new/x.json"])
def test_a_file_is_put_once(store: LogStore, log: Directory, name: str) -> None:
    data = bytes(range(256)) * 300
    store.put_if_absent(name, data)
    assert store.read([name]) == [data]
    with pytest.raises(FileExistsError) as raised:
        store.put_if_absent(name, b"other")
    assert raised.value.filename == name
    assert store.read([name]) == [data]
    assert not leftovers(log)


def test_a_write_that_breaks_off_leaves_nothing(store: LogStore, log: Directory) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begun"
        raise EOFError

    with pytest.raises(EOFError):
        store.put_if_absent("x", chunks())
    with pytest.raises(FileNotFoundError):
        store.read(["x"])
    assert not leftovers(log)


def test_files_beside_the_log_are_noticed(store: LogStore, log: Directory) -> None:
    assert store.is_alone()
    gone = type(store)(*[f"{uri(log)}/none" if f == "table_root" else getattr(store, f)
                         for f in store.__dataclass_fields__])  # fmt: skip
    assert gone.is_alone()
    for name in (data_directory(str(uuid4())), staged_data_directory(str(uuid4()))):
        unfinished = log.parent / name
        unfinished.mkdir()
        (unfinished / "part-0.parquet").write_bytes(b"")
        assert store.is_alone()  # of a write that failed, or is to be committed
    (log.parent / "part-0.parquet").write_bytes(b"")
    assert not store.is_alone()


def test_writing_starts_no_job(spark: SparkSession, store: LogStore) -> None:
    with no_jobs(spark):
        store.put_if_absent("x", b"x")
        store.overwrite("x", b"y")


def test_a_log_begins(store: LogStore, log: Directory) -> None:
    new = type(store)(*[f"{uri(log)}/a b/t" if f == "table_root" else getattr(store, f)
                        for f in store.__dataclass_fields__])  # fmt: skip
    new.put_if_absent("0.json", b"")
    assert (log / "a b" / "t" / "_delta_log" / "0.json").read_bytes() == b""


@pytest.mark.parametrize("place", [("local", "table"), ON_HDFS], indirect=True)
def test_of_racing_writers_one_wins(store: LogStore, log: Directory) -> None:
    """Without locks of our own: a hard link decides, or the name node."""
    threads = 8
    start = threading.Barrier(threads)

    def put(number: int) -> list[str]:
        won = []
        for name in map(str, range(10)):
            start.wait()
            try:
                store.put_if_absent(name, b"%d" % number * 1000)
            except FileExistsError:
                continue
            won.append(name)
        return won

    with ThreadPoolExecutor(threads) as pool:
        wins = list(pool.map(put, range(threads)))
    assert sorted(name for won in wins for name in won) == sorted(map(str, range(10)))
    for number, won in enumerate(wins):
        assert store.read(won) == [b"%d" % number * 1000] * len(won)
    assert not leftovers(log)


@pytest.mark.parametrize("verb", ["put_if_absent", "overwrite"])
def test_no_part_of_a_file_is_visible(
    disk_log: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The bytes of a file are complete and synced before it gets its name."""
    store, seen, synced = LocalLogStore(f"file:{disk_log.parent}"), [], []
    name, fsync = "_last_checkpoint" if verb == "overwrite" else "new", os.fsync
    before = FILES.get(name)

    def watch(rename: Callable[[str, str], None]) -> Callable[[str, str], None]:
        def watched(source: str, target: str) -> None:
            assert os.stat(source).st_ino in synced
            assert os.path.basename(source).startswith(".")
            assert Path(source).read_bytes() == b"12345"
            seen.append(Path(target).read_bytes() if Path(target).exists() else None)
            rename(source, target)

        return watched

    def watched_fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(local_log.os, "fsync", watched_fsync)
    monkeypatch.setattr(local_log.os, "link", watch(os.link))
    monkeypatch.setattr(local_log.os, "replace", watch(os.replace))
    getattr(store, verb)(name, b"12345")
    assert seen == [before]
    assert store.read([name]) == [b"12345"]
    assert synced[-1] == os.stat(disk_log).st_ino  # the name itself


def test_a_file_is_replaced(spark: SparkSession, store: LogStore, log: Directory) -> None:
    """Hadoop, which keeps checksums in `.name.crc`, reads the new bytes."""
    hadoop = HadoopLogStore(SessionHadoop(spark), store.table_root, {})
    for data in (b"one", b"and two"):
        store.overwrite("_last_checkpoint", data)
        assert hadoop.read(["_last_checkpoint"]) == [data]
        (log / ".._last_checkpoint.crc").unlink(missing_ok=True)
        (log / "._last_checkpoint.crc").write_bytes(b"crc\0\0\0\2\0\1\2\3\4")
    assert not leftovers(log)


def test_a_stale_checksum_does_not_spoil_a_new_file(spark: SparkSession, disk_log: Path) -> None:
    store = LocalLogStore(f"file:{disk_log.parent}")
    (disk_log / ".3.json.crc").write_bytes(b"crc\0\0\0\2\0\1\2\3\4")
    store.put_if_absent("3.json", b"{}")
    assert HadoopLogStore(SessionHadoop(spark), store.table_root, {}).read(["3.json"]) == [b"{}"]


def test_a_file_of_spark_is_published(spark: SparkSession, store: LogStore, log: Directory) -> None:
    staging = staging_directory(str(uuid4()))
    spark.range(3).coalesce(1).write.parquet(f"{store.table_root}/_delta_log/{staging}")
    [part] = [e.name for e in store.list_directory(staging) if e.name.startswith("part-")]
    source = f"{staging}/{part}"
    data = (log / source).read_bytes()
    with pytest.raises(FileExistsError) as raised:
        store.publish(source, "_sidecars/s.parquet")
    assert raised.value.filename == "_sidecars/s.parquet"
    assert store.read(["_sidecars/s.parquet", source]) == [b"side", data]
    store.publish(source, "_sidecars/p.parquet")
    assert store.read(["_sidecars/p.parquet"]) == [data]
    assert [e.name for e in store.list_directory("_sidecars") if e.name[0] != "."] == [
        "p.parquet",
        "s.parquet",
    ]
    with pytest.raises(FileNotFoundError) as gone:
        store.publish(source, "_sidecars/q.parquet")
    assert gone.value.filename == source
    store.delete_directory(staging)
    assert not (log / staging).exists()


def test_a_subdirectory_is_listed(store: LogStore) -> None:
    [entry] = store.list_directory("_sidecars")
    assert (entry.name, entry.size_bytes) == ("s.parquet", 4)
    assert store.list_directory("nothing") == []


def test_staging_directories_are_listed(store: LogStore, log: Directory) -> None:
    staging = staging_directory(str(uuid4()))
    (log / staging).mkdir(parents=True)
    put_time(log / staging, 7000)
    (log / staging_directory(str(uuid4()))).write_text("a file")
    [entry] = store.staging_directories()
    assert (entry.name, entry.size_bytes, entry.modification_time_ms) == (staging, 0, 7000)


def test_files_are_deleted(store: LogStore, log: Directory) -> None:
    name = "00000000000000000000.json"
    store.delete([name, "gone", "_sidecars/s.parquet", "gone/too"])
    assert not (log / name).exists()
    assert not (log / "_sidecars" / "s.parquet").exists()
    assert {e.name for e in store.list_from() if e.name[0] != "."} == FILES.keys() - {name}
    store.delete([])


@pytest.mark.parametrize(
    "name", ["_sidecars", ".", "", "..", ".sparkdelta-", ".sparkdelta-x/../.."]
)
def test_only_staging_directories_are_deleted_whole(
    store: LogStore, log: Directory, name: str
) -> None:
    before = sorted(log.rglob("*"))
    with pytest.raises(InvalidArgumentError):
        store.delete_directory(name)
    assert sorted(log.rglob("*")) == before
    store.delete_directory(staging_directory(str(uuid4())))  # not there: no error


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_log(store: LogStore, log: Directory, name: str) -> None:
    before = sorted(log.parent.rglob("*"))
    for verb in (
        lambda: store.put_if_absent(name, b""),
        lambda: store.overwrite(name, b""),
        lambda: store.publish("_sidecars/s.parquet", name),
        lambda: store.publish(name, "x"),
        lambda: store.delete(["_sidecars/s.parquet", name]),
        lambda: store.list_directory(name),
    ):
        with pytest.raises(InvalidArgumentError):
            verb()
    assert sorted(log.parent.rglob("*")) == before


def test_a_disk_without_hard_links(disk_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(local_log.os, "link", refuse)
    with pytest.raises(StoreNotWritableError):
        LocalLogStore(f"file:{disk_log.parent}").put_if_absent("x", b"")
    assert not leftovers(disk_log)


def test_a_disk_is_not_written_to_if_a_name_is_taken(
    disk_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that read an older version does not wait until the disk has its file."""
    store = LocalLogStore(f"file:{disk_log.parent}")
    store.put_if_absent("x", b"1")
    monkeypatch.setattr(local_log.os, "fsync", lambda _: pytest.fail("it was written"))
    with pytest.raises(FileExistsError):
        store.put_if_absent("x", b"2")


def test_schemes_that_hadoop_cannot_commit_to(spark: SparkSession, disk_log: Path) -> None:
    store = HadoopLogStore(SessionHadoop(spark), f"file:{disk_log.parent}", {})
    before = sorted(disk_log.rglob("*"))
    for verb in (
        store.check_writable,
        lambda: store.put_if_absent("x", b""),
        lambda: store.overwrite("x", b""),
        lambda: store.publish("_sidecars/s.parquet", "x"),
    ):
        with pytest.raises(StoreNotWritableError) as raised:
            verb()
        assert "file:" in raised.value.reason
    assert sorted(disk_log.rglob("*")) == before
    with pytest.raises(StoreNotWritableError, match="s3a:"):
        HadoopLogStore(SessionHadoop(spark), "s3a://bucket/table", {}).check_writable()
    hdfs = "hdfs://127.0.0.1:1/t"  # nobody is asked before the first write
    HadoopLogStore(SessionHadoop(spark), hdfs, {}).check_writable()


def test_a_mount_counts_by_where_it_leads(spark: SparkSession, disk_log: Path) -> None:
    mount = {
        "fs.viewfs.mounttable.v.link./t": disk_log.parent.as_uri(),
        "fs.defaultFS": "viewfs://v/",
    }
    for root in ("viewfs://v/t", "viewfs://v/t/new/table"):
        with pytest.raises(StoreNotWritableError, match="file:"):
            HadoopLogStore(SessionHadoop(spark), root, mount).check_writable()


@pytest.mark.parametrize("place", [ON_HDFS], indirect=True)
def test_a_mount_of_hdfs(spark: SparkSession, log: Directory) -> None:
    """The rename happens where the mount leads to."""
    name = f"mounts-{uuid4()}"  # Hadoop keeps file systems by it
    mount = {
        f"fs.viewfs.mounttable.{name}.link./t": uri(log.parent.parent),
        "fs.defaultFS": f"viewfs://{name}/",
    }
    store = HadoopLogStore(SessionHadoop(spark), f"viewfs://{name}/t/{log.parent.name}", mount)
    store.put_if_absent("x", b"1")
    with pytest.raises(FileExistsError):
        store.put_if_absent("x", b"2")
    assert (log / "x").read_bytes() == b"1"
    assert not leftovers(log)


class _Files:
    """A frame of Spark's file source, which shows a file of one byte and none without bytes."""

    def select(self, *_: str) -> _Files:
        return self

    def collect(self) -> list[dict[str, object]]:
        return [{"path": "file:/t/_delta_log/a", "content": bytearray(b"1")}]


def test_connect_reads_files_of_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BinaryFiles, "_files", lambda *_: _Files())
    files = BinaryFiles(None, "/t")  # type: ignore[arg-type]
    assert files.read(["empty", "a"]) == [b"", b"1"]
