"""Operations on a table's storage that one task runs on a server.

Spark may run a task twice. An operation that has been done is done: it finds its own work, and is
neither a conflict with itself nor an error.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#last-checkpoint-file
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from sparkdelta.base.protocol.log_files import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    is_staging_directory,
)
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import FileEntry, LogStore
from sparkdelta.base.storage.object_files import object_errors
from sparkdelta.base.storage.object_log import S3_SCHEMES, ObjectLogStore
from sparkdelta.base.storage.s3_requests import open_s3
from sparkdelta.base.storage.table_files import TableFiles
from sparkdelta.base.storage.worker_files import bucket
from sparkdelta.exceptions import DeltaError, StorageError, StoreNotWritableError

Item: TypeAlias = tuple[str, int, int, "bytes | None"]
"""A file: its name, size in bytes, modification time in milliseconds, and perhaps its contents."""

_MAX_KNOWN_BYTES = 1 << 20
"""The most bytes of small files of a log that are read with a listing."""

DELTA_ERROR = "DeltaError"
"""The kind of errors of this library in an `outcome`."""

_CHECKPOINT = ".checkpoint."


def open_store(table_root: str, settings: Mapping[str, str]) -> LogStore:
    """Return the store of a table's log where it is."""
    scheme = table_root.partition(":")[0]
    if scheme == "file":
        return LocalLogStore(table_root)
    if scheme in S3_SCHEMES:
        with object_errors(table_root):
            return ObjectLogStore(table_root, open_s3(table_root, settings))
    with suppress(ImportError):
        from obstore.store import GCSStore

        if scheme == "gs":
            place, _, prefix = table_root.removeprefix("gs://").partition("/")
            return ObjectLogStore(table_root, GCSStore(bucket(place), prefix=prefix or None))
    raise StoreNotWritableError(
        path=table_root,
        reason=f"The workers of the Spark Connect server have no client for {scheme}: that creates "
        "a file without overwriting, so one of two concurrent commits would be lost",
        remedy="Write to a path of the server's disk, to HDFS or S3, install obstore on the server "
        "for GCS, or use a classic Spark session",
    )


@dataclass(frozen=True, slots=True)
class StoreOperation:
    """A function of a table's storage that can be pickled and be called on a worker.

    Attributes
    ----------
    settings
        Hadoop's settings for access to the table.
    function
        A function of the log store and `arguments`, which returns items.
    opened
        Returns the log store of a table's root, given `settings`.
    """

    table_root: str
    settings: Mapping[str, str]
    function: Callable[..., Iterable[Item]]
    arguments: tuple[Any, ...] = ()
    opened: Callable[[str, Mapping[str, str]], LogStore] = open_store

    def __call__(self) -> list[Item]:
        store = self.opened(self.table_root, self.settings)
        return list(self.function(store, *self.arguments))


def outcome(operation: Callable[[], list[Item]]) -> tuple[list[str], list[Item]]:
    """Return the items of an operation; if it fails, the kind of the error, and the name of its
    file or its text: Spark would run a task that raises an error again.
    """
    try:
        return [], operation()
    except (FileNotFoundError, FileExistsError) as error:
        return [type(error).__name__, str(error.filename or "")], []
    except DeltaError as error:
        return [DELTA_ERROR, str(error)], []
    except OSError as error:
        problem = error.strerror or str(error)
        return [DELTA_ERROR, str(StorageError(path=str(error.filename), problem=problem))], []


def survey(store: LogStore) -> Iterator[Item]:
    """Yield all files of the log, with the contents of `_last_checkpoint` and of the small commits
    and checksums after the last checkpoint.
    """
    listing = store.list_from()
    names, left = [], _MAX_KNOWN_BYTES
    for entry in reversed(listing):
        if _CHECKPOINT in entry.name:
            break
        if entry.name.endswith((".json", ".crc")):
            left -= entry.size_bytes
            if left < 0:
                break
            names.append(entry.name)
    contents = {}
    for name in [*names, LAST_CHECKPOINT]:
        with suppress(FileNotFoundError):
            contents[name] = store.read([name])[0]
    for entry in listing:
        name, size, time, _ = _item(entry)
        yield name, size, time, contents.get(name)


def read(store: LogStore, names: Sequence[str]) -> Iterator[Item]:
    """Yield the contents of files."""
    for name, data in zip(names, store.read(names), strict=True):
        yield name, len(data), 0, data


def read_part(store: LogStore, name: str, start: int, size: int | None) -> Iterator[Item]:
    """Yield the first bytes of a file, or the bytes from a position on."""
    data = store.read_from(name, start) if size is None else store.read_start(name, size)
    yield name, len(data), 0, data


def put_if_absent(
    store: LogStore,
    name: str,
    data: bytes,
    more: tuple[str, bytes] | None = None,
    unneeded: str | None = None,
) -> Iterator[Item]:
    """Create a file; one with these contents is the work of an earlier run.

    Yields `more` and `unneeded` when they are done; their errors are ignored.

    Parameters
    ----------
    more
        Another file to create.
    unneeded
        A staging directory to delete.
    """
    try:
        store.put_if_absent(name, data)
    except FileExistsError:
        if store.read([name]) != [data]:
            raise
    if more is not None:
        with suppress(OSError, DeltaError):
            yield from put_if_absent(store, *more)
            yield more[0], 0, 0, None
    if unneeded is not None:
        with suppress(OSError, DeltaError):
            store.delete_directory(unneeded)
            yield unneeded, 0, 0, None


def check_writable(store: LogStore) -> Iterator[Item]:
    """Raise an error if the store cannot create files without overwriting."""
    store.check_writable()
    yield from ()


def put_probe(store: LogStore, name: str) -> Iterator[Item]:
    """Create a file, and yield the directories that were made for it, the innermost first."""
    directory, missing = f"{store.table_root.removeprefix('file:')}/{LOG_DIRECTORY}", []
    while directory.startswith("/") and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    yield from put_if_absent(store, name, b"Does the driver see this?\n")
    yield from ((path, 0, 0, None) for path in missing)


def delete_probe(store: LogStore, name: str, made: Sequence[str]) -> Iterator[Item]:
    """Delete a file and the directories that were made for it, unless others use them now."""
    store.delete([name])
    with suppress(OSError):
        for path in made:
            os.rmdir(path)
    yield from ()


def join_if_absent(store: LogStore, name: str, parts: Sequence[str]) -> Iterator[Item]:
    """Create a file of the contents of others, which another operation deletes."""
    try:
        store.put_if_absent(name, (data for part in parts for data in store.read([part])))
    except FileExistsError:
        if store.read([name]) != [b"".join(store.read(parts))]:
            raise
    yield from ()


def overwrite(store: LogStore, name: str, data: bytes) -> Iterator[Item]:
    """Create or replace a file."""
    store.overwrite(name, data)
    yield from ()


def publish(store: LogStore, source: str, name: str, is_new_name: bool) -> Iterator[Item]:  # noqa: FBT001
    """Move a file; without the source, one with the name is the work of an earlier run."""
    try:
        store.publish(source, name, is_new_name=is_new_name)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            store.read_start(name, 1)
            return
        raise
    except FileExistsError:
        if store.read([name]) != store.read([source]):
            raise
        store.delete([source])
    yield from ()


def delete(store: LogStore, names: Sequence[str]) -> Iterator[Item]:
    """Delete files of the log."""
    store.delete(names)
    yield from ()


def list_directory(store: LogStore, name: str) -> Iterator[Item]:
    """Yield the files of a directory of the log; with their contents, if they are staged and small:
    most are read next.
    """
    listing = store.list_directory(name)
    size = sum(entry.size_bytes for entry in listing)
    is_read = is_staging_directory(name.partition("/")[0]) and size <= _MAX_KNOWN_BYTES
    for entry in listing:
        data = store.read([f"{name}/{entry.name}"])[0] if is_read else None
        yield entry.name, entry.size_bytes, entry.modification_time_ms, data


def staging_directories(store: LogStore) -> Iterator[Item]:
    """Yield the staging directories."""
    yield from map(_item, store.staging_directories())


def delete_directory(store: LogStore, name: str) -> Iterator[Item]:
    """Delete a staging directory."""
    store.delete_directory(name)
    yield from ()


def is_alone(store: LogStore) -> Iterator[Item]:
    """Yield an item if the table's root contains nothing but a log."""
    if store.is_alone():
        yield "", 0, 0, None


def table_file_list(store: LogStore, directory: str) -> Iterator[Item]:
    """Yield the files below a directory of the table."""
    yield from map(_item, store.table_files().list_files(directory))


def table_file(store: LogStore, path: str) -> Iterator[Item]:
    """Yield the status of a file of the table, if it exists."""
    entry = store.table_files().stat(path)
    if entry is not None:
        yield _item(entry)


def delete_table_files(store: LogStore, paths: Sequence[str]) -> Iterator[Item]:
    """Delete files of the table."""
    store.table_files().delete(paths)
    yield from ()


def delete_table_directory(store: LogStore, directory: str) -> Iterator[Item]:
    """Delete a directory of the table."""
    store.table_files().delete_directory(directory)
    yield from ()


def copy_table_file(store: LogStore, source: str, target: str) -> Iterator[Item]:
    """Copy a file of the table."""
    store.table_files().copy(source, target)
    yield from ()


def move_table_files(store: LogStore, moves: Mapping[str, str]) -> Iterator[Item]:
    """Rename files of the table, unless an earlier run has; yield the directories that are gone
    because they became empty.
    """
    files = store.table_files()
    files.move({old: new for old, new in moves.items() if not _is_moved(files, old, new)})
    root, is_local = files.table_root.removeprefix("file:"), files.table_root.startswith("file:")
    for top in sorted({old.partition("/")[0] for old in moves}) if is_local else ():
        if not os.path.lexists(os.path.join(root, top)):
            yield top, 0, 0, None


def move_table_directory(store: LogStore, source: str, target: str) -> Iterator[Item]:
    """Give a directory of the table another name, unless it has it."""
    files = store.table_files()
    try:
        files.move_directory(source, target)
    except FileNotFoundError:
        if next(iter(files.list_files(target)), None) is None:
            raise
    yield from ()


def _is_moved(files: TableFiles, source: str, target: str) -> bool:
    return files.stat(source) is None and files.stat(target) is not None


def _item(entry: FileEntry) -> Item:
    return entry.name, entry.size_bytes, entry.modification_time_ms, None
