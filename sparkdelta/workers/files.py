"""Bytes of files where Spark has no JVM at hand: in Python workers, by Arrow's file systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
"""Hadoop's settings of S3 that count, after ``fs.s3a.`` or ``fs.s3a.bucket.NAME.``, and what they
are to Arrow."""

_NO_ENDPOINT = "s3.amazonaws.com"  # Hadoop's word for the one of the region
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_LOCATION = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """A reader and writer of files that travels to Python workers.

    Attributes
    ----------
    settings
        Hadoop settings of object stores, see `setting_names`; what they leave open is found where
        Arrow looks for it, as in the environment of the executors.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    _opened: dict[tuple[str, str], pyarrow.fs.FileSystem] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def open(self, path: str) -> pa.NativeFile:
        """A file at an absolute, decoded path, to be read at any place.

        Raises
        ------
        FileNotFoundError
            It is not there.
        StorageError
            Workers have no way to it.
        """
        system, within = self._locate(path)
        return system.open_input_file(within)

    def create(self, path: str) -> pa.NativeFile:
        """A new file at an absolute, decoded path, to be written from its beginning.

        Raises
        ------
        StorageError
            Workers have no way to it.
        """
        system, within = self._locate(path)
        if path.startswith("file:"):  # others make directories by themselves, or have none
            system.create_dir(within.rpartition("/")[0], recursive=True)
        return system.open_output_stream(within, compression=None)

    def modification_time(self, path: str) -> int:
        """That of a file, in milliseconds."""
        system, within = self._locate(path)
        return int(system.get_file_info(within).mtime_ns // 1_000_000)

    def size(self, path: str) -> int | None:
        """The bytes of a file at an absolute, decoded path; None where there is none.

        Raises
        ------
        StorageError
            Workers have no way to it.
        """
        system, within = self._locate(path)
        found = system.get_file_info(within)
        return int(found.size) if found.is_file else None

    def is_near(self, path: str) -> bool:
        """Whether opening files takes no Java machine of its own."""
        return not path.lower().startswith(_BY_JAVA)

    def data_files(self, directory: str) -> list[tuple[str, int, int]]:
        """Path, bytes and modification time in milliseconds of the Parquet files below a directory
        that Spark wrote, but for those that it hides; none where there is no such directory.

        Raises
        ------
        StorageError
            There is no way to it.
        """
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

    def delete_directory(self, directory: str) -> None:
        """Delete a directory with all it holds; one that is not there is no error.

        Raises
        ------
        OSError
            Something is left.
        StorageError
            There is no way to it.
        """
        system, within = self._locate(directory)
        if system.get_file_info(within).type is not pyarrow.fs.FileType.NotFound:
            system.delete_dir(within)

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
        within = name if key[0] in _LOCAL_NAMES else f"{bucket(authority)}{name}"
        return self._opened[key], within


def is_data_file(path: str) -> bool:
    """Whether this, below a directory that Spark wrote to, is Parquet that Spark does not hide."""
    return path.endswith(".parquet") and not _HIDDEN(path)


_HIDDEN = re.compile(r"/[_.][^/=]*(?:/|$)").search
_BY_JAVA = ("hdfs:", "viewfs:")
_LOCAL_NAMES = ("file", "hdfs", "viewfs")


def bucket(authority: str) -> str:
    """The bucket or container that an authority names: ``c`` of ``c@account.example.com``."""
    return authority.partition("@")[0]


def setting_names(table_root: str) -> list[str]:
    """The Hadoop settings that reading below a table's root depends on."""
    match = _LOCATION.fullmatch(table_root)
    scheme, authority, _ = match.groups("") if match else ("", "", "")
    if scheme in _S3:
        prefixes = ("fs.s3a.", f"fs.s3a.bucket.{authority}.")
        return [f"{prefix}{name}" for prefix in prefixes for name in S3_SETTINGS]
    if scheme in _AZURE:
        return [_azure_key(authority.partition("@")[2])]
    return []


def file_system(scheme: str, authority: str, settings: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """Arrow's file system of a scheme."""
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
    if scheme in ("hdfs", "viewfs"):
        host, _, port = authority.partition(":")
        name = "default" if not host else (host if scheme == "hdfs" else f"viewfs://{host}")
        return pyarrow.fs.HadoopFileSystem(name, int(port or 0))
    raise OSError("Arrow does not support this file system")


_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")


def _azure_key(host: str) -> str:
    return f"fs.azure.account.key.{host}"


def s3_arguments(name: str, settings: Mapping[str, str]) -> dict[str, str | bool]:
    """Hadoop's settings of an S3 bucket as Arrow's; those of the bucket come first."""
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
            # Without an endpoint of its own, S3 itself decides.
            if "endpoint" in found:
                arguments[argument] = value.lower() != "true"
        elif setting == "connection.ssl.enabled":
            arguments[argument] = "http" if value.lower() == "false" else "https"
        elif setting == "aws.credentials.provider":
            if _ANONYMOUS in value and "access.key" not in found:
                arguments[argument] = True
        elif setting == "endpoint" and "://" in value:
            arguments["scheme"], _, arguments[argument] = value.partition("://")
        else:
            arguments[argument] = value
    return arguments
