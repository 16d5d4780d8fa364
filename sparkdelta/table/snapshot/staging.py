"""Files of the log that executors write to a private directory before they are published."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.parquet.parquet_options import PARQUET_OPTIONS
from sparkdelta.base.protocol.log_files import staging_directory
from sparkdelta.base.schema.table_schema import as_nullable
from sparkdelta.base.spark.driver import delta_errors, read_parquet
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import FileEntry, LogStore, log_path
from sparkdelta.exceptions import StorageError
from sparkdelta.table.listing.listing import read_options
from sparkdelta.table.snapshot.staged_row_frames import (
    rows_with_voids,
    rows_without_voids,
    without_voids,
)

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Staging:
    """A private directory below `_delta_log`, which no engine lists.

    Attributes
    ----------
    spark
        The session that writes; its settings count. For files of the log, a `log_session`.
    name
        The name of the directory within the log directory.
    """

    spark: SparkSession
    store: LogStore
    name: str
    _listed: dict[str, list[FileEntry]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def write_parquet(
        self, rows: DataFrame, part: str, options: Mapping[str, str]
    ) -> list[FileEntry]:
        """Write a file for each partition; the names of the files are within the part."""
        target = log_path(self.store.table_root, f"{self.name}/{part}")
        with delta_errors(None), named_jobs(self.spark, f"files of the log ({part})"):
            rows.write.options(**read_options(self.store, {}), **options).parquet(target)
        return self._files(part, ".parquet")

    def compute_once(
        self, rows: DataFrame, part: str, schema: StructType | None = None
    ) -> DataFrame:
        """Write rows, and return them as they are read back: they are computed once."""
        self.write_parquet(rows, part, {})
        return self.read_parquet(part, rows.schema if schema is None else schema)[0]

    def stage_rows(self, rows: DataFrame, part: str, schema: StructType | None = None) -> DataFrame:
        """Write rows of any session as Parquet, so that they are computed once, and read them back
        in this one.

        Parameters
        ----------
        schema
            Of the rows, if it is known: a client of Spark Connect asks the server otherwise.
        """
        if schema is None:
            schema = rows.schema
        target = log_path(self.store.table_root, f"{self.name}/{part}")
        options = read_options(self.store, {})
        with delta_errors(None), named_jobs(self.spark, f"staged rows ({part})"):
            engine_of(rows.sparkSession).write_parquet(
                rows_without_voids(rows, schema),
                target,
                partition_by=(),
                options={**options, "compression": "snappy"},
                settings={},
            )
        return self.read_rows(part, schema)

    def read_rows(self, part: str, columns: StructType) -> DataFrame:
        """Return rows that `stage_rows` has written, in this session."""
        target = log_path(self.store.table_root, f"{self.name}/{part}")
        reader = self.spark.read.options(**read_options(self.store, {}), **PARQUET_OPTIONS)
        schema = as_nullable(columns)
        stored = without_voids(schema)
        assert isinstance(schema, StructType)
        assert isinstance(stored, StructType)
        return rows_with_voids(reader.schema(stored).parquet(target), schema)

    def read_table(
        self, part: str, columns: Sequence[str] | None = None, *, what: str, bound: int
    ) -> pa.Table:
        """Read the rows of a small part to the driver, see `base.spark.driver.read_parquet`."""
        names = [f"{self.name}/{part}/{entry.name}" for entry in self._files(part, ".parquet")]
        return read_parquet(self.store.read(names), columns=columns, what=what, bound=bound)

    def size_bytes(self, part: str) -> int:
        """Sum the sizes of the Parquet files of a part."""
        return sum(entry.size_bytes for entry in self._files(part, ".parquet"))

    def write_lines(
        self, lines: DataFrame, part: str, options: Mapping[str, str] | None = None
    ) -> list[FileEntry]:
        """Write a column of texts, one per line."""
        target = log_path(self.store.table_root, f"{self.name}/{part}")
        options = {"lineSep": "\n", "compression": "none", **(options or {})}
        with delta_errors(None), named_jobs(self.spark, f"files of the log ({part})"):
            lines.write.options(**read_options(self.store, {}), **options).text(target)
        return self._files(part, ".txt")

    def read_parquet(self, part: str, schema: StructType) -> tuple[DataFrame, Column]:
        """Return the rows of a part, and a column with the name of each row's file."""
        path = log_path(self.store.table_root, f"{self.name}/{part}")
        options = {**read_options(self.store, {}), **PARQUET_OPTIONS}
        with delta_errors(None):
            rows = self.spark.read.options(**options).schema(schema).parquet(path)
        return rows, rows.metadataColumn("_metadata")["file_name"]

    def read(self, part: str, file: str) -> bytes:
        """Read a file."""
        return self.store.read([f"{self.name}/{part}/{file}"])[0]

    def publish(self, part: str, file: str, name: str, *, is_new_name: bool) -> None:
        """Give a file of a part its name in the log, see `LogStore.publish`.

        With `is_new_name`, nobody else can have chosen the name: if it is taken, it is by this
        file, and the storage's answer to an earlier request was lost.
        """
        try:
            self.store.publish(f"{self.name}/{part}/{file}", name, is_new_name=is_new_name)
        except FileExistsError:
            if not is_new_name:
                raise

    def _files(self, part: str, suffix: str) -> list[FileEntry]:
        """Return the data files of a part, which is written once."""
        if part not in self._listed:
            self._listed[part] = self.store.list_directory(f"{self.name}/{part}")
        return [entry for entry in self._listed[part] if _is_data(entry.name, suffix)]


def _is_data(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and not name.startswith((".", "_"))


@contextmanager
def staging(spark: SparkSession, store: LogStore) -> Iterator[Staging]:
    """Create a staging directory, and delete it afterwards in any case.

    A failure to delete is only logged, as a commit may be done; cleanup of the log deletes the
    rest.
    """
    name = staging_directory(str(uuid4()))
    try:
        yield Staging(spark, store, name)
    finally:
        try:
            store.delete_directory(name)
        except (OSError, StorageError) as error:
            _LOGGER.warning("Cannot delete %s of %s: %s", name, store.table_root, error)
