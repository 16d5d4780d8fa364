"""The files of a table on an object store, through its own client (``sparkdelta[objects]``)."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.storage.log_store import FileEntry, in_parallel
from sparkdelta.base.storage.table_files import relative_directory, relative_path
from sparkdelta.exceptions import StorageError

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

    from sparkdelta.base.storage.s3_requests import S3Requests

Objects: TypeAlias = "ObjectStore | S3Requests"
"""A client of an object store."""

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ObjectTableFiles:
    """`TableFiles` on GCS, S3 and stores with the S3 protocol.

    A directory is the prefix of the names of its files, and a copy stays within the store. The
    client's paths are relative to the table's root.
    """

    table_root: str
    objects: Objects

    @property
    def can_move(self) -> bool:
        return False

    def list_files(self, directory: str = "") -> Iterator[FileEntry]:
        prefix = relative_directory(self.table_root, directory)
        log = f"{LOG_DIRECTORY}/"
        with object_errors(self.table_root):
            for batch in self.objects.list(prefix or None, chunk_size=_BATCH):
                for found in batch:
                    if not found["path"].startswith(log):
                        yield object_entry(found, found["path"])

    def stat(self, path: str) -> FileEntry | None:
        relative = relative_path(self.table_root, path)
        try:
            with object_errors(self.table_root):
                return object_entry(self.objects.head(relative), relative)
        except FileNotFoundError:
            return None

    def delete(self, paths: Sequence[str]) -> None:
        found = [relative_path(self.table_root, path) for path in paths]
        delete_objects(self.objects, found, self.table_root)

    def delete_directory(self, directory: str) -> None:
        prefix = relative_path(self.table_root, directory)
        delete_objects_below(self.objects, prefix, self.table_root)

    def copy(self, source: str, target: str) -> None:
        found, name = (relative_path(self.table_root, path) for path in (source, target))
        try:
            with object_errors(self.table_root):
                self.objects.copy(found, name, overwrite=False)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such file", source) from None
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, "the file exists", target) from None

    def move(self, moves: Mapping[str, str]) -> NoReturn:  # noqa: ARG002 - of the protocol
        raise StorageError(path=self.table_root, problem="objects cannot be renamed")

    def move_directory(self, source: str, target: str) -> NoReturn:  # noqa: ARG002
        raise StorageError(path=self.table_root, problem="objects cannot be renamed")


def delete_objects(objects: Objects, paths: Sequence[str], table_root: str) -> None:
    """Delete objects, ignoring those that do not exist."""

    def delete(path: str) -> None:
        with suppress(FileNotFoundError), object_errors(table_root):
            objects.delete(path)

    try:
        with object_errors(table_root):
            objects.delete(paths)
    except FileNotFoundError:  # S3 ignores missing objects, GCS does not
        in_parallel(delete, paths)


def delete_objects_below(objects: Objects, prefix: str, table_root: str) -> None:
    """Delete all objects below a prefix."""
    with object_errors(table_root):
        for batch in objects.list(prefix, chunk_size=_BATCH):
            delete_objects(objects, [found["path"] for found in batch], table_root)


@contextmanager
def object_errors(table_root: str) -> Iterator[None]:
    """Raise `StorageError` for errors of the client other than missing and existing objects."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except _client_errors("AlreadyExistsError", "PreconditionError") as error:
        raise FileExistsError(errno.EEXIST, str(error)) from error
    except OSError as error:
        raise StorageError(path=table_root, problem=error.strerror or str(error)) from None
    except _client_errors("BaseError") as error:
        problem = str(error).partition("\n")[0]
        raise StorageError(path=table_root, problem=problem.rstrip(".")) from None


def _client_errors(*names: str) -> tuple[type[Exception], ...]:
    """Return exceptions of `obstore` by name; none where it is not installed."""
    exceptions = sys.modules.get("obstore.exceptions")
    return tuple(getattr(exceptions, name) for name in names) if exceptions else ()


def object_entry(found: ObjectMeta | Mapping[str, Any], name: str) -> FileEntry:
    """Return the entry of an object from its status."""
    return FileEntry(name, found["size"], int(found["last_modified"].timestamp() * 1000))
