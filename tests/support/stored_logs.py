"""One table's log for every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from tests.support.hdfs_path import HdfsPath
from tests.support.log_writer import set_time
from tests.support.mini_hdfs import MiniHdfs
from tests.support.s3_server import s3_server

FILES = {
    "00000000000000000000.json": b'{"a":1}\n',
    "00000000000000000001.json": b"",
    "00000000000000000001.checkpoint.parquet": b"PAR1",
    "_last_checkpoint": b"{}",
    "00000000000000000002.crc": bytes(range(256)),
}
TIME_MS = 1_700_000_000_123

Directory: TypeAlias = Path | HdfsPath


ODD = "my table %20+[x]{y}"
ON_DISK = [("local", "table"), ("local", ODD), ("hadoop", "table"), ("hadoop", ODD)]
ON_HDFS = pytest.param(("hdfs", ODD), marks=pytest.mark.oracle, id="hdfs")


@pytest.fixture(params=["table", ODD])
def disk_log(tmp_path: Path, request: pytest.FixtureRequest) -> Directory:
    """The directory of a log with some files and a directory that looks like a commit."""
    return filled(tmp_path / request.param / "_delta_log")


@pytest.fixture(params=[*ON_DISK, ON_HDFS], ids="-".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The kind of store (Python on the local disk, Hadoop there, or Hadoop on HDFS), and the last
    part of the table's path.
    """
    kind, name = request.param
    return kind, name


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """Hadoop's settings of an S3 server."""
    pytest.importorskip("moto.server")
    with s3_server() as settings:
        yield settings


@pytest.fixture
def kind(place: tuple[str, str]) -> str:
    """The kind of store."""
    return place[0]


@pytest.fixture
def log(request: pytest.FixtureRequest, place: tuple[str, str]) -> Directory:
    """The files of `disk_log`, in the storage of each kind of store."""
    kind, name = place
    if kind != "hdfs":
        tmp_path: Path = request.getfixturevalue("tmp_path")
        return filled(tmp_path / name / "_delta_log")
    hdfs: MiniHdfs = request.getfixturevalue("hdfs")
    spark: SparkSession = request.getfixturevalue("spark")
    root = HdfsPath(spark, hdfs.uri, PurePosixPath("/") / str(uuid4()) / name)
    return filled(root / "_delta_log")


def filled(directory: Directory) -> Directory:
    directory.mkdir(parents=True)
    for name, content in FILES.items():
        (directory / name).write_bytes(content)
        put_time(directory / name, TIME_MS)
    (directory / "00000000000000000009.json").mkdir(parents=True)
    (directory / "_sidecars").mkdir(parents=True)
    (directory / "_sidecars" / "s.parquet").write_bytes(b"side")
    return directory


def put_time(file: Directory, time_ms: int) -> None:
    if isinstance(file, HdfsPath):
        file.set_time(time_ms)
    else:
        set_time(file, time_ms)


def uri(path: Directory) -> str:
    """The URI of a path as Spark spells it, decoded."""
    return path.uri if isinstance(path, HdfsPath) else f"file:{path}"
