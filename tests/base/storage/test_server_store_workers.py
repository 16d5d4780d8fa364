"""Operations that Spark runs twice are done once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkdelta.base.protocol.log_files import staging_directory
from sparkdelta.base.storage import server_store_workers as workers
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.server_store_workers import StoreOperation, outcome
from sparkdelta.exceptions import StorageError, StoreNotWritableError, from_message

STAGED = f"{staging_directory('0c3c7a2b-6a1c-4a52-9a0e-5d1f6a0b7c11')}/a/part"


def run(root: Path, function: Callable[..., object], *arguments: object) -> object:
    return outcome(StoreOperation(f"file:{root}", {}, function, arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (workers.put_if_absent, ("1.json", b"one")),
        (workers.join_if_absent, ("1.json", ["0.json", "0.crc"])),
        (workers.overwrite, ("_last_checkpoint", b"{}")),
        (workers.publish, (STAGED, "1.checkpoint.parquet", False)),
        (workers.delete, (["0.json"],)),
        (workers.move_table_files, ({"d/f": "g/f"},)),
        (workers.move_table_directory, ("d", "e")),
        (workers.delete_table_files, (["d/f"],)),
        (workers.delete_table_directory, ("d",)),
    ],
)
def test_a_second_run_changes_nothing(
    tmp_path: Path, function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    store = LocalLogStore(f"file:{tmp_path}")
    store.put_if_absent("0.json", b"zero")
    store.put_if_absent("0.crc", b"sum")
    store.put_if_absent(STAGED, b"checkpoint")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"rows")
    before = contents(tmp_path)
    first = run(tmp_path, function, *arguments)
    once = contents(tmp_path)
    assert once != before
    assert run(tmp_path, function, *arguments) == first
    assert first == ([], [("d", 0, 0, None)] if function is workers.move_table_files else [])
    assert contents(tmp_path) == once


def test_a_probe_leaves_no_directory_that_it_made(tmp_path: Path) -> None:
    root = tmp_path / "new" / "table"
    _, made = run(root, workers.put_probe, "probe.tmp")  # type: ignore[misc]
    assert (root / "_delta_log" / "probe.tmp").exists()
    names = [name for name, *_ in made]
    assert names == [f"{root}/_delta_log", str(root), str(tmp_path / "new")]
    (tmp_path / "new" / "file of another").touch()
    assert run(root, workers.delete_probe, "probe.tmp", names) == ([], [])
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "file of another"]


def test_another_writers_file_is_never_taken_for_ones_own(tmp_path: Path) -> None:
    store = LocalLogStore(f"file:{tmp_path}")
    store.put_if_absent("1.json", b"theirs")
    store.put_if_absent(STAGED, b"ours")
    for function, arguments in (
        (workers.put_if_absent, ("1.json", b"ours")),
        (workers.join_if_absent, ("1.json", [STAGED])),
        (workers.publish, (STAGED, "1.json", True)),
    ):
        assert run(tmp_path, function, *arguments) == (["FileExistsError", "1.json"], [])
    assert store.read(["1.json", STAGED]) == [b"theirs", b"ours"]
    assert run(tmp_path, workers.publish, "gone", "2.json", True) == (
        ["FileNotFoundError", "gone"], [],
    )  # fmt: skip


def test_listing_has_the_hint_and_what_follows_the_checkpoint(tmp_path: Path) -> None:
    store = LocalLogStore(f"file:{tmp_path}")
    assert run(tmp_path, workers.survey) == ([], [])
    names = ["0.json", "1.checkpoint.parquet", "1.crc", "1.json", "2.json", "_last_checkpoint"]
    for name in names:
        store.put_if_absent(name, name.encode())
    (_, found) = outcome(StoreOperation(f"file:{tmp_path}", {}, workers.survey))
    assert [name for name, *_ in found] == names
    known = {name: data for name, _, _, data in found if data is not None}
    assert known == {name: name.encode() for name in names[2:]}


def test_storages_without_a_safe_put_are_refused() -> None:
    for root in ("abfss://c@a.dfs.core.windows.net/t", "hdfs://host/t", "wasb://c@a/t"):
        with pytest.raises(StoreNotWritableError):
            workers.open_store(root, {})


def test_a_storage_that_fails_fails_once(tmp_path: Path) -> None:
    """An error is returned: Spark would run a task that raises it again."""
    (tmp_path / "_delta_log").write_bytes(b"")
    ([kind, text], items) = outcome(
        StoreOperation(f"file:{tmp_path}", {}, workers.overwrite, ("_last_checkpoint", b"{}"))
    )
    assert kind == workers.DELTA_ERROR
    assert isinstance(from_message(text), StorageError)
    assert not items


def test_a_second_run_finds_both_files_of_the_first(tmp_path: Path) -> None:
    for _ in range(2):
        done = run(tmp_path, workers.put_if_absent, "1.json", b"one", ("1.crc", b"sum"))
        assert done == ([], [("1.crc", 0, 0, None)])
    other = run(tmp_path, workers.put_if_absent, "2.json", b"two", ("1.crc", b"other"))
    assert other == ([], []), "the second file is not part of the commit"
    assert contents(tmp_path / "_delta_log") == {
        "1.json": b"one", "1.crc": b"sum", "2.json": b"two",
    }  # fmt: skip


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
