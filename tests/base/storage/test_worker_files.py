"""Tests of the access of workers to storages, by Hadoop's settings."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.jvm import jvm
from sparkdelta.base.storage.worker_files import (
    ArrowFiles,
    bucket,
    file_system,
    s3_arguments,
    setting_names,
)
from sparkdelta.exceptions import StorageError


@pytest.mark.parametrize("spelling", ["file:{}", "file://{}", "{}"])
@pytest.mark.parametrize("name", ["f", "a b%20c#d?e", "t=12:30"])
def test_local_files(tmp_path: Path, spelling: str, name: str) -> None:
    (tmp_path / name).write_bytes(b"content")
    # Not by value: unpickling in this very process would replace the methods of its classes.
    files = pickle.loads(pickle.dumps(ArrowFiles({"fs.s3a.secret.key": "secret"})))
    with files.open(spelling.format(tmp_path / name)) as file:
        assert file.read_at(3, 4) == b"ent"
    with pytest.raises(FileNotFoundError):
        files.open(spelling.format(tmp_path / "gone"))


def test_entries_and_deletions(tmp_path: Path) -> None:
    """Links are neither followed nor files; only what is there, and empty, can be deleted."""
    files, root = ArrowFiles(), f"file:{tmp_path}"
    for name in ("a b", ".a b.crc", "d/f"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("xy")
    (tmp_path / "to file").symlink_to(tmp_path / "a b")
    (tmp_path / "to directory").symlink_to(tmp_path / "d")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff", os.O_CREAT))
    found = {entry.name: entry for entry in files.entries(root)}
    assert {name for name, entry in found.items() if not entry.is_other} == {"a b", ".a b.crc", "d"}
    assert len(found) == 6
    assert (found["d"].is_directory, found["a b"].size_bytes) == (True, 2)
    assert files.entries(f"{root}/gone") == []
    assert not files.delete(f"{root}/d", is_directory=True)
    assert files.delete(f"{root}/d/f", is_directory=False)
    assert not files.delete(f"{root}/d/f", is_directory=False)
    assert files.delete(f"{root}/d", is_directory=True)
    assert files.delete(f"{root}/a b", is_directory=False)
    assert not (tmp_path / ".a b.crc").exists()
    with pytest.raises(OSError, match="irectory"):
        files.delete(root, is_directory=False)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(ArrowFiles({"fs.s3a.secret.key": "secret"}))


@pytest.mark.parametrize("path", ["nowhere://host/f", "abfss://c@example.com/f"])
def test_storages_without_a_reader(path: str) -> None:
    with pytest.raises(StorageError) as raised:
        ArrowFiles().open(path)
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, {}),
        (
            {"access.key": "a", "secret.key": "s", "session.token": "t"},
            {"access_key": "a", "secret_key": "s", "session_token": "t"},
        ),
        (
            # Hadoop's default of the last one is true.
            {"endpoint": "http://127.0.0.1:9000", "path.style.access": "true",
             "connection.ssl.enabled": "true"},
            {"scheme": "http", "endpoint_override": "127.0.0.1:9000",
             "force_virtual_addressing": False},
        ),
        (
            {"endpoint": "minio:9000", "connection.ssl.enabled": "false"},
            {"scheme": "http", "endpoint_override": "minio:9000"},
        ),
        (
            {"endpoint": "https://s3.amazonaws.com", "endpoint.region": "eu-west-1",
             "path.style.access": "false", "connection.ssl.enabled": "true"},
            {"scheme": "https", "region": "eu-west-1"},
        ),
        (
            {"endpoint": "s3.amazonaws.com", "path.style.access": "true"},
            {},
        ),
        (
            {"aws.credentials.provider": "fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
        ({"aws.credentials.provider": "org.example.Provider"}, {}),
    ],
)  # fmt: skip
def test_settings_of_s3(settings: dict[str, str], wanted: dict[str, Any]) -> None:
    assert s3_arguments("b", {f"fs.s3a.{key}": v for key, v in settings.items()}) == wanted
    others = {f"fs.s3a.{key}": "other" for key in settings}
    of_bucket = {f"fs.s3a.bucket.b.{key}": v for key, v in settings.items()}
    assert s3_arguments("b", {**others, **of_bucket}) == wanted
    assert not wanted or s3_arguments("c", of_bucket) == {}


def test_the_file_systems_of_stores_are_made_of_settings() -> None:
    settings = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.access.key": "a"}
    assert file_system("s3a", "b", {**settings, "fs.s3a.secret.key": "s"}).type_name == "s3"
    key = {"fs.azure.account.key.account.dfs.core.windows.net": "a2V5"}
    azure = file_system("abfss", "c@account.dfs.core.windows.net", key)
    assert azure.type_name == "abfs"
    assert bucket("c@account.dfs.core.windows.net") == "c"


def test_settings_come_from_the_session(spark: SparkSession) -> None:
    assert setting_names("file:/table") == []
    names = setting_names("s3a://b/table")
    given = {"fs.s3a.bucket.b.access.key": "a", "fs.s3a.secret.key": "s"}
    found = jvm.settings(spark, names, given)
    assert given.items() <= found.items()
    assert found.keys() <= set(names)
