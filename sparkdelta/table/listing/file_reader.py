"""A reader of a log's files as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.parquet.parquet_options import PARQUET_OPTIONS, is_hidden
from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.spark.driver import delta_errors
from sparkdelta.base.spark.job_names import named_jobs
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore, log_path
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.listing.line_reader import fits_on_driver, local_lines, read_lines

_TEXT_OPTIONS = {
    "__globPaths__": "false",
    "lineSep": "\n",
    "wholetext": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}

# The version a file's actions belong to is the last number of its name, of twenty digits each. Not
# by a regular expression, which takes as long for each line as to split the text into lines.
_NAME = "_metadata.file_name"
_VERSION = (
    f"CASE WHEN endswith({_NAME}, '.compacted.json') THEN substring({_NAME}, 22, 20) "
    f"ELSE left({_NAME}, 20) END"
)

# A split is read in order, by one task.
_PLACES = {
    "split_start": "_metadata.file_block_start",
    "place_in_split": "monotonically_increasing_id()",
}
LINE_PLACE = tuple(_PLACES)


@dataclass(frozen=True, slots=True)
class LogFileReader:
    """A reader of one log's files.

    Attributes
    ----------
    options
        The Hadoop settings that every read carries, see `listing.read_options`.
    """

    spark: SparkSession
    store: LogStore
    options: Mapping[str, str]

    @property
    def table_root(self) -> str:
        return self.store.table_root

    def lines(self, files: Sequence[LogFile]) -> DataFrame:
        """Return version LONG, line STRING of commits, compactions or JSON checkpoints.

        Small files become local data, see `line_reader.DRIVER_LOG_BYTES`.
        """
        if not fits_on_driver(files):
            return self.executor_lines(files)
        return local_lines(self.spark, read_lines(self.store, files))

    def executor_lines(self, files: Sequence[LogFile], *, with_places: bool = False) -> DataFrame:
        """Return the rows of `lines`, read by executors when the query runs.

        With `with_places`, the columns of `LINE_PLACE` order the lines of one file.
        """
        paths = [self._path(file.name) for file in files]
        options = {**self.options, **_TEXT_OPTIONS}
        text = engine_of(self.spark).read_files("text", paths, options=options)
        columns = [f"CAST({_VERSION} AS long) AS version", "value AS line"]
        places = [f"{place} AS {name}" for name, place in _PLACES.items()] if with_places else []
        return text.selectExpr(*columns, *places)

    def parquet(self, names: Sequence[str], schema: StructType, *, version: Version) -> DataFrame:
        """Return the rows of Parquet files of the log; a missing column is null.

        `version` is for errors.
        """
        if not names:
            return empty_frame(self.spark, schema)
        paths = [self._path(name) for name in names]
        hidden = [path for path in paths if is_hidden(path)]
        if hidden:
            raise DeltaError.of("DELTA_DATA_FILE_NOT_READ", files=hidden, version=version)
        options = {**self.options, **PARQUET_OPTIONS}
        with delta_errors(version):
            engine = engine_of(self.spark)
            return engine.read_files("parquet", paths, options=options, schema=schema)

    def parquet_schema(self, *names: str, version: Version) -> StructType:
        """Read the schema of Parquet files of the log, by their footers. Starts a Spark job."""
        options = {**self.options, **PARQUET_OPTIONS}
        if len(names) > 1:  # else Spark reads the footer of one
            options["mergeSchema"] = "true"
        what = "schema of a checkpoint"
        with delta_errors(version), named_jobs(self.spark, what, version=version):
            return self.spark.read.options(**options).parquet(*map(self._path, names)).schema

    def _path(self, name: str) -> str:
        return log_path(self.table_root, name)
