"""Order and partitioning of file actions in checkpoint files.

References
----------
PROTOCOL.md#sidecar-files, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.schema.checkpoint_schema import (
    PARTITION_VALUES_PARSED,
    STATS_PARSED,
    CheckpointSchema,
)
from sparkdelta.base.schema.partition_value_frames import (
    partition_value,
    typed_partition_value,
    value_of_text,
)
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.statistics_frames import conformed, parsed_statistics
from sparkdelta.base.schema.statistics_schema import leaves, narrowed_statistics
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import StoredFacts
from sparkdelta.base.spark.row_range_frames import RowRanges, in_ranges, range_key

LEADING_COLUMNS = 2
"""The number of data columns that order the adds of a table without clustering columns."""

# Ranges of these types are unreliable: NaN, no order, or dependent on the reader's time zone.
_NOT_RANGED = (BooleanType, BinaryType, FloatType, DoubleType)
_ZONED = (TimestampType, TimestampNTZType)
_SORT = "_sort_"


@dataclass(frozen=True, slots=True)
class FileOrder:
    """The sort order of a checkpoint's add actions (rows of `checkpoint_row_frames.add_rows`).

    Attributes
    ----------
    schema
        The schema of the checkpoint.
    leading
        Physical paths of the data columns whose minima are sort keys, after the partition values.
    time_zone
        The time zone of timestamp partition values that were written without one.
    """

    schema: CheckpointSchema
    leading: tuple[tuple[str, ...], ...]
    time_zone: str

    @property
    def ranged_partition_keys(self) -> list[tuple[str, StructField]]:
        """The partition columns with reliable ranges, by physical name."""
        return ranged_keys(self.schema.partition_keys)

    @property
    def ranged_statistics(self) -> StructType:
        """The type of the statistics of the leading columns, whose ranges are recorded."""
        narrowed = narrowed_statistics(self.schema.statistics, self.leading)
        return StructType([self.schema.statistics["numRecords"]]) if narrowed is None else narrowed

    def partition_value(self, key: str, field: StructField) -> str:
        """Return SQL for the typed partition value of an add action."""
        if self.schema.with_struct:
            return f"add.{PARTITION_VALUES_PARSED}.{quoted(key)}"
        text = partition_value("add.partitionValues", key)
        return typed_partition_value(text, field, time_zone=self.time_zone)

    def statistics(self) -> str:
        """Return SQL for the statistics of an add action, at least of the leading columns."""
        if self.schema.with_struct:
            return f"add.{STATS_PARSED}"
        if not self.schema.with_json:
            return f"CAST(NULL AS {type_text(self.ranged_statistics)})"
        return parsed_statistics("add.stats", statistics=self.ranged_statistics)

    def clustered(self, rows: DataFrame, ranges: RowRanges | None) -> DataFrame:
        """Sort rows (add STRUCT) by partition values, leading statistics and path.

        `ranges` of `sampled_keys` make one partition each; None makes a single partition.
        """
        keyed, names = _keyed(rows, self.sort_keys())
        if ranges is None:
            spread = keyed.coalesce(1)
        else:
            keys = zip(names, self._key_types(), strict=True)
            spread = in_ranges(keyed, [range_key(*key) for key in keys], ranges)
        return spread.sortWithinPartitions(*names).drop(*names)

    def sort_keys(self) -> list[str]:
        """Return the sort keys of add actions, in SQL."""
        values = [self.partition_value(key, field) for key, field in self.schema.partition_keys]
        return [*values, *self._leading_bounds(self.statistics()), "add.path"]

    def sampled_keys(self, adds: DataFrame, stored: StoredFacts) -> DataFrame:
        """Return the range keys of add actions, from which the ranges of `clustered` are computed.

        The adds have path STRING, partitionValues MAP<STRING, STRING>, stats STRING, and the typed
        columns in `stored`. Some may not be live, so a value that is not of its type is null, not
        an error.
        """
        values = []
        for key, field in self.schema.partition_keys:
            text = partition_value("partitionValues", key)
            value = value_of_text(text, field.dataType, time_zone=self.time_zone)
            if field.name in stored.partition_values:
                name = quoted(stored.partition_values[field.name])
                value = f"coalesce({PARTITION_VALUES_PARSED}.{name}, {value})"
            values.append(value)
        ranged = self.ranged_statistics
        statistics = parsed_statistics("stats", statistics=ranged)
        if not self.schema.with_json and not self.schema.with_struct:
            statistics = self.statistics()
        elif stored.statistics is not None:
            typed = conformed(STATS_PARSED, stored=stored.statistics, wanted=ranged)
            statistics = f"coalesce({typed}, {statistics})"
        keys = zip(
            [*values, *self._leading_bounds(statistics), "path"], self._key_types(), strict=True
        )
        return adds.selectExpr(*(f"{range_key(*k)} AS key_{n}" for n, k in enumerate(keys)))

    def _leading_bounds(self, statistics: str) -> list[str]:
        return [leaf(statistics, "minValues", path) for path in self.leading]

    def _key_types(self) -> list[DataType]:
        values = [field.dataType for _, field in self.schema.partition_keys]
        kinds = dict(leaves(_bounds_type(self.schema.statistics)))
        return [*values, *(kinds[path] for path in self.leading), StringType()]


def ranged_keys(partition_keys: Sequence[tuple[str, StructField]]) -> list[tuple[str, StructField]]:
    """Return the partition columns with reliable ranges, by physical name."""
    return [(key, field) for key, field in partition_keys if is_ranged(field.dataType)]


def value_ranges_type(keys: Sequence[tuple[str, StructField]]) -> StructType:
    """Return the type of the ranges of partition columns, in the shape of file statistics.

    `keys` are the result of `ranged_keys`.
    """
    bounds = StructType([StructField(key, field.dataType) for key, field in keys])
    counts = StructType([StructField(key, LongType()) for key, _ in keys])
    kinds = {"minValues": bounds, "maxValues": bounds, "nullCount": counts} if keys else {}
    ranges = [StructField(name, kind) for name, kind in kinds.items()]
    return StructType([StructField("numRecords", LongType()), *ranges])


def is_ranged(data_type: DataType) -> bool:
    """Return True if all readers order partition values of this type the same way."""
    is_collated = isinstance(data_type, StringType) and data_type != StringType()
    return not is_collated and not isinstance(data_type, (*_NOT_RANGED, *_ZONED))


def hashed(rows: DataFrame, partitions: int) -> DataFrame:
    """Distribute rows (add STRUCT) over partitions by a hash of their path, unsorted."""
    if partitions == 1:
        return rows.coalesce(1)
    return rows.repartition(partitions, F.xxhash64("add.path"))


def by_deletion(rows: DataFrame, partitions: int) -> DataFrame:
    """Sort rows (remove STRUCT) by deletion timestamp, oldest first."""
    return _sorted(rows, ["remove.deletionTimestamp", "remove.path"], partitions)


def in_one_file(rows: DataFrame, order: FileOrder | None, *, is_small: bool) -> DataFrame:
    """Sort the rows of a classic checkpoint in one partition: other actions, adds, removes.

    Without an order, the adds are unsorted. With `is_small`, a single task computes the rows,
    without a shuffle.
    """
    kind = "CASE WHEN add IS NOT NULL THEN 1 WHEN remove IS NOT NULL THEN 2 ELSE 0 END"
    keys = [kind, *(order.sort_keys() if order is not None else [])]
    return _sorted(rows if is_small else rows.repartition(1), keys, 1)


def leaf(statistics: str, kind: str, path: tuple[str, ...]) -> str:
    """Return SQL for one leaf of a statistics struct."""
    return ".".join((statistics, kind, *map(quoted, path)))


def leading_paths(
    statistics: StructType, clustering: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the columns that order files.

    These are the clustering columns with statistics, or else the first columns with statistics.
    """
    bounds = leaves(_bounds_type(statistics))
    paths = [path for path, data_type in bounds if not isinstance(data_type, _NOT_RANGED)]
    chosen = [path for path in clustering if path in paths]
    return tuple(chosen or paths[:LEADING_COLUMNS])


def _bounds_type(statistics: StructType) -> DataType:
    return statistics["minValues"].dataType if "minValues" in statistics.names else StructType()


def _sorted(rows: DataFrame, keys: list[str], partitions: int) -> DataFrame:
    keyed, names = _keyed(rows, keys)
    # Rows that fit in one file do not need a shuffle.
    spread = keyed.repartitionByRange(partitions, *names) if partitions > 1 else keyed.coalesce(1)
    return spread.sortWithinPartitions(*names).drop(*names)


def _keyed(rows: DataFrame, keys: list[str]) -> tuple[DataFrame, list[str]]:
    """Add sort keys as columns, so that each is computed once per row, and return their names."""
    names = [f"{_SORT}{number}" for number in range(len(keys))]
    named = (f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    return rows.selectExpr("*", *named), names
