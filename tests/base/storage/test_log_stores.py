"""Tests of the contract of reading a log, by the stores of classic Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta, write_delta
from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.base.jvm.jvm import qualify
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import FileEntry, LogStore
from sparkdelta.table.listing.listing import open_log
from tests.support.errors import raises
from tests.support.spark_jobs import no_jobs
from tests.support.stored_logs import FILES, TIME_MS, Directory, uri


@pytest.fixture
def store(spark: SparkSession, kind: str, log: Directory) -> LogStore:
    """A store of each kind, with the same log."""
    root = uri(log.parent)
    assert root == qualify(spark, str(log.parent) if isinstance(log, Path) else root, {})
    return (
        LocalLogStore(root) if kind == "local" else HadoopLogStore(SessionHadoop(spark), root, {})
    )


def test_a_listing_is_in_order_and_has_files_only(spark: SparkSession, store: LogStore) -> None:
    with no_jobs(spark):
        listing = store.list_from()
    wanted = [FileEntry(n, len(FILES[n]), TIME_MS) for n in sorted(FILES)]
    assert [entry for entry in listing if not entry.name.startswith(".")] == wanted


def test_a_listing_may_begin_later(store: LogStore) -> None:
    names = [entry.name for entry in store.list_from(f"{1:020d}")]
    assert names == [name for name in sorted(FILES) if name >= f"{1:020d}"]


def test_contents_in_the_order_asked(spark: SparkSession, store: LogStore) -> None:
    names = [*reversed(FILES), "_sidecars/s.parquet"]
    with no_jobs(spark):
        assert store.read(names) == [*(FILES[n] for n in reversed(FILES)), b"side"]
    assert store.read(["_last_checkpoint"]) == [b"{}"]
    assert store.read([]) == []


def test_the_start_of_a_file(store: LogStore) -> None:
    name = "00000000000000000002.crc"
    for size in (1, 100, 256, 1000):
        assert store.read_start(name, size) == FILES[name][:size]
    with pytest.raises(FileNotFoundError) as raised:
        store.read_start("gone", 1)
    assert raised.value.filename == "gone"


def test_the_rest_of_a_file(store: LogStore) -> None:
    name = "00000000000000000002.crc"
    for start in (0, 1, 100):
        assert store.read_from(name, start) == FILES[name][start:]
    with pytest.raises(FileNotFoundError) as raised:
        store.read_from("gone", 1)
    assert raised.value.filename == "gone"


def test_a_file_that_is_not_there(store: LogStore) -> None:
    for names in (["gone"], ["_last_checkpoint", "gone"]):
        with pytest.raises(FileNotFoundError) as raised:
            store.read(names)
        assert raised.value.filename == "gone"


def test_a_log_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    root = f"file:{tmp_path}/nothing"
    assert LocalLogStore(root).list_from() == []
    assert HadoopLogStore(SessionHadoop(spark), root, {}).list_from() == []
    (tmp_path / "file").write_text("x")
    assert LocalLogStore(f"file:{tmp_path}/file").list_from() == []


@pytest.mark.parametrize("suffix", ["", "/", "//"])
def test_a_root_is_qualified(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    for prefix in ("", "file:", "file://"):
        assert open_log(spark, f"{prefix}{tmp_path}/a b{suffix}").table_root == (
            f"file:{tmp_path}/a b"
        )


def test_many_files_are_listed_quickly(spark: SparkSession, tmp_path: Path) -> None:
    """One call, not three a file."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in range(2_000):
        (log / f"{version:020d}.json").touch()
    names = [
        e.name for e in HadoopLogStore(SessionHadoop(spark), f"file:{tmp_path}", {}).list_from()
    ]
    assert names == [f"{version:020d}.json" for version in range(2_000)]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        *(
            (f"{scheme}://b/t", "DELTA_FILE_SYSTEM_NOT_FOUND")
            for scheme in ("s3", "s3a", "gs", "foo")
        ),
        ("dbfs:/t", "DELTA_FILE_SYSTEM_NOT_FOUND"),
        ("abfss://c@a.dfs.core.windows.net/t", "DELTA_FILE_SYSTEM_NOT_FOUND"),
        *(
            (path, "DELTA_STORAGE_ERROR")
            for path in ("://x", "file://host/t", "hdfs:///t", "hdfs://no:1/t")
        ),
        (f"/{'x' * 300}", "DELTA_STORAGE_ERROR"),
        ("/t\0", "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_places_out_of_reach(spark: SparkSession, path: str, wanted: str) -> None:
    for verb in (read_delta, lambda spark, path: write_delta(spark.range(1), path)):
        with raises(wanted) as raised:
            verb(spark, path)
        assert raised.value.__cause__ is None
        if raised.value.getCondition() == "DELTA_FILE_SYSTEM_NOT_FOUND":
            assert raised.value.scheme == path.partition(":")[0]
            assert raised.value.__suppress_context__
