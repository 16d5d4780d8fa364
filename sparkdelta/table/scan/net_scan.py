"""Reading the rows that two versions may differ in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.engine.driver import read_rows
from sparkdelta.frames.log.changes import derived_changes
from sparkdelta.frames.rows.net_rows import KIND
from sparkdelta.schema.column_mapping import PHYSICAL_NAME
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.scan.change_scan import EntryScan


def with_kind(configuration: TableConfiguration) -> TableConfiguration:
    """The configuration of a table whose rows have `KIND`, the same for all rows of a file."""
    kind = StructField(KIND, StringType(), True, {PHYSICAL_NAME: KIND})
    return replace(
        configuration,
        schema=StructType([*configuration.schema.fields, kind]),
        partition_fields=(*configuration.partition_fields, kind),
    )


@dataclass(frozen=True, eq=False)
class NetScan(EntryScan):
    """A read of the files and rows that only one of two versions has, by files and vectors.

    Attributes
    ----------
    differing
        `frames.log.changes.net_actions` of the two.
    """

    differing: DataFrame = field(kw_only=True, repr=False)

    def has_rows_without_id(self) -> bool:
        """True if rows of a file have no id; only tables that break the protocol have such files.

        References
        ----------
        PROTOCOL.md#row-tracking
        """
        files = self._changes().filter("baseRowId IS NULL").select("path").limit(1)
        return bool(read_rows(files, what="file without row ids", bound=1))

    def _has_few_files(self, bound: int) -> bool:  # noqa: ARG002 - no version tells
        return False

    def _changes(self) -> DataFrame:
        """With the kind of the change."""
        partitions = self._state.configuration.partition_fields
        changes = derived_changes(
            self.differing,
            table_root=self._state.log.store.table_root,
            is_partitioned=len(partitions) > 1,
        )
        kind = F.create_map(F.lit(KIND), F.col("kind"))
        return changes.withColumn("partitionValues", F.map_concat("partitionValues", kind))
