"""The order of rows along a curve through several columns, for Z-order and clustering.

References
----------
PROTOCOL.md#clustered-table, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.predicates.resolved_names import UnusableError, find_column, name_parts
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.spatial_types import check_not_spatial
from sparkdelta.base.schema.table_schema import quoted, quoted_path, type_of_path
from sparkdelta.base.spark.driver import read_row, read_table
from sparkdelta.base.spark.row_range_frames import hashed_numbers, separate_places
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.compaction.curve_order_frames import curve_key, in_curve_order
from sparkdelta.operations.compaction.curve_rules import Curve, CurveRanges
from sparkdelta.table.log.table_configuration import TableConfiguration

MAX_SAMPLED_ROWS = 200_000
"""The most sampled rows for the ranges of a batch; about half as many are asked for."""

_GROUP, _KEY = "__sparkdelta_group", "key"
_LEAST_ROW_BYTES = 8  # of files without statistics


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows along a curve.

    Attributes
    ----------
    columns
        Spelled as in the schema.
    is_hilbert
        True for the Hilbert curve, False for Z-order.
    max_bytes
        The bytes of files that are ordered together; None for all files of a partition.
    """

    columns: tuple[ColumnPath, ...]
    is_hilbert: bool = False
    max_bytes: int | None = None

    def ordered(
        self, rows: Sequence[DataFrame], num_files: Sequence[int], fraction: float
    ) -> DataFrame:
        """Return the rows, a partition for each new file, sorted.

        One job reads a sample of the columns.

        Parameters
        ----------
        rows
            The rows of each group; files hold rows of one of them.
        num_files
            The number of new files of each group.
        fraction
            Of the rows to sample.
        """
        union = reduce(
            DataFrame.unionByName,
            (each.withColumn(_GROUP, F.lit(number)) for number, each in enumerate(rows)),
        )
        schema = rows[0].schema
        keys = [curve_key(quoted_path(path), type_of_path(schema, path)) for path in self.columns]
        named = (f"{key} AS {_KEY}{number}" for number, key in enumerate(keys))
        sample = union.selectExpr(quoted(_GROUP), *named).sample(fraction=fraction, seed=1)
        table = read_table(
            sample.limit(MAX_SAMPLED_ROWS), what="sampled rows to order", bound=MAX_SAMPLED_ROWS
        )
        curve = Curve.through(len(keys), is_hilbert=self.is_hilbert)
        total = sum(num_files)
        hashed = read_row(
            union.sparkSession.sql(f"SELECT {hashed_numbers(total)}"),
            what="partitions of ordered files",
        )
        return in_curve_order(
            union,
            quoted(_GROUP),
            keys,
            curve,
            [
                _ranges(table, number, curve, num_files=count)
                for number, count in enumerate(num_files)
            ],
            separate_places(hashed[0], total),
        )


def zorder_columns(table: TableConfiguration, names: Sequence[str]) -> tuple[ColumnPath, ...]:
    """Return the columns of Z-order by names of the user, which may be nested or quoted."""
    paths = []
    for name in names:
        try:
            path = find_column(table.schema, name_parts(name)).path
        except UnusableError:
            available = table.schema.names
            raise DeltaError.of(
                "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", column=name, available=available
            ) from None
        if path[0] in table.partition_columns:
            raise DeltaError.of("DELTA_ZORDERING_ON_PARTITION_COLUMN", column=name)
        check_not_spatial(name, type_of_path(table.schema, path), "Z-ORDER")
        paths.append(path)
    without = [
        name
        for name, path in zip(names, paths, strict=True)
        if physical_path(table.schema, path, table.column_mapping) not in table.statistics_columns
    ]
    if without:
        raise DeltaError.of("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", columns=without)
    return tuple(paths)


def sampled_fraction(num_rows: int | None, size_bytes: int) -> float:
    """Return the fraction of rows that gives half of MAX_SAMPLED_ROWS.

    Parameters
    ----------
    num_rows
        None if statistics lack it.
    """
    count = num_rows if num_rows is not None else size_bytes // _LEAST_ROW_BYTES
    return min(1.0, MAX_SAMPLED_ROWS / 2 / max(count, 1))


def _ranges(sample: pa.Table, group: int, curve: Curve, *, num_files: int) -> CurveRanges:
    is_own = np.asarray(sample[_GROUP]) == group
    keys = [np.asarray(column)[is_own] for column in sample.drop_columns([_GROUP]).columns]
    return CurveRanges.of(keys, curve, num_files)
