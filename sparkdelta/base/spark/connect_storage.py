"""Reads and writes of Spark's file sources through Spark Connect."""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import unquote
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.parquet.parquet_options import (
    COMMITTERS,
    PINNED_SETTINGS,
    WRITE_OPTIONS,
    WRITE_SETTINGS,
    ParquetRelation,
    ParquetScan,
    committer_settings,
)
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.spark.connect_sessions import (
    change_settings,
    connect_copy,
    is_same_setting,
    is_sibling,
    rows_in_copy,
    settings_of,
)
from sparkdelta.base.spark.library_sessions import ESCAPED_LITERALS
from sparkdelta.base.storage.log_store import FileEntry, log_path
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, StorageError

_BINARY_FILE = "path STRING, modificationTime TIMESTAMP_LTZ, length LONG, content BINARY"
_PATH_NOT_FOUND = "PATH_NOT_FOUND"
_INEXACT = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
"""Values of settings by which files have no microseconds, or no days that the Julian calendar
lacks.
"""


@dataclass(frozen=True, slots=True)
class BinaryFiles:
    """The files of a log through Spark's `binaryFile` source, which ignores names that begin with
    ``_`` or ``.``.
    """

    spark: SparkSession
    table_root: str

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of files as `LogStore.read` does."""
        paths = [log_path(self.table_root, name) for name in names]
        try:
            rows = self._files(paths).select("path", "content").collect()
        except DeltaError:
            raise
        except PySparkException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, str(error), names[0]) from None
            raise self._out_of_reach(error) from None
        contents = {row["path"].rpartition("/")[2]: bytes(row["content"]) for row in rows}
        # An empty file has no row; a missing file fails the query.
        return [contents.get(name.rpartition("/")[2], b"") for name in names]

    def list_directory(self, directory: str) -> list[FileEntry]:
        """Return the files of a directory of the table, ordered by name."""
        listing = []
        try:
            files = self._files([f"{self.table_root}/{directory}"])
            modified = F.unix_millis("modificationTime").alias("modified")
            rows = files.select("path", "length", modified).collect()
            for path in _empty(files.inputFiles(), [row["path"] for row in rows]):
                listing.append(FileEntry(path.rpartition("/")[2], 0, 0))
        except DeltaError:
            raise
        except PySparkException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                return []
            raise self._out_of_reach(error) from None
        for row in rows:
            name = row["path"].rpartition("/")[2]
            listing.append(FileEntry(name, row["length"], row["modified"]))
        return sorted(listing, key=lambda entry: entry.name)

    def shows(self, name: str) -> bool:
        """Return True if the server's driver finds a file of the log; starts no job."""
        try:
            return bool(self._files([log_path(self.table_root, name)]).inputFiles())
        except DeltaError:
            raise
        except AnalysisException:
            return False

    def _out_of_reach(self, error: PySparkException) -> StorageError:
        return StorageError(path=self.table_root, problem=str(error).partition("\n")[0].rstrip("."))

    def _files(self, paths: list[str]) -> DataFrame:
        reader = self.spark.read.format("binaryFile").schema(_BINARY_FILE)
        options = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        if len(paths) > 1 or not paths[0].endswith(LOG_DIRECTORY):
            options["__globPaths__"] = "false"
        return reader.options(**options).load(paths)


def qualified_root(spark: SparkSession, path: str) -> str:
    """Return the root of a table as the server's Hadoop qualifies it, without a trailing slash."""
    if _HAS_SCHEME(path):
        scheme, _, rest = path.partition(":")
        if scheme.lower() != "file":
            return path.rstrip("/")
        return f"file:{posixpath.normpath('/' + rest.lstrip('/'))}"
    place = path, settings_of(spark, [_DEFAULT_FS])[_DEFAULT_FS]
    roots = _roots.setdefault(spark, {})
    if place not in roots:
        roots[place] = _asked_root(spark, path)
    return roots[place]


_DEFAULT_FS = "fs.defaultFS"
_roots: WeakKeyDictionary[SparkSession, dict[tuple[str, str | None], str]] = WeakKeyDictionary()
"""The roots by session, path and the session's own default file system."""


def _asked_root(spark: SparkSession, path: str) -> str:
    missing = f"{path.rstrip('/')}/{uuid4()}"
    reader = spark.read.format("binaryFile").schema(_BINARY_FILE).option("__globPaths__", "false")
    try:
        _ = reader.load(missing).schema
    except DeltaError:
        raise
    except AnalysisException as error:
        place = (error.getMessageParameters() or {}).get("path", "")
        if error.getCondition() != _PATH_NOT_FOUND or not _HAS_SCHEME(place):
            raise
        return plain_path(place.rpartition("/")[0])
    raise AssertionError


_HAS_SCHEME = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:/").match


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


def other_settings(spark: SparkSession, needed: Mapping[str, str]) -> set[str]:
    """Return the names of settings by which a session writes rows otherwise than one with the
    needed settings; one request.

    Settings that the server's version does not have, and those that `write_parquet` gives as
    options, do not matter.
    """
    needed = {**needed, ESCAPED_LITERALS: "false"}
    found = settings_of(spark, {*needed, *COMMITTERS} - PINNED_SETTINGS)
    return {
        name
        for name, value in found.items()
        if value is not None
        and not (
            value in COMMITTERS[name]
            if name in COMMITTERS
            else is_same_setting(name, value, needed[name])
        )
    }


def write_parquet(
    rows: DataFrame,
    directory: str,
    *,
    partition_by: Sequence[str],
    options: Mapping[str, str],
    settings: Mapping[str, str],
) -> None:
    """Write rows as `JvmScans.write_parquet` does, in a session of this write alone or in the
    user's, whose settings stay: to stage them, or as data files if it has no `other_settings`.

    Raises
    ------
    InvalidArgumentError
        A setting of the user's session would change values, and the session cannot be copied.
    """
    options = {"maxRecordsPerFile": "0", **options, **WRITE_OPTIONS}
    is_ours = is_sibling(rows.sparkSession)
    if is_ours:
        _prepare_writing(rows.sparkSession, settings)
    with nullcontext(rows) if is_ours else _exactly(rows) as written:
        writer = written.write.options(**options).mode("error")
        writer.partitionBy(*partition_by).parquet(directory)


@contextmanager
def _exactly(rows: DataFrame) -> Iterator[DataFrame]:
    """Yield rows of the user's session so that files have their very values."""
    session = rows.sparkSession
    found = settings_of(session, _INEXACT)
    names = [name for name, value in _INEXACT.items() if str(found[name]).upper() == value]
    if not names or not _HAS_TIMES(rows.schema.json()):
        yield rows
        return
    if hasattr(session, "cloneSession"):
        with connect_copy(session) as copy:
            copied = rows_in_copy(rows, copy)
            if copied is not None:
                change_settings(copy, {name: WRITE_SETTINGS[name] for name in names})
                yield copied
                return
    problem = f"rows are staged, and {_INEXACT[names[0]]} would change some of them; unset it"
    raise InvalidArgumentError(argument=names[0], problem=problem)


_HAS_TIMES = re.compile('"(date|timestamp)"').search


def _prepare_writing(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    found = settings_of(sibling, COMMITTERS)
    committers = committer_settings(lambda name, default: found[name] or default)
    change_settings(sibling, {**WRITE_SETTINGS, **committers, **settings})


@contextmanager
def know_files() -> Iterator[None]:
    """Let the scans of a statement ask the server once for the size and time of a data file."""
    token = _known_files.set({})
    try:
        yield
    finally:
        _known_files.reset(token)


_known_files: ContextVar[dict[str, tuple[str, tuple[int, int]]]] = ContextVar("known_files")
"""The URI, size and modification time of data files by their paths, while a statement runs."""

_IS_ITS_URI = re.compile("[a-zA-Z0-9/:._=-]*").fullmatch
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
    known = _known_files.get({})
    try:
        reader = spark.read.schema(scan.schema).options(**scan.options)
        rows = reader.parquet(*scan.files)
        metadata = rows.metadataColumn("_metadata")
        found = [known[path] for path in map(plain_path, scan.files) if path in known]
        if len(found) == len(scan.files):
            uris, of_files = zip(*found, strict=True)
            return ParquetRelation(rows, metadata, uris, stamps=of_files)
        listing = spark.read.format("binaryFile").options(**scan.options).load(list(scan.files))
        modified = F.unix_millis("modificationTime")
        listed = listing.select("path", F.struct("length", modified)).collect()
        stamps = {plain_path(path): tuple(stamp) for path, stamp in listed}
        input_files = [*stamps]
        if len(stamps) < len(scan.files) or not all(map(_IS_ITS_URI, input_files)):
            input_files = rows.inputFiles()
        if len(input_files) < len(scan.files):
            # Rows in Spark's cache have no files. With another option, it is another relation.
            input_files = reader.option(_UNCACHED, "true").parquet(*scan.files).inputFiles()
        by_path = {plain_path(unquote(uri)): uri for uri in input_files}
        known.update((path, (by_path[path], stamps[path])) for path in stamps if path in by_path)
        return ParquetRelation(
            rows,
            metadata,
            [*by_path.values()],
            empty=[path for path in by_path if path not in stamps],
            stamps=[stamps.get(path, (0, 0)) for path in by_path],
        )
    except DeltaError:
        raise
    except AnalysisException as error:
        if error.getCondition() != _PATH_NOT_FOUND:
            raise
        parameters = error.getMessageParameters() or {}
        missing = parameters.get("path", scan.files[0])
        raise FileNotFoundError(errno.ENOENT, str(error), missing) from error
