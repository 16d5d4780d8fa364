"""The files of one version in the order in which a stream reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.schema.action_schemas import actions
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.operations.stream.stream_offset_rules import BEFORE_FILES
from sparkdelta.table.listing.file_reader import LINE_PLACE, LogFileReader
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.log.state import NUM_RECORDS, num_records
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.live_files import file_columns
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from sparkdelta.table.snapshot.snapshot import Snapshot

VERSION, INDEX, EXCLUDED = "version", "index", "is_excluded"
_PATH = "path"


def file_list_columns(
    table: TableConfiguration, table_root: str, exclude_regex: str | None
) -> list[str]:
    """Return SQL of the columns that scans need, see `NativeScan.rows`, and EXCLUDED.

    The SQL refers to the fields of add actions and NUM_RECORDS. Files are excluded if a regular
    expression of Java matches a part of their path.
    """
    excluded = "FALSE" if exclude_regex is None else f"path RLIKE {text_literal(exclude_regex)}"
    columns = file_columns(table, table_root, has_vectors=True)
    return [*columns, f"{excluded} AS {EXCLUDED}"]


@dataclass(frozen=True, slots=True)
class IndexedFiles:
    """The files of one version with their place among them.

    The driver holds a list of up to `MAX_DRIVER_FILES`; Spark keeps a longer list, of which each
    batch takes its part.
    """

    version: Version
    _files: pa.Table | DataFrame

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, columns: list[str]) -> IndexedFiles:
        """Return all the files of a table, by modification time and path."""
        if not snapshot.state.has_few_files(MAX_DRIVER_FILES):
            return cls._of_state(snapshot, columns, is_short=False)
        log, key = snapshot.log, ("in order", *columns)
        kept = log.file_lists.find(key)
        if kept is not None:
            return cls(snapshot.version, kept)
        listing = engine_of(log.spark).in_listing_session(compiles=not log.is_small)
        with listing as session:
            indexed = cls._of_state(snapshot.in_session(session), columns, is_short=True)
        if isinstance(indexed._files, pa.Table):
            log.file_lists.keep(key, indexed._files)
        return indexed

    @classmethod
    def _of_state(cls, snapshot: Snapshot, columns: list[str], *, is_short: bool) -> IndexedFiles:
        order = ("modificationTime", _PATH)
        fields = (_PATH, "partitionValues", "size", "modificationTime", "deletionVector")
        files = snapshot.state.scan_files(*fields).selectExpr(*columns, *order)
        return cls._of(files, order, snapshot.version, is_short=is_short)

    @classmethod
    def of_commit(cls, reader: LogFileReader, commit: LogFile, columns: list[str]) -> IndexedFiles:
        """Return the files that a commit adds with `dataChange`, in the order of lines."""
        lines = reader.executor_lines([commit], with_places=True)
        adds = parse_log_lines(lines, actions=actions("add"), keep=LINE_PLACE)
        adds = adds.filter("add.dataChange").select("add.*", *LINE_PLACE)
        files = adds.selectExpr("*", f"{num_records()} AS {NUM_RECORDS}")
        files = files.selectExpr(*columns, *LINE_PLACE)
        return cls._of(files, LINE_PLACE, commit.version, is_short=False)

    @classmethod
    def _of(
        cls, files: DataFrame, order: Sequence[str], version: Version, *, is_short: bool
    ) -> IndexedFiles:
        try:
            table = read_table(
                files if is_short else files.limit(MAX_DRIVER_FILES + 1),
                what="files of a version that a stream reads",
                bound=MAX_DRIVER_FILES,
                version=version,
            )
        except DriverReadTooLargeError:
            in_order = files.repartition(1).sortWithinPartitions(*order)
            indexed = in_order.withColumn(INDEX, F.monotonically_increasing_id()).drop(*order)
            return cls(version, indexed.persist(StorageLevel.MEMORY_AND_DISK))
        table = table.sort_by([(name, "ascending") for name in order]).drop_columns(list(order))
        indexes = pa.array(range(table.num_rows), pa.int64())
        return cls(version, table.append_column(INDEX, indexes))

    def after(self, index: int, count: int) -> pa.Table:
        """Return up to `count` files after one of them, with VERSION and INDEX."""
        first = max(index, BEFORE_FILES) + 1
        if isinstance(self._files, pa.Table):
            files = self._files.slice(first, count)
        else:
            files = read_table(
                self._files.filter(F.col(INDEX).between(first, first + count - 1)),
                what="files of a batch",
                bound=count,
                version=self.version,
            ).sort_by(INDEX)
        versions = pa.repeat(pa.scalar(self.version, pa.int64()), files.num_rows)
        return files.append_column(VERSION, versions)

    def release(self) -> None:
        """Release the files that Spark keeps."""
        if not isinstance(self._files, pa.Table):
            self._files.unpersist()
