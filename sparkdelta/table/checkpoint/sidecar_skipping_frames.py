"""Skipping of sidecar files by the ranges in their tags.

The rules of `base.skipping.skipping_frames` are applied to a sidecar as if it were one data file
with the rows of all its files. A partition column is not constant in it, but has a range like any
other column.

References
----------
PROTOCOL.md#sidecar-file-information, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.statistics_frames import parsed_statistics
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.skipping.skipping_frames import Condition, FileFacts, SkippingRules
from sparkdelta.table.checkpoint.checkpoint_layout_frames import ranged_keys, value_ranges_type

_VALUES, _STATISTICS = "partitions", "statistics"
_RECORDS = "numRecords"


@dataclass(frozen=True, slots=True)
class SidecarSkipping:
    """Selection of sidecar files by the predicate of a `DataSkipping`."""

    skipping: DataSkipping

    def keep(self, tags: DataFrame) -> DataFrame | None:
        """Return the names of the sidecars that may contain an add of a matching file.

        name STRING; None if no sidecar can be skipped.

        Parameters
        ----------
        tags
            name STRING, partition_values STRING, statistics STRING: the tags of
            `table.checkpoint.sidecar_tag_rules`.
        """
        facts = FileFacts(
            partition=lambda _: None,
            minimum=lambda path: self._fact("minValues", path),
            maximum=lambda path: self._fact("maxValues", path),
            null_count=self._null_count,
            num_records=f"{_STATISTICS}.{_RECORDS}",
            is_combined=True,
        )
        rules = SkippingRules(self.skipping.schema, frozenset(), facts)
        condition = rules.condition(self.skipping.predicate)
        if condition is None:
            return None
        ranges = value_ranges_type(ranged_keys(self.skipping.partition_keys))
        values = parsed_statistics("partition_values", statistics=ranges)
        statistics = parsed_statistics(_STATISTICS, statistics=self.skipping.statistics)
        parsed = tags.selectExpr("name", f"{values} AS {_VALUES}", f"{statistics} AS {_STATISTICS}")
        return parsed.filter(condition).select("name")

    def _fact(self, kind: str, path: ColumnPath) -> Condition:
        key = self._partition_key(path)
        if key is not None:
            return f"{_VALUES}.{kind}.{quoted(key)}"
        if path[0] in self.skipping.partition_columns:
            return None
        if self.skipping.wanted_type(kind, path) is None:
            return None
        return ".".join([_STATISTICS, kind, *map(quoted, self.skipping.physical(path))])

    def _null_count(self, path: ColumnPath) -> Condition:
        """Return the number of rows that are null.

        For a partition column, it is unknown if only some of the files are in the null partition.
        """
        key = self._partition_key(path)
        if key is None:
            return self._fact("nullCount", path)
        files, nulls = f"{_VALUES}.{_RECORDS}", f"{_VALUES}.nullCount.{quoted(key)}"
        cases = f"WHEN {nulls} = 0 THEN 0 WHEN {nulls} = {files} THEN {_STATISTICS}.{_RECORDS}"
        return f"CASE {cases} END"

    def _partition_key(self, path: ColumnPath) -> str | None:
        keys = ranged_keys(self.skipping.partition_keys)
        return next((key for key, field in keys if field.name == path[0]), None)
