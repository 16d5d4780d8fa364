"""Log store and Parquet scans through Spark Connect, where the client has neither a JVM nor access
to the storage.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.parquet.parquet_options import (
    WRITE_OPTIONS,
    WRITE_SETTINGS,
    ParquetRelation,
    ParquetScan,
    committer_settings,
)
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.spark.connect_catalog import is_sibling
from sparkdelta.base.storage.log_store import (
    FileEntry,
    LogStore,
    checked_name,
    log_path,
    show_same_log,
)
from sparkdelta.exceptions import (
    DeltaError,
    InvalidArgumentError,
    StorageError,
    StoreNotWritableError,
)

_BINARY_FILE = "path STRING, modificationTime TIMESTAMP_LTZ, length LONG, content BINARY"
_PATH_NOT_FOUND = "PATH_NOT_FOUND"
_TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"


@dataclass(slots=True)
class ConnectLogStore:
    """`LogStore` over Spark's `binaryFile` source, which reads on the server.

    Spark's file sources ignore names that begin with ``_``, so `_last_checkpoint` is never found
    and the whole log is listed.
    """

    spark: SparkSession
    path: str
    _table_root: str | None = field(default=None, init=False)

    @property
    def table_root(self) -> str:
        return self._table_root or self.path.rstrip("/")

    def list_from(self, start: str = "") -> list[FileEntry]:
        directory, listing = self._list(LOG_DIRECTORY)
        if directory is not None:
            self._table_root = directory.removesuffix(f"/{LOG_DIRECTORY}")
        return [entry for entry in listing if entry.name >= start]

    def read(self, names: Sequence[str]) -> list[bytes]:
        return self._read(names, "content")

    def read_start(self, name: str, size: int) -> bytes:
        return self._read([name], f"substring(content, 1, {int(size)}) AS content")[0]

    def read_from(self, name: str, start: int) -> bytes:
        return self._read([name], f"substring(content, {int(start) + 1}) AS content")[0]

    def _read(self, names: Sequence[str], content: str) -> list[bytes]:
        if not names:
            return []
        hidden = next((name for name in names if name.startswith("_")), None)
        if hidden is not None:
            raise FileNotFoundError(
                errno.ENOENT, "its name is hidden from Spark's file sources", hidden
            )
        paths = [log_path(self.table_root, name) for name in names]
        try:
            rows = self._files(paths).selectExpr("path", content).collect()
        except DeltaError:
            raise
        except PySparkException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, str(error), names[0]) from None
            raise self._out_of_reach(error) from None
        contents = {row["path"].rpartition("/")[2]: bytes(row["content"]) for row in rows}
        # An empty file has no row; a missing file fails the query.
        return [contents.get(name.rpartition("/")[2], b"") for name in names]

    def list_directory(self, name: str) -> list[FileEntry]:
        return self._list(f"{LOG_DIRECTORY}/{checked_name(name)}")[1]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise StoreNotWritableError(
            path=self.path,
            reason="A Spark Connect client reads this log through the server, which has no way "
            "to write a file without overwriting: one of two concurrent commits would be lost",
            remedy="Write to s3:, s3a:, gs: or a path that client and server share, or from a "
            "classic Spark session",
        )

    check_writable = put_if_absent = overwrite = publish = delete = _refuse
    is_alone = staging_directories = delete_directory = table_files = _refuse

    def _list(self, directory: str) -> tuple[str | None, list[FileEntry]]:
        """Return the qualified path of a directory of the table, None if it is empty, and its
        files.
        """
        directory_path, listing = None, []
        try:
            files = self._files([f"{self.path.rstrip('/')}/{directory}"])
            modified = F.unix_millis("modificationTime").alias("modified")
            rows = files.select("path", "length", modified).collect()
            for path in _empty(files.inputFiles(), [row["path"] for row in rows]):
                directory_path, _, name = path.rpartition("/")
                listing.append(FileEntry(name, 0, 0))
        except DeltaError:
            raise
        except PySparkException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                return None, []
            raise self._out_of_reach(error) from None
        for row in rows:
            directory_path, _, name = row["path"].rpartition("/")
            listing.append(FileEntry(name, row["length"], row["modified"]))
        return directory_path, sorted(listing, key=lambda entry: entry.name)

    def _out_of_reach(self, error: PySparkException) -> StorageError:
        return StorageError(path=self.path, problem=str(error).partition("\n")[0].rstrip("."))

    def _files(self, paths: list[str]) -> DataFrame:
        reader = self.spark.read.format("binaryFile").schema(_BINARY_FILE)
        options = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        if len(paths) > 1 or not paths[0].endswith(LOG_DIRECTORY):
            options["__globPaths__"] = "false"
        return reader.options(**options).load(paths)


def _empty(listed: Sequence[str], with_rows: Sequence[str]) -> list[str]:
    """Return the paths of listed files without rows: Spark skips empty files of any format."""
    not_empty = set(map(plain_path, with_rows))
    return [path for path in (plain_path(unquote(uri)) for uri in listed) if path not in not_empty]


def hadoop_settings(spark: SparkSession, names: Collection[str]) -> dict[str, str]:
    """Return the values of the named Hadoop settings that are set on the server or in the
    session.
    """
    prefix = "spark.hadoop."
    return {
        key.removeprefix(prefix): str(value)
        for key, value in spark.conf.getAll.items()
        if key.removeprefix(prefix) in names
    }


def check_same_log(spark: SparkSession, store: LogStore) -> None:
    """Raise if the client's store does not show the same log as the server.

    For a new table, the client writes a probe file, the server looks for it, and the client deletes
    it.

    Raises
    ------
    StoreNotWritableError
        The logs differ, or it cannot be determined.
    """
    server = ConnectLogStore(spark, store.table_root)
    # Spark logs a stack trace when it lists a directory that does not exist.
    is_same = show_same_log(server, store) if store.list_from() else None
    if is_same is None:
        probe = f"probe-{uuid4()}.tmp"
        store.put_if_absent(probe, b"Can the server see this?\n")  # it does not see empty files
        try:
            is_same = any(entry.name == probe for entry in server.list_from())
        finally:
            store.delete([probe])
    if not is_same:
        raise StoreNotWritableError(
            path=store.table_root,
            reason="The Spark Connect server and its client do not see the same log, so a "
            "commit would not be visible to the server",
            remedy="Write from where the path is the same place, to an object store that both "
            "reach, or from a classic Spark session",
        )


def write_parquet(
    rows: DataFrame,
    directory: str,
    *,
    partition_by: Sequence[str],
    options: Mapping[str, str],
    settings: Mapping[str, str],
) -> None:
    """Write rows as `JvmScans.write_parquet` does, in a session of this write alone.

    Rows of the user's session, whose settings stay, can be staged, but not be data files.

    Raises
    ------
    InvalidArgumentError
        By a setting of the user's session, microseconds would be lost.
    """
    session = rows.sparkSession
    if is_sibling(session):
        _prepare_writing(session, settings)
    elif str(session.conf.get(_TIMESTAMP_TYPE)).upper() == "TIMESTAMP_MILLIS":
        problem = "rows are staged, and TIMESTAMP_MILLIS would cut their microseconds off; unset it"
        raise InvalidArgumentError(argument=_TIMESTAMP_TYPE, problem=problem)
    writer = rows.write.options(**{**options, **WRITE_OPTIONS}).mode("error")
    writer.partitionBy(*partition_by).parquet(directory)


def _prepare_writing(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    committers = committer_settings(lambda key, default: str(sibling.conf.get(key, default)))
    for key, value in {**WRITE_SETTINGS, **committers, **settings}.items():
        sibling.conf.set(key, value)


_UNCACHED = "sparkdelta.uncached"
"""An option that Spark's Parquet source ignores."""


def parquet_relation(spark: SparkSession, scan: ParquetScan) -> ParquetRelation:
    """Return a scan of Parquet files through Spark's public API; partition values must be joined to
    it.

    Raises
    ------
    FileNotFoundError
        A file does not exist; `filename` is its path if Spark reports it.
    """
    try:
        reader = spark.read.schema(scan.schema).options(**scan.options)
        rows = reader.parquet(*scan.files)
        input_files = rows.inputFiles()
        if len(input_files) < len(scan.files):
            # Rows in Spark's cache have no files. With another option, it is another relation.
            input_files = reader.option(_UNCACHED, "true").parquet(*scan.files).inputFiles()
        listing = spark.read.format("binaryFile").options(**scan.options).load(list(scan.files))
        empty = _empty(input_files, [row["path"] for row in listing.select("path").collect()])
        return ParquetRelation(rows, rows.metadataColumn("_metadata"), input_files, empty)
    except DeltaError:
        raise
    except AnalysisException as error:
        if error.getCondition() != _PATH_NOT_FOUND:
            raise
        parameters = error.getMessageParameters() or {}
        missing = parameters.get("path", scan.files[0])
        raise FileNotFoundError(errno.ENOENT, str(error), missing) from error
