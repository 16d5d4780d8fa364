"""File access in Python workers, which have no JVM of Spark."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.fs

from sparkdelta.exceptions import StorageError

S3_SETTINGS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint": "endpoint_override",
    "endpoint.region": "region",
    "path.style.access": "force_virtual_addressing",
    "connection.ssl.enabled": "scheme",
    "aws.credentials.provider": "anonymous",
}
"""The supported Hadoop settings of S3, without the prefix ``fs.s3a.`` or ``fs.s3a.bucket.NAME.``,
and the corresponding arguments of Arrow."""

_NO_ENDPOINT = "s3.amazonaws.com"  # Hadoop's name for the endpoint of the region
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_LOCATION = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL
)


class StoredEntry(NamedTuple):
    """An entry of a directory.

    Attributes
    ----------
    modification_time_ms
        None if unknown, as for directories of object stores.
    is_other
        True if it is neither a file nor a directory, such as a symbolic link, or if its name, in
        which other bytes are question marks, is not text.
    """

    name: str
    is_directory: bool
    size_bytes: int
    modification_time_ms: int | None
    is_other: bool = False


class StoredFiles(Protocol):
    """File access by absolute, decoded paths."""

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random reads; raise FileNotFoundError if it does not exist."""

    def create(self, path: str) -> pa.NativeFile:
        """Create a file and open it for writing."""

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""

    def data_files(self, directory: str) -> list[tuple[str, int, int]]:
        """Return the Parquet files that Spark wrote below a directory, sorted, without hidden ones.

        Each has its path, size in bytes and modification time in milliseconds. There are none if
        the directory does not exist.
        """

    def entries(self, directory: str) -> list[StoredEntry]:
        """Return the entries of a directory; none if it does not exist.

        Symbolic links of local disks are not followed.
        """


class WorkerFiles(StoredFiles, Protocol):
    """`StoredFiles` that can be pickled, for Python workers: `ArrowFiles` or `HadoopFiles`."""

    def modification_time(self, path: str) -> int:
        """Return the modification time of a file, in milliseconds since the epoch."""

    def is_near(self, path: str) -> bool:
        """Return True if opening a file does not start a JVM in the worker."""

    def delete(self, path: str, *, is_directory: bool) -> bool:
        """Delete a file or an empty directory; return False if it is not there, or not empty.

        On a local disk, Hadoop's checksum file of a file is deleted with it.
        """


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """`WorkerFiles` of Arrow's file systems.

    File systems that workers cannot access raise `StorageError`.

    Attributes
    ----------
    settings
        Hadoop settings of object stores, see `setting_names`. For missing settings, Arrow uses its
        defaults, such as environment variables of the executors.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    _opened: dict[tuple[str, str], pyarrow.fs.FileSystem] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def open(self, path: str) -> pa.NativeFile:
        system, within = self._locate(path)
        return system.open_input_file(within)

    def create(self, path: str) -> pa.NativeFile:
        system, within = self._locate(path)
        if path.startswith("file:"):  # other file systems create directories implicitly
            system.create_dir(within.rpartition("/")[0], recursive=True)
        return system.open_output_stream(within, compression=None)

    def modification_time(self, path: str) -> int:
        system, within = self._locate(path)
        return int(system.get_file_info(within).mtime_ns // 1_000_000)

    def size(self, path: str) -> int | None:
        system, within = self._locate(path)
        found = system.get_file_info(within)
        return int(found.size) if found.is_file else None

    def is_near(self, path: str) -> bool:  # noqa: ARG002 - Arrow needs no JVM
        return True

    def data_files(self, directory: str) -> list[tuple[str, int, int]]:
        system, within = self._locate(directory)
        listing = system.get_file_info(
            pyarrow.fs.FileSelector(within, allow_not_found=True, recursive=True)
        )
        found = [
            (info.path.removeprefix(within), info.size, info.mtime_ns // 1_000_000)
            for info in listing
            if info.is_file
        ]
        return sorted((f"{directory}{path}", *rest) for path, *rest in found if is_data_file(path))

    def entries(self, directory: str) -> list[StoredEntry]:
        system, within = self._locate(directory)
        if isinstance(system, pyarrow.fs.LocalFileSystem):
            return [*_local_entries(within)]
        selector = pyarrow.fs.FileSelector(within, allow_not_found=True)
        return [
            StoredEntry(info.base_name, False, info.size, info.mtime_ns // 1_000_000)
            if info.is_file
            else StoredEntry(info.base_name, True, 0, None)
            for info in system.get_file_info(selector)
        ]

    def delete(self, path: str, *, is_directory: bool) -> bool:
        system, within = self._locate(path)
        if isinstance(system, pyarrow.fs.LocalFileSystem):
            return _delete_directory(within) if is_directory else _delete_local(within)
        if is_directory:
            return False
        try:
            system.delete_file(within)
        except FileNotFoundError:
            return False
        return True

    def _locate(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        match = _LOCATION.fullmatch(path)
        scheme, authority, name = match.groups("") if match else ("file", "", path)
        key = scheme.lower(), authority
        if key not in self._opened:
            try:
                self._opened[key] = file_system(*key, self.settings)
            except (OSError, pa.ArrowException, AttributeError) as error:
                raise StorageError(
                    path=path, problem=f"the workers cannot open {scheme}: {error}"
                ) from error
        within = name if key[0] == "file" else f"{bucket(authority)}{name}"
        return self._opened[key], within


def _local_entries(directory: str) -> Iterator[StoredEntry]:
    with suppress(FileNotFoundError), os.scandir(directory) as found:
        for entry in found:
            with suppress(FileNotFoundError):  # deleted since it was listed
                stat = entry.stat(follow_symlinks=False)
                is_directory = S_ISDIR(stat.st_mode)
                name = entry.name.encode(errors="replace").decode()
                is_other = name != entry.name or not (is_directory or S_ISREG(stat.st_mode))
                time_ms = stat.st_mtime_ns // 1_000_000
                is_entered = is_directory and not is_other
                yield StoredEntry(name, is_entered, stat.st_size, time_ms, is_other)


def _delete_directory(path: str) -> bool:
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _delete_local(path: str) -> bool:
    name = path.rpartition("/")[2]
    checksum = f"{path.removesuffix(name)}.{name}.crc"
    if os.access(checksum, os.F_OK):  # faster than an error for each file without one
        with suppress(FileNotFoundError):
            os.unlink(checksum)
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_data_file(path: str) -> bool:
    """Return True if a path below an output directory is a Parquet file that is not hidden."""
    return path.endswith(".parquet") and not _HIDDEN(path)


_HIDDEN = re.compile(r"/[_.][^/=]*(?:/|$)").search


def bucket(authority: str) -> str:
    """Return the bucket or container of an authority: ``c`` for ``c@account.example.com``."""
    return authority.partition("@")[0]


def setting_names(table_root: str) -> list[str]:
    """Return the names of the Hadoop settings for access to a table's files."""
    match = _LOCATION.fullmatch(table_root)
    scheme, authority, _ = match.groups("") if match else ("", "", "")
    if scheme in _S3:
        prefixes = ("fs.s3a.", f"fs.s3a.bucket.{authority}.")
        return [f"{prefix}{name}" for prefix in prefixes for name in S3_SETTINGS]
    if scheme in _AZURE:
        return [_azure_key(authority.partition("@")[2])]
    return []


def file_system(scheme: str, authority: str, settings: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """Create Arrow's file system for a scheme and authority."""
    if scheme == "file":
        return pyarrow.fs.LocalFileSystem()
    if scheme in _S3:
        arguments = s3_arguments(authority, settings)
        if "region" not in arguments and "endpoint_override" not in arguments:
            arguments["region"] = pyarrow.fs.resolve_s3_region(authority)
        return pyarrow.fs.S3FileSystem(**arguments)
    if scheme == "gs":
        return pyarrow.fs.GcsFileSystem()
    if scheme in _AZURE:
        host = authority.partition("@")[2]
        account, _, rest = host.partition(".")
        if rest not in ("dfs.core.windows.net", "blob.core.windows.net"):
            raise OSError(f"{host} is not an Azure host")
        key = settings.get(_azure_key(host))
        return pyarrow.fs.AzureFileSystem(account_name=account, account_key=key)
    raise OSError("Arrow does not support this file system")


_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")


def _azure_key(host: str) -> str:
    return f"fs.azure.account.key.{host}"


def s3_arguments(name: str, settings: Mapping[str, str]) -> dict[str, str | bool]:
    """Convert Hadoop's S3 settings to arguments of Arrow; per-bucket settings take precedence."""
    found = {}
    for setting in S3_SETTINGS:
        for prefix in (f"fs.s3a.bucket.{name}.", "fs.s3a."):
            if settings.get(prefix + setting):
                found[setting] = settings[prefix + setting]
                break
    if found.get("endpoint", "").rpartition("://")[2].rstrip("/") == _NO_ENDPOINT:
        del found["endpoint"]
    arguments: dict[str, str | bool] = {}
    for setting, value in found.items():
        argument = S3_SETTINGS[setting]
        if setting == "path.style.access":
            # Only for custom endpoints: for AWS, Arrow chooses the addressing style.
            if "endpoint" in found:
                arguments[argument] = value.lower() != "true"
        elif setting == "connection.ssl.enabled":
            # For an endpoint without a scheme; Hadoop's own defaults have it, too.
            arguments.setdefault(argument, "http" if value.lower() == "false" else "https")
        elif setting == "aws.credentials.provider":
            if _ANONYMOUS in value and "access.key" not in found:
                arguments[argument] = True
        elif setting == "endpoint" and "://" in value:
            arguments["scheme"], _, arguments[argument] = value.partition("://")
        else:
            arguments[argument] = value
    return arguments
