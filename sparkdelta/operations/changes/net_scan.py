"""Reading the rows that two versions may differ in.

References
----------
PROTOCOL.md#row-tracking
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.changes.net_row_frames import KIND
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.log.state import TableState
from sparkdelta.table.scan.change_file_frames import changes_of_pairs, net_pairs
from sparkdelta.table.scan.change_scan import FileChangeScan
from sparkdelta.table.scan.scan_request import BASE_ROW_ID


def with_kind(configuration: TableConfiguration) -> TableConfiguration:
    """The configuration of a table whose rows have `KIND`, the same for all rows of a file."""
    kind = StructField(KIND, StringType(), True, {PHYSICAL_NAME: KIND})
    return replace(
        configuration,
        schema=StructType([*configuration.schema.fields, kind]),
        partition_fields=(*configuration.partition_fields, kind),
    )


@dataclass(frozen=True, eq=False)
class NetScan(FileChangeScan):
    """A read of the files and rows that only one of two versions has, by files and vectors.

    Attributes
    ----------
    before, after
        The states of the table in the two; None before its first version.
    known_files
        The list of files, once it is read.
    """

    before: TableState | None = field(kw_only=True, repr=False)
    after: TableState = field(kw_only=True, repr=False)
    known_files: pa.Table | DataFrame | None = field(default=None, kw_only=True, repr=False)

    def with_files(self) -> NetScan:
        """The same scan, whose list of files with their row ids is read once."""
        with self._named_jobs():
            return replace(self, known_files=super()._files_to_read(tracks_rows=True))

    def has_rows_without_id(self) -> bool:
        """True if rows of a file have no id, as in tables that break the protocol."""
        files = self._files_to_read(tracks_rows=True)
        if isinstance(files, pa.Table):
            return bool(files[BASE_ROW_ID].null_count)
        without_id = files.filter(F.col(BASE_ROW_ID).isNull()).select(BASE_ROW_ID).limit(1)
        return bool(read_rows(without_id, what="file without row ids", bound=1))

    def _files_to_read(self, *, tracks_rows: bool = False) -> pa.Table | DataFrame:
        if self.known_files is not None:
            return self.known_files
        return super()._files_to_read(tracks_rows=tracks_rows)

    def _has_few_files(self, bound: int) -> bool:
        states = (self.after,) if self.before is None else (self.before, self.after)
        return all(state.has_few_files(bound // len(states)) for state in states)

    def _changes(self) -> DataFrame:
        """The files to read, with the kind of change among the partition values."""
        partitions = self._state.configuration.partition_fields
        changes = changes_of_pairs(self._pairs(), is_partitioned=len(partitions) > 1)
        kind = F.create_map(F.lit(KIND), F.col("kind"))
        return changes.withColumn("partitionValues", F.map_concat("partitionValues", kind))

    def _pairs(self) -> DataFrame:
        after, before = self._fast(self.after), self.before and self._fast(self.before)
        new = _files(after)
        return net_pairs(
            new.filter("FALSE") if before is None else _files(before),
            new,
            table_root=after.log.store.table_root,
            is_small=after.log.is_small and (before is None or before.log.is_small),
        )

    def _fast(self, state: TableState) -> TableState:
        """The state in the session in which a short list is made soonest."""
        log, engine = self.after.log, engine_of(self.after.log.spark)
        if not engine.can("call back") or not self._has_few_files(self.max_driver_files):
            return state
        listing = engine.listing_session(compiles=not log.is_small)
        return replace(state, log=state.log.in_session(listing))


def _files(state: TableState) -> DataFrame:
    add = add_fields(state.configuration.statistics, dataChange="true")
    return state.adds().selectExpr(f"{add} AS file")
