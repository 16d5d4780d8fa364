"""The contract of `TableFiles`, over every storage."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import uuid4

import pytest

from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_files import HadoopTableFiles
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.base.storage import local_files
from sparkdelta.base.storage.local_files import LocalTableFiles
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.object_files import Objects
from sparkdelta.base.storage.object_log import ObjectLogStore, open_objects
from sparkdelta.base.storage.s3_requests import open_s3
from sparkdelta.base.storage.table_files import TableFiles, relative_path
from sparkdelta.exceptions import StorageError
from tests.support.errors import raises
from tests.support.hdfs_path import HdfsPath
from tests.support.s3_server import BUCKET
from tests.support.stored_logs import ODD, Directory, put_time, uri

FILES = {
    "f": b"1",
    "p=1/f": b"12",
    "p=1/q=a%2Fb/a b+é.parquet": b"123",
    "p=10/f": b"1234",
    "_change_data/_f": b"12345",
}
OUTSIDE = "outside"
LOG_FILE = f"{ODD}/_delta_log/0.json"
TIME_MS = 1_700_000_000_123


@dataclass(frozen=True)
class Place:
    """A table called `ODD` and a file beside it, whose contents are by path."""

    files: TableFiles
    contents: Callable[[], dict[str, bytes]]


def _on_disk(above: Directory, store: Callable[[str], LogStore]) -> Place:
    for path, data in _all_files().items():
        file = above / path if isinstance(above, Path) else above / str(PurePosixPath(path))
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
        file.write_bytes(data)
        put_time(file, TIME_MS)

    def contents() -> dict[str, bytes]:
        paths = [path for path in above.rglob("*") if not path.name.endswith(".crc")]
        root = len(uri(above)) + 1
        if isinstance(above, HdfsPath):
            return {p.uri[root:]: p.read_bytes() for p in paths if p.is_file()}
        return {uri(p)[root:]: p.read_bytes() for p in paths if p.is_file() and not p.is_symlink()}

    return Place(store(uri(above / ODD)).table_files(), contents)


def _all_files() -> dict[str, bytes]:
    table = {f"{ODD}/{name}": data for name, data in FILES.items()}
    return {**table, LOG_FILE: b"{}", OUTSIDE: b"", f"{ODD}-2/f": b""}


def _on_s3(settings: dict[str, str], opened: Callable[..., Objects]) -> Place:
    import obstore

    above = f"s3a://{BUCKET}/{uuid4()}"
    objects = open_objects(above, settings)
    for path, data in _all_files().items():
        obstore.put(objects, path, data)

    def contents() -> dict[str, bytes]:
        paths = [found["path"] for batch in obstore.list(objects) for found in batch]
        return {path: bytes(obstore.get(objects, path).bytes()) for path in paths}

    root = f"{above}/{ODD}"
    return Place(ObjectLogStore(root, opened(root, settings)).table_files(), contents)


def _objects_on_disk(root: str) -> ObjectLogStore:
    """A store that, unlike S3, fails for a missing object."""
    store = pytest.importorskip("obstore.store")
    return ObjectLogStore(root, store.LocalStore(root.removeprefix("file:")))


@pytest.fixture(
    params=[
        "local",
        "hadoop",
        "objects",
        pytest.param("hdfs", marks=pytest.mark.oracle),
        pytest.param("s3", marks=pytest.mark.full),
        pytest.param("s3 by the standard library", marks=pytest.mark.full),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return _on_disk(tmp_path, LocalLogStore)
    if request.param == "objects":
        return _on_disk(tmp_path, _objects_on_disk)
    if "s3" in request.param:
        opened = open_s3 if "library" in request.param else open_objects
        return _on_s3(request.getfixturevalue("s3"), opened)
    spark = request.getfixturevalue("spark")
    above: Directory = tmp_path
    if request.param == "hdfs":
        server = request.getfixturevalue("hdfs").uri
        above = HdfsPath(spark, server, PurePosixPath("/") / str(uuid4()))
    return _on_disk(above, lambda root: HadoopLogStore(SessionHadoop(spark), root, {}))


def _without(place: Place, *paths: str) -> dict[str, bytes]:
    return {path: data for path, data in _all_files().items() if path not in paths}


def test_files_are_listed(place: Place) -> None:
    """Files of the log, and those of a directory with a longer name, are not listed."""
    root = place.files.table_root
    listed = {entry.name: entry for entry in place.files.list_files()}
    assert {name: entry.size_bytes for name, entry in listed.items()} == {
        name: len(data) for name, data in FILES.items()
    }
    for directory in ("p=1", f"{root}//p=1", "p=1/q=a%2Fb"):
        inside = f"{directory.removeprefix(f'{root}//')}/"
        assert {entry.name: entry for entry in place.files.list_files(directory)} == {
            name: entry for name, entry in listed.items() if name.startswith(inside)
        }
    for missing in ("gone", "f", "p=", "p=1/q=a"):
        assert list(place.files.list_files(missing)) == []
    if not root.startswith("s3a:"):
        assert {entry.modification_time_ms for entry in listed.values()} == {TIME_MS}
    else:
        assert all(entry.modification_time_ms > TIME_MS for entry in listed.values())


def test_status_of_a_file(place: Place) -> None:
    root = place.files.table_root
    for listed in place.files.list_files():
        assert place.files.stat(listed.name) == listed
        assert place.files.stat(f"{root}/{listed.name.replace('/', '//')}") == listed
    for missing in ("gone", "p=1", "gone/f", "%66"):
        assert place.files.stat(missing) is None


def test_files_are_deleted(place: Place) -> None:
    """Twice; those that do not exist are ignored."""
    names = ["p=1//q=a%2Fb/a b+é.parquet", f"{place.files.table_root}/f", "gone", "gone/f"]
    for _ in range(2):
        place.files.delete(names)
        assert place.contents() == _without(place, f"{ODD}/p=1/q=a%2Fb/a b+é.parquet", f"{ODD}/f")
    place.files.delete([])
    place.files.delete(["%66", "p%3D1/f", "%2e%2e/outside", "..%2Foutside"])
    assert len(place.contents()) == len(_all_files()) - 2


def test_a_directory_is_deleted(place: Place) -> None:
    for directory in ("p=1", "p=1", f"{place.files.table_root}/p=1", "gone", "p="):
        place.files.delete_directory(directory)
        deleted = [f"{ODD}/{name}" for name in FILES if name.startswith("p=1/")]
        assert place.contents() == _without(place, *deleted)


def test_a_file_is_copied_once(place: Place) -> None:
    place.files.copy("p=1/f", "new/%2e%2e/a b+é")
    wanted = {**_all_files(), f"{ODD}/new/%2e%2e/a b+é": FILES["p=1/f"]}
    assert place.contents() == wanted
    for target in ("p=10/f", "new/%2e%2e/a b+é"):
        with pytest.raises(FileExistsError) as raised:
            place.files.copy("f", target)
        assert raised.value.filename == target
    with pytest.raises(FileNotFoundError) as missing:
        place.files.copy("gone", "new/f")
    assert missing.value.filename == "gone"
    assert place.contents() == wanted


PATHS_OUTSIDE = [
    "../outside", "p=1/../../outside", "..", "./f", "p=1/.", "p=1/", "/", "//", "a\0b",
    "/outside", "//p=1/f", "file:/outside", "FILE:/t/f", "file:/t", "file:/t/", "file:///t/../u",
    "file:/t/p=1/../../outside", "file:/t-2/f", "file://t/f", "s3a://t/f", "hdfs:/t/f",
    "_delta_log", "_delta_log/0.json", "file:/t/_delta_log/0.json", "/t//_delta_log/0.json", "",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS_OUTSIDE)
def test_paths_outside_a_table(path: str) -> None:
    with raises("DELTA_PATH_OUTSIDE_TABLE") as raised:
        relative_path("file:/t", path)
    assert (raised.value.path, raised.value.table_root) == (path, "file:/t")


@pytest.mark.parametrize(
    ("root", "path", "wanted"),
    [
        ("file:/t", "p=1//t=12:30/..f", "p=1/t=12:30/..f"),
        ("file:/t", "/t/f", "f"),
        ("file:/t", "file:///t//f", "f"),
        ("file:/", "file:///f", "f"),
        ("s3a://b", "s3a://b/f", "f"),
        ("s3a://b/t", "//t/f", "f"),
        ("hdfs://h:8020/t", "hdfs://h:8020//t/p=%2e%2e/f", "p=%2e%2e/f"),
        ("file:/t", "..%2Ff", "..%2Ff"),
        ("file:/t", "a_delta_log/_delta_log", "a_delta_log/_delta_log"),
    ],
)
def test_paths_of_a_table(root: str, path: str, wanted: str) -> None:
    assert relative_path(root, path) == wanted


def test_other_roots_are_outside() -> None:
    for path in ("s3a://c/t/f", "s3://b/t/f", "s3a://b/t2/f", "s3a://b/f", "file:/t/f"):
        with raises("DELTA_PATH_OUTSIDE_TABLE"):
            relative_path("s3a://b/t", path)


def test_nothing_outside_is_touched(place: Place) -> None:
    root = place.files.table_root
    verbs: list[Callable[[str], object]] = [
        lambda path: list(place.files.list_files(path)),
        lambda path: place.files.stat(path),
        lambda path: place.files.delete(["f", path]),
        lambda path: place.files.delete_directory(path),
        lambda path: place.files.copy(path, "new"),
        lambda path: place.files.copy("f", path),
        *(
            (
                lambda path: place.files.move({path: "new"}),
                lambda path: place.files.move({"f": path}),
                lambda path: place.files.move_directory(path, "new"),
                lambda path: place.files.move_directory("p=1", path),
            )
            if can_move(place)
            else ()
        ),
    ]
    for path in ("../outside", f"{root}/../outside", f"{root}-2/f", "_delta_log/0.json", root):
        for verb in verbs:
            with raises("DELTA_PATH_OUTSIDE_TABLE"):
                verb(path)
    assert place.contents() == _all_files()


def test_files_are_moved(place: Place) -> None:
    """Directories are created, and a name within is the same directory's for all."""
    if not can_move(place):
        with pytest.raises(StorageError):
            place.files.move({"f": "new"})
        with pytest.raises(StorageError):
            place.files.move_directory("p=1", "new")
        assert place.contents() == _all_files()
        return
    names = {"f": "n%20=1/q/new", "p=1/f": "n%20=1/q/other", "p=10/f": "p=1/f é"}
    place.files.move(names)
    place.files.move_directory("p=1/q=a%2Fb", "deep/er")
    moved = {f"{ODD}/{new}": FILES[old] for old, new in names.items()}
    moved[f"{ODD}/deep/er/a b+é.parquet"] = FILES["p=1/q=a%2Fb/a b+é.parquet"]
    gone = [f"{ODD}/{name}" for name in FILES if name != "_change_data/_f"]
    assert place.contents() == {**_without(place, *gone), **moved}
    with pytest.raises(FileNotFoundError):
        place.files.move({"none": "new"})
    assert place.files.stat("p=1/f é") is not None


def can_move(place: Place) -> bool:
    """HDFS renames as Hadoop's file system of a local disk, which no table uses, does."""
    return place.files.can_move or isinstance(place.files, HadoopTableFiles)


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return _on_disk(tmp_path, LocalLogStore)


def test_links_lead_nowhere_outside(local: Place, tmp_path: Path) -> None:
    (tmp_path / ODD / "out").symlink_to(tmp_path)
    (tmp_path / ODD / "log").symlink_to(tmp_path / ODD / "_delta_log")
    (tmp_path / ODD / "in").symlink_to(tmp_path / ODD / "p=1")
    (tmp_path / ODD / "file").symlink_to(tmp_path / OUTSIDE)
    (tmp_path / ODD / "dangling").symlink_to(tmp_path / "gone")
    assert {entry.name for entry in local.files.list_files()} == {*FILES, "file"}
    for verb in (
        lambda: list(local.files.list_files("out")),
        lambda: local.files.delete(["f", "out/outside"]),
        lambda: local.files.delete(["f", "log/0.json"]),
        lambda: local.files.delete_directory("out"),
        lambda: local.files.delete_directory(f"out/{ODD}-2"),
        lambda: local.files.copy("f", "out/new"),
    ):
        with raises("DELTA_PATH_OUTSIDE_TABLE"):
            verb()
    assert local.contents() == _all_files()
    local.files.delete(["file", "in/f", "dangling"])
    assert not (tmp_path / ODD / "file").is_symlink()
    assert local.contents() == _without(local, f"{ODD}/p=1/f")
    with pytest.raises(StorageError):
        local.files.delete_directory("in")
    assert local.contents() == _without(local, f"{ODD}/p=1/f")


def test_a_root_may_be_a_link(local: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / ODD)
    files = LocalTableFiles(f"file:{tmp_path}/link")
    assert {entry.name for entry in files.list_files()} == set(FILES)
    files.delete(["f"])
    files.delete_directory("p=10")
    assert local.contents() == _without(local, f"{ODD}/f", f"{ODD}/p=10/f")


def test_a_listing_is_lazy(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[str] = []
    scandir = local_files.os.scandir

    def watched(path: str) -> Iterator[object]:
        scanned.append(path)
        return scandir(path)

    monkeypatch.setattr(local_files.os, "scandir", watched)
    assert next(local.files.list_files()).name == "f"
    assert len(scanned) == 1


def test_a_copy_that_fails_leaves_nothing(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_source: object, target: object) -> None:
        target.write(b"begun")  # type: ignore[attr-defined]
        raise OSError

    monkeypatch.setattr(local_files.shutil, "copyfileobj", fail)
    with pytest.raises(StorageError):
        local.files.copy("f", "new")
    assert local.contents() == _all_files()


def test_a_file_disappears_while_its_directory_is_deleted(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree = shutil.rmtree

    def disappear(path: str) -> None:
        monkeypatch.setattr(local_files.shutil, "rmtree", rmtree)
        raise FileNotFoundError

    monkeypatch.setattr(local_files.shutil, "rmtree", disappear)
    local.files.delete_directory("p=10")
    assert local.contents() == _without(local, f"{ODD}/p=10/f")


def test_checksums_of_hadoop_are_deleted(local: Place, tmp_path: Path) -> None:
    for name in (".f.crc", ".new.crc"):
        (tmp_path / ODD / name).write_bytes(b"")
    local.files.copy("f", "new")
    local.files.delete(["f"])
    assert not list((tmp_path / ODD).glob("*.crc"))


def test_checksums_of_hadoop_are_moved(local: Place, tmp_path: Path) -> None:
    (tmp_path / ODD / ".f.crc").write_bytes(b"sum")
    local.files.move({"f": "p=2/g"})
    assert (tmp_path / ODD / "p=2" / ".g.crc").read_bytes() == b"sum"
    assert not list((tmp_path / ODD).glob(".*"))


def test_directories_that_a_move_empties_are_deleted(local: Place, tmp_path: Path) -> None:
    """A removal of the whole tree afterwards takes several times as long."""
    for name in ("s/p=1/q=1/f", "s/p=1/q=2/f", "s/p=2/q=1/f", "s/p=2/q=1/g"):
        (tmp_path / ODD / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ODD / name).touch()
    local.files.move({f"s/p={p}/q={q}/f": f"n/{p}{q}" for p, q in ((1, 1), (1, 2), (2, 1))})
    left = {str(path.relative_to(tmp_path / ODD)) for path in (tmp_path / ODD / "s").rglob("*")}
    assert left == {"s/p=2", "s/p=2/q=1", "s/p=2/q=1/g"}


def test_a_directory_disappears_while_a_file_is_moved_into_it(
    local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM deletes directories as long as they are empty."""
    rename, attempts = os.rename, []

    def emptied(source: str, target: str) -> None:
        attempts.append(target)
        if len(attempts) < 4:
            shutil.rmtree(tmp_path / ODD / "p=2", ignore_errors=True)
        rename(source, target)

    monkeypatch.setattr(local_files.os, "rename", emptied)
    local.files.move({"f": "p=2/q=1/f"})
    assert len(attempts) == 4
    assert (tmp_path / ODD / "p=2" / "q=1" / "f").read_bytes() == b"1"


def test_a_partition_on_another_file_system(
    local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link may lead there: files are written where it leads, as Spark writes them."""

    def other_device(source: str, target: str) -> None:
        raise OSError(errno.EXDEV, "another file system", source, None, target)

    (tmp_path / ODD / "p=2").symlink_to(tmp_path / f"{ODD}-2")
    monkeypatch.setattr(local_files.os, "rename", other_device)
    local.files.move({"f": "p=2/g"})
    assert local.contents() == {**_without(local, f"{ODD}/f"), f"{ODD}-2/g": b"1"}
