"""The log through Spark itself, for Spark Connect, where the client sees neither a JVM nor the
storage.
"""

# ruff: noqa: ARG002 - arguments of verbs that are refused

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.exceptions import StoreNotWritableError
from sparkdelta.protocol.log_files import LOG_DIRECTORY
from sparkdelta.storage.log_store import Data, FileEntry, log_path
from sparkdelta.storage.parquet import ParquetRelation

_BINARY_FILE = "path STRING, modificationTime TIMESTAMP_LTZ, length LONG, content BINARY"
_PATH_NOT_FOUND = "PATH_NOT_FOUND"


@dataclass(slots=True)
class ConnectLogStore:
    """`LogStore` over Spark's `binaryFile` source, which sees what the server sees.

    Spark's file sources hide names that begin with ``_``, so `_last_checkpoint` is never found here
    and the log is listed whole.
    """

    spark: SparkSession
    path: str
    _table_root: str | None = field(default=None, init=False)

    @property
    def table_root(self) -> str:
        return self._table_root or self.path.rstrip("/")

    def list_from(self, start: str = "") -> list[FileEntry]:
        try:
            rows = (
                self._files([f"{self.path.rstrip('/')}/{LOG_DIRECTORY}"])
                .select(
                    F.col("path"),
                    F.col("length"),
                    F.unix_millis("modificationTime").alias("modified"),
                )
                .collect()
            )
        except AnalysisException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                return []
            raise
        listing = []
        for row in rows:
            directory, _, name = row["path"].rpartition("/")
            self._table_root = directory.removesuffix(f"/{LOG_DIRECTORY}")
            if name >= start:
                listing.append(FileEntry(name, row["length"], row["modified"]))
        return sorted(listing, key=lambda entry: entry.name)

    def read(self, names: Sequence[str]) -> list[bytes]:
        if not names or any(name.startswith("_") for name in names):
            missing = next(iter(names), "")
            if not names:
                return []
            raise FileNotFoundError(errno.ENOENT, "hidden from Spark's file sources", missing)
        paths = [log_path(self.table_root, name) for name in names]
        try:
            rows = self._files(paths).select("path", "content").collect()
        except AnalysisException as error:
            if error.getCondition() == _PATH_NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, str(error), names[0]) from error
            raise
        contents = {row["path"].rpartition("/")[2]: bytes(row["content"]) for row in rows}
        return [contents[name] for name in names]

    def read_start(self, name: str, size: int) -> bytes:
        return self.read([name])[0][:size]

    def check_writable(self) -> None:
        raise self._refusal()

    def put_if_absent(self, name: str, data: Data) -> None:
        raise self._refusal()

    def overwrite(self, name: str, data: bytes) -> None:
        raise self._refusal()

    def publish(self, source: str, name: str) -> None:
        raise self._refusal()

    def delete(self, names: Sequence[str]) -> None:
        raise self._refusal()

    def list_directory(self, name: str) -> list[FileEntry]:
        raise self._refusal()

    def is_alone(self) -> bool:
        raise self._refusal()

    def staging_directories(self) -> list[FileEntry]:
        raise self._refusal()

    def delete_directory(self, name: str) -> None:
        raise self._refusal()

    def _refusal(self) -> StoreNotWritableError:
        return StoreNotWritableError(
            path=self.path,
            reason="A client of Spark Connect reads the log through the server, which has no way "
            "to write a file without overwriting",
            remedy="Write from a classic Spark session",
        )

    def _files(self, paths: list[str]) -> DataFrame:
        reader = self.spark.read.format("binaryFile").schema(_BINARY_FILE)
        options = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        if len(paths) > 1 or not paths[0].endswith(LOG_DIRECTORY):
            options["__globPaths__"] = "false"
        return reader.options(**options).load(paths)


def parquet_relation(
    spark: SparkSession, files: Sequence[str], schema: StructType, options: Mapping[str, str]
) -> ParquetRelation:
    """A scan of Parquet files by public means alone; partition values must be joined to it.

    Raises
    ------
    FileNotFoundError
        A file is gone; its `filename` is the path, as far as Spark tells.
    """
    try:
        rows = spark.read.schema(schema).options(**options).parquet(*files)
        listing = spark.read.format("binaryFile").options(**options).load(list(files))
        empty = listing.filter("length = 0").select("path").collect()
        metadata = rows.metadataColumn("_metadata")
        return ParquetRelation(rows, metadata, rows.inputFiles(), [row["path"] for row in empty])
    except AnalysisException as error:
        if error.getCondition() != _PATH_NOT_FOUND:
            raise
        parameters = error.getMessageParameters() or {}
        missing = parameters.get("path", files[0])
        raise FileNotFoundError(errno.ENOENT, str(error), missing) from error
