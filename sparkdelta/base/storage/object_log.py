"""Log store on an object store, with conditional requests of its own client
(``sparkdelta[objects]``).

Hadoop implements rename on an object store as a copy that may overwrite, so commits use this
client; Spark writes the data files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.fs

from sparkdelta.base.protocol.log_files import (
    LOG_DIRECTORY,
    is_staging_directory,
    is_write_directory,
)
from sparkdelta.base.storage.log_store import (
    Data,
    FileEntry,
    LogStore,
    already_in_log,
    checked_name,
    checked_staging_directory,
    in_parallel,
    not_in_log,
    show_same_log,
)
from sparkdelta.base.storage.object_files import (
    Objects,
    ObjectTableFiles,
    delete_objects,
    delete_objects_below,
    object_entry,
    object_errors,
)
from sparkdelta.base.storage.worker_files import bucket, s3_arguments
from sparkdelta.exceptions import StoreNotWritableError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

S3_SCHEMES = ("s3", "s3a", "s3n")
OBJECT_SCHEMES = (*S3_SCHEMES, "gs")

_CHUNK_SIZE = 10
MAX_COMMIT_BYTES = 1 << 30
"""Largest commit in bytes, since a commit is sent from the driver's memory."""


@dataclass(frozen=True, slots=True)
class ObjectLogStore:
    """`LogStore` on GCS, S3 and stores with the S3 protocol.

    Its atomic primitive is a conditional put: ``If-None-Match`` on S3, a generation match on GCS.
    An object is visible as a whole or not at all. These stores have no conditional multipart
    upload, so the size of a commit is limited by memory.

    Attributes
    ----------
    objects
        The client; its paths are relative to the table's root.
    reads
        The store to read the table with, if it differs; it must show the same log.
    """

    table_root: str
    objects: Objects
    reads: LogStore | None = None

    def list_from(self, start: str = "") -> list[FileEntry]:
        if self.reads is not None:
            return self.reads.list_from(start)
        return [entry for entry in self._list(LOG_DIRECTORY) if entry.name >= start]

    def read(self, names: Sequence[str]) -> list[bytes]:
        if self.reads is not None:
            return self.reads.read(names)
        return in_parallel(self._read, names)

    def read_start(self, name: str, size: int) -> bytes:
        if self.reads is not None:
            return self.reads.read_start(name, size)
        return self._read(name, (0, size))

    def read_from(self, name: str, start: int) -> bytes:
        if self.reads is not None:
            return self.reads.read_from(name, start)
        return self._read(name, {"offset": start} if start else None)

    def check_writable(self) -> None:
        """Raise if Spark reads the table from another place than the client commits to."""
        itself = replace(self, reads=None)
        if self.reads is not None and show_same_log(self.reads, itself) is False:
            raise StoreNotWritableError(
                path=self.table_root,
                reason="Spark and the client that commits do not see the same log, so a commit "
                "would not be visible to Spark",
                remedy="Configure the same endpoint and credentials for both, or try "
                "again if there are other writers",
            )

    def put_if_absent(self, name: str, data: Data) -> None:
        path = self._path(checked_name(name))
        whole = self._whole(data)
        try:
            with object_errors(self.table_root):
                self.objects.put(path, whole, mode="create", use_multipart=False)
        except FileExistsError as error:
            raise already_in_log(name) from error

    def overwrite(self, name: str, data: bytes) -> None:
        path = self._path(checked_name(name))
        with object_errors(self.table_root):
            self.objects.put(path, data, use_multipart=False)

    def publish(self, source: str, name: str, *, is_new_name: bool = False) -> None:
        """Copy within the store, which may overwrite, if the name is new; else put."""
        source, name = checked_name(source), checked_name(name)
        if is_new_name:
            try:
                with object_errors(self.table_root):
                    self.objects.copy(self._path(source), self._path(name))
            except FileNotFoundError as error:
                raise not_in_log(source) from error
        else:
            self.put_if_absent(name, self._read(source))
        self.delete([source])

    def delete(self, names: Sequence[str]) -> None:
        paths = [self._path(checked_name(name)) for name in names]
        delete_objects(self.objects, paths, self.table_root)

    def list_directory(self, name: str) -> list[FileEntry]:
        return self._list(self._path(checked_name(name)))

    def is_alone(self) -> bool:
        with object_errors(self.table_root):
            return all(
                found["path"].startswith(self._path(""))
                or is_write_directory(found["path"].partition("/")[0])
                for batch in self.objects.list(chunk_size=_CHUNK_SIZE)  # lazy
                for found in batch
            )

    def staging_directories(self) -> list[FileEntry]:
        with object_errors(self.table_root):
            prefixes = self.objects.list_with_delimiter(LOG_DIRECTORY)["common_prefixes"]
        names = sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes)
        return [self._staging_directory(name) for name in names if is_staging_directory(name)]

    def _staging_directory(self, name: str) -> FileEntry:
        """Return a prefix as a directory, with the latest modification time of its objects."""
        with object_errors(self.table_root):
            batches = self.objects.list(self._path(name))
            times = [found["last_modified"].timestamp() for batch in batches for found in batch]
        return FileEntry(name, 0, int(max(times, default=0) * 1000))

    def delete_directory(self, name: str) -> None:
        prefix = self._path(checked_staging_directory(name))
        delete_objects_below(self.objects, prefix, self.table_root)

    def table_files(self) -> ObjectTableFiles:
        return ObjectTableFiles(self.table_root, self.objects)

    def _read(self, name: str, part: tuple[int, int] | dict[str, int] | None = None) -> bytes:
        options: Any = None if part is None else {"range": part}
        try:
            with object_errors(self.table_root):
                return bytes(self.objects.get(self._path(name), options=options).bytes())
        except FileNotFoundError as error:
            raise not_in_log(name) from error

    def _list(self, directory: str) -> list[FileEntry]:
        with object_errors(self.table_root):
            objects = self.objects.list_with_delimiter(directory)["objects"]
        listing = [object_entry(each, each["path"].rpartition("/")[2]) for each in objects]
        return sorted(listing, key=lambda entry: entry.name)

    def _whole(self, data: Data) -> bytes | bytearray:
        if isinstance(data, bytes):
            return data
        whole = bytearray()
        for piece in data:
            whole += piece
            if len(whole) > MAX_COMMIT_BYTES:
                raise StoreNotWritableError(
                    path=self.table_root,
                    reason=f"The commit has more than {MAX_COMMIT_BYTES:,} bytes, but is sent in "
                    "one piece from the driver's memory",
                    remedy="Write fewer, larger files, or split the write into several commits",
                )
        return whole

    def _path(self, name: str) -> str:
        return f"{LOG_DIRECTORY}/{name}"


def open_objects(table_root: str, settings: Mapping[str, str], **client: Any) -> ObjectStore:
    """Return a client for a table's object store, configured like Hadoop.

    Parameters
    ----------
    settings
        Hadoop settings, see `base.storage.worker_files.setting_names`; the client looks up missing
        ones in its default places, such as environment variables.
    client
        Further settings of the client.
    """
    try:
        from obstore.store import GCSStore, S3Store
    except ImportError as error:
        raise StoreNotWritableError(
            path=table_root,
            reason="Hadoop cannot write to an object store without overwriting, and the object "
            "store client that can is not installed",
            remedy='Install it on the driver: pip install "sparkdelta[objects]"',
        ) from error
    scheme, _, rest = table_root.partition("://")
    authority, _, prefix = rest.partition("/")
    if scheme == "gs":
        return GCSStore(bucket(authority), prefix=prefix or None, **client)
    return S3Store(
        authority,
        prefix=prefix or None,
        copy_if_not_exists="multipart",
        **_s3_client(authority, settings),
        **client,
    )


def _s3_client(authority: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Convert Hadoop's settings of a bucket to settings of the client."""
    arguments = s3_arguments(authority, settings)
    names = {
        "access_key": "access_key_id",
        "secret_key": "secret_access_key",
        "session_token": "session_token",
        "region": "region",
        "anonymous": "skip_signature",
        "force_virtual_addressing": "virtual_hosted_style_request",
    }
    client: dict[str, Any] = {
        names[name]: value for name, value in arguments.items() if name in names
    }
    scheme = arguments.get("scheme", "https")
    if "endpoint_override" not in arguments and "region" not in arguments:
        client["region"] = pyarrow.fs.resolve_s3_region(authority)
    if "endpoint_override" in arguments:
        client["endpoint"] = f"{scheme}://{arguments['endpoint_override']}"
    if scheme == "http":
        client["client_options"] = {"allow_http": True}
    return client
