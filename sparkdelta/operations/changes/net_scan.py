"""Reading of the rows in which two versions may differ.

References
----------
PROTOCOL.md#row-tracking
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME
from sparkdelta.base.spark.driver import has_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.changes.net_row_frames import KIND
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.log.state import TableState
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.file_change_frames import changes_of_pairs, net_pairs
from sparkdelta.table.scan.file_changes import FileChanges
from sparkdelta.table.scan.scan_request import BASE_ROW_ID, FileList


def with_kind(configuration: TableConfiguration) -> TableConfiguration:
    """Return the configuration of a table whose rows have `KIND`, as a partition column."""
    kind = StructField(KIND, StringType(), True, {PHYSICAL_NAME: KIND})
    return replace(
        configuration,
        schema=StructType([*configuration.schema.fields, kind]),
        partition_fields=(*configuration.partition_fields, kind),
    )


def has_files_without_row_ids(files: FileList | None) -> bool:
    """Return True if rows of a listed file have no id, as in tables that violate the protocol."""
    if isinstance(files, DataFrame):
        without_id = files.filter(F.col(BASE_ROW_ID).isNull()).select(BASE_ROW_ID)
        return has_rows(without_id, what="file without row ids")
    return files is not None and bool(files[BASE_ROW_ID].null_count)


@dataclass(frozen=True, kw_only=True)
class NetFileChanges(FileChanges):
    """The files and rows that only one of two versions has, by files and vectors.

    Attributes
    ----------
    before, after
        The states of the table in the two; None before its first version.
    max_driver_files
        That of the scan.
    """

    before: TableState | None
    after: TableState
    max_driver_files: int

    def are_few(self, bound: int) -> bool:
        states = (self.after,) if self.before is None else (self.before, self.after)
        return all(state.has_few_files(bound // len(states)) for state in states)

    def changes(self, state: TableState) -> DataFrame:
        """Return the files to read, with the kind of change among the partition values."""
        partitions = state.configuration.partition_fields
        changes = changes_of_pairs(self._pairs(), is_partitioned=len(partitions) > 1)
        kind = F.create_map(F.lit(KIND), F.col("kind"))
        return changes.withColumn("partitionValues", F.map_concat("partitionValues", kind))

    def _pairs(self) -> DataFrame:
        after, before = self._fast(self.after), self.before and self._fast(self.before)
        new = _files(after)
        return net_pairs(
            new.filter("FALSE") if before is None else _files(before),
            new,
            table_root=after.log.table_root,
            is_small=after.log.is_small and (before is None or before.log.is_small),
        )

    def _fast(self, state: TableState) -> TableState:
        """Return the state in the session that lists few files fastest."""
        log, engine = self.after.log, engine_of(self.after.log.spark)
        if not self.are_few(self.max_driver_files):
            return state
        listing = engine.listing_session(compiles=not log.is_small)
        return replace(state, log=state.log.in_session(listing))


def _files(state: TableState) -> DataFrame:
    add = add_fields(state.configuration.statistics, dataChange="true")
    return state.adds().selectExpr(f"{add} AS file")
