"""The log of a catalog-managed table, and the interface of its catalog.

References
----------
PROTOCOL.md#catalog-managed-tables, PROTOCOL.md#terminology-commits,
PROTOCOL.md#catalog-responsibilities, PROTOCOL.md#reading-catalog-managed-tables,
PROTOCOL.md#commit-protocol, PROTOCOL.md#publishing-commits,
PROTOCOL.md#maintenance-operations-on-catalog-managed-tables
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from sparkdelta.base.protocol.log_files import (
    STAGED_COMMIT_DIRECTORY,
    LogFile,
    LogFileKind,
    Version,
    commit_name,
    parse_log_file,
    staged_commit_version,
)
from sparkdelta.base.storage.log_store import Data, FileEntry, LogStore, pieces
from sparkdelta.base.storage.table_files import TableFiles
from sparkdelta.exceptions import DeltaError, StorageError

_LOGGER = logging.getLogger(__name__)

MAX_PUBLISHED_BYTES = 64 * 1024 * 1024
"""Commits up to this size are published by the writer; larger ones are left to the catalog."""


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """A commit in a file of ``_delta_log/_staged_commits``.

    Attributes
    ----------
    name
        The file's name in this directory.
    """

    version: Version
    name: str
    size_bytes: int
    modification_time_ms: int


@dataclass(frozen=True, slots=True)
class RatifiedCommits:
    """The ratified commits of a table in its catalog.

    Attributes
    ----------
    latest_version
        The latest ratified version; -1 if the table has none yet.
    commits
        The latest ratified commits, in order and without a gap: at least those that are not
        published.
    """

    latest_version: Version
    commits: tuple[StagedCommit, ...] = ()


class Catalog(Protocol):
    """A catalog that decides which commits of its tables succeed.

    A table is named by its root, a qualified path without a trailing slash. Failures, such as of a
    network, are raised as OSError.
    """

    def get_commits(self, table: str) -> RatifiedCommits:
        """Return the ratified commits of a table that the catalog still stores."""

    def commit(self, table: str, commit: StagedCommit) -> None:
        """Ratify a staged commit as its version, if that follows the latest version.

        Raises
        ------
        FileExistsError
            Another commit was ratified as this version.
        """

    def published(self, table: str, version: Version) -> None:
        """Record that all versions up to this one are published.

        Their staged commits need not be stored any longer.
        """


@dataclass(frozen=True, slots=True)
class CatalogLogStore:
    """A `LogStore` that shows only the ratified commits of a table."""

    store: LogStore
    catalog: Catalog

    @property
    def table_root(self) -> str:
        return self.store.table_root

    def list_from(self, start: str = "") -> list[FileEntry]:
        """List the files of ratified versions; stored commits are staged files."""
        ratified = self._ratified()  # first: what is published meanwhile is in it, or listed
        entries = {
            entry.name: entry
            for entry in self.store.list_from(start)
            if _last_version(parse_log_file(entry.name)) <= ratified.latest_version
        }
        for commit in ratified.commits:
            name = commit_name(commit.version)
            if name >= start:
                entries[name] = FileEntry(
                    _path(commit), commit.size_bytes, commit.modification_time_ms
                )
        return [entries[name] for name in sorted(entries)]

    def read(self, names: Sequence[str]) -> list[bytes]:
        return self.store.read(names)

    def read_start(self, name: str, size: int) -> bytes:
        """Read as `LogStore.read_start`; a commit's name is valid before its publication."""
        try:
            return self.store.read_start(name, size)
        except FileNotFoundError:
            for commit in self._ratified().commits:
                if commit_name(commit.version) == name:
                    return self.store.read_start(_path(commit), size)
            raise

    def read_from(self, name: str, start: int) -> bytes:
        return self.store.read_from(name, start)

    def check_writable(self) -> None:
        self.store.check_writable()

    def put_if_absent(self, name: str, data: Data) -> None:
        """Write as `LogStore.put_if_absent`; a commit is staged, ratified and published."""
        file = parse_log_file(name)
        if file is not None and file.kind is LogFileKind.COMMIT:
            self._commit(file.version, data)
            return
        self._require_published(file)
        self.store.put_if_absent(name, data)

    def overwrite(self, name: str, data: bytes) -> None:
        self.store.overwrite(name, data)

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        self._require_published(parse_log_file(name))
        self.store.publish(source, name, is_new_name=is_new_name)

    def delete(self, names: Sequence[str]) -> None:
        self.store.delete(names)

    def list_directory(self, name: str) -> list[FileEntry]:
        return self.store.list_directory(name)

    def is_alone(self) -> bool:
        return self.store.is_alone()

    def staging_directories(self) -> list[FileEntry]:
        return self.store.staging_directories()

    def delete_directory(self, name: str) -> None:
        self.store.delete_directory(name)

    def table_files(self) -> TableFiles:
        return self.store.table_files()

    def _ratified(self) -> RatifiedCommits:
        ratified = self.catalog.get_commits(self.table_root)
        versions = [staged_commit_version(commit.name) for commit in ratified.commits]
        latest = ratified.latest_version
        if versions != list(range(latest + 1 - len(versions), latest + 1)):
            problem = (
                f"its catalog gave {latest} as the latest version, and commits "
                f"{', '.join(commit.name for commit in ratified.commits)}"
            )
            raise StorageError(path=self.table_root, problem=problem)
        return ratified

    def _commit(self, version: Version, data: Data) -> None:
        """Stage a commit, have it ratified, and publish it and the commits before it."""
        name, written = f"{version:020d}.{uuid4()}.json", _Counted(data)
        path = f"{STAGED_COMMIT_DIRECTORY}/{name}"
        self.store.put_if_absent(path, data if isinstance(data, bytes) else written)
        size = len(data) if isinstance(data, bytes) else written.size
        commit = StagedCommit(version, name, size, time.time_ns() // 1_000_000)
        try:
            self.catalog.commit(self.table_root, commit)
        except FileExistsError as error:
            # Clients send again what was not answered: this commit may be the one that exists.
            ratified = self._ratified()
            if name not in [stored.name for stored in ratified.commits]:
                if ratified.latest_version >= version:  # what is not stored is published
                    with suppress(OSError, DeltaError):
                        self.store.delete([path])
                raise FileExistsError(errno.EEXIST, "ratified", commit_name(version)) from error
        try:
            self._publish(version)
        except (OSError, DeltaError) as error:
            _LOGGER.warning(
                "Version %s of %s is not published: %s", version, self.table_root, error
            )

    def _publish(self, last: Version) -> None:
        """Publish ratified commits, in order."""
        for commit in self._ratified().commits:
            if commit.version > last or commit.size_bytes > MAX_PUBLISHED_BYTES:
                return
            [data] = self.store.read([_path(commit)])
            with suppress(FileExistsError):  # by another writer, or the catalog
                self.store.put_if_absent(commit_name(commit.version), data)
            self.catalog.published(self.table_root, commit.version)

    def _require_published(self, file: LogFile | None) -> None:
        """Publish the commits up to a checkpoint or log compaction, which must not precede them."""
        if file is None or file.kind is LogFileKind.VERSION_CHECKSUM:
            return
        version = _last_version(file)
        if self._is_published(version):
            return
        self._publish(version)
        if not self._is_published(version):
            problem = f"version {version} is not published yet, which {file.name} must not precede"
            raise StorageError(path=self.table_root, problem=problem)

    def _is_published(self, version: Version) -> bool:
        try:
            self.store.read_start(commit_name(version), 1)
        except FileNotFoundError:
            return False
        return True


@dataclass(slots=True)
class _Counted:
    """The pieces of a file, and their size after they were read."""

    data: Data
    size: int = 0

    def __iter__(self) -> Iterator[bytes]:
        self.size = 0
        for piece in pieces(self.data):
            self.size += len(piece)
            yield piece


def _path(commit: StagedCommit) -> str:
    return f"{STAGED_COMMIT_DIRECTORY}/{commit.name}"


def _last_version(file: LogFile | None) -> Version:
    """Return the last version that a file of the log covers; -1 for any other file."""
    return -1 if file is None else file.last_version


_catalogs: dict[str, Catalog] = {}


def set_catalog(table_root: str, catalog: Catalog | None) -> None:
    """Let a catalog decide on the commits of a table from now on; None for none."""
    if catalog is None:
        _catalogs.pop(table_root, None)
    else:
        _catalogs[table_root] = catalog


def through_catalog(store: LogStore) -> LogStore:
    """Return the store through which a table is accessed: its catalog's, if it has one."""
    catalog = _catalogs.get(store.table_root) if _catalogs else None
    return store if catalog is None else CatalogLogStore(store, catalog)


def has_catalog(store: LogStore) -> bool:
    """Return True if a catalog decides on the commits of the table."""
    return isinstance(store, CatalogLogStore)
