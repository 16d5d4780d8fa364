"""In which order file actions stand in a checkpoint, and which of them stand together.

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

from sparkdelta.frames.checkpoint.row_ranges import RowRanges, in_ranges, range_key
from sparkdelta.frames.log.partition_values import (
    partition_value,
    typed_partition_value,
    value_of_text,
)
from sparkdelta.frames.log.statistics import conformed, parsed_statistics
from sparkdelta.frames.skipping.data_skipping import StoredFacts
from sparkdelta.schema.checkpoint_schema import (
    PARTITION_VALUES_PARSED,
    STATS_PARSED,
    CheckpointSchema,
)
from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.statistics_schema import leaves, narrowed_statistics
from sparkdelta.schema.table_schema import quoted

LEADING_COLUMNS = 2
"""So many columns of the data order the files of a partition, unless the table is clustered."""

# A range of them says nothing that can be relied on: NaN, no order, or a zone of the reader's.
_NOT_RANGED = (BooleanType, BinaryType, FloatType, DoubleType)
_ZONED = (TimestampType, TimestampNTZType)
_SORT = "_sort_"


@dataclass(frozen=True, slots=True)
class FileOrder:
    """The columns by which the rows of `checkpoint_rows.add_rows` are ordered.

    Attributes
    ----------
    leading
        Physical names of columns of the data.
    time_zone
        Of timestamp partition values that were written without one.
    """

    schema: CheckpointSchema
    leading: tuple[tuple[str, ...], ...]
    time_zone: str

    @property
    def ranged_partition_keys(self) -> list[tuple[str, StructField]]:
        """The partition columns of which a range can be told."""
        return ranged_keys(self.schema.partition_keys)

    @property
    def ranged_statistics(self) -> StructType:
        """The type of the statistics of which a range is told."""
        known = narrowed_statistics(self.schema.statistics, self.leading)
        return StructType([self.schema.statistics["numRecords"]]) if known is None else known

    def partition_value(self, key: str, field: StructField) -> str:
        """The typed partition value of a row, in SQL."""
        if self.schema.with_struct:
            return f"add.{PARTITION_VALUES_PARSED}.{quoted(key)}"
        text = partition_value("add.partitionValues", key)
        return typed_partition_value(text, field, time_zone=self.time_zone)

    def statistics(self) -> str:
        """The statistics of a row, at least of the leading columns, in SQL."""
        if self.schema.with_struct:
            return f"add.{STATS_PARSED}"
        if not self.schema.with_json:
            return f"CAST(NULL AS {type_text(self.ranged_statistics)})"
        return parsed_statistics("add.stats", statistics=self.ranged_statistics)

    def clustered(self, rows: DataFrame, ranges: RowRanges | None) -> DataFrame:
        """Rows in order: by partition values, by leading statistics, by path.

        Parameters
        ----------
        rows
            A column `add`.
        ranges
            Of `sampled_keys`, each in a partition; None for one of all.
        """
        keyed, names = _keyed(rows, self.sort_keys())
        if ranges is None:
            spread = keyed.coalesce(1)
        else:
            keys = zip(names, self._key_types(), strict=True)
            spread = in_ranges(keyed, [range_key(*key) for key in keys], ranges)
        return spread.sortWithinPartitions(*names).drop(*names)

    def sort_keys(self) -> list[str]:
        """By what the adds are sorted, in SQL."""
        values = [self.partition_value(key, field) for key, field in self.schema.partition_keys]
        return [*values, *self._leading_bounds(self.statistics()), "add.path"]

    def sampled_keys(self, adds: DataFrame, stored: StoredFacts) -> DataFrame:
        """What tells the ranges that `clustered` is given.

        Parameters
        ----------
        adds
            path, partitionValues, stats, and the typed columns that `stored` names. They may be
            dead, so what is no value of its type is null and no error.
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
            known = conformed(STATS_PARSED, stored=stored.statistics, wanted=ranged)
            statistics = f"coalesce({known}, {statistics})"
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
    """Those of the partition columns, by their keys, of which a range can be told."""
    return [(key, field) for key, field in partition_keys if is_ranged(field.dataType)]


def value_ranges_type(keys: Sequence[tuple[str, StructField]]) -> StructType:
    """The type of the ranges of some partition columns, which looks like that of statistics.

    Parameters
    ----------
    keys
        As `ranged_keys` gives them.
    """
    bounds = StructType([StructField(key, field.dataType) for key, field in keys])
    counts = StructType([StructField(key, LongType()) for key, _ in keys])
    kinds = {"minValues": bounds, "maxValues": bounds, "nullCount": counts} if keys else {}
    ranges = [StructField(name, kind) for name, kind in kinds.items()]
    return StructType([StructField("numRecords", LongType()), *ranges])


def is_ranged(data_type: DataType) -> bool:
    """Whether a range of partition values of this type says what all readers agree on."""
    is_collated = isinstance(data_type, StringType) and data_type != StringType()
    return not is_collated and not isinstance(data_type, (*_NOT_RANGED, *_ZONED))


def hashed(rows: DataFrame, partitions: int) -> DataFrame:
    """Rows of one column `add` spread by a hash of their path, in no order."""
    if partitions == 1:
        return rows.coalesce(1)
    return rows.repartition(partitions, F.xxhash64("add.path"))


def by_deletion(rows: DataFrame, partitions: int) -> DataFrame:
    """Rows of one column `remove` in order of their deletion, oldest first."""
    return _sorted(rows, ["remove.deletionTimestamp", "remove.path"], partitions)


def in_one_file(rows: DataFrame, order: FileOrder | None, *, is_small: bool) -> DataFrame:
    """All rows of a classic checkpoint in one partition: what is not a file action, adds, removes.

    Parameters
    ----------
    order
        Of the adds; None leaves them as they come.
    is_small
        Whether one task is to do it all.
    """
    kind = "CASE WHEN add IS NOT NULL THEN 1 WHEN remove IS NOT NULL THEN 2 ELSE 0 END"
    keys = [kind, *(order.sort_keys() if order is not None else [])]
    return _sorted(rows if is_small else rows.repartition(1), keys, 1)


def leaf(statistics: str, kind: str, path: tuple[str, ...]) -> str:
    """One leaf of a struct of statistics, in SQL."""
    return ".".join((statistics, kind, *map(quoted, path)))


def leading_paths(
    statistics: StructType, clustering: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """The physical names of the columns that order files: clustering columns, else the first.

    Parameters
    ----------
    clustering
        Physical names; those without bounds are left out.
    """
    bounds = leaves(_bounds_type(statistics))
    paths = [path for path, data_type in bounds if not isinstance(data_type, _NOT_RANGED)]
    chosen = [path for path in clustering if path in paths]
    return tuple(chosen or paths[:LEADING_COLUMNS])


def _bounds_type(statistics: StructType) -> DataType:
    return statistics["minValues"].dataType if "minValues" in statistics.names else StructType()


def _sorted(rows: DataFrame, keys: list[str], partitions: int) -> DataFrame:
    keyed, names = _keyed(rows, keys)
    # What fits one file is not worth an exchange.
    spread = keyed.repartitionByRange(partitions, *names) if partitions > 1 else keyed.coalesce(1)
    return spread.sortWithinPartitions(*names).drop(*names)


def _keyed(rows: DataFrame, keys: list[str]) -> tuple[DataFrame, list[str]]:
    """Rows with their keys, computed once and not for each comparison, and the names of these."""
    names = [f"{_SORT}{number}" for number in range(len(keys))]
    named = (f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    return rows.selectExpr("*", *named), names
